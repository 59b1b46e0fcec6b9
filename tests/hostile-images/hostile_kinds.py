# SPDX-License-Identifier: Apache-2.0
"""Devices, owners, set-id bits and attributes."""

import os

from hostile_item import CANARY, entries, item, layout, of_entries, of_tar, pax, record
from support.images import character_device, directory, fifo, file, whiteout

NO_SAILOR = "user 'sailor' is not in the container's /etc/passwd; try: a numeric id"
MARKS = ("trusted.overlay.", "user.overlay.")


def attributes(tree):
    """[(path, key)] of everything below it."""
    found = []
    for top, names, files in os.walk(tree):
        for path in (top, *(os.path.join(top, name) for name in files)):
            found += [(path, key) for key in os.listxattr(path, follow_symlinks=False)]
    return found


def has_marks(tree):
    """Marks that an overlay would act on."""
    found = [key for path, key in attributes(tree) if key.startswith(MARKS)]
    return f"{found[0]} is set" if found else None


def has(key):
    def look(tree):
        return f"{key} is set" if any(k == key for _, k in attributes(tree)) else None
    return look


def with_xattr(key, value, kind=b"5", name="etc/"):
    return of_tar(pax((f"SCHILY.xattr.{key}", value)), record(name, kind, mode=b"0000755\0"))


# ---- devices ----
item("device-as-whiteout", "a character device 0:0, which an overlay takes for a whiteout",
     of_entries(character_device("etc", 0, 0)), expect="contained")
item("device-of-the-disk", "a node of the machine's first disk that everybody may open",
     lambda: layout(tar_of_disk(), base=True), expect="contained",
     run=("sh", "-c", "cat /disk 2>&1 | head -c 64"), prints="cat: can't open '/disk'")
item("device-of-the-memory", "a node of the machine's memory (/dev/mem) that everybody may open",
     lambda: layout(entries(character_device("memory", 1, 1)), base=True), expect="contained",
     run=("sh", "-c", "cat /memory 2>&1 | head -c 64"), prints="cat: can't open '/memory'")
item("device-number-of-37-bits", "a device number so large that mknod(2) would truncate it",
     of_tar(record("d", b"3", patch=[(329, b"\x80\0\0\0\0\x10\0\x01")])),
     says="a device 1048577:0 cannot be",
     why="Linux has no such device; mknod(2) would make another one")
item("device-in-the-place-of-passwd", "etc/passwd is a node of /dev/zero, which never ends",
     lambda: layout(entries(whiteout("etc/passwd")),
                    entries(character_device("etc/passwd", 1, 5)), base=True,
                    config={"User": "sailor"}), expect="contained", run=("id",),
     run_says=NO_SAILOR)
item("fifo-in-the-place-of-passwd", "etc/passwd is a FIFO that nobody writes to",
     lambda: layout(entries(fifo("etc/passwd")), base=True, config={"User": "sailor"}),
     expect="contained", run=("id",), run_says=NO_SAILOR)


def tar_of_disk():
    return record("disk", b"4", mode=b"0000666\0", major=8, minor=0) + bytes(1024)


# ---- modes and owners ----
item("setuid-root", "a setuid program of root, which other users of the host could run from the store",
     of_entries(file("su", "#!", mode=0o6755)), expect="contained")
item("owner-that-means-nobody", "the owner 2^32-1, which tells chown(2) to change nothing",
     of_tar(pax(("uid", "4294967295")), record("f")), says="its owner 4294967295:0 is not a valid id",
     why="chown(2) cannot set this owner, and the file would belong to root instead")
item("owner-beyond-32-bits", "the owner 2^32, which is root if truncated to 32 bits",
     of_tar(pax(("uid", "4294967296")), record("f")), says="its owner 4294967296:0 is not a valid id",
     why="chown(2) cannot set this owner, and the file would belong to root instead")
item("owner-negative", "a negative owner", of_tar(record("f", uid=b"\xff" * 8)),
     says="has a field that is not a valid number",
     why="chown(2) cannot set this owner, and the file would belong to root instead")
item("owner-of-31-bits", "the owner 2^31, which is negative as a signed number",
     of_tar(pax(("uid", "2147483648")), record("f")), expect="contained")

# ---- attributes ----
item("xattr-trusted-opaque", "trusted.overlay.opaque: hides a directory of the layers below",
     with_xattr("trusted.overlay.opaque", "y"), expect="contained", harm=has_marks)
