# SPDX-License-Identifier: Apache-2.0
"""A valid image with everything that a layer may contain: all dialects of tar, sparse files, long names,
links across directories, attributes, access lists, times with fractions and before 1970, devices. Written
byte by byte, since no archiver writes all of it."""

import pathlib
import struct
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "hostile-images")]

from hostile_item import END, pax, record  # noqa: E402

CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # cap_net_raw+ep
DATA = b"begin" + bytes(3) + b"end"
PARTS = [(8192, 5), (1 << 20, 6)]  # of the sparse files
SPARSE_SIZE = 3 << 20
SPARSE = [f"sparse/{form}" for form in ("gnu", "0.0", "0.1", "1.0")]
ALL, NO_OLD_SPARSE = "all", "all but GNU's old form of sparse files"


def _mode(mode):
    return b"%07o\0" % mode


def _number(value):
    return b"%011o\0" % value


def acl(*entries):
    """The attribute's value: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


NOBODY = 0xffffffff
LIST = acl((1, 6, NOBODY), (2, 4, 1001), (4, 4, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
LIST_TEXT = "user::rw-,user:1001:r--,group::r--,mask::r--,other::---"


def _sparse(what):
    lines = f"2\n{PARTS[0][0]}\n5\n{PARTS[1][0]}\n6\n".encode()
    size = str(SPARSE_SIZE)
    header = [(386 + 24 * n, _number(offset) + _number(length))
              for n, (offset, length) in enumerate(PARTS)] + [(483, _number(SPARSE_SIZE))]
    pairs = [pair for offset, length in PARTS for pair in (
        ("GNU.sparse.offset", str(offset)), ("GNU.sparse.numbytes", str(length)))]
    old = record("sparse/gnu", b"S", content=DATA, magic=b"ustar  \0", patch=header)
    return [
        record("sparse/", b"5", mode=_mode(0o755)), old if what == ALL else b"",
        pax(("GNU.sparse.size", size), ("GNU.sparse.numblocks", "2"), *pairs),
        record("sparse/0.0", content=DATA),
        pax(("GNU.sparse.size", size), ("GNU.sparse.numblocks", "2"),
            ("GNU.sparse.map", "8192,5,1048576,6"), ("GNU.sparse.name", "sparse/0.1")),
        record("sparse/GNUSparseFile.1/0.1", content=DATA),
        pax(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"),
            ("GNU.sparse.name", "sparse/1.0"), ("GNU.sparse.realsize", size)),
        record("sparse/GNUSparseFile.1/1.0", content=lines + bytes(512 - len(lines)) + DATA)]


def _names():
    long = "names/" + "/".join(["l" * 60] * 4)
    gnu = "names/" + "g" * 180
    parents = ["names/" + "/".join(["l" * 60] * count) for count in range(1, 5)]
    return [
        record("names/", b"5", mode=_mode(0o711)), record("names/" + "d" * 90, b"5"),
        *(pax(("path", path)) + record("x", b"5", mode=_mode(0o755)) for path in parents),
        pax(("path", long + "/pax")), record("x", content=b"pax"),
        record("././@LongLink", b"L", content=gnu.encode() + b"\0", magic=b"ustar  \0"),
        record("x", content=b"gnu", magic=b"ustar  \0"),
        record("p" * 90, content=b"ustar", patch=[(345, b"names/" + b"d" * 90)]),
        record("names/v7", content=b"v7", magic=bytes(8)),
        record(b"names/\xfe\xff", content=b"bytes"),
        record("names/link", b"2", "../target of a link"),
        pax(("linkpath", "t/" * 300)), record("names/far", b"2", "t"),
    ]


def _files():
    return [
        record("links/", b"5", mode=_mode(0o755)), record("links/a/", b"5", mode=_mode(0o755)),
        record("links/b/", b"5", mode=_mode(0o755)),
        record("links/a/one", content=b"one file", mode=_mode(0o640), uid=b"0000041\0"),
        record("links/b/two", b"1", "links/a/one", mode=_mode(0o640), uid=b"0000041\0"),
        record("three", b"1", "./links/b/two", mode=_mode(0o640), uid=b"0000041\0"),
        record("modes/", b"5", mode=_mode(0o1777)),
        record("modes/setuid", content=b"s", mode=_mode(0o6755), uid=b"0000041\0"),
        record("modes/none", content=b"n", mode=_mode(0)),
        pax(("uid", "1000000"), ("gid", "2000000")), record("modes/owned", content=b"o"),
        record("empty"),
        record("devices/", b"5", mode=_mode(0o755)),
        record("devices/null", b"3", major=1, minor=3, mode=_mode(0o666)),
        record("devices/disk", b"4", major=259, minor=300, mode=_mode(0o660)),
        record("devices/fifo", b"6", mode=_mode(0o600)),
        # As `ln -P`, `cp -al` and rsync -H make: every entry but a directory has several names.
        record("links/text", b"2", "nowhere"), record("links/a/text", b"1", "links/text"),
        record("links/b/fifo", b"1", "devices/fifo", mode=_mode(0o600)),
        record("links/b/null", b"1", "devices/null", mode=_mode(0o666)),
    ]


def _attributes():
    return [
        record("times/", b"5", mode=_mode(0o755)),
        pax(("mtime", "1234567890.123456789")), record("times/between"),
        pax(("mtime", "-86400.25")), record("times/before"),
        pax(("mtime", "4102444800.5")), record("times/after"),
        pax(("mtime", "1.000000001")), record("times/link", b"2", "x"),
        record("attributes/", b"5", mode=_mode(0o755)),
        pax(("SCHILY.xattr.user.note", b"with \0 and \n")), record("attributes/user"),
        pax(("SCHILY.xattr.security.capability", CAPABILITY)),
        record("attributes/ping", content=b"#!", mode=_mode(0o755)),
        pax(("SCHILY.xattr.system.posix_acl_access", LIST)),
        record("attributes/list", content=b"l", mode=_mode(0o640)),
        pax(("SCHILY.acl.access", LIST_TEXT)),
        record("attributes/list-as-text", content=b"l", mode=_mode(0o640)),
        pax(("SCHILY.acl.default", "user::rwx,group::r-x,group:2000:r-x,mask::r-x,other::---")),
        record("attributes/inherited/", b"5", mode=_mode(0o750)),
        record("attributes/inherited/file", content=b"i"),
        pax(("LIBARCHIVE.xattr.user.from%20bsdtar", "dmFsdWU")), record("attributes/libarchive"),
        pax(("mtime", "1500000000.5"), ("SCHILY.xattr.user.of", "a directory")),
        record("attributes/directory/", b"5", mode=_mode(0o2775), uid=b"0000041\0"),
    ]


def lower(what=ALL):
    whole = [record("hide/", b"5", mode=_mode(0o755)), record("hide/file", content=b"low"),
             record("hide/tree/", b"5", mode=_mode(0o755)), record("hide/tree/x"),
             record("opaque/", b"5", mode=_mode(0o755)), record("opaque/low", content=b"low"),
             record("merge/", b"5", mode=_mode(0o755)), record("merge/low", content=b"low"),
             record("becomes/", b"5", mode=_mode(0o755)), record("becomes/x")]
    root = [record("./", b"5", mode=_mode(0o755))]
    return b"".join(root + _names() + _files() + _sparse(what) + _attributes() + whole) + END


def upper():
    return b"".join([
        record("hide/", b"5", mode=_mode(0o755)), record("hide/.wh.file"),
        record("hide/.wh.tree"), record("hide/new", content=b"new"),
        record("opaque/", b"5", mode=_mode(0o700)), record("opaque/.wh..wh..opq"),
        record("opaque/high", content=b"high"),
        record("merge/", b"5", mode=_mode(0o711)), record("merge/high", content=b"high"),
        record(".wh.becomes"), record("becomes", content=b"a file")]) + END
