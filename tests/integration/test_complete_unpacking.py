# SPDX-License-Identifier: Apache-2.0
"""All that a layer may hold is unpacked, in both formats: file by file what podman and umoci make
of the same image, but for the differences that are listed here with their reasons."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

import pytest
from support import images, rich_layer

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "hostile-images")]

from hostile_item import Layout  # noqa: E402

pytestmark = pytest.mark.profiles("root", "erofs")

TEXT = "it reads no access lists as text (SCHILY.acl.*)"
LISTS = "it keeps no access lists"
BSD = "it reads no LIBARCHIVE.xattr.*"
EPOCH = "it makes times before 1970 that moment"
NAMES = "what is not a regular file does not stay one file under two names"
# {tool: {path: {what differs: why}}}
DIFFERENCES = {
    "podman": {"attributes/inherited": {"attributes": TEXT},
               "attributes/libarchive": {"attributes": BSD},
               "attributes/list": {"attributes": LISTS},
               "attributes/list-as-text": {"attributes": TEXT},
               "links/b/fifo": {"same as": NAMES}, "links/b/null": {"same as": NAMES},
               "links/text": {"same as": NAMES},
               "times/before": {"time": EPOCH}},
    "umoci": {"attributes/inherited": {"attributes": TEXT},
              "attributes/libarchive": {"attributes": BSD},
              "attributes/list-as-text": {"attributes": TEXT}},
}


def look(path):
    """All that a program can see of a file, but for marks of an overlay."""
    status = path.lstat()
    seen = {"kind": stat.S_IFMT(status.st_mode), "mode": oct(stat.S_IMODE(status.st_mode)),
            "owner": (status.st_uid, status.st_gid), "time": status.st_mtime_ns}
    seen["attributes"] = {key: os.getxattr(path, key, follow_symlinks=False)
                          for key in os.listxattr(path, follow_symlinks=False)
                          if ".overlay." not in key and key != "security.selinux"}
    if stat.S_ISREG(status.st_mode):
        seen["size"] = status.st_size
        seen["content"] = hashlib.sha256(path.read_bytes()).hexdigest()
    if stat.S_ISLNK(status.st_mode):
        seen["target"] = os.readlink(path)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        seen["device"] = (os.major(status.st_rdev), os.minor(status.st_rdev))
    return seen, (status.st_dev, status.st_ino)


def look_at(root):
    """{path: what is seen}; hard links name the first path of their file."""
    tree, first = {}, {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        name = os.fsencode(path.relative_to(root))
        tree[name], inode = look(path)
        tree[name]["same as"] = first.setdefault(inode, name)
    return tree


def differences(ours, theirs):
    """{path: {what: (ours, theirs)}}"""
    found = {}
    for path in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(path, {}), theirs.get(path, {})
        unlike = {key: (one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())
                  if one.get(key) != other.get(key)}
        if unlike:
            found[path.decode(errors="backslashreplace")] = unlike
    return found


def image_of(what):
    return images.build([rich_layer.lower(what), rich_layer.upper()])


@contextlib.contextmanager
def layout_of(what):
    # Not a name of tempfile's: podman takes none that ends with '_'.
    layout = pathlib.Path(f"/var/tmp/berth-tests-rich-{os.urandom(6).hex()}")
    Layout(image_of(what)).write(layout)
    yield layout
    shutil.rmtree(layout)


@contextlib.contextmanager
def mounted(*arguments):
    with tempfile.TemporaryDirectory(prefix="berth-tests-rich-", dir="/var/tmp") as place:
        # By fsconfig(2), as newer ones mount, an option of overlay ends after 255 bytes.
        subprocess.run(["mount", *arguments, place], check=True, env={**os.environ, "LIBMOUNT_FORCE_MOUNT2": "always"})
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def unpacked(berth, what):
    """What a container would see of the image, which Berth has unpacked."""
    with layout_of(what) as layout:
        done = berth.run("load", "--quiet", "--input", layout)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    with contextlib.ExitStack() as stack:
        layers = []
        for diff_id in reversed(image_of(what).diff_ids):
            [layer] = berth.root.glob(f"layers/{diff_id.removeprefix('sha256:')}*")
            erofs = layer / "fs.erofs"
            layers.append(str(layer / "fs") if not erofs.exists() else stack.enter_context(
                mounted("-t", "erofs", "-o", "ro,loop", erofs)))
        yield stack.enter_context(
            mounted("-t", "overlay", "-o", f"ro,lowerdir={':'.join(layers)}", "overlay"))


@pytest.fixture
def ours(berth):
    with unpacked(berth, rich_layer.ALL) as tree:
        yield tree


def podman(layout, place):
    argv = ["podman", "--storage-driver", "vfs", "--root", place / "data", "--runroot",
            "/run/containers", "--tmpdir", "/run/tmp", "--events-backend", "none"]
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-c",
              'mount -t tmpfs tmpfs /run; exec "$@"', "sh", *argv]
    done = subprocess.run([*inside, "pull", "-q", f"oci:{layout}:latest"], capture_output=True,
                          text=True, timeout=100)
    return done, lambda: next(path for path in (place / "data/vfs/dir").iterdir()
                              if (path / "merge/high").exists())


def umoci(layout, place):
    done = subprocess.run(["umoci", "unpack", "--image", f"{layout}:latest", place / "bundle"],
                          capture_output=True, text=True, timeout=100)
    return done, lambda: place / "bundle/rootfs"


@pytest.mark.parametrize("tool", [podman, umoci])
def test_it_is_what_others_unpack_but_for_listed_differences(berth, work, tool):
    with layout_of(rich_layer.NO_OLD_SPARSE) as layout:
        done, tree = tool(layout, work)
    assert done.returncode == 0, done.stderr
    with unpacked(berth, rich_layer.NO_OLD_SPARSE) as ours:
        found = differences(look_at(ours), look_at(tree()))
    known = DIFFERENCES[tool.__name__]
    assert {path: sorted(what) for path, what in found.items()} == {
        path: sorted(what) for path, what in known.items()}, "\n".join(
            f"{path}: {what}" for path, what in found.items())


@pytest.mark.profiles("root")
@pytest.mark.parametrize("tool", [podman, umoci])
def test_sparse_files_of_old_gnu_tars_are_not_what_others_unpack(work, tool):
    """Why the comparison has none of them."""
    with layout_of(rich_layer.ALL) as layout:
        done, _ = tool(layout, work)
    assert done.returncode != 0
    assert "unhandled tar header type 83" in done.stderr or r"typeflag '\x53'" in done.stderr


def test_everything_is_as_the_archive_says(ours):
    tree = look_at(ours)
    expected = bytearray(rich_layer.SPARSE_SIZE)
    at = 0
    for offset, length in rich_layer.PARTS:
        expected[offset:offset + length] = rich_layer.DATA[at:at + length]
        at += length
    for path in rich_layer.SPARSE:
        assert tree[path.encode()]["content"] == hashlib.sha256(expected).hexdigest()
    assert tree[b"links/b/two"]["same as"] == tree[b"three"]["same as"] == b"links/a/one"
    assert tree[b"times/before"]["time"] == -86400_250_000_000
    assert tree[b"times/between"]["time"] == 1234567890_123456789
    assert tree[b"times/link"]["time"] == 1_000_000_001
    lists = [tree[f"attributes/{name}".encode()]["attributes"]["system.posix_acl_access"]
             for name in ("list", "list-as-text")]
    assert lists == [rich_layer.LIST] * 2
    inherited = tree[b"attributes/inherited"]["attributes"]
    assert list(inherited) == ["system.posix_acl_default"]
    assert tree[b"attributes/inherited/file"]["attributes"] == {}
    assert tree[b"attributes/libarchive"]["attributes"] == {"user.from bsdtar": b"value"}
    assert tree[b"devices/disk"]["device"] == (259, 300)
    assert b"hide/file" not in tree and b"opaque/low" not in tree and b"merge/low" in tree
    assert tree[b"becomes"]["kind"] == stat.S_IFREG


def test_holes_take_no_space(berth, ours):
    store = sum(path.lstat().st_blocks * 512 for path in berth.root.rglob("*"))
    assert store < 3 << 20  # one of the four sparse files is 3 MiB large


def test_an_exported_container_has_the_access_lists(berth, work):
    with layout_of(rich_layer.ALL) as layout:
        reference = berth.ok("load", "--quiet", "--input", layout).split()[-1]
    berth.ok("create", "--name", "hold", reference, "none")
    berth.ok("export", "--output", work / "out.tar", "hold")
    with tarfile.open(work / "out.tar") as archive:
        records = archive.getmember("attributes/list").pax_headers
    value = records["SCHILY.xattr.system.posix_acl_access"]
    assert value.encode("utf-8", "surrogateescape") == rich_layer.LIST
    berth.ok("rm", "hold")
