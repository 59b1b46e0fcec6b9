# SPDX-License-Identifier: Apache-2.0
"""berth bake and berth build, with Debian's buildah: cells of a matrix become one index, what is
declared has to be true, and only what has changed is made again."""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.error

import pytest

from support import debian_images, images, podman
from support.berth import Berth

PREFIX = "dev.berth.variant."
# Overlays of overlays are not everywhere; as root they would be seen outside.
BUILDER = {"STORAGE_DRIVER": "vfs"}
PROGRAM = "int main(void) { return 0; }"
LEVELS = {"x86-64": [], "x86-64-v2": ["-Wl,-z,x86-64-v2"], "x86-64-v3": ["-Wl,-z,x86-64-v3"]}
CONTAINERFILE = """\
FROM scratch
ARG LEVEL
COPY app-$LEVEL /app
COPY shared /shared
CMD ["/app"]
"""

pytestmark = pytest.mark.profiles("root")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Programs that the loader refuses below their level."""
    place = tmp_path_factory.mktemp("programs")
    (place / "app.c").write_text(PROGRAM)
    for level, options in LEVELS.items():
        subprocess.run(["gcc", "-nostartfiles", "-Wl,-e,main", *options, "-o",
                        place / f"app-{level}", place / "app.c"], check=True)
    return place


@pytest.fixture
def project(work, compiled, registry, request):
    """A directory with a Containerfile, its programs and, after write(), a bake file."""
    class Project:
        def __init__(self):
            self.directory = work / "project"
            self.directory.mkdir()
            for level in LEVELS:
                shutil.copy(compiled / f"app-{level}", self.directory)
            (self.directory / "shared").write_text("1\n")
            (self.directory / "Containerfile").write_text(CONTAINERFILE)
            self.name = "bake/" + "".join(c if c.isalnum() else "-" for c in request.node.name)
            self.name = self.name.lower().replace("--", "-").strip("-")
            self.image = f"{registry.address}/{self.name}:1.0"
            self.file = self.directory / "bake.toml"

        def write(self, text):
            self.file.write_text(f'image = "{self.image}"\n' + text)
            return self.file

        def matrix(self, levels=("x86-64", "x86-64-v3"), more=""):
            words = ", ".join(f'"{level}"' for level in levels)
            return self.write(f'{more}[args]\nLEVEL = "{{cpu}}"\n[axes]\ncpu = [{words}]\n')

        def index(self, tag="1.0"):
            return json.loads(registry.manifest(self.name, tag)[1])
    return Project()


@pytest.fixture
def bake(berth):
    """bake(file, *flags, status=0) → (events by cell, the last one; stderr)"""
    def run(file, *flags, status=0, by=berth, env=BUILDER):
        done = by.run("bake", file, "--format", "json", *flags, env=env, timeout=300)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        cells = {event["cell"]: event for event in events if event["event"] == "cell"}
        result = events[-1] if events and events[-1]["event"] == "result" else None
        return cells, result, done.stderr
    return run


def states(cells):
    return {name: event["state"] for name, event in cells.items()}


def names(index):
    return [entry["annotations"][PREFIX + "name"] for entry in index["manifests"]]


def node_file(work, level):
    path = work / f"node-{level}.json"
    path.write_text(json.dumps({"version": 1, "architecture": "amd64", "cpu": {
        "microarchitecture": level.replace("-", "_")}}))
    return path


def found_beside(project, registry, digest):
    """The images that the document beside an index speaks of."""
    beside = json.loads(registry.manifest(project.name, digest.replace(":", "-"))[1])
    [entry] = beside["manifests"]
    layer = json.loads(base64.b64decode(entry["data"]))["layers"][0]
    text = subprocess.run(["zstd", "-dc"], input=base64.b64decode(layer["data"]), check=True,
                          capture_output=True).stdout
    return {one["image"] for one in json.loads(text)["images"]}


# ---- the whole way -------------------------------------------------------------------------------

def test_a_matrix_becomes_one_index_that_nodes_choose_from(berth, bake, project, work):
    project.matrix(("x86-64-v3", "x86-64", "x86-64-v2"))
    cells, result, _ = bake(project.file, "--jobs", "2")
    assert states(cells) == {"v3": "built", "x86-64": "built", "v2": "built"}
    index = project.index()
    assert names(index) == ["x86-64", "v2", "v3"]
    assert {entry["mediaType"] for entry in index["manifests"]} == {images.OCI["manifest"]}
    assert all(entry["platform"] == {"architecture": "amd64", "os": "linux"}
               for entry in index["manifests"])
    assert index["manifests"][2]["annotations"][PREFIX + "cpu"] == "x86-64-v3"
    for level, taken in (("x86-64", "x86-64"), ("x86-64-v2", "v2"), ("x86-64-v4", "v3")):
        done = berth.run("match", "--node", node_file(work, level), project.image,
                         "--format", "json")
        answer = json.loads(done.stdout)
        assert [entry["name"] for entry in answer["entries"]
                if entry["digest"] == answer["taken"]] == [taken], done.stdout
    skopeo = subprocess.run(["skopeo", "inspect", "--tls-verify=false", "--raw",
                             f"docker://{project.image}"], check=True, capture_output=True)
    assert json.loads(skopeo.stdout) == index


def test_what_was_found_in_every_cell_is_published_beside_the_index(bake, project, registry):
    project.matrix()
    _, result, _ = bake(project.file)
    cells = {entry["digest"] for entry in project.index()["manifests"]}
    assert len(cells) == 2 and found_beside(project, registry, result["digest"]) == cells
    project.matrix(("x86-64", "x86-64-v3", "x86-64-v2"))
    _, grown, _ = bake(project.file)
    assert grown["digest"] != result["digest"]
    assert found_beside(project, registry, grown["digest"]) > cells


def test_only_what_has_changed_is_made_again(bake, project):
    project.matrix()
    first, result, _ = bake(project.file)
    again, same, _ = bake(project.file)
    assert states(again) == {"x86-64": "unchanged", "v3": "unchanged"}
    assert same["digest"] == result["digest"]
    project.matrix(("x86-64", "x86-64-v3", "x86-64-v2"))
    added, _, _ = bake(project.file)
    assert states(added) == {"x86-64": "unchanged", "v3": "unchanged", "v2": "built"}
    (project.directory / "shared").write_text("2\n")
    changed, _, _ = bake(project.file)
    assert set(states(changed).values()) == {"built"}
    assert changed["v3"]["digest"] != first["v3"]["digest"]


def test_index_and_images_are_signed_where_asked_for(bake, project, registry, work):
    key = work / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
                   check=True)
    project.matrix()
    _, result, _ = bake(project.file, "--sign-key", key)
    for digest in (result["digest"], *(entry["digest"] for entry in project.index()["manifests"])):
        signature = json.loads(registry.manifest(project.name,
                                                 digest.replace(":", "-") + ".sig")[1])
        document = registry.request("GET", f"/v2/{project.name}/blobs/"
                                    + signature["layers"][0]["digest"])[2]
        assert json.loads(document)["critical"]["image"]["docker-manifest-digest"] == digest
    bake(project.file, "--sign-key", work / "missing.pem", status=1)


def test_a_key_signs_nothing_that_others_have_put_in_the_place_of_a_cell(
        programs, profile, bake, project, registry, work):
    """Annotations say what an entry was made of, and whoever may push can write them."""
    key = work / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
                   check=True)
    profile.own(work)
    project.matrix()
    _, first, _ = bake(project.file, "--sign-key", key)
    index = project.index()
    evil = images.build([images.layer([images.file("app", b"evil")])])
    evil.push(registry, project.name, "evil")
    index["manifests"][1] |= {"digest": evil.digest, "size": len(evil.manifest)}
    registry.put_manifest(project.name, "1.0", index["mediaType"], json.dumps(index).encode())
    fresh = Berth(programs, profile, work / "fresh")
    try:
        _, _, stderr = bake(project.file, "--sign-key", key, status=1, by=fresh)
        assert f"sign '{evil.digest}': it was published without a signature" in stderr
        with pytest.raises(urllib.error.HTTPError, match="404"):
            registry.manifest(project.name, evil.digest.replace(":", "-") + ".sig")
        _, again, _ = bake(project.file, "--no-cache", "--sign-key", key, by=fresh)
        assert again is not None and first is not None
        # What the key has signed before is taken as it is, on any machine.
        other = Berth(programs, profile, work / "other")
        assert set(states(bake(project.file, "--sign-key", key, by=other)[0]).values()) == \
            {"unchanged"}
        other.close()
    finally:
        fresh.close()


def test_a_key_that_cannot_sign_is_told_before_anything_is_built(berth, project, work):
    key = work / "key.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
                   check=True)
    public = work / "public.pem"
    subprocess.run(["openssl", "ec", "-in", key, "-pubout", "-out", public], check=True)
    project.matrix()
    done = berth.run("bake", "--sign-key", public, project.file, env=BUILDER)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot sign with '{public}': read the signing key: not an unencrypted PEM" in \
        done.stderr
    assert berth.ok("images", "-q") == ""


def test_a_lie_is_refused_and_nothing_is_published(bake, project, registry):
    project.write('[[cell]]\nname = "honest"\nargs = {LEVEL = "x86-64"}\n'
                  '[[cell]]\nname = "liar"\ncpu = "x86-64-v2"\nargs = {LEVEL = "x86-64-v3"}\n')
    cells, result, stderr = bake(project.file, status=21)
    assert states(cells) == {"honest": "built", "liar": "lies"}
    assert cells["liar"]["text"] == "declares x86-64-v2; /app needs x86-64-v3 (found: note)"
    assert result["digest"] is None
    with pytest.raises(Exception, match="404"):
        project.index()


def test_a_cell_that_fails_lets_the_others_finish_and_is_resumed(bake, project):
    text = ('[args]\nLEVEL = "{{cpu}}"\n[axes]\ncpu = ["x86-64", "x86-64-v2"]\n'
            '[[cell]]\ncpu = "x86-64-v3"\nargs = {{LEVEL = "{}"}}\n')
    project.write(text.format("of-no-file"))
    cells, result, stderr = bake(project.file, status=20)
    assert states(cells) == {"x86-64": "built", "v2": "built", "v3": "failed"}
    assert "app-of-no-file" in pathlib.Path(cells["v3"]["log"]).read_text()
    assert result["digest"] is None
    with pytest.raises(Exception, match="404"):
        project.index()
    project.write(text.format("x86-64-v3"))
    cells, result, _ = bake(project.file)
    assert states(cells) == {"x86-64": "unchanged", "v2": "unchanged", "v3": "built"}
    assert names(project.index()) == ["x86-64", "v2", "v3"]


def test_the_lines_of_a_pipe_show_the_end_of_a_failed_build(berth, project):
    project.matrix()
    (project.directory / "app-x86-64-v3").unlink()
    done = berth.run("bake", project.file, env=BUILDER)
    assert done.returncode == 20
    assert "x86-64: built" in done.stdout and "v3: failed: build the image: buildah" in done.stdout
    assert "---- v3: the end of" in done.stderr and "app-x86-64-v3" in done.stderr
    assert "not all cells are good: v3 (failed)" in done.stderr


def test_each_state_and_each_remark_is_told_once(berth, project):
    project.write('[[cell]]\nname = "a"\ncc = "90"\nargs = {LEVEL = "x86-64"}\n')
    remark = "declares sm_90; no code for GPUs was found in its files"
    built = berth.run("bake", project.file, env=BUILDER)
    assert built.returncode == 0, built.stderr
    assert built.stdout.splitlines()[:3] == ["a: building", "a: checking", "a: built"]
    again = berth.run("bake", project.file, env=BUILDER)
    assert again.stdout.splitlines()[0] == "a: unchanged"
    assert again.stdout.count("unchanged") == 1
    for done in (built, again):
        assert f"warning: cell 'a' {remark}, ignoring" in done.stderr
        assert (done.stdout + done.stderr).count(remark) == 1
    table = berth.run("bake", "--dry-run", project.file, env=BUILDER)
    assert (table.stdout + table.stderr).count(remark) == 1


def test_cells_that_are_one_image_are_told(berth, project):
    project.write('[args]\nLEVEL = "x86-64"\n[axes]\ncc = ["80", "90"]\n')
    for _ in range(2):
        done = berth.run("bake", project.file, env=BUILDER)
        assert done.returncode == 0, done.stderr
        [line] = [line for line in done.stderr.splitlines() if "same image" in line]
        assert line.endswith("is the same image as cell 'sm80': what the two differ by does not "
                             "reach it, ignoring"), line


def test_a_terminal_shows_a_table_that_fills(berth, project):
    project.matrix()
    terminal = berth.terminal("bake", project.file, env=BUILDER, columns=200)
    terminal.expect("0 of 2 cells", timeout=60)
    terminal.expect("2 of 2 cells", timeout=60)
    terminal.expect("Published")
    assert terminal.wait() == 0


# ---- adopting ------------------------------------------------------------------------------------

def push_program(registry, compiled, repository, tag, level):
    layer = images.layer([images.file("app", (compiled / f"app-{level}").read_bytes(), mode=0o755)])
    image = images.build([layer], {"Cmd": ["/app"]})
    image.push(registry, repository, tag)
    return image


def test_tags_that_are_there_are_adopted_by_a_template(bake, project, registry, compiled):
    for level in ("x86-64", "x86-64-v3"):
        push_program(registry, compiled, "adopted/app", f"{level}_nvcap90_2.9", level)
    address = registry.address
    project.write('version = "2.9"\nname = "{cpu}"\n'
                  f'adopt = "{address}/adopted/app:{{cpu}}_nvcap{{cc}}_{{version}}"\n'
                  '[axes]\ncpu = ["x86-64", "x86-64-v3"]\ncc = ["90"]\n')
    cells, _, _ = bake(project.file)
    assert states(cells) == {"x86-64": "built", "x86-64-v3": "built"}
    index = project.index()
    theirs = [registry.manifest("adopted/app", f"{level}_nvcap90_2.9")[0]
              for level in ("x86-64", "x86-64-v3")]
    assert [entry["digest"] for entry in index["manifests"]] == theirs
    assert [entry["annotations"][PREFIX + "gpu"] for entry in index["manifests"]] == ["sm_90"] * 2
    assert states(bake(project.file)[0]) == {"x86-64": "unchanged", "x86-64-v3": "unchanged"}
    push_program(registry, compiled, "adopted/app", "x86-64_nvcap90_2.9", "x86-64-v2")
    cells, _, _ = bake(project.file, status=21)
    assert states(cells) == {"x86-64": "lies", "x86-64-v3": "unchanged"}


def test_a_tag_that_is_not_there_fails_its_cell_alone(bake, project, registry):
    project.write('[[cell]]\nname = "built"\nargs = {LEVEL = "x86-64"}\n'
                  f'[[cell]]\nname = "gone"\nadopt = "{registry.address}/adopted/none:1"\n')
    cells, _, _ = bake(project.file, status=20)
    assert states(cells) == {"built": "built", "gone": "failed"}
    assert "adopted/none" in cells["gone"]["text"]


def test_a_command_may_make_a_cell(bake, project, registry, compiled):
    push_program(registry, compiled, "made/elsewhere", "x86-64-v3", "x86-64-v3")
    project.write('command = ["sh", "-c", "skopeo copy --src-tls-verify=false '
                  'docker://$SOURCE oci:$BERTH_OUT:x && test {out} = $BERTH_OUT"]\n'
                  f'[args]\nSOURCE = "{registry.address}/made/elsewhere:{{cpu}}"\n'
                  '[axes]\ncpu = ["x86-64-v3"]\n')
    cells, _, _ = bake(project.file)
    assert states(cells) == {"v3": "built"}
    project.write('command = ["true"]\n')
    cells, _, _ = bake(project.file, status=20)
    assert "has to write an OCI layout to {out}" in cells["generic"]["text"]


def test_layers_of_the_base_image_are_shared_with_it(bake, project, registry, busybox):
    (project.directory / "Containerfile").write_text(
        "ARG FROM\nFROM $FROM\nARG LEVEL\nCOPY app-$LEVEL /app\nCMD [\"/app\"]\n")
    project.write(f'[args]\nFROM = "{busybox}"\nLEVEL = "{{cpu}}"\n'
                  '[axes]\ncpu = ["x86-64", "x86-64-v3"]\n')
    bake(project.file)
    base = json.loads(registry.manifest("library/busybox", "latest")[1])["layers"]
    for entry in project.index()["manifests"]:
        layers = json.loads(registry.manifest(project.name, entry["digest"])[1])["layers"]
        assert layers[:len(base)] == base
        assert len(layers) == len(base) + 1


# ---- several workers -----------------------------------------------------------------------------

def test_two_workers_make_cells_and_a_third_merges_them(programs, profile, work, bake, project,
                                                         registry):
    project.matrix()
    workers = [Berth(programs, profile, work / f"worker-{number}") for number in range(3)]
    try:
        cells, _, stderr = bake(project.file, "--merge", status=22, by=workers[2])
        assert states(cells) == {"x86-64": "changed", "v3": "changed"}
        assert "is not there yet" in cells["v3"]["text"]
        assert states(bake(project.file, "--cell", "x86-64", by=workers[0])[0]) == \
            {"x86-64": "built"}
        bake(project.file, "--merge", status=22, by=workers[2])
        assert states(bake(project.file, "--cell", "v3", by=workers[1])[0]) == {"v3": "built"}
        # Whoever makes it again has nothing to do, on any machine.
        assert states(bake(project.file, "--cell", "v3", by=workers[0])[0]) == {"v3": "unchanged"}
        cells, result, _ = bake(project.file, "--merge", by=workers[2])
        assert states(cells) == {"x86-64": "unchanged", "v3": "unchanged"}
        assert names(project.index()) == ["x86-64", "v3"]
        # The third has seen none of their files.
        assert found_beside(project, registry, result["digest"]) == \
            {entry["digest"] for entry in project.index()["manifests"]}
        (project.directory / "shared").write_text("2\n")
        cells, _, _ = bake(project.file, "--merge", status=22, by=workers[2])
        assert "made of other inputs" in cells["v3"]["text"]
    finally:
        for worker in workers:
            worker.close()


# ---- what there is to do -------------------------------------------------------------------------

def test_a_dry_run_says_what_would_be_done_and_does_nothing(berth, bake, project, registry):
    project.matrix()
    out = berth.ok("bake", "--dry-run", project.file, env=BUILDER)
    assert out.splitlines()[0].split() == ["CELL", "FOR", "STATE", "DIGEST", "TIME", "BECAUSE"]
    assert "changed" in out.splitlines()[1] and "builds " in out.splitlines()[1]
    assert berth.ok("images", "-q") == ""
    bake(project.file)
    assert out.count("changed") == 2
    assert berth.ok("bake", "--dry-run", project.file).count("unchanged") == 2


def test_a_fleet_shows_who_takes_what_and_who_has_none(berth, project, work):
    fleet = work / "fleet"
    fleet.mkdir()
    for level in ("x86-64-v2", "x86-64-v4"):
        node_file(work, level).rename(fleet / f"{level}.json")
    project.matrix(("x86-64-v2", "x86-64-v3"))
    assert berth.run("bake", "--fleet", fleet, project.file).returncode == 0
    node_file(work, "x86-64").rename(fleet / "old.json")
    done = berth.run("bake", "--fleet", fleet, project.file)
    rows = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert (rows["old"], rows["x86-64-v2"], rows["x86-64-v4"]) == ("-", "v2", "v3")
    assert done.returncode == 12
    assert "needs" in done.stdout and "this node is x86-64" in done.stdout


RULES = """\
version: v1alpha1
compatibilities:
- tag: fast
  weight: 5
  rules:
  - name: processor
    matchFeatures:
    - feature: cpu.cpuid
      matchExpressions:
        X86_64_V3: {op: Exists}
        AVX512VNNI: {op: Exists}
    - feature: kernel.loadedmodule
      matchExpressions: {nvidia: {op: Exists}}
