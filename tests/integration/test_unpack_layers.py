# SPDX-License-Identifier: Apache-2.0
"""Layers by strangers: what they may do happens exactly, what they may not is refused with one line
and leaves the store as it was."""

import os
import subprocess

import pytest

from support import hostile_layers, images


def layer_path(berth, image, index=-1):
    """Where the store keeps a layer's files, whichever way this user unpacks them."""
    name = image.diff_ids[index].removeprefix("sha256:")
    found = [path for path in (berth.root / "layers").iterdir() if path.name.startswith(name)]
    assert len(found) == 1
    return found[0] / "fs"


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("case", hostile_layers.LAYERS)
def test_a_hostile_layer_is_refused_and_leaves_the_store_as_it_was(berth, push, busybox, listing,
                                                                   case):
    berth.ok("pull", "--quiet", busybox)
    before = listing()
    hostile = hostile_layers.LAYERS[case]
    image = images.build([images.busybox_layer(), hostile.layer()])
    reference = push(image)
    line = berth.fail("pull", "--quiet", reference, status=1)
    assert line == (f"berth: cannot pull '{reference}': cannot unpack layer "
                    f"'{image.layer_digests[1]}': {hostile.reason}")
    assert listing() == before
    berth.ok("run", "--rm", busybox, "true")


def test_a_name_with_a_leading_slash_lies_in_the_layer(berth, push):
    image = images.build([images.busybox_layer(),
                          images.layer([images.file("/ko-app/tool", "inside\n")])])
    reference = push(image)
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "cat", "/ko-app/tool") == "inside\n"
    assert not os.path.exists("/ko-app")


def test_links_to_anywhere_are_kept_and_resolve_in_the_container(berth, push):
    image = images.build([images.busybox_layer(),
                          images.layer([images.symlink("up", "../../../../etc/group"),
                                        images.symlink("abs", "/etc/group")])])
    reference = push(image)
    berth.ok("pull", "--quiet", reference)
    out = berth.ok("run", "--rm", reference, "sh", "-c", "grep -h crew /up /abs; readlink /up")
    assert out == "crew:x:2000:sailor\ncrew:x:2000:sailor\n../../../../etc/group\n"


def test_the_last_of_several_entries_wins(berth, push):
    image = images.build([images.busybox_layer(),
                          images.layer([images.file("f", "one\n"), images.file("f", "two\n")])])
    reference = push(image)
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "cat", "/f") == "two\n"


def test_upper_layers_hide_lower_ones_in_whatever_order_they_say_so(berth, push):
    lower = images.layer([images.directory("d"), images.file("d/old", "old\n"),
                          images.directory("e"), images.file("e/old", "old\n"),
                          images.directory("g"), images.file("g/old", "old\n"),
                          images.file("gone", "old\n")])
    upper = images.layer([images.whiteout("gone"),
                          images.file("d/new", "new\n"), images.opaque("d"),
                          images.opaque("e"), images.file("e/new", "new\n"),
                          images.directory("g"), images.file("g/new", "new\n"),
                          images.whiteout("g")])
    reference = push(images.build([images.busybox_layer(), lower, upper]))
    berth.ok("pull", "--quiet", reference)
    out = berth.ok("run", "--rm", reference, "sh", "-c",
                   "ls d e g; ls /gone 2>&1; find / -xdev -name '.wh.*'")
    assert out.splitlines() == ["d:", "new", "", "e:", "new", "", "g:", "new",
                                "ls: /gone: No such file or directory"]


@pytest.mark.profiles("root")
def test_device_nodes_are_made_for_root(berth, push):
    image = images.build([images.busybox_layer(),
                          images.layer([images.character_device("opt/null", 1, 3)])])
    berth.ok("pull", "--quiet", push(image))
    status = (layer_path(berth, image) / "opt/null").lstat()
    assert (os.major(status.st_rdev), os.minor(status.st_rdev)) == (1, 3)


@pytest.mark.profiles("user", "single_id")
def test_device_nodes_are_left_out_for_a_user_with_one_warning(berth, push):
    image = images.build([images.busybox_layer(),
                          images.layer([images.character_device("opt/null", 1, 3),
                                        images.character_device("opt/zero", 1, 5)])])
    done = berth.run("pull", push(image))
    assert done.returncode == 0
    warnings = [line for line in done.stderr.splitlines() if "device nodes" in line]
    assert len(warnings) == 1
    assert warnings[0].endswith("2 device nodes (first: 'opt/null') cannot be made by an ordinary "
                                "user, ignoring them")
    assert not (layer_path(berth, image) / "opt/null").exists()


def test_owners_are_kept_where_the_user_has_ids_for_them(berth, push, profile):
    image = images.build([images.busybox_layer(),
                          images.layer([images.file("f", mode=0o4755, uid=33, gid=34)])])
    reference = push(image)
    berth.ok("pull", "--quiet", reference)
    out = berth.ok("run", "--rm", reference, "stat", "-c", "%u:%g %a", "/f")
    assert out == ("0:0 755\n" if profile.kind == "single_id" else "33:34 4755\n")


