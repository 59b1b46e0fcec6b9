# SPDX-License-Identifier: Apache-2.0
"""Which variant of an image a node takes: match, why, why-not, what-if, and pull and run by them."""

import html.parser
import json
import os
import pathlib

import pytest
from support import fat_binaries, images

TESTS = pathlib.Path(__file__).resolve().parent.parent

VARIANTS = {  # the founding story: TensorFlow for two CUDAs, two processors and two GPUs
    "generic": {},
    "nccl90": {"cuda": "9.0", "user-driver": "390.30", "gpu": "sm_70"},
    "nccl92": {"cuda": "9.2", "user-driver": "396.44", "gpu": "sm_70"},
    "broadwell": {"cuda": "9.2", "user-driver": "396.44", "gpu": "sm_70", "cpu": "broadwell"},
    "skylake512": {"cuda": "9.2", "user-driver": "396.44", "gpu": "sm_70",
                   "cpu": "skylake-avx512"},
    "broadwell_nvcap52": {"cuda": "9.2", "user-driver": "396.44", "gpu": "sm_52",
                          "cpu": "broadwell"},
}
NODES = {
    "k80-broadwell": ("broadwell", "396.44", "3.7"),
    "k80-old": ("broadwell", "390.30", "3.7"),
    "m60-broadwell": ("broadwell", "396.44", "5.2"),
    "m60-skylake": ("skylake_avx512", "396.44", "5.2"),
    "plain": ("broadwell", None, None),
    "v100-skylake": ("skylake_avx512", "396.44", "7.0"),
}


def annotations_of(variant, axes):
    words = {f"dev.berth.variant.{axis}": value for axis, value in axes.items()}
    return {"dev.berth.variant.name": variant, **words} if axes else {}


def variant_image(name):
    return images.build([images.busybox_layer()], {"Env": ["PATH=/bin", f"VARIANT={name}"]})


def push_variants(registry, repository, variants):
    built = [variant_image(name) for name in variants]
    notes = [annotations_of(name, axes) for name, axes in variants.items()]
    images.push_index(registry, repository, "latest", built, notes)
    return f"{registry.address}/{repository}:latest"


@pytest.fixture(scope="module")
def story(registry):
    return push_variants(registry, "variants/story", VARIANTS)


@pytest.fixture
def fleet(work, profile):
    directory = work / "fleet"
    directory.mkdir()
    directory.chmod(0o755)
    for name, (cpu, driver, capability) in NODES.items():
        node = {"version": 1, "architecture": "amd64", "cpu": {"microarchitecture": cpu}}
        if driver:
            node["driver"] = {"module_version": driver}
            node["gpus"] = [{"vendor": "nvidia", "compute_capability": capability}]
        (directory / f"{name}.json").write_text(json.dumps(node))
        (directory / f"{name}.json").chmod(0o644)
    return directory


@pytest.fixture
def stub():
    """The synthetic driver's NVML, where it was built."""
    programs = os.environ.get("BERTH_TEST_PROGRAMS", TESTS.parent / "build/release/bin")
    return pathlib.Path(programs).resolve().parent / "lib/libnvml_stub.so"


def matched(berth, *args):
    done = berth.run(*args, "--format", "json")
    assert done.returncode in (0, 10, 11, 12), done.stderr
    return done.returncode, json.loads(done.stdout)


def names_of(answer):
    return {entry["name"] or "generic": entry for entry in answer["entries"]}


def taken(answer):
    for name, entry in names_of(answer).items():
        if entry["digest"] == answer["taken"]:
            return name
    return None


# ---- the founding story --------------------------------------------------------------------------

def test_every_node_of_the_story_takes_what_the_story_found(berth, story, fleet):
    _, answers = matched(berth, "match", "--gpu-driver", "image", "--fleet", fleet, story)
    assert {answer["node"]: taken(answer) for answer in answers} == {
        "k80-broadwell": "generic",  # none has code for it; none is for no GPU but this
        "k80-old": "generic",
        "m60-broadwell": "broadwell_nvcap52",
        "m60-skylake": "broadwell_nvcap52",
        "plain": "generic",
        "v100-skylake": "skylake512",
    }


def test_the_storys_failures_are_told_before_the_download(berth, story, fleet):
    status, answer = matched(berth, "match", "--gpu-driver", "image",
                             "--node", fleet / "k80-broadwell.json", story)
    entries = names_of(answer)
    reasons = {name: [clause["reason"] for clause in entry["clauses"]
                      if clause["outcome"] != "pass"] for name, entry in entries.items()}
    assert entries["nccl90"]["verdict"] == "fail"
    assert "user-land driver 390.30 in the image, kernel module 396.44" in reasons["nccl90"]
    assert entries["nccl92"]["verdict"] == "runs-but"
    assert any("the GPU stays unused: sm_70 (declared), no PTX; this node is sm_37" in reason
               for reason in reasons["nccl92"])
    assert entries["skylake512"]["verdict"] == "fail"
    assert any("avx512" in reason and "this node is broadwell" in reason
               for reason in reasons["skylake512"])