- tag: plain
  rules: []
"""


def test_rules_of_nfd_are_declared_and_judged(berth, bake, project, work):
    (work / "compat.yaml").write_text(RULES)
    project.write('[args]\nLEVEL = "x86-64"\n[[cell]]\nname = "plain"\n'
                  '[[cell]]\nname = "fast"\nnfd = "../compat.yaml"\nnfd-tag = "fast"\n')
    _, _, told = bake(project.file)
    assert "kernel.loadedmodule: nvidia Exists has no word here" in told
    plain, fast = (entry["annotations"] for entry in project.index()["manifests"])
    assert plain[PREFIX + "name"] == "plain" and PREFIX + "cpu" not in plain
    assert (fast[PREFIX + "cpu"], fast[PREFIX + "cpu-features"]) == ("x86-64-v3", "avx512_vnni")
    for node, taken, outcome in (("cascadelake", "fast", "pass"), ("haswell", "plain", "fail")):
        done = berth.run("match", "--node", node_file(work, node), project.image,
                         "--format", "json")
        answer = json.loads(done.stdout)
        entries = {entry["name"]: entry for entry in answer["entries"]}
        assert entries[taken]["digest"] == answer["taken"]
        assert entries["fast"]["verdict"] == outcome
    assert "needs avx512_vnni (declared), which this node does not have" in done.stdout


def test_scan_shows_what_rules_of_nfd_ask(berth, work):
    file = work / "compat.yaml"
    file.write_text(RULES)
    done = berth.run("scan", "--nfd", file)
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["AXIS", "VALUE"], ["cpu", "x86-64-v3"], ["cpu-features", "avx512_vnni"]]
    assert len(done.stderr.splitlines()) == 2
    assert "of 2 sets compatibilities[0] (weight 5, tag 'fast') is taken" in done.stderr
    document = json.loads(berth.ok("scan", "--nfd", file, "--tag", "plain", "--format", "json"))
    assert document["words"] == {} and document["left"] == [] and document["tag"] == "plain"
    assert "no tag 'fats'; did you mean 'fast'?" in \
        berth.fail("scan", "--nfd", file, "--tag", "fats", status=1)
    file.write_text(RULES.replace("Exists", "Exist"))
    assert "no operator 'Exist'; did you mean 'Exists'?" in \
        berth.fail("scan", "--nfd", file, status=1)
    assert "expected an image, or --nfd FILE" in berth.fail("scan", status=1)


# ---- bad input -----------------------------------------------------------------------------------

def test_typos_are_one_line_with_the_nearest(berth, project):
    project.write('[axes]\ncpuu = ["x86-64"]\n')
    line = berth.fail("bake", project.file, status=1)
    assert "bake.toml:3: axes.cpuu: unknown axis 'cpuu'; did you mean 'cpu'?" in line
    project.file.write_text("version = '1'\nimage = 'Bad Name:1'\n")
    line = berth.fail("bake", project.file, status=1)
    assert line.strip() == (f"berth: cannot bake '{project.file}': bake.toml:2: image: read image "
                            "name 'Bad Name:1': repository name must be lower case")
    project.matrix()
    assert "no cell 'v33'; did you mean 'v3'?" in \
        berth.fail("bake", "--cell", "v33", project.file, status=1)
    assert "--merge" in berth.fail("bake", "--merge", "--cell", "v3", project.file, status=1)


def test_a_registry_that_is_not_there_is_told_before_anything_is_built(berth, project):
    project.matrix()
    text = project.file.read_text().replace(project.image, "127.0.0.1:1/app:1")
    project.file.write_text(text)
    line = berth.fail("bake", project.file, status=1)
    assert "127.0.0.1:1" in line and berth.ok("images", "-q") == ""


def test_a_builder_that_is_not_installed_is_named_with_what_to_install(berth, project):
    project.matrix()
    done = berth.run("bake", project.file, env={"PATH": "/nonexistent"})
    assert done.returncode == 20
    assert "find 'buildah' in PATH: it is not installed; try: apt install buildah" in \
        done.stdout


def test_docker_is_a_builder_too(berth, bake, project, busybox, work):
    (project.directory / "Containerfile").write_text(
        f"FROM {busybox}\nARG LEVEL\nCOPY app-$LEVEL /app\nRUN echo $LEVEL > /level\n"
        'CMD ["cat", "/level"]\n')
    project.matrix(more='builder = "docker"\n')
    place = work / "docker"
    place.mkdir()
    with debian_images.docker_engine(place) as client:
        env = {"DOCKER_HOST": client[2], "HOME": str(place)}
        cells, result, _ = bake(project.file, "--jobs", "2", env=env)
        assert states(cells) == {"v3": "built", "x86-64": "built"}
        assert result["digest"] and names(project.index()) == ["x86-64", "v3"]
        again, result, _ = bake(project.file, env=env)
        assert states(again) == {"v3": "unchanged", "x86-64": "unchanged"}
        (project.directory / "Containerfile").write_text("FROM scratch\nCOPY none /none\n")
        failed, result, _ = bake(project.file, status=20, env=env)
        assert states(failed) == {"v3": "failed", "x86-64": "failed"}
        assert "docker ended with status" in failed["v3"]["text"]
        assert "COPY failed" in pathlib.Path(failed["v3"]["log"]).read_text()
    assert berth.ok("run", "--rm", "--force", f"{project.image}.cell-v3") == "x86-64-v3\n"


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_bakes_as_root_does(berth, bake, project, work):
    project.matrix()
    cells, result, _ = bake(project.file)
    assert states(cells) == {"v3": "built", "x86-64": "built"}
    assert names(project.index()) == ["x86-64", "v3"]
    assert bake(project.file)[0]["v3"]["state"] == "unchanged"


def test_an_old_client_takes_the_generic_entry(bake, project, work):
    """podman and docker know nothing of variants: they take the first that is for their platform."""
    project.matrix(("x86-64-v3", "x86-64", "x86-64-v2"))
    bake(project.file)
    generic, *others = [entry["digest"] for entry in project.index()["manifests"]]
    for name, flags in (("plain", []), ("v2", ["--variant", "v2"])):
        pulled = podman.pulled_digests(work / name, project.image, *flags)
        assert generic in pulled and not pulled.intersection(others)


def test_a_signal_leaves_neither_processes_nor_containers(berth, project, busybox):
    (project.directory / "Containerfile").write_text(
        f"FROM {busybox}\nARG LEVEL\nRUN echo begun && sleep 1000\n")
    project.matrix()
    child = berth.spawn("bake", project.file, env=BUILDER)
    log = berth.root / f"bake/{project.image}/x86-64.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and "\nbegun\n" in log.read_text()):
        assert time.monotonic() < deadline, log.read_text() if log.exists() else "no log"
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 1 and "stopped by a signal" in stderr
    sleeping = subprocess.run(["pgrep", "-xf", "sleep 1000"], capture_output=True, text=True)
    assert sleeping.stdout == ""
    assert list((berth.root / "build").glob("job-*")) == []
    for containers in (berth.root / "build/storage").glob("*/vfs-containers/containers.json"):
        assert json.loads(containers.read_text() or "[]") == []


# ---- berth build ---------------------------------------------------------------------------------

def test_build_makes_an_image_that_runs(berth, work, busybox):
    context = work / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(
        f"ARG BASE\nFROM $BASE\nARG WORD=none\nRUN echo $WORD > /word\n"
        'CMD ["cat", "/word"]\n')
    out = berth.ok("build", "-t", "made:1", "-t", "made:2", "--build-arg", f"BASE={busybox}",
                   "--build-arg", "WORD", "--label", "by=us", context,
                   env={**BUILDER, "WORD": "hello"})
    assert out.splitlines()[-2:] == ["Successfully tagged made:1", "Successfully tagged made:2"]
    assert berth.ok("run", "--rm", "made:2") == "hello\n"
    assert berth.ok("inspect", "-f", "{{index .Config.Labels \"by\"}}", "made:1") == "us\n"
    # An image of the store is built upon without a registry, as docker does.
    (context / "Dockerfile").write_text("FROM made:1\nRUN echo more >> /word\n")
    identity = berth.ok("build", "-q", "-t", "more", context, env=BUILDER).strip()
    assert identity.startswith("sha256:")
    assert berth.ok("run", "--rm", "more") == "hello\nmore\n"


def build_cache(berth):
    lines = berth.ok("system", "df", "--format", "{{.Type}},{{.TotalCount}},{{.Size}}").splitlines()
    return next(line for line in lines if line.startswith("Build Cache"))


def test_what_builds_keep_is_shown_and_removed(berth, work, busybox):
    context = work / "context"
    context.mkdir()
    (context / "Containerfile").write_text(f"FROM {busybox}\nRUN echo one > /one\n")
    assert build_cache(berth) == "Build Cache,0,0B"
    assert berth.ok("builder", "prune", "-f") == "Total reclaimed space: 0B\n"
    berth.ok("build", "-q", "-t", "made", context, env=BUILDER)
    kind, layers, size = build_cache(berth).split(",")
    assert int(layers) >= 2 and size != "0B"
    assert f"Build cache usage: {size}" in berth.ok("system", "df", "-v")
    assert berth.ok("builder", "prune", input="n\n") == (
        "WARNING! This will remove all build cache.\n"
        "Are you sure you want to continue? [y/N] Total reclaimed space: 0B\n")
    assert build_cache(berth).split(",")[1:] == [layers, size]
    title, *ids, empty, total = berth.ok("builder", "prune", "-a", "-f").splitlines()
    assert title == "Deleted build cache objects:" and len(ids) == int(layers) and not empty
    assert total == f"Total reclaimed space: {size}"
    assert build_cache(berth) == "Build Cache,0,0B"
    assert berth.ok("run", "--rm", "made", "cat", "/one") == "one\n"
    # The next one makes its cache anew.
    berth.ok("build", "-q", "-t", "made", context, env=BUILDER)
    berth.ok("system", "prune", "-f", "--filter", "until=1h")
    assert build_cache(berth).split(",")[1] == layers
    assert "Deleted build cache objects:" in berth.ok("system", "prune", "-f")
    assert build_cache(berth) == "Build Cache,0,0B"


def test_a_build_that_runs_keeps_its_cache(berth, work, busybox):
    context = work / "context"
    context.mkdir()
    (context / "Containerfile").write_text(
        f"FROM {busybox}\nRUN echo begun && sleep 1000\n")
    child = berth.spawn("build", "-t", "made", context, env=BUILDER)
    while "begun" not in child.stderr.readline():
        assert child.poll() is None
    line = berth.fail("builder", "prune", "-f", status=1)
    assert "cannot remove the build cache: a build is running" in line
    pruned = berth.run("system", "prune", "-f")
    assert pruned.returncode == 0 and "a build is running" in pruned.stderr
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert "Deleted build cache objects:" in berth.ok("builder", "prune", "-f")


def test_a_step_with_another_argument_is_another_step(berth, bake, project, work):
    # buildah's own cache looks at the names of arguments alone.
    (project.directory / "Containerfile").write_text(
        CONTAINERFILE + "ENV LEVEL=$LEVEL\nLABEL level=$LEVEL\n")
    project.matrix()
    cells, _, _ = bake(project.file)
    assert cells["v3"]["digest"] != cells["x86-64"]["digest"]
    for name, level in (("v3", "x86-64-v3"), ("x86-64", "x86-64")):
        [image] = json.loads(berth.ok("inspect", f"{project.image}.cell-{name}"))
        assert f"LEVEL={level}" in image["Config"]["Env"]
        assert image["Config"]["Labels"]["level"] == level
    context = work / "context"
    context.mkdir()
    (context / "file").write_text("")
    for word, default in (("a", "x"), ("b", "x"), ("", "x"), ("", "y")):
        (context / "Containerfile").write_text(
            f"FROM scratch\nCOPY file /\nARG WORD={default}\nENV SAID=$WORD\n")
        given = ["--build-arg", f"WORD={word}"] if word else []
        berth.ok("build", "-q", "-t", "made", *given, context, env=BUILDER)
        [image] = json.loads(berth.ok("inspect", "made"))
        assert f"SAID={word or default}" in image["Config"]["Env"]


def test_each_platform_has_a_cache_of_its_own(berth, work):
    context = work / "context"
    context.mkdir()
    (context / "file").write_text("")
    (context / "Containerfile").write_text("FROM scratch\nCOPY file /file\n")
    for platform, architecture in (("linux/arm64", "arm64"), ("", "amd64"), ("linux/arm64", "arm64"),
                                   ("linux/amd64", "amd64")):
        flags = ["--platform", platform] if platform else []
        berth.ok("build", "-q", "-t", "made", *flags, context, env=BUILDER)
        [image] = json.loads(berth.ok("inspect", "made"))
        assert image["Architecture"] == architecture


def test_build_says_what_is_wrong_in_one_line(berth, work):
    context = work / "context"
    context.mkdir()
    assert "has neither a Containerfile nor a Dockerfile" in \
        berth.fail("build", context, status=1)
    for name in (".dockerignore", "Containerfile"):
        os.mkfifo(context / name)  # which nobody ever writes to
    assert berth.fail("build", context, status=1).endswith(
        f"read '{context}/Containerfile': it is not a regular file; try: -f FILE")
    (context / "Containerfile").unlink()
    (context / "Containerfile").write_text("FROM scratch\nCOPY none /none\n")
    assert "/.dockerignore': it is not a regular file" in berth.fail("build", context, status=1)
    (context / ".dockerignore").unlink()
    failed = berth.run("build", "-t", "x", context, env=BUILDER)
    assert failed.returncode == 1
    assert "build the image: buildah ended with status" in failed.stderr.splitlines()[-1]
    assert berth.ok("images", "-q") == ""
    (context / "Containerfile").write_text("ARG BASE\nFROM $BASE\n")
    assert "FROM $BASE names no image" in berth.fail("build", context, status=1, env=BUILDER)