@pytest.mark.profiles("user")
def test_owners_outside_the_users_ids_become_root_with_one_warning(berth, push, work):
    """Whoever has subordinate ids is no worse off than who has none."""
    image = images.build([images.busybox_layer(), images.layer([
        images.file("far", mode=0o6755, uid=3_000_000, gid=5), images.file("group", mode=0o2755, uid=5, gid=3_000_000),
        images.directory("dir", mode=0o2770, uid=3_000_000, gid=3_000_000)])])
    reference = push(image)
    done = berth.run("pull", "--quiet", reference)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and done.stderr.endswith(
        ": this user namespace has no ids for the owners of 3 files (first: '3000000:5 of far'), "
        "using root instead; a larger range in /etc/subuid and /etc/subgid keeps them\n"), done
    show = ("run", "--rm", reference, "stat", "-c", "%n %u:%g %a", "/far", "/group", "/dir")
    seen = "/far 0:5 2755\n/group 5:0 755\n/dir 0:0 2770\n"
    assert berth.ok(*show) == seen
    berth.ok("save", "-o", work / "saved.tar", reference)
    berth.ok("rmi", "--force", reference)
    loaded = berth.run("load", "-i", work / "saved.tar")
    assert loaded.returncode == 0, loaded
    assert berth.ok(*show) == seen


@pytest.mark.profiles("root", "user")
def test_a_wrong_diff_id_is_refused(berth, push, listing):
    berth.ok("images")
    before = listing()
    layer = images.layer([hostile_layers.HELLO])
    wrong = "sha256:" + "1" * 64
    image = images.build([layer], diff_ids=[wrong])
    reference = push(image)
    line = berth.fail("pull", "--quiet", reference, status=1)
    assert line == (f"berth: cannot pull '{reference}': cannot unpack layer "
                    f"'{image.layer_digests[0]}': check the unpacked bytes: they have digest "
                    f"'{images.digest_of(layer)}', the config says '{wrong}'")
    assert listing() == before


@pytest.mark.profiles("root")
@pytest.mark.parametrize("damage, compression, reason", [
    (lambda data: data[:-9], "gzip", "gzip: it is cut short"),
    (lambda data: data + b"more", "gzip", "gzip: something follows its end"),
    (lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "gzip",
     "gzip: the checksum does not hold"),
    (lambda data: b"no gzip", "gzip", "gzip: it is not gzip data"),
    (lambda data: data[:-9], "zstd", "zstd: it is cut short"),
    (lambda data: b"no zstd", "zstd", "zstd: the data is damaged"),
], ids=["cut", "garbage", "sum", "other", "zstd-cut", "zstd-other"])
def test_damaged_compression_is_refused(berth, push, listing, monkeypatch, damage, compression,
                                        reason):
    berth.ok("images")
    before = listing()
    plain = images.compress
    monkeypatch.setattr(images, "compress", lambda data, kind: damage(plain(data, kind)))
    image = images.build([images.layer([hostile_layers.HELLO])], compression=compression)
    reference = push(image)
    assert berth.fail("pull", "--quiet", reference, status=1) == (
        f"berth: cannot pull '{reference}': cannot unpack layer '{image.layer_digests[0]}': "
        f"{reason}")
    assert listing() == before


@pytest.mark.profiles("root")
def test_a_zstd_window_of_gigabytes_is_refused(berth, push, monkeypatch):
    packed = subprocess.run(["zstd", "-q", "-c", "--ultra", "-22", "--long=31"], check=True,
                            input=images.layer([hostile_layers.HELLO]), capture_output=True).stdout
    monkeypatch.setattr(images, "compress", lambda data, kind: packed)
    image = images.build([images.layer([hostile_layers.HELLO])], compression="zstd")
    reference = push(image)
    assert berth.fail("pull", "--quiet", reference, status=1).endswith(
        "zstd: it needs a window of more than the 128 MiB allowed")


def test_members_of_a_gzip_follow_one_another(berth, push, monkeypatch):
    plain = images.compress
    monkeypatch.setattr(images, "compress", lambda data, kind: plain(data[:5000], kind) +
                        plain(data[5000:], kind) + plain(b"", kind))
    reference = push(images.build([images.busybox_layer()]))
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "echo", "whole") == "whole\n"


@pytest.mark.profiles("root")
def test_a_full_disk_is_said_and_leaves_nothing_half_made(berth, push, work):
    small = work / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0755", "tmpfs", small], check=True)
    try:
        berth.root = small / "root"
        berth.ok("images")
        image = images.build([images.layer([images.file(f"f{n}", bytes(1 << 20))
                                            for n in range(8)])])
        reference = push(image)
        assert berth.fail("pull", "--quiet", reference, status=1) == (
            f"berth: cannot pull '{reference}': cannot unpack layer '{image.layer_digests[0]}': "
            "cannot unpack 'f2': write 'f2': No space left on device; try: free space on the store's file "
            "system, or another --root")
        left = [path.relative_to(berth.root).as_posix() for path in berth.root.rglob("*")
                if path.is_file() and path.name not in ("lock", "version")]
        assert left == []
    finally:
        subprocess.run(["umount", small], check=True)
