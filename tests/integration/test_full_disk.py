# SPDX-License-Identifier: Apache-2.0
"""There is room for so much and no more, in steps that reach every phase of a pull, a load, an
import and a commit: one line says so, nothing is left, and with room it is done."""

import contextlib
import os
import random
import subprocess

import pytest

from support import images, loop_disks, store_check
from support.berth import Berth
from support.store_listing import store_listing

pytestmark = pytest.mark.profiles("root", "user")
NOISE = random.Random(3).randbytes(700 << 10)
FULL = "No space left on device"
QUOTA = "Disk quota exceeded"
BYTES = (0, 4, 8, 16, 40, 100, 250, 500, 700, 1000, 1500, 2000)  # KiB
FILES = (0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 40, 60)


@pytest.fixture(scope="module")
def image():
    """Files that are small and many, and one that fills more than a page or two."""
    return images.build([images.layer([images.file(f"f{n}", b"%d\n" % n) for n in range(30)]),
                         images.layer([images.file("noise", NOISE)])])


class Room:
    """The file system that the store lies on, and how much more it takes."""

    def __init__(self, point):
        self.point = point

    def _remount(self, **options):
        text = ",".join(f"{name}={value}" for name, value in options.items())
        subprocess.run(["mount", "-o", f"remount,{text}", self.point], check=True)

    def leave(self, *, kib=None, files=None):
        used = os.statvfs(self.point)
        bytes_used = (used.f_blocks - used.f_bfree) * used.f_frsize
        self._remount(size=bytes_used + (kib << 10) if kib is not None else 256 << 20,
                      nr_inodes=used.f_files - used.f_ffree + files if files is not None else 99999)

    def widen(self):
        self.leave()


@pytest.fixture
def room(work, profile):
    point = work / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o",
                    f"size=256m,nr_inodes=99999,mode=755,uid={profile.uid},gid={profile.gid}",
                    "berth-tests-disk", point], check=True)
    yield Room(point)
    subprocess.run(["umount", point], check=True)


def stow(berth, busybox):
    """A store with a small image that has run: all that a store has is made."""
    berth.ok("pull", "-q", busybox)
    berth.ok("tag", busybox, "kept:1")
    berth.ok("rmi", busybox)
    berth.ok("run", "--rm", "kept:1", "true")
    return berth


@pytest.fixture
def stowed(programs, profile, room, busybox):
    """berth with its store on that file system, and a small image in it."""
    berth = stow(Berth(programs, profile, room.point / "berth"), busybox)
    yield berth
    berth.close()


def pull(berth, work, reference):
    return ["pull", "-q", reference], ["rmi", "-f", reference]


def load(berth, work, reference):
    archive = work / "archive.tar"
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, "new:1")
    archive.write_bytes(berth.run("save", "new:1", text=False).stdout)
    archive.chmod(0o644)
    berth.ok("rmi", "-f", reference, "new:1")
    return ["load", "-i", archive], ["rmi", "-f", "new:1"]


def import_directory(berth, work, reference):
    tree = work / "tree"
    tree.mkdir()
    for n in range(30):
        (tree / f"f{n}").write_text(f"{n}\n")
    (tree / "noise").write_bytes(NOISE)
    for path in (tree, *tree.iterdir()):
        os.chown(path, berth.account.uid, berth.account.gid)
    return ["import", tree, "new:1"], ["rmi", "-f", "new:1"]


def commit(berth, work, reference):
    berth.ok("run", "--name", "work", "kept:1", "sh", "-c",
             "for n in $(seq 30); do echo $n > /f$n; done; "
             "dd if=/dev/urandom of=/noise bs=1k count=700 2>/dev/null")
    return ["commit", "work", "new:1"], ["rmi", "-f", "new:1"]


WAYS = pytest.mark.parametrize("way", [pull, load, import_directory, commit],
                               ids=lambda way: way.__name__)


def clean(berth):
    """What a reader could see. A sweep is what the next command does; a hint is not content."""
    return {path: what for path, what in store_listing(berth.root).items()
            if not path.startswith("origins")}


def refused(berth, words, why):
    """True when there was no room, and said so in one line that a person can use."""
    done = berth.run(*words)
    if done.returncode == 0:
        return False
    lines = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert len(lines) == 1 and why in lines[0], (words, done.returncode, done.stderr)
    assert done.returncode in (1, 125)
    return True


def assert_usable(berth, words, undo):
    assert berth.ok("run", "--rm", "kept:1", "cat", "/home/sailor/owned") == "by 1000\n"
    berth.ok(*words)
    assert store_check.wrong(berth.root) == []
    assert list((berth.root / "tmp").iterdir()) == []
    berth.ok(*undo)


@WAYS
@pytest.mark.parametrize("unit,steps", [("kib", BYTES), ("files", FILES)], ids=["bytes", "files"])
def test_a_full_disk_at_every_step(stowed, room, work, push, image, way, unit, steps):
    words, undo = way(stowed, work, push(image))
    before, failures = clean(stowed), 0
    for step in steps:
        room.leave(**{unit: step})
        full = refused(stowed, words, FULL)
        room.widen()
        if full:
            failures += 1
            assert clean(stowed) == before, step
        else:
            stowed.ok(*undo)
        assert store_check.wrong(stowed.root) == []
    assert failures >= 3  # else the steps do not reach anything
    assert_usable(stowed, words, undo)
    assert clean(stowed) == before
    stowed.run("rm", "-f", "work")


# ---- quota --------------------------------------------------------------------------------------

class QuotaRoom(Room):
    """A subvolume of btrfs, the one file system here whose quota every kernel has built in."""

    def leave(self, *, kib=None, files=None):
        # What was written counts when it is on the disk.
        subprocess.run(["btrfs", "filesystem", "sync", self.point], check=True, capture_output=True)
        shown = subprocess.run(["btrfs", "qgroup", "show", "--raw", "-f", self.point], check=True,
                               capture_output=True, text=True).stdout
        group, used = shown.splitlines()[-1].split()[:2]
        limit = "none" if kib is None else str(int(used) + (kib << 10))
        # By way of the volume: what is full takes no new limit.
        subprocess.run(["btrfs", "qgroup", "limit", limit, group, self.point.parent], check=True)


@contextlib.contextmanager
def disk_with_quota(scratch):
    """The directory of a subvolume on a loop device."""
    with loop_disks.btrfs(scratch) as point:
        subprocess.run(["btrfs", "quota", "enable", point], check=True)
        subprocess.run(["btrfs", "subvolume", "create", point / "store"], check=True,
                       capture_output=True)
        subprocess.run(["btrfs", "quota", "rescan", "-w", point], check=True, capture_output=True)
        yield point / "store"


@pytest.mark.long
@WAYS
def test_a_quota_at_every_step(programs, profile, work, busybox, push, image, way):
    with disk_with_quota(work) as point:
        os.chown(point, profile.uid, profile.gid)
        berth, room = stow(Berth(programs, profile, point / "berth"), busybox), QuotaRoom(point)
        words, undo = way(berth, work, push(image))
        before, failures = clean(berth), 0
        for step in BYTES[1:]:
            room.leave(kib=step)
            full = refused(berth, words, QUOTA)
            room.widen()
            if full:
                failures += 1
                assert clean(berth) == before, step
            else:
                berth.ok(*undo)
            assert store_check.wrong(berth.root) == []
        assert failures >= 3
        assert_usable(berth, words, undo)
        assert clean(berth) == before
        berth.run("rm", "-f", "work")
        berth.close()
