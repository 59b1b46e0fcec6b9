# SPDX-License-Identifier: Apache-2.0
"""Layers that are EROFS images (--layer-format erofs): a container sees what it sees of directories,
and nothing is left of them on the host."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from support import images
from support.berth import Berth

pytestmark = pytest.mark.profiles("root")

EROFS = ("--layer-format", "erofs")
# Everything of a tree but what a directory itself takes, which is the file system's affair.
LOOK = ("cd /tree && find . | sort | while read f; do "
        "stat -c '%n %F %a %u %g %h %Y %t %T' \"$f\"; [ -d \"$f\" ] || stat -c %s \"$f\"; "
        "[ ! -f \"$f\" ] || md5sum \"$f\"; [ ! -L \"$f\" ] || readlink \"$f\"; done")


def tree_layers():
    """Two layers that hide, replace and link, with sizes around a block."""
    low = [images.directory("tree", mode=0o755), images.directory("tree/gone", mode=0o700),
           images.file("tree/gone/x", b"x"), images.directory("tree/merged", mode=0o755),
           images.file("tree/merged/low", b"low"), images.file("tree/hidden", b"1"),
           images.file("tree/owned", b"o", mode=0o4755, uid=33, gid=34),
           images.symlink("tree/link", "owned")]
    low += [images.file(f"tree/size{size}", bytes(range(256)) * (size // 256) + bytes(size % 256))
            for size in (0, 1, 4031, 4032, 4096, 4097, 65536, 1 << 20)]
    low += [images.directory("tree/many", mode=0o755)]
    low += [images.file(f"tree/many/file-{n:04}", str(n).encode()) for n in range(1000)]
    high = [images.directory("tree", mode=0o755), images.whiteout("tree/hidden"), images.opaque("tree/gone"),
            images.directory("tree/gone", mode=0o711), images.file("tree/gone/new", b"new"),
            images.directory("tree/merged", mode=0o755), images.file("tree/merged/high", b"high"),
            images.hardlink("tree/twice", "tree/merged/high")]
    return [images.busybox_layer(), images.layer(low), images.layer(high)]


@pytest.fixture
def disk():
    """A store on a disk: what lies in memory is mounted through a loop device."""
    with tempfile.TemporaryDirectory(prefix="berth-tests-layers-", dir="/var/tmp") as path:
        yield pathlib.Path(path)


@pytest.fixture
def on_disk(programs, profile, disk):
    command = Berth(programs, profile, disk / "berth")
    yield command
    command.close()


def layer_files(berth):
    return sorted(path.name for path in berth.root.glob("layers/*/fs*"))


def traces(berth):
    """What the host shows of the images of a store: mounts, and loop devices with one behind them."""
    mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    loops = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it goes at this moment
            loops.append(path.read_text(encoding="utf-8"))
    return [line for line in mounts if " erofs " in line] + [
        line for line in loops if str(berth.root) in line]


def nothing_left(berth, seconds=5):
    deadline = time.monotonic() + seconds
    while traces(berth) and time.monotonic() < deadline:
        time.sleep(0.02)
    return traces(berth) == []


@pytest.mark.parametrize("store", ["memory", "disk"])
def test_a_container_sees_what_it_sees_of_directories(berth, on_disk, push, store):
    reference = push(images.build(tree_layers()))
    plain = berth.ok("run", "--rm", reference, "sh", "-c", LOOK)
    assert "tree/gone/new" in plain or "./gone/new" in plain
    berth.ok("rmi", "-f", reference)
    other = berth if store == "memory" else on_disk
    other.ok(*EROFS, "pull", "--quiet", reference)
    assert set(layer_files(other)) == {"fs.erofs"}
    assert other.ok("run", "--rm", reference, "sh", "-c", LOOK) == plain
    assert nothing_left(other)
    other.ok("rmi", reference)
    assert layer_files(other) == []


def test_images_of_the_store_are_whole_file_systems(berth, push):
    berth.ok(*EROFS, "pull", "--quiet", push(images.build(tree_layers())))
    for path in berth.root.glob("layers/*/fs.erofs"):
        subprocess.run(["fsck.erofs", path], check=True, capture_output=True)


def test_a_container_writes_and_is_committed_above_images(berth, push):
    reference = push(images.build(tree_layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    berth.ok("run", "--name", "hold", reference, "sh", "-c",
             "echo more >> /tree/owned; rm /tree/link; rm -r /tree/gone; chmod 600 /tree/size1")
    assert set(berth.ok("diff", "hold").splitlines()) >= {
        "C /tree/owned", "D /tree/link", "D /tree/gone", "C /tree/size1"}
    berth.ok(*EROFS, "commit", "hold", "after:1")
    assert layer_files(berth) == ["fs.erofs"] * 4
    assert berth.ok("run", "--rm", "after:1", "sh", "-c",
                    "cat /tree/owned; ls /tree | grep -c -e link -e gone; stat -c %a /tree/size1") == (
        "omore\n0\n600\n")
    berth.ok("cp", "hold:/tree/merged/low", "-", text=False)
    berth.ok("rm", "hold")
    assert nothing_left(berth)


def test_layers_that_are_there_are_used_as_they_are(berth, push):
    base = images.busybox_layer()
    first = push(images.build([base, images.layer([images.file("one", b"1\n")])]))
    second = push(images.build([base, images.layer([images.file("two", b"2\n")])]))
    berth.ok("pull", "--quiet", first)
    berth.ok(*EROFS, "pull", "--quiet", second)
    assert layer_files(berth) == ["fs", "fs", "fs.erofs"]
    assert berth.ok("run", "--rm", second, "cat", "/two") == "2\n"
    assert berth.ok("run", "--rm", first, "cat", "/one") == "1\n"


def test_who_is_killed_leaves_no_mount_and_no_device(berth, push):
    reference = push(images.build(tree_layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    berth.ok("run", "-d", "--name", "hold", reference, "sleep", "600")
    pid = int(berth.ok("inspect", "--format", "{{.State.Pid}}", "hold"))
    assert traces(berth)  # a loop device, for the tests' store lies in memory
    os.kill(pid, signal.SIGKILL)
    berth.run("wait", "hold")
    assert nothing_left(berth)
    berth.ok("start", "hold")
    berth.ok("rm", "-f", "hold")
    assert nothing_left(berth)


def test_the_format_may_come_from_the_environment(berth, push):
    reference = push(images.build(tree_layers()))
    berth.run("pull", "--quiet", reference, env={"BERTH_LAYER_FORMAT": "erofs"})
    assert set(layer_files(berth)) == {"fs.erofs"}
    line = berth.fail("--layer-format", "erosf", "pull", reference, status=1)
    assert line == "berth: --layer-format: expected one of directory, erofs, got 'erosf'"


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_is_told_that_only_root_can(berth, push):
    line = berth.fail(*EROFS, "pull", push(images.build(tree_layers())), status=1)
    assert line == ("berth: --layer-format erofs: only root can mount such layers; "
                    "try: --layer-format directory")


def test_an_image_that_others_could_have_written_is_not_mounted(berth, push):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [image] = berth.root.glob("layers/*/fs.erofs")
    image.chmod(0o622)
    assert "it can be written by others" in berth.fail("run", "--rm", reference, "true")
    image.chmod(0o600)
    os.chown(image, 12345, 0)
    assert "'" in berth.fail("run", "--rm", reference, "true")
    os.chown(image, 0, 0)
    berth.ok("run", "--rm", reference, "true")


@pytest.mark.parametrize("harm", ["superblock", "cut", "empty", "gone"])
def test_a_damaged_image_is_one_line_and_no_crash(berth, push, harm):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [image] = berth.root.glob("layers/*/fs.erofs")
    if harm == "superblock":
        with image.open("r+b") as file:
            file.seek(1024)
            file.write(bytes(64))
    elif harm == "gone":
        image.unlink()
    else:
        os.truncate(image, 0 if harm == "empty" else 2000)
    line = berth.fail("run", "--rm", reference, "true")
    assert "fs.erofs" in line, line
    assert nothing_left(berth)


def test_a_mount_of_a_layer_is_not_seen_on_the_host(on_disk, push):
    reference = push(images.build(tree_layers()))
    on_disk.ok(*EROFS, "pull", "--quiet", reference)
    on_disk.ok("run", "-d", "--name", "hold", reference, "sleep", "600")
    assert traces(on_disk) == []
    assert " erofs " not in on_disk.ok("exec", "hold", "cat", "/proc/mounts")
    on_disk.ok("rm", "-f", "hold")
    shutil.rmtree(on_disk.root / "tmp", ignore_errors=True)
