# SPDX-License-Identifier: Apache-2.0
"""berth-erofs by itself: an image looks as the kernel shows it, whoever has written it, and one
that is damaged in any way is an error, never a crash and never a wait."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time

import pytest
from support import images, rich_layer
from test_complete_unpacking import differences, look_at

pytestmark = pytest.mark.profiles("root")


def all_attributes(root):
    """{path: attributes}, the marks of an overlay among them."""
    return {str(path.relative_to(root)): {key: os.getxattr(path, key, follow_symlinks=False)
                                          for key in os.listxattr(path, follow_symlinks=False)}
            for path in [pathlib.Path(root), *sorted(pathlib.Path(root).rglob("*"))]}


@pytest.fixture
def place(session_directory, work):
    path = work / "mounted"
    path.mkdir()
    return path


@contextlib.contextmanager
def by_kernel(image, place):
    subprocess.run(["mount", "-t", "erofs", "-o", "ro,loop", image, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def served(programs, image, place, *options):
    process = subprocess.Popen([programs / "berth-erofs", *options, image, place],
                               stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 10
    while not os.path.ismount(place) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield process
    finally:
        subprocess.run(["umount", place], check=False, capture_output=True)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            raise


def debian_image(work, *options, ids=100):
    """mkfs.erofs's, with attributes that files share."""
    tree = work / "tree"
    (tree / "many").mkdir(parents=True)
    for number in range(700):
        file = tree / f"many/file-{number:04}-{'n' * (number % 100)}"
        file.write_bytes(os.urandom(number * 13 % 9000))
        os.setxattr(file, "user.shared", b"the same for all of them")
        os.chown(file, number, number * ids)
    (tree / "large").write_bytes(os.urandom(5_000_001))
    (tree / "block").write_bytes(os.urandom(8192))
    (tree / "zeros").write_bytes(bytes(300_000))
    (tree / "empty").touch()
    (tree / "link").symlink_to("many/../large")
    os.link(tree / "large", tree / "many/again")
    os.mkfifo(tree / "fifo")
    os.mknod(tree / "null", 0o600 | 0o020000, os.makedev(1, 3))
    os.setxattr(tree / "many", "trusted.overlay.opaque", b"y")
    os.setxattr(tree / "large", "user.long", b"v" * 3000)
    image = work / "debian.erofs"
    subprocess.run(["mkfs.erofs", *options, image, tree], check=True, capture_output=True)
    return image


def our_images(berth, push):
    """A layer with all that there is, and the one above it with marks of an overlay."""
    reference = push(images.build([rich_layer.lower(rich_layer.ALL), rich_layer.upper()]))
    berth.ok("--layer-format", "erofs", "pull", "--quiet", reference)
    return list(berth.root.glob("layers/*/fs.erofs"))


def compare(programs, image, place):
    with by_kernel(image, place):
        expected, marks = look_at(place), all_attributes(place)
        blocks = os.statvfs(place).f_blocks
    with served(programs, image, place):
        assert differences(look_at(place), expected) == {}
        assert all_attributes(place) == marks
        assert os.statvfs(place).f_blocks == blocks
        for path in pathlib.Path(place).rglob("*"):
            with pytest.raises(FileNotFoundError):
                (path if path.is_dir() else path.parent).joinpath("no such name").lstat()
    assert len(expected) > 5


@pytest.mark.parametrize("options", [(), ("-Eforce-inode-extended",), ("-x-1",), ("--ignore-mtime",)])
def test_an_image_of_debian_looks_as_the_kernel_shows_it(programs, work, place, options):
    compare(programs, debian_image(work, *options), place)


def test_short_inodes_look_as_the_kernel_shows_them(programs, work, place):
    compare(programs, debian_image(work, "-Eforce-inode-compact", ids=2), place)


def test_images_of_ours_look_as_the_kernel_shows_them(programs, berth, push, place):
    for image in our_images(berth, push):
        compare(programs, image, place)


def test_marks_are_shown_to_users_as_theirs(programs, work, place):
    with served(programs, debian_image(work), place, "-o", "userxattr"):
        assert os.getxattr(place / "many", "user.overlay.opaque") == b"y"
        assert os.listxattr(place / "many") == ["user.overlay.opaque"]


@pytest.mark.parametrize("option, feature, words", [("-zlz4", 0, "compression"), ("-x1", 4, "files in chunks"),
                                                    ("-x1", 8, "several devices")])
