# SPDX-License-Identifier: Apache-2.0
"""Layers that try forbidden things, each with the reason in Berth's refusal. The entries come first, so that
a test can check that the files unpacked before are removed again."""

import dataclasses

from support import images

HELLO = images.file("hello", "hi\n")


@dataclasses.dataclass
class Hostile:
    entries: list
    reason: str  # the end of the error line, after the layer's digest
    tar: bytes = b""  # instead of the entries

    def layer(self):
        return self.tar or images.layer(self.entries)


def _pax(entry, **records):
    info, content = entry
    info.pax_headers = records
    return info, content


def _record(name, kind=b"0", link="", size=None, content=b"", major=0, minor=0):
    """One member, without tarfile's corrections and refusals."""
    header = bytearray(512)

    def put(offset, data):
        header[offset:offset + len(data)] = data

    put(0, name.encode() if isinstance(name, str) else name)
    put(100, b"0000644\0" + b"0000000\0" * 2)
    put(124, size or b"%011o\0" % len(content))
    put(136, b"14524670000\0")
    put(148, b" " * 8)
    put(156, kind)
    put(157, link.encode())
    put(257, b"ustar\x0000")
    put(329, b"%07o\0" % major + b"%07o\0" % minor)
    put(148, b"%06o\0 " % sum(header))
    return bytes(header) + content + bytes(-len(content) % 512)


END = bytes(1024)

LAYERS = {
    "links that go in a circle": Hostile(
        [images.symlink("a", "b"), images.symlink("b", "a"), images.file("a/evil")],
        "entry 'a/evil': its path goes through too many symbolic links"),
    "a hard link that goes up": Hostile(
        [HELLO, images.hardlink("h", "../../../../etc/shadow")],
        "entry 'h': it is a hard link to '../../../../etc/shadow', which is not in this layer"),
    "a hard link through a link": Hostile(
        [images.symlink("e", "/etc"), images.hardlink("h", "e/shadow")],
        "entry 'h': it is a hard link to 'e/shadow', which is not in this layer"),
    "a hard link to a directory": Hostile(
        [images.directory("d"), images.hardlink("h", "d")],
        "entry 'h': it is a hard link to 'd', which is a directory"),
    "a hard link to what a whiteout hides": Hostile(
        [images.whiteout("d"), images.hardlink("h", "d")],
        "entry 'h': it is a hard link to 'd', which is not in this layer"),
    "a hard link before its target": Hostile(
        [images.hardlink("h", "later"), images.file("later")],
        "entry 'h': it is a hard link to 'later', which is not in this layer"),
    "a whiteout of the parent": Hostile(
        [HELLO, images.file("a/.wh...")],
        "entry 'a/.wh...': a whiteout of '..' does not name a file"),
    "a whiteout of the directory itself": Hostile(
        [HELLO, images.file("a/.wh..")],
        "entry 'a/.wh..': a whiteout of '.' does not name a file"),
    "a whiteout of nothing": Hostile(
        [HELLO, images.file("a/.wh.")],
        "entry 'a/.wh.': a whiteout of '' does not name a file"),
    "a file below a whiteout": Hostile(
        [HELLO, images.file(".wh.a/b")], "entry '.wh.a/b': it lies below a whiteout"),
    "a root that is a link": Hostile(
        [], "entry '.': the root is a directory", _record(".", b"2", "/etc") + END),
    "a file below a file": Hostile(
        [images.file("f"), images.file("f/below")], "entry 'f/below': 'f' is not a directory"),
    "an owner that means nobody": Hostile(
        [_pax(images.file("f"), uid="4294967295")],
        "entry 'f': its owner 4294967295:0 is not a valid id"),
    "a sparse file without a size": Hostile(
        [_pax(images.file("s"), **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})],
        "tar: entry 's' is sparse and has no valid size"),
    "a member of an unknown kind": Hostile(
        [], "tar: entry 'k' has the type 'Z', which is not a file, link, device or directory",
        _record("k", b"Z") + END),
    "a negative size": Hostile(
        [], "tar: entry 'n' has a field that is not a valid number",
        _record("n", size=b"\xff" * 12) + END),
    "a size of eight exabytes": Hostile(
        [], "tar: entry 'n' has a field that is not a valid number",
        _record("n", size=b"\x80\0\0\0\x7f" + bytes(7)) + END),
    "a file that is cut short": Hostile(
        [], "tar: the archive ends inside a file", _record("f", size=b"00000010000\0") + bytes(512)),
    "a header with a wrong sum": Hostile(
        [], "tar: a header has a wrong checksum", b"x" + _record("f")[1:] + END),
    "an extended header of two megabytes": Hostile(
        [], "tar: an extended header of 2097152 bytes, more than the 1 MiB allowed",
        _record("p", b"x", content=bytes(2 << 20)) + END),
    "a record longer than its header": Hostile(
        [], "tar: a pax header has a record of a wrong length",
        _record("p", b"x", content=b"999 path=x\n") + _record("f") + END),
    "a NUL in a name": Hostile(
        [], "tar: a pax header has a NUL in a name",
        _record("p", b"x", content=b"11 path=a\0b"[:10] + b"\n") + _record("f") + END),
    "a path of a thousand directories": Hostile(
        [images.file("/".join("d" * 1000))],
        "entry '" + "/".join("d" * 1000)[:100] + "': its path is deeper than 512 directories; "
        "try: BERTH_UNPACK_LIMITS, if this image may be so large"),
    "a terminal escape in a name": Hostile(
        [], "entry '.wh.x/\\x1b[31mred\\nberth: all is well': it lies below a whiteout",
        _record(".wh.x/\x1b[31mred\nberth: all is well") + END),
}
