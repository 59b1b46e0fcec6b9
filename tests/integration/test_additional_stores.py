# SPDX-License-Identifier: Apache-2.0
"""Stores that others fill: what is there need not be fetched, and nothing is ever written there."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import images, registry_front, store_check
from support.berth import Berth


class Reader(Berth):
    """berth with additional stores."""
    stores = ()

    def argv(self, *args):
        flags = [word for store in self.stores for word in ("--additional-store", store)]
        return super().argv(*flags, *args)


@pytest.fixture
def reader(programs, profile, work):
    command = Reader(programs, profile, work / "reader")
    yield command
    command.close()


@contextlib.contextmanager
def read_only(store, point):
    """The store where nobody can write, and not a time of a file changes."""
    point.mkdir()
    subprocess.run(["mount", "--bind", store, point], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def times(root):
    """When each file below was changed last."""
    return {path: path.lstat().st_ctime_ns for path in [root, *sorted(root.rglob("*"))]}


@pytest.fixture
def site(berth, reader, work):
    """The site's own berth; the reader has its store read-only, as of when site.open() is called."""
    with contextlib.ExitStack() as stack:
        def open_store():
            before = times(berth.root)
            point = stack.enter_context(read_only(berth.root, work / "nfs"))
            stack.callback(lambda: times(berth.root) == before or pytest.fail("it was written to"))
            reader.stores = [point]
            return point
        berth.open = open_store
        yield berth


def layers(berth):
    return sorted(path.name.partition("-")[0] for path in (berth.root / "layers").iterdir())


def hexes(image):
    return sorted(digest.removeprefix("sha256:") for digest in image.diff_ids)


@pytest.mark.profiles("root", "user", "single_id", "erofs")
def test_an_image_of_an_additional_store_runs_from_there(site, reader, busybox, work):
    site.ok("pull", "-q", busybox)
    store = site.open()
    assert reader.ok("run", "--rm", busybox, "cat", "/home/sailor/owned") == "by 1000\n"
    container = reader.ok("create", "--name", "kept", busybox, "sh", "-c", "echo hi > /x; cat /x")
    assert reader.ok("start", "-a", "kept") == "hi\n"
    assert reader.ok("diff", container.strip()).splitlines() == ["A /x"]
    record, = json.loads(reader.ok("inspect", busybox))
    assert record["GraphDriver"]["Data"]["UpperDir"].startswith(f"{store}/layers/")
    assert reader.ok("history", "-q", busybox) == site.ok("history", "-q", busybox)
    assert reader.ok("scan", busybox) == site.ok("scan", busybox)
    reader.ok("save", "-o", work / "reader/saved.tar", busybox)
    reader.ok("commit", "kept", "own:1")
    assert reader.ok("run", "--rm", "own:1", "cat", "/x", "/home/sailor/owned") == "hi\nby 1000\n"
    assert len(layers(reader)) == 1
    reader.ok("rm", "kept")
    assert reader.run("system", "check").returncode == 0


@pytest.mark.profiles("root", "user")
def test_a_list_says_what_is_read_only(site, reader, busybox):
    site.ok("pull", "-q", busybox)
    assert "R/O" not in reader.ok("images")
    site.open()
    assert reader.ok("images").split("\n")[0].split() == \
        "REPOSITORY TAG IMAGE ID CREATED SIZE R/O".split()
    reader.ok("tag", busybox, "mine:1")
    listed = [json.loads(line) for line in reader.ok("images", "--format", "json").splitlines()]
    assert {image["Repository"]: image["ReadOnly"] for image in listed} == \
        {busybox.rpartition(":")[0]: "true", "mine": "false"}
    assert len({image["ID"] for image in listed}) == 1
    # The name is ours, the layers are where they were.
    assert layers(reader) == []
    assert reader.ok("run", "--rm", "mine:1", "echo", "x") == "x\n"