item("xattr-user-opaque", "user.overlay.opaque: the same for an overlay that an ordinary user mounts",
     with_xattr("user.overlay.opaque", "y"), expect="contained", harm=has_marks)
item("xattr-redirect", "trusted.overlay.redirect: shows another directory in place of this one",
     with_xattr("trusted.overlay.redirect", "/etc"), expect="contained", harm=has_marks)
item("xattr-metacopy", "trusted.overlay.metacopy: takes the file's content from another file",
     with_xattr("trusted.overlay.metacopy", "", b"0", "f"), expect="contained", harm=has_marks)
item("xattr-user-whiteout", "user.overlay.whiteout: makes an empty file a whiteout",
     with_xattr("user.overlay.whiteout", "y", b"0", "f"), expect="contained", harm=has_marks)
item("xattr-in-libarchives-way", "trusted.overlay.opaque as a LIBARCHIVE.xattr record",
     of_tar(pax(("LIBARCHIVE.xattr.trusted.overlay.opaque", "eQ==")),
            record("etc/", b"5", mode=b"0000755\0")), expect="contained", harm=has_marks)
item("xattr-of-selinux", "security.selinux: a label for the host's security module",
     with_xattr("security.selinux", "system_u:object_r:shadow_t:s0\0"), expect="contained",
     harm=has("security.selinux"))
item("xattr-of-ima", "security.ima: a hash or signature for the host's integrity checks",
     with_xattr("security.ima", "\x01" + "x" * 20, b"0", "f"), expect="contained",
     harm=has("security.ima"))
item("xattr-capability-of-garbage", "security.capability with invalid content",
     with_xattr("security.capability", "garbage", b"0", "f"), expect="contained",
     harm=has("security.capability"))
item("xattr-acl-of-garbage", "an ACL with invalid content",
     with_xattr("system.posix_acl_access", b"\x02\0\0\0" + b"\xff" * 80, b"0", "f"),
     expect="contained", harm=has("system.posix_acl_access"))
item("xattr-acl-of-ten-thousand", "an ACL with ten thousand users",
     of_tar(pax(("SCHILY.acl.access", "user::rwx,group::r-x,mask::rwx,other::---"
                 + "".join(f",user:{n}:rwx" for n in range(1, 10001)))), record("f")),
     expect="contained", harm=has("system.posix_acl_access"))
item("xattr-name-of-300", "an extended attribute whose name is too long (over 300 bytes)",
     with_xattr("user." + "n" * 300, "v"), expect="contained")
item("xattr-of-100-kib", "an extended attribute of 100 KB (Linux allows 64 KiB)",
     with_xattr("user.large", "v" * 100_000), says="an attribute is larger than 64 KiB")
item("xattr-four-thousand", "four thousand extended attributes on one file",
     of_tar(pax(*((f"SCHILY.xattr.user.{n:04}", "v" * 100) for n in range(4000))), record("f")),
     expect="contained")
item("xattr-of-a-symlink", "an extended attribute and an ACL of a symbolic link, which could be set on its target",
     of_tar(pax(("SCHILY.xattr.user.k", "v"), ("SCHILY.acl.access",
                                               "user::rwx,group::rwx,other::rwx")),
            record("l", b"2", f"{CANARY}/precious")), expect="contained")
item("xattr-default-acl", "a default ACL, which files unpacked below the directory would inherit",
     of_tar(pax(("SCHILY.acl.default", "user::rwx,user:1001:rwx,group::r-x,mask::rwx,other::---")),
            record("d/", b"5", mode=b"0000755\0"), record("d/f")), expect="contained",
     harm=lambda tree: next((f"{path} has a list" for path, key in attributes(tree)
                             if path.endswith("/f") and key.startswith("system.")), None))
item("kind-unknown", "a tar entry of an unknown type", of_tar(record("k", b"Z")),
     says="has the type 'Z', which is not a file, link, device or directory")
item("directory-with-content", "a directory whose header gives it a size",
     of_tar(record("d/", b"5", size=b"00000001000\0", mode=b"0000755\0"), record("d/f")),
     expect="contained")
item("directory-nobody-may-enter", "a directory of mode 0 with a file in it",
     of_entries(directory("d", mode=0), file("d/f")), expect="contained")
