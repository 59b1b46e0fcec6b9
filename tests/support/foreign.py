# SPDX-License-Identifier: Apache-2.0
"""Image files of other engines: squashfs as enroot writes it, and SIF as apptainer does."""

import os
import pathlib
import shutil
import struct
import subprocess

from support import images

SQUASHFS, EXT3, ENCRYPTED = 1, 2, 5
SYSTEM, PRIMARY, DATA, OVERLAY = 1, 2, 3, 4
PARTITION, LABELS = 0x4004, 0x4003
HEADER, DESCRIPTOR, PAGE = 128, 585, 4096


def tree(path, files):
    """A root with busybox and `files`, {path: text}; files with a "#!" are executable."""
    path = pathlib.Path(path)
    (path / "bin").mkdir(parents=True)
    shutil.copy2("/bin/busybox", path / "bin/busybox")
    for name in ("sh", "cat", "ls", "id", "sleep", "true", "stat", "env", "mount", "touch", "find"):
        (path / "bin" / name).symlink_to("busybox")
    for directory in ("etc", "tmp", "proc", "sys", "dev", "opt"):
        (path / directory).mkdir(exist_ok=True)
    (path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
    for name, text in files.items():
        file = path / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755 if text.startswith("#!") else 0o644)
    return path


def squashfs(file, directory, *options):
    """As enroot makes them: root owns everything."""
    subprocess.run(["mksquashfs", directory, file, "-noappend", "-all-root", "-quiet", "-no-progress",
                    *options], check=True, capture_output=True)
    return pathlib.Path(file)


def descriptor(kind=PARTITION, offset=0, size=0, file_system=SQUASHFS, role=PRIMARY, used=True):
    raw = struct.pack("<i?IIIqqqqqqq128s", kind, used, 1, 1, 0, offset, size, size, 0, 0, 0, 0, b"x")
    return raw + struct.pack("<ii", file_system, role) + b"02\0".ljust(376, b"\0")


def header(total, table=HEADER, magic=b"SIF_MAGIC\0"):
    return (b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + magic + b"01\0" + b"02\0" +
            bytes(16) + struct.pack("<qqqqqqqq", 0, 0, 0, total, table, total * DESCRIPTOR, 0, 0))


def sif(file, root, descriptors=None, total=48, table=HEADER):
    """A SIF with the bytes of a squashfs, at the second page after the table."""
    content = pathlib.Path(root).read_bytes()
    start = -(-(HEADER + 48 * DESCRIPTOR) // PAGE) * PAGE + PAGE
    made = (descriptors or (lambda at, size: [
        descriptor(LABELS, at - PAGE, 100), descriptor(offset=at, size=size)]))(start, len(content))
    head = header(total, table) + b"".join(made)
    pathlib.Path(file).write_bytes(head.ljust(start, b"\0") + content)
    return pathlib.Path(file)


def give(account, *paths):
    for path in paths:
        os.chown(path, account.uid, account.gid)


def squashfs_of_too_many(file, work, depth):
    """A squashfs of some kilobytes with 2**depth names: in each directory `b` is the directory `a`.
    Source: squashfs format, "Directory Table"."""
    place = work / "chain"
    for _ in range(depth):
        (place / "b").mkdir(parents=True)
        place = place / "a"
        place.mkdir()
    squashfs(file, work / "chain", "-noI", "-noD", "-noF", "-noX", "-no-xattrs")
    data = bytearray(file.read_bytes())
    (table,) = struct.unpack_from("<Q", data, 72)
    (length,) = struct.unpack_from("<H", data, table)
    place, end = table + 2, table + 2 + (length & 0x7fff)
    while place < end:
        (count,) = struct.unpack_from("<I", data, place)
        place, first = place + 12, None
        for _ in range(count + 1):
            where, size = data[place:place + 4], struct.unpack_from("<H", data, place + 6)[0] + 1
            name = bytes(data[place + 8:place + 8 + size])
            first = where if name == b"a" else first
            if name == b"b" and first:
                data[place:place + 4] = first
            place += 8 + size
    file.write_bytes(data)