@pytest.mark.profiles("root", "user")
def test_the_variable_names_stores_and_the_flag_comes_before_it(site, reader, registry, programs,
                                                                profile, work):
    """Whatever store is first has the say about a name that two have."""
    name = "test/two-meanings"
    reference = f"{registry.address}/{name}:latest"
    other = Berth(programs, profile, work / "other")
    for owner, word in ((site, "one"), (other, "two")):
        image = images.build([images.busybox_layer(), images.layer([images.file("word", word)])])
        image.push(registry, name)
        owner.ok("pull", "-q", reference)
    first = site.open()

    def says(stores, variable=""):
        reader.stores = stores
        return reader.ok("run", "--rm", "--pull", "never", reference, "cat", "/word",
                         env={"BERTH_ADDITIONAL_STORES": variable})
    assert says([first, other.root]) == "one"
    assert says([other.root, first]) == "two"
    assert says([], f"{first}:{other.root}") == "one"
    assert says([other.root], str(first)) == "two"
    reader.stores = [first, other.root]
    assert len(reader.ok("images", "-q").splitlines()) == 1
    reader.stores = [other.root]
    reader.ok("pull", "-q", reference)
    assert says([first]) == "two"
    other.close()


def blob_requests(front, image):
    return [digest for digest in image.layer_digests
            if any(path.endswith(digest) for method, path, _ in front.requests if method == "GET")]


@pytest.mark.profiles("root", "user", "single_id", "erofs")
def test_a_pull_fetches_what_no_store_has(site, reader, registry):
    shared = images.busybox_layer()
    base = images.build([shared])
    image = images.build([shared, images.layer([images.file("new", "new\n")])])
    for name, built in (("test/shared-base", base), ("test/shared-above", image)):
        built.push(registry, name)
    with registry_front.running(registry) as front:
        site.ok("pull", "-q", f"{front.address}/test/shared-base")
        site.open()
        front.requests.clear()
        reader.ok("pull", "-q", f"{front.address}/test/shared-above")
        assert blob_requests(front, image) == image.layer_digests[1:]
        assert layers(reader) == hexes(image)[:0] + [image.diff_ids[1].removeprefix("sha256:")]
        assert reader.ok("run", "--rm", f"{front.address}/test/shared-above", "cat", "/new",
                         "/home/sailor/owned") == "new\nby 1000\n"
        # The whole image: a name of our own, and no layer at all.
        front.requests.clear()
        reader.ok("pull", "-q", f"{front.address}/test/shared-base")
        assert blob_requests(front, base) == []
        assert "up to date" in reader.ok("pull", f"{front.address}/test/shared-base")
    assert len(layers(reader)) == 1
    assert reader.run("system", "check").returncode == 0


@pytest.mark.profiles("root", "user")
def test_what_has_vanished_is_fetched_again(site, reader, busybox, work):
    """One warning says which store is not there; the image is one that lacks layers."""
    site.ok("pull", "-q", busybox)
    reader.stores = [site.root]
    reader.ok("pull", "-q", busybox)
    reader.ok("create", "--name", "kept", busybox, "true")
    assert layers(reader) == []
    site.root.rename(work / "away")
    done = reader.run("run", "--rm", "-q", busybox, "echo", "x")
    assert (done.returncode, done.stdout) == (0, "x\n")
    warnings = [line for line in done.stderr.splitlines() if "additional store" in line]
    assert warnings == [f"berth: warning: additional store '{site.root}': it is not there, ignoring"]
    assert len(layers(reader)) == 1
    assert reader.run("start", "-a", "kept").returncode == 0
    (work / "away").rename(site.root)


@pytest.mark.profiles("root", "user")
def test_a_name_of_ours_says_where_its_layers_are_when_the_store_has_vanished(site, reader, busybox,
                                                                            work):
    site.ok("pull", "-q", busybox)
    reader.stores = [site.root]
    reader.ok("tag", busybox, "mine:1")
    site.root.rename(work / "away")
    assert reader.ok("run", "--rm", "-q", "mine:1", "echo", "x") == "x\n"
    assert len(layers(reader)) == 1
    (work / "away").rename(site.root)


@pytest.fixture
def opened(everybodys, reader, busybox):
    """The root of such a store that has busybox, and where everybody may read."""
    everybodys.ok("pull", "-q", busybox)
    subprocess.run(["chmod", "-R", "go+rX", everybodys.root], check=True)
    reader.stores = [everybodys.root]
    return everybodys.root


