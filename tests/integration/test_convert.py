# SPDX-License-Identifier: Apache-2.0
"""'image convert': layers change what they lie in the store as, and nothing else about them."""

import json
import os
import random
import subprocess
import time

import pytest
from support import images, processes, rich_layer, store_check, tree_image
from support.berth import Berth

pytestmark = pytest.mark.profiles("root", "user")


def forms(berth):
    return {path.name for path in berth.root.glob("layers/*/fs*")}


def records(berth):
    """What was unpacked, but for whiteouts, which have the time of their making."""
    return {path.parent.name: sorted(line for line in path.read_bytes().splitlines()
                                     if not line.startswith(b"20000 "))
            for path in berth.root.glob("layers/*/tree")}


def check(berth):
    done = berth.run("system", "check", "--format", "json")
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)["findings"]


def seen_by_the_kernel(image, work):
    """Each file of an EROFS image with its owner, mode, device, attributes and content."""
    point = work / "point"
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "erofs", "-o", "ro,loop", image, point], check=True)
    try:
        return {str(path.relative_to(point)): _facts(path) for path in sorted(point.rglob("*"))}
    finally:
        subprocess.run(["umount", point], check=True)


def _facts(path):
    status = path.lstat()
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    keys = sorted(os.listxattr(path, follow_symlinks=False))
    return (oct(status.st_mode), status.st_uid, status.st_gid, status.st_rdev, content,
            [(key, os.getxattr(path, key, follow_symlinks=False)) for key in keys])


@pytest.fixture
def pulled(berth, push):
    reference = push(images.build(tree_image.layers(nodes=True)))
    berth.ok("pull", "-q", reference)
    return reference


def test_a_container_sees_what_it_saw(berth, pulled, profile):
    # An image shows an ordinary user the devices, too.
    look = tree_image.LOOK if profile.uid == 0 else tree_image.LOOK.replace("find .", "find . ! -type c")
    plain = berth.ok("run", "--rm", pulled, "sh", "-c", look)
    for form, name in (("erofs", "fs.erofs"), ("directory", "fs")):
        out = berth.ok("image", "convert", "--to", form, pulled)
        assert out == f"Converted 3 layers to {form}\n"
        assert forms(berth) == {name}
        assert berth.ok("run", "--rm", pulled, "sh", "-c", look) == plain
        assert [finding for finding in check(berth) if finding["damage"]] == []
        assert list((berth.root / "tmp").iterdir()) == []


@pytest.mark.profiles("root")
def test_there_and_back_is_what_it_was(berth, push):
    """Owners, times to the nanosecond, attributes, access lists, capabilities, links, holes."""
    reference = push(images.build([rich_layer.lower(), rich_layer.upper()]))
    berth.ok("pull", "-q", reference)
    before, entries = store_check.trees(berth.root), records(berth)
    blocks = {path: path.lstat().st_blocks for path in berth.root.glob("layers/*/fs/**/*")
              if path.is_file() and not path.is_symlink()}
    berth.ok("image", "convert", "-q", "--to", "erofs", reference)
    berth.ok("image", "convert", "-q", "--to", "directory", reference)
    assert store_check.trees(berth.root) == before
    assert records(berth) == entries
    for path, count in blocks.items():
        assert path.lstat().st_blocks <= count + 256, path


def test_holes_stay_holes(berth, push):
    size = 64 << 20
    reference = push(images.build([images.layer([images.file("zeros", bytes(size))])]))
    berth.ok("pull", "-q", reference)
    [path] = berth.root.glob("layers/*/fs/zeros")
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(size)
    os.utime(path, (images.EPOCH, images.EPOCH))
    os.utime(path.parent, (images.EPOCH, images.EPOCH))
    for record in berth.root.glob("layers/*/tree"):
        record.unlink()  # the file is another one now
    for form in ("erofs", "directory"):
        berth.ok("image", "convert", "-q", "--to", form, reference)
        assert sum(file.stat().st_blocks for file in berth.root.glob("layers/*/fs*")) * 512 < 1 << 20
    assert path.stat().st_size == size and path.stat().st_blocks * 512 < 1 << 20


def test_it_is_said_what_else_is_converted(berth, push, pulled):
    layers = tree_image.layers(nodes=True)[:2]
    other = push(images.build(layers))
    berth.ok("pull", "-q", other)
    out = berth.ok("image", "convert", "--to", "erofs", pulled)
    assert out.splitlines() == [f"Shares converted layers: {other}", "Converted 3 layers to erofs"]
    assert berth.ok("image", "convert", "--to", "erofs", other) == (
        "Converted 0 layers to erofs, 2 were so already\n")
    assert berth.ok("run", "--rm", other, "cat", "/tree/owned") == "o"


def test_what_a_container_uses_is_refused(berth, pulled):
    container = berth.ok("create", pulled, "true").strip()
    line = berth.fail("image", "convert", "--to", "erofs", pulled, status=1)
    assert f"container {container[:12]} uses it; try: berth rm -f {container[:12]}" in line
    assert forms(berth) == {"fs"} and list((berth.root / "tmp").iterdir()) == []
    berth.ok("start", container)
    berth.ok("rm", "-f", container)
    berth.ok("image", "convert", "-q", "--to", "erofs", pulled)