def test_an_image_of_another_kind_is_refused_by_name(programs, work, place, option, feature, words):
    (work / "tree").mkdir()
    (work / "tree/zeros").write_bytes(bytes(300_000))
    image = work / "other.erofs"
    subprocess.run(["mkfs.erofs", option, image, work / "tree"], check=True, capture_output=True)
    if feature:
        with image.open("r+b") as file:
            os.pwrite(file.fileno(), struct.pack("<I", feature), 1024 + 80)
    done = subprocess.run([programs / "berth-erofs", image, place], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"the EROFS image uses {words}; try: ") and done.stderr.count("\n") == 1


def read_all(place):
    """Reads what can be read; only errors that a file system may give."""
    for base, _, files in os.walk(place):
        for name in files:
            path = pathlib.Path(base, name)
            with contextlib.suppress(OSError):
                os.listxattr(path, follow_symlinks=False)
                if path.is_symlink():
                    path.readlink()
                elif path.is_file() and path.stat().st_size < 1 << 26:
                    path.read_bytes()
        if base.count("/") > str(place).count("/") + 20:
            break


def unseal(file):
    """Takes the mark away that its superblock has a checksum."""
    [features] = struct.unpack("<I", os.pread(file.fileno(), 4, 1024 + 8))
    os.pwrite(file.fileno(), struct.pack("<I", features & ~1), 1024 + 8)


def harm(image, seed):
    """Other bytes where inodes, directories and attributes lie; the superblock stays good."""
    chance = random.Random(seed)
    with image.open("r+b") as file:
        size = image.stat().st_size
        [root] = struct.unpack("<H", os.pread(file.fileno(), 2, 1024 + 14))
        for _ in range(chance.choice((1, 10, 300))):
            at = chance.choice((root * 32 + chance.randrange(600), chance.randrange(4096, size)))
            os.pwrite(file.fileno(), chance.randbytes(chance.choice((1, 2, 4))), at)
        unseal(file)


def test_a_damaged_image_is_an_error_and_no_crash(programs, work, place):
    good = debian_image(work)
    image = work / "harmed.erofs"
    mounted = 0
    for seed in range(40):
        shutil.copyfile(good, image)
        harm(image, seed)
        with served(programs, image, place) as process:
            if os.path.ismount(place):
                mounted += 1
                done = subprocess.run(["timeout", "20", "find", place, "-ls"], capture_output=True,
                                      check=False)
                assert done.returncode != 124, f"seed {seed}: it hangs"
                read_all(place)
                assert process.poll() is None, f"seed {seed}: {process.stderr.read()}"
            else:
                words = process.stderr.read()
                assert process.returncode == 1 and words.count("\n") == 1, (seed, words)
    assert mounted > 10


def test_an_image_that_becomes_shorter_is_an_error(programs, work, place):
    image = debian_image(work)
    with served(programs, image, place) as process:
        os.truncate(image, 4096)
        with pytest.raises(OSError, match="Input/output error"):
            (place / "large").read_bytes()
        assert process.poll() is None


def test_a_directory_in_itself_ends(programs, work, place):
    image = debian_image(work)
    with image.open("r+b") as file:
        [root] = struct.unpack("<H", os.pread(file.fileno(), 2, 1024 + 14))
        # "many" becomes the root once more.
        data = image.read_bytes()
        inode = root * 32
        at = data.index(b"many", inode) if b"many" in data[inode:inode + 4096] else None
        assert at is not None
        for entry in range(inode, inode + 400):
            number, name_at, kind = struct.unpack("<QHB", data[entry:entry + 11])
            if kind == 2 and 0 < number < 1 << 20 and number != root and name_at < 400:
                os.pwrite(file.fileno(), struct.pack("<Q", root), entry)
                break
        unseal(file)
    with served(programs, image, place) as process:
        done = subprocess.run(["timeout", "20", "find", place], capture_output=True, check=False)
        assert done.returncode != 124
        assert process.poll() is None


def test_several_readers_see_the_same(programs, work, place):
    image = debian_image(work)
    with served(programs, image, place):
        expected = (work / "tree/large").read_bytes()
        readers = [subprocess.Popen(["sh", "-c", "for i in 1 2 3; do find . -type f -exec cat {} + | md5sum; done"],
                                    cwd=place, stdout=subprocess.PIPE) for _ in range(6)]
        sums = {line for reader in readers for line in reader.communicate()[0].splitlines()}
        assert len(sums) == 1
        assert (place / "large").read_bytes() == expected