@pytest.mark.profiles("user", "single_id")
def test_a_store_of_a_third_user_is_not_taken_for_roots(opened, reader, busybox):
    """In a user namespace both look like the same id."""
    assert reader.ok("run", "--rm", busybox, "echo", "x") == "x\n"
    for path in (opened, opened / "layers", opened / "images"):
        os.chown(path, 4242, 4242)
        for words in (("images", "-q"), ("run", "--rm", "--pull", "never", busybox, "true")):
            done = reader.run(*words)
            assert "it belongs to another user" in done.stderr and "ignoring" in done.stderr
            assert done.stdout == ""
        assert "no such image" in done.stderr
        os.chown(path, 0, 0)


@pytest.mark.profiles("user", "single_id")
def test_an_image_of_a_layer_that_cannot_be_read_is_fetched(opened, reader, busybox):
    root = opened
    assert reader.ok("run", "--rm", busybox, "echo", "x") == "x\n"
    assert layers(reader) == []
    [image] = root.glob("layers/*/fs.erofs")
    image.chmod(0o600)
    assert reader.ok("run", "--rm", "-q", busybox, "echo", "x") == "x\n"
    assert len(layers(reader)) == 1


@pytest.mark.profiles("root")
def test_a_container_whose_store_has_vanished_says_so(site, reader, busybox, work):
    site.ok("pull", "-q", busybox)
    reader.stores = [site.root]
    reader.ok("create", "--name", "kept", busybox, "true")
    site.root.rename(work / "away")
    done = reader.run("start", "kept")
    lines = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert done.returncode != 0 and len(lines) == 2, done
    assert "it is not there, ignoring" in lines[0]
    assert "no such image" in lines[1]
    (work / "away").rename(site.root)
    reader.ok("start", "-a", "kept")


@pytest.mark.profiles("root", "user")
def test_what_removes_or_counts_keeps_to_its_own_store(site, reader, busybox):
    site.ok("pull", "-q", busybox)
    store = site.open()
    for name in (busybox, json.loads(site.ok("inspect", busybox))[0]["Id"]):
        assert reader.fail("rmi", "-f", name, status=1) == (
            f"berth: remove image '{name}': it is in the read-only store '{store}'; "
            f"try: berth --root {store} rmi, as its owner")
    reader.ok("system", "prune", "-a", "-f")
    reader.ok("system", "prune", "-f", "--keep", "0")
    assert "Images 0 0 0B" in " ".join(reader.ok("system", "df").split())
    reader.ok("run", "--rm", busybox, "true")
    # A name of ours in front of it goes, and what was behind it is seen again.
    reader.ok("pull", "-q", busybox)
    reader.ok("rmi", busybox)
    assert reader.ok("images", "--format", "{{.ReadOnly}}").split() == ["true"]
    assert not list((reader.root / "blobs/sha256").iterdir())


@pytest.mark.profiles("root", "user")
def test_layers_of_ours_stay_while_a_container_of_another_store_uses_them(site, reader, registry):
    """The image has a name there alone, and one of its layers is here alone."""
    image = images.build([images.busybox_layer(), images.layer([images.file("two", "2\n")])])
    image.push(registry, "test/mixed")
    reference = f"{registry.address}/test/mixed:latest"
    site.ok("pull", "-q", reference)
    reader.ok("pull", "-q", reference)
    top, = (site.root / "layers").glob(image.diff_ids[1].removeprefix("sha256:") + "*")
    shutil.rmtree(top)
    site.open()
    reader.ok("tag", reference, "mine:1")
    reader.ok("rmi", reference)
    reader.ok("create", "--name", "kept", reference, "cat", "/two")
    reader.ok("rmi", "-f", "mine:1")
    reader.ok("system", "prune", "-f", "--keep", "0")
    assert reader.ok("start", "-a", "kept") == "2\n"
    reader.ok("rm", "kept")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("spoil, reason", [
    (lambda root: os.chown(root, 4242, 4242),
     "use directory '{root}': it belongs to another user; try: chown root {root}"),
    (lambda root: root.chmod(0o757),
     "use directory '{root}': it is writable by others; try: chmod go-w {root}"),
    (lambda root: os.chown(root / "layers", 4242, 4242),
     "read '{root}/layers': it belongs to another user; try: chown root {root}/layers"),
    (lambda root: (root / "images").chmod(0o702),
     "read '{root}/images': it is writable by others; try: chmod go-w {root}/images"),
    (lambda root: (root / "version").write_text("2\n"),
     "it has version '2', this program knows version 1"),
    (lambda root: (root / "version").unlink(), "it is not a store"),
])
def test_a_store_that_others_can_write_to_is_passed_over(site, reader, busybox, spoil, reason):
    site.ok("pull", "-q", busybox)
    spoil(site.root)
    reader.stores = [site.root]
    done = reader.run("images", "-q")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (f"berth: warning: additional store '{site.root}': "
                           f"{reason.format(root=site.root)}, ignoring\n")
    done = reader.run("run", "--pull", "never", busybox)
    assert done.returncode == 125 and "no such image" in done.stderr