def test_a_damaged_layer_is_not_made_good(berth, pulled):
    [path] = berth.root.glob("layers/*/fs/tree/size4096")
    status = path.stat()
    path.write_bytes(b"x" * 4096)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    line = berth.fail("image", "convert", "--to", "erofs", pulled, status=1)
    assert "'tree/size4096' has other content" in line
    assert line.endswith("try: berth system check --repair")


def test_times_that_a_killed_dedupe_left_are_mended_first(berth, pulled):
    [path] = berth.root.glob("layers/*/fs/tree/merged/low")
    layer = path.parents[3]
    time_before = path.parent.stat().st_mtime_ns
    (layer / "linking").touch()
    os.chown(layer / "linking", layer.stat().st_uid, layer.stat().st_gid)
    os.utime(path.parent)
    berth.ok("image", "convert", "-q", "--to", "erofs", pulled)
    berth.ok("image", "convert", "-q", "--to", "directory", pulled)
    [path] = berth.root.glob("layers/*/fs/tree/merged/low")
    assert path.parent.stat().st_mtime_ns == time_before


def test_a_container_of_another_store_keeps_nothing(berth, pulled, push, programs, profile, work):
    site = Berth(programs, profile, work / "site")
    elsewhere = push(images.build([images.layer([images.file("x", b"1")])]))
    site.ok("pull", "-q", elsewhere)
    berth.ok("--additional-store", site.root, "create", elsewhere, "true")
    berth.ok("image", "convert", "-q", "--to", "erofs", pulled)
    site.close()


@pytest.mark.parametrize("words, reason", [
    (["--to", "tar", "IMAGE"], "expected 'directory' or 'erofs'"),
    (["IMAGE"], "--to FORMAT is required: directory or erofs; try: "),
    (["--to", "erofs", "nowhere:1"], "no such image: nowhere:1; try: berth pull nowhere:1"),
])
def test_what_cannot_be_meant_is_said_why(berth, pulled, words, reason):
    words = [pulled if word == "IMAGE" else word for word in words]
    done = berth.run("image", "convert", *words)
    assert done.returncode in (1, 125) and reason in done.stderr, done.stderr
    assert forms(berth) == {"fs"}


@pytest.mark.profiles("user")
def test_devices_that_a_user_could_not_make_get_into_the_image(berth, pulled):
    told = check(berth)
    assert ["device" in finding["text"] for finding in told] == [True], told
    berth.ok("image", "convert", "-q", "--to", "erofs", pulled)
    assert check(berth) == []
    assert berth.ok("run", "--rm", pulled, "stat", "-c", "%F %t:%T %u", "/tree/device") == \
        "character special file 1:3 0\n"
    berth.ok("image", "convert", "-q", "--to", "directory", pulled)
    assert check(berth) == told


@pytest.mark.profiles("user", "erofs")
def test_an_image_that_a_user_made_of_directories_is_like_one_that_was_pulled(berth, push, work):
    """Owners and marks are those of root in either: another user, and root, may use the file."""
    reference = push(images.build(tree_image.layers(nodes=True)))
    berth.ok("--layer-format", "directory", "pull", "-q", reference)
    berth.ok("image", "convert", "-q", "--to", "erofs", reference)
    made = {path.parent.name: seen_by_the_kernel(path, work)
            for path in berth.root.glob("layers/*/fs.erofs")}
    berth.ok("rmi", reference)
    berth.ok("--layer-format", "erofs", "pull", "-q", reference)
    assert made == {path.parent.name: seen_by_the_kernel(path, work)
                    for path in berth.root.glob("layers/*/fs.erofs")}


@pytest.mark.profiles("single_id")
def test_directories_that_lack_owners_are_not_made_images(berth, pulled):
    line = berth.fail("image", "convert", "--to", "erofs", pulled, status=1)
    assert line == ("berth: make EROFS images of directories without subordinate ids: they lack the "
                    "files' owners; try: berth rmi, and berth --layer-format erofs pull")
    berth.ok("rmi", pulled)
    berth.ok("--layer-format", "erofs", "pull", "-q", pulled)
    assert berth.ok("image", "convert", "--to", "erofs", pulled) == (
        "Converted 0 layers to erofs, 3 were so already\n")
    berth.ok("image", "convert", "-q", "--to", "directory", pulled)
    assert forms(berth) == {"fs"}
    assert berth.ok("run", "--rm", pulled, "cat", "/tree/owned") == "o"


def test_who_is_killed_leaves_a_store_that_verifies(berth, push):
    files = [images.file(f"f{n}", os.urandom(2000)) for n in range(300)]
    reference = push(images.build([images.busybox_layer(), images.layer(files)]))
    berth.ok("pull", "-q", reference)
    wanted = "erofs"
    for _ in range(16):
        work = berth.spawn("image", "convert", "-q", "--to", wanted, reference)
        time.sleep(random.uniform(0, 0.08))
        processes.kill_all(work.pid)
        work.communicate(timeout=60)
        assert all(not finding["damage"] for finding in check(berth))
        assert store_check.wrong(berth.root) == []
        assert berth.ok("run", "--rm", reference, "sh", "-c", "ls / | grep -c ^f") == "300\n"
        berth.ok("image", "convert", "-q", "--to", wanted, reference)
        wanted = "directory" if wanted == "erofs" else "erofs"
    assert list((berth.root / "tmp").iterdir()) == []