def test_with_the_nodes_own_driver_cuda_90_works_too(berth, story, fleet):
    _, answer = matched(berth, "match", "--gpu-driver", "bind",
                        "--node", fleet / "v100-skylake.json", story)
    assert names_of(answer)["nccl90"]["verdict"] == "runs-but"  # another is closer to the processor


# ---- the verbs -----------------------------------------------------------------------------------

def test_the_table_marks_what_is_taken(berth, story, fleet):
    out = berth.ok("match", "--node", fleet / "m60-broadwell.json", "--gpu-driver", "image", story)
    lines = out.splitlines()
    assert lines[0].split() == ["ENTRY", "PLATFORM", "FOR", "VERDICT", "BECAUSE"]
    assert [line for line in lines if line.startswith("*")][0].split()[3] == "broadwell_nvcap52"
    assert len(lines) == 1 + len(VARIANTS)


def test_why_shows_every_clause_of_what_is_taken(berth, story, fleet):
    out = berth.ok("why", "--node", fleet / "m60-broadwell.json", "--gpu-driver", "image", story)
    assert "(broadwell_nvcap52): pass, and is the chosen one" in out
    for word in ("platform", "cpu", "driver", "gpu"):
        assert any(line.startswith(word) for line in out.splitlines()), out


def test_why_not_says_what_would_lift_it(berth, story, fleet):
    node = fleet / "m60-broadwell.json"
    out = berth.ok("why-not", "--node", node, "--gpu-driver", "image", story, "skylake512")
    assert "this node is broadwell" in out
    assert "chosen instead: sha256:" in out and "(broadwell_nvcap52)" in out
    _, answer = matched(berth, "why-not", "--node", node, story, "skylake512")
    assert answer["entries"][0]["clauses"][1]["lift"] == "cpu=skylake_avx512"


def test_what_if_answers_for_a_changed_node(berth, story, fleet):
    status, answer = matched(berth, "what-if", "--node", fleet / "plain.json", "--gpu-driver",
                             "image", story, "cpu=skylake_avx512", "driver=396.44", "gpu=sm_70")
    assert (status, taken(answer)) == (0, "skylake512")


@pytest.mark.profiles("root")
def test_wrong_words_are_one_line_with_the_nearest(berth, story, fleet):
    assert "did you mean" in berth.fail("what-if", story, "gpuu=sm_90", status=1)
    assert "no entry 'nope'" in berth.fail("why-not", story, "nope", status=1)
    assert "no-such" in berth.fail("match", "--node", "/no-such.json", story, status=1)
    assert "--node and --fleet cannot be used together" in berth.fail(
        "match", "--node", fleet / "plain.json", "--fleet", fleet, story, status=1)
    assert "create '/no-such/node.json': No such file" in berth.fail(
        "node", "save", "/no-such/node.json", status=1)


@pytest.mark.profiles("root")
def test_the_status_tells_the_class(berth, registry, fleet):
    nothing = push_variants(registry, "variants/nothing", {"v4": {"cpu": "x86-64-v4"}})
    assert berth.run("match", "--node", fleet / "plain.json", nothing).returncode == 12
    remark = push_variants(registry, "variants/remark", {"gpu": {"gpu": "sm_90"}})
    assert berth.run("match", "--node", fleet / "plain.json", remark).returncode == 10
    puzzle = push_variants(registry, "variants/puzzle", {"ram": {"ram": "64G"}})
    assert berth.run("match", "--node", fleet / "plain.json", puzzle).returncode == 11