@pytest.mark.profiles("root", "erofs")
def test_a_layer_that_somebody_else_owns_is_not_used(site, reader, busybox):
    site.ok("pull", "-q", busybox)
    layer, = (site.root / "layers").iterdir()
    os.chown(layer, 4242, 4242)
    site.open()
    assert reader.ok("run", "--rm", "-q", busybox, "echo", "x") == "x\n"
    assert len(layers(reader)) == 1
    assert store_check.wrong(reader.root) == []


@pytest.mark.profiles("root", "user")
def test_half_an_image_is_fetched_or_said_to_be_one(site, reader, busybox):
    """Its owner removes it while we read."""
    site.ok("pull", "-q", busybox)
    layer, = (site.root / "layers").iterdir()
    layer.rename(site.root / "tmp" / layer.name)
    reader.stores = [site.root]
    assert reader.ok("run", "--rm", "-q", busybox, "echo", "x") == "x\n"
    reader.ok("rmi", busybox)
    manifest = json.loads(next((site.root / "images").glob("*.json")).read_text())["manifest"]
    (site.root / "blobs/sha256" / manifest.removeprefix("sha256:")).unlink()
    line = reader.fail("run", "--rm", busybox, "true")
    assert line.startswith(f"berth: cannot read image '{busybox}' in the additional store "
                           f"'{site.root}': "), line
    assert reader.ok("images", "-q") == ""
    reader.ok("pull", "-q", busybox)
    assert reader.ok("run", "--rm", busybox, "echo", "x") == "x\n"


@pytest.fixture
def everybodys(programs, accounts):
    """root's berth with layers in one file, its store where an ordinary user may look."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="berth-tests-", dir="/var/lib"))
    place.chmod(0o755)
    command = Berth(programs, accounts["erofs"], place)
    yield command
    command.close()
    shutil.rmtree(place)


@pytest.mark.profiles("root", "user", "single_id")
def test_a_store_is_opened_by_the_modes_of_its_directories(everybodys, reader, push, busybox,
                                                           profile):
    """What is published later is as readable, whatever the umask; layers as directories are not."""
    everybodys.ok("pull", "-q", busybox)
    reader.stores = [everybodys.root]
    if profile.uid != 0:
        assert "Permission denied, ignoring" in reader.run("images").stderr
    root = everybodys.root
    subprocess.run(["chmod", "-R", "go+rX", *(root / name for name in (
        "version", "blobs", "layers", "images", "origins"))], check=True)
    root.chmod(0o755)
    later = images.build([images.layer([images.file("later", "x")])])
    reference = push(later)
    argv = ["sh", "-c", 'umask 077; exec "$@"', "sh", *everybodys.argv("pull", "-q", reference)]
    subprocess.run(argv, check=True, capture_output=True, env=everybodys.account.environment())
    argv = ["sh", "-c", 'umask 077; exec "$@"', "sh", *everybodys.argv(
        "--layer-format", "directory", "pull", "-q",
        push(images.build([images.layer([images.file("secret", "x")])])))]
    subprocess.run(argv, check=True, capture_output=True, env=everybodys.account.environment())
    closed = [path for path in root.rglob("*") if path.is_dir() and not path.stat().st_mode & 0o001]
    assert sorted(path.parent.name + "/" + path.name for path in closed) == sorted([
        "root/containers", "root/names", "root/tmp",
        *(f"layers/{path.parent.name}" for path in root.glob("layers/*/fs"))])
    before = times(root)
    reader.stores = [root]
    assert reader.run("images").stderr == ""
    assert len(reader.ok("images", "-q").splitlines()) == 3
    assert reader.ok("run", "--rm", "-q", busybox, "cat", "/home/sailor/owned") == "by 1000\n"
    assert times(root) == before