# ---- several images ------------------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    """Its rows of cells as text; raises at a tag that is not closed."""
    OPEN = {"html", "meta", "link", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.tags = [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in self.OPEN:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += text


def test_a_fleets_page_has_each_image_for_each_node_and_the_reasons(berth, registry, story, fleet):
    odd = push_variants(registry, "variants/odd", {"generic": {}, "<i>&'\"": {"gpu": "sm_52"}})
    v4 = push_variants(registry, "variants/page", {"v4": {"cpu": "x86-64-v4"}})
    done = berth.run("match", "--fleet", fleet, "--html", story, odd, v4)
    assert done.returncode == 12, done.stderr  # the worst of all
    page = Page(done.stdout)
    assert page.rows[0] == ["Node", story, odd, v4]
    assert len([row for row in page.rows if len(row) == 4]) == 1 + len(NODES)
    (row,) = (row for row in page.rows if row[0].startswith("m60-broadwell"))
    assert row[1:3] == ["✓broadwell_nvcap52", "✓<i>&'\""] and row[3].startswith("✗")
    (reason,) = (one for one in page.rows if one[0] == row[3].split()[1])
    assert reason[1] == "✗ fail" and "x86-64-v4 (declared); this node is broadwell" in reason[2], reason
    assert not page.tags & {"i", "script", "img"}


@pytest.mark.profiles("root")
def test_several_images_of_a_fleet_as_json_and_as_tables(berth, registry, story, fleet):
    other = push_variants(registry, "variants/second", {"v4": {"cpu": "x86-64-v4"}})
    _, answers = matched(berth, "match", "--fleet", fleet, story, other)
    assert [answer["node"] for answer in answers] == 2 * sorted(NODES)
    assert {answer["reference"] for answer in answers} == {story, other}
    lines = berth.run("match", "--fleet", fleet, story, other).stdout.splitlines()
    assert lines[0] == story and lines[2 + len(NODES)] == other
    assert "--html is for a fleet" in berth.fail("match", "--html", story, status=1)
    both = berth.fail("match", "--fleet", fleet, "--html", "--format", "json", story, status=1)
    assert "--html and --format json cannot be used together" in both
    assert "1 argument, got 2" in berth.fail("match", story, other, status=1)


# ---- pull and run --------------------------------------------------------------------------------

def test_pull_takes_the_variant_of_this_machine(berth, registry, driver_tree, stub):
    reference = push_variants(registry, "variants/pull", {
        "generic": {}, "arm": {"cpu": "neoverse_v2"}, "sm52": {"gpu": "sm_52"},
        "sm90": {"gpu": "sm_90", "cuda": "12.8"}})
    tree = ("--driver-root", driver_tree("one", "--nvml-stub", stub))
    berth.ok(*tree, "pull", reference)
    assert berth.ok("run", "--rm", reference, "sh", "-c", "echo $VARIANT") == "sm90\n"


def test_run_pulls_the_generic_one_where_there_is_no_gpu(berth, registry, driver_tree):
    reference = push_variants(registry, "variants/run", {
        "generic": {}, "sm90": {"gpu": "sm_90", "cuda": "12.8"}})
    assert berth.ok("run", "--rm", reference, "sh", "-c", "echo $VARIANT") == "generic\n"


def test_a_hopeless_image_is_refused_before_its_layers(berth, registry):
    reference = push_variants(registry, "variants/hopeless", {"arm": {"cpu": "neoverse_v2"}})
    before = registry.requests() if hasattr(registry, "requests") else None
    line = berth.fail("pull", reference, status=1)
    assert "neoverse_v2" in line and "--force" in line
    assert berth.ok("images", "-q") == "", before
    berth.ok("pull", "--force", reference)
    assert berth.ok("run", "--rm", reference, "sh", "-c", "echo $VARIANT") == "arm\n"


def test_strict_refuses_what_comes_with_a_remark(berth, registry):
    reference = push_variants(registry, "variants/strict", {"gpu": {"gpu": "sm_90"}})
    line = berth.fail("pull", "--strict", reference, status=1)
    assert "this node has none" in line and "omit --strict to use it" in line
    assert "this node has none" in berth.run("pull", reference).stderr


def test_strict_refuses_what_is_not_known(berth, registry):
    reference = push_variants(registry, "variants/strange", {"strange": {"flux": "9"}})
    line = berth.fail("pull", "--strict", reference, status=1)
    assert "flux" in line and "omit --strict to use it" in line
    assert berth.ok("images", "-q") == ""
    berth.ok("pull", reference)
    assert "flux" in berth.fail("run", "--rm", "--strict", reference, "true", status=125)
    berth.ok("run", "--rm", reference, "true")


@pytest.fixture
def foreign(push):
    """An image that is declared for this architecture, with a program for another one."""
    program = bytearray(pathlib.Path("/bin/busybox").read_bytes())
    program[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
    return push(images.build([images.busybox_layer(),
                              images.layer([images.file("app", bytes(program), mode=0o755)])],
                             {"Cmd": ["/app"], "Env": ["PATH=/bin"]}))


def test_what_is_found_not_to_run_is_refused_by_run_each_time(berth, foreign):
    for _ in range(2):  # freshly pulled, and remembered
        line = berth.fail("run", "--rm", foreign, status=125)
        assert "its program /app is for arm64, although it is declared for amd64" in line
        assert "--force starts it anyway" in line
    assert "/app is for arm64" in berth.fail("pull", "--strict", foreign, status=1)
    assert berth.ok("run", "--rm", foreign, "echo", "another command") == "another command\n"
    assert berth.run("run", "--rm", "--force", foreign).returncode == 126


def test_what_the_driver_is_too_old_for_is_refused_with_gpus_after_a_pull_without(
        berth, registry, driver_tree, stub):
    """A pull does not know whether a start will ask for GPUs."""
    tree = ("--driver-root", driver_tree("one", "--nvml-stub", stub))
    library = fat_binaries.carrier({".nv_fatbin": fat_binaries.container([fat_binaries.ptx("90", "9.0")])})
    layers = [images.busybox_layer(), images.layer([images.file("opt/kernels.so", library)])]
    images.build(layers, {"Env": ["PATH=/bin"]}).push(registry, "variants/future")
    reference = f"{registry.address}/variants/future:latest"
    done = berth.run(*tree, "pull", "--quiet", reference)
    assert done.returncode == 0 and "CUDA 13.0 needs driver 580.65.06" in done.stderr, done
    for _ in range(2):
        assert berth.ok(*tree, "run", "--rm", reference, "echo", "without") == "without\n"
        refused = berth.run(*tree, "run", "--rm", "--gpus", "all", reference, "true")
        assert refused.returncode == 125 and "--force starts it anyway" in refused.stderr, refused
    berth.ok(*tree, "run", "--rm", "--gpus", "all", "--force", reference, "true")


def test_what_is_known_of_an_image_goes_with_it(berth, foreign):
    berth.fail("run", "--rm", foreign, status=125)
    kept = berth.state / "facts"
    assert len(list(kept.iterdir())) == 2
    berth.ok("rmi", foreign)
    assert list(kept.iterdir()) == []


def test_pull_tells_what_was_found(berth, foreign):
    done = berth.run("pull", "--quiet", foreign)
    assert done.returncode == 0
    assert "is for arm64, although it is declared for amd64" in done.stderr
    berth.fail("run", "--rm", foreign, status=125)


def test_labels_of_the_config_are_read_when_the_index_says_nothing(berth, registry):
    wanting = images.build([images.busybox_layer()],
                           {"Labels": {"dev.berth.variant.kernel": ">=99"}})
    wanting.push(registry, "variants/label")
    reference = f"{registry.address}/variants/label:latest"
    assert "needs Linux ≥ 99" in berth.fail("pull", reference, status=1)
    good = variant_image("good")
    images.push_index(registry, "variants/label2", "latest", [wanting, good])
    reference = f"{registry.address}/variants/label2:latest"
    assert berth.ok("run", "--rm", reference, "sh", "-c", "echo $VARIANT") == "good\n"


@pytest.mark.profiles("root")
def test_the_store_answers_where_no_registry_does(berth, start_registry):
    registry = start_registry()
    reference = push_variants(registry, "variants/gone", {"generic": {}, "arm": {
        "cpu": "neoverse_v2"}})
    berth.ok("pull", reference)
    registry.stop()
    done = berth.run("match", reference, timeout=120)
    assert done.returncode == 0 and "looking at the store instead" in done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert berth.run("match", "--local", reference).stderr == ""


# ---- bad input -----------------------------------------------------------------------------------

@pytest.mark.profiles("root")
def test_indexes_inside_indexes_end_somewhere(berth, registry):
    inner = json.dumps({"schemaVersion": 2, "mediaType": images.FLAVOURS["oci"]["index"],
                        "manifests": []}).encode()
    for level in range(3):
        digest = registry.put_manifest("variants/deep", f"level{level}",
                                       images.FLAVOURS["oci"]["index"], inner)
        inner = json.dumps({
            "schemaVersion": 2, "mediaType": images.FLAVOURS["oci"]["index"],
            "manifests": [{"mediaType": images.FLAVOURS["oci"]["index"], "digest": digest,
                           "size": len(inner)}]}).encode()
    registry.put_manifest("variants/deep", "latest", images.FLAVOURS["oci"]["index"], inner)
    reference = f"{registry.address}/variants/deep:latest"
    assert "indexes inside indexes" in berth.fail("match", reference, status=1)
    berth.fail("pull", reference, status=1)


@pytest.mark.profiles("root")
def test_an_index_of_ten_thousand_entries_is_refused_in_one_line(berth, registry):
    image = variant_image("one")
    image.push(registry, "variants/many")
    entry = {"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest),
             "platform": {"os": "linux", "architecture": "amd64"}}
    data = json.dumps({"schemaVersion": 2, "mediaType": images.FLAVOURS["oci"]["index"],
                       "manifests": [entry] * 10_000}).encode()
    registry.put_manifest("variants/many", "latest", images.FLAVOURS["oci"]["index"], data)
    assert "1024" in berth.fail("match", f"{registry.address}/variants/many:latest", status=1)
