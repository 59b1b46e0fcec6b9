# SPDX-License-Identifier: Apache-2.0
"""Numbers that lie, headers without end, bombs, and compressed streams that are none."""

import gzip
import struct

from hostile_item import (END, Repeated, changed, item, layout, of_blob, of_tar, pax,
                          record)
from support import images

GIB = 1 << 30
ZEROS = 16 << 20  # bytes of one gzip member of a bomb
RAISE = "try: BERTH_UNPACK_LIMITS, if this image may be so large"
NUMBER = "has a field that is not a valid number"


def octal(value):
    """As GNU tar: base 256 where octal digits end."""
    if value < 1 << 33:
        return b"%011o\0" % value
    return b"\x80" + value.to_bytes(11, "big")


def member(data):
    return gzip.compress(data, 9, mtime=0)


def bomb(head, size):
    """gzip members of 16 MiB zeros each, behind the header that makes them a file."""
    return of_blob(Repeated(member(head), member(bytes(ZEROS)), size // ZEROS, member(END)))


def zstd_zeros(size):
    """A frame of blocks that are one byte many times: four bytes for each 128 KiB."""
    block = struct.pack("<I", (1 << 17) << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", (1 << 17) << 3 | 1 << 1 | 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x38" + block * (size // (1 << 17) - 1) + last


def zstd(data):
    return images.compress(data, "zstd")


# ---- numbers ----
item("size-negative", "a file size of -1 in base 256", of_tar(record("n", size=b"\xff" * 12)),
     says=NUMBER)
item("size-of-eight-exabytes", "a file size of 63 bits",
     of_tar(record("n", size=b"\x80\0\0\0\x7f" + bytes(7))), says=NUMBER)
item("size-negative-in-pax", "pax size=-1", of_tar(pax(("size", "-1")), record("n")),
     says="pax size '-1' is not a valid number")
item("size-of-64-bits-in-pax", "pax size=2^64", of_tar(pax(("size", str(1 << 64))), record("n")),
     says="pax size '18446744073709551616' is not a valid number")
item("size-beyond-the-archive", "a file that says it is larger than its layer",
     of_tar(record("n", size=octal(1 << 20))), says="tar: the archive ends inside a file")
item("size-of-100-tb", "a file of 100 TB in a layer of a few bytes",
     of_tar(record("n", size=octal(100 << 40))), says=RAISE)
item("time-before-all-time", "a time of 2^62 seconds before 1970",
     of_tar(pax(("mtime", f"-{1 << 62}.999999999")), record("n")), expect="contained")
item("time-that-is-none", "a time that is not a number", of_tar(pax(("mtime", "1e9")), record("n")),
     says="pax mtime is not a valid time")
item("checksum-wrong", "a header with a wrong checksum", of_tar(b"y" + record("x")[1:]),
     says="tar: a header has a wrong checksum")
item("data-after-the-end", "entries after a zero block",
     lambda: layout(record("a") + bytes(512) + record("b") + END),
     says="tar: data follows a zero block")
item("no-end-blocks", "an archive without zero blocks after its last entry",
     lambda: layout(record("a")), expect="contained")
item("bytes-after-the-archive", "3 MB of garbage after the archive's end",
     lambda: layout(record("a") + END + b"z" * 3_000_000), expect="contained")

# ---- headers ----


def huge_header(kind):
    """An extended header of 1 GB of zeros, 64 times the same compressed bytes."""
    return lambda: bomb(record("h", kind, size=octal(GIB)), GIB)


item("pax-header-of-1-gb", "an extended header of 1 GB", huge_header(b"x"),
     says="an extended header of 1073741824 bytes, more than the 1 MiB allowed")
item("global-header-of-1-gb", "a global header of 1 GB", huge_header(b"g"),
     says="a global header of 1073741824 bytes, more than the 1 MiB allowed")
item("long-name-of-1-gb", "a GNU long name of 1 GB", huge_header(b"L"),
     says="an extended header of 1073741824 bytes, more than the 1 MiB allowed")
item("xattr-of-1-gb", "one extended attribute of 1 GB",
     lambda: of_blob(Repeated(
         member(record("h", b"x", size=octal(GIB)) + b"1073741824 SCHILY.xattr.user.large="),
         member(bytes(ZEROS)), GIB // ZEROS)),
     says="an extended header of 1073741824 bytes, more than the 1 MiB allowed")
item("pax-headers-in-a-row", "a thousand extended headers for one entry",
     of_tar(*[pax(("comment", "x"))] * 1000, record("f")),
     says="more than 16 extended headers before one entry",
     why="programs that write archives create one, and a second and a third for long names")
item("pax-record-too-long", "a pax record longer than its header",
     of_tar(record("h", b"x", content=b"999 path=x\n"), record("f")),
     says="a pax header has a record of a wrong length")
item("pax-record-without-a-key", "a pax record without a key",
     of_tar(record("h", b"x", content=b"5 =x\n"), record("f")),
     says="a pax header has a record without a key or an end")

# ---- sparse members ----


def sparse(*records, content=b"12345678"):
    return of_tar(pax(*records), record("s", content=content))


def old_sparse(parts, size, more=b""):
    patch = [(386 + 24 * n, octal(offset) + octal(length))
             for n, (offset, length) in enumerate(parts)]
    patch.append((483, octal(size)))
    if more:
        patch.append((482, b"\1"))
    whole = record("s", b"S", content=b"12345678", magic=b"ustar  \0", patch=patch)
    return of_tar(whole[:512] + more + whole[512:])


def lines(text, size=100):
    text = text.encode()
    return of_tar(pax(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"),
                      ("GNU.sparse.name", "s"), ("GNU.sparse.realsize", str(size))),
                  record("x", content=text + bytes(-len(text) % 512) + b"12345678"))


MAP = "entry 's': its sparse map "
item("sparse-gnu-overlaps", "old GNU sparse map: parts that overlap",
     old_sparse([(0, 6), (4, 2)], 100), says=MAP + "goes back or overlaps")
item("sparse-gnu-without-end", "old GNU sparse map: a thousand extension headers without entries",
     old_sparse([(0, 8)], 100, (bytes(504) + b"\1" + bytes(7)) * 1000),
     says=MAP + "contains something that is not a number")
item("sparse-gnu-of-exabytes", "old GNU sparse map: a hole of exabytes",
     old_sparse([(0, 8)], 1 << 59), says=RAISE)
item("sparse-0.0-past-the-end", "pax sparse map 0.0: beyond the end of the file",
     sparse(("GNU.sparse.size", "100"), ("GNU.sparse.numblocks", "1"), ("GNU.sparse.offset", "96"),
            ("GNU.sparse.numbytes", "8")), says=MAP + "goes beyond the end of the file")
item("sparse-0.1-odd", "pax sparse map 0.1: ends in the middle of a part",
     sparse(("GNU.sparse.size", "100"), ("GNU.sparse.map", "0,8,9")),
     says=MAP + "ends in the middle of a part")
item("sparse-0.1-overflow", "pax sparse map 0.1: offset and length sum to 2^64",
     sparse(("GNU.sparse.size", "100"), ("GNU.sparse.map", f"{(1 << 64) - 8},8")),
     says=MAP + "goes beyond the end of the file")
item("sparse-1.0-without-end", "pax sparse map 1.0: without an end (Go's CVE-2025-58183)",
     lines("262144\n" + "0\n0\n" * 262_144), says=MAP + "does not end")
item("sparse-1.0-of-1e9-parts", "pax sparse map 1.0: claims a billion parts",
     lines("1000000000\n"), says=MAP + "has too many parts")
item("sparse-1.0-of-exabytes", "pax sparse map 1.0: a hole of exabytes",
     lines("1\n0\n8\n", 1 << 59), says=RAISE)
item("sparse-of-a-petabyte-in-parts", "a thousand sparse files, each with a hole of 900 GB",
     lambda: layout(b"".join(pax(("GNU.sparse.size", str(900 << 30)), ("GNU.sparse.map", "0,8"))
                             + record(f"s{n}", content=b"12345678") for n in range(1000)) + END),
     says=RAISE)

# ---- bombs ----
item("bomb-gzip", "10 MB of gzip that unpack to one file of 10 GB",
     lambda: bomb(record("zeros", size=octal(10 * GIB)), 10 * GIB), says=RAISE)
item("bomb-zstd", "3 MB of zstd that unpack to one file of 100 GB",
     lambda: of_blob(Repeated(zstd(record("zeros", size=octal(100 * GIB))), zstd_zeros(GIB), 100,
                              zstd(END)), "zstd"), says=RAISE)
item("bomb-of-small-files", "10 MB of zstd that unpack to 100 GB in files of 64 MB",
     lambda: of_blob(Repeated(b"", b"".join(
         zstd(record(f"zeros{n}", size=octal(64 << 20))) + zstd_zeros(64 << 20)
         for n in range(100)), 16, zstd(END)), "zstd"),
     environment={"BERTH_UNPACK_LIMITS": "bytes=64m"},
     says="the layer unpacks to more than 67108864 bytes; " + RAISE)
item("entries-ten-million", "ten million empty files in 20 MB of gzip",
     lambda: of_blob(Repeated(b"", member(b"".join(
         record(f"d{n % 64}/f{n % 512}") for n in range(16384))), 611, member(END))),
     environment={"BERTH_UNPACK_LIMITS": "entries=10000"},
     says="the layer has more than 10000 entries; " + RAISE)

# ---- compression ----
SMALL = record("hello", content=b"hi\n") + END


def of_stream(blob, kind="gzip", data=SMALL):
    return lambda: of_blob(blob, kind, images.digest_of(data))


def labelled(kind, compression):
    """Says in the manifest that its layer is another kind than it is."""
    def make():
        made = layout(SMALL, compression=compression)
        changed(made.image, lambda m: m["layers"][0].update(mediaType=images.OCI[kind]))
        return made
    return make


item("gzip-truncated", "gzip that ends in the middle", of_stream(member(SMALL)[:-20]),
     says="gzip: it is cut short")
item("gzip-wrong-sum", "gzip with a wrong checksum",
     of_stream(member(SMALL)[:-8] + bytes(4) + member(SMALL)[-4:]),
     says="gzip: the checksum does not hold")
item("gzip-then-garbage", "gzip with garbage after its end",
     of_stream(member(SMALL) + b"garbage"), says="gzip: something follows its end")
item("gzip-of-two-members", "a second gzip member with other files",
     of_stream(member(record("one")) + member(record("two") + END),
               data=record("one") + record("two") + END), expect="contained")
item("gzip-of-a-million-members", "a million empty gzip members",
     lambda: of_blob(Repeated(member(SMALL), member(b""), 1_000_000),
                     diff_id=images.digest_of(SMALL)), expect="contained")
item("zstd-window-of-2-gib", "zstd that asks for 2 GiB of memory",
     of_stream(b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\0\0", "zstd"),
     says="zstd: it needs a window of more than the 128 MiB allowed")
item("zstd-truncated", "zstd that ends in the middle", of_stream(zstd(SMALL)[:-6], "zstd"),
     says="zstd: it is cut short")
item("kind-plain-says-gzip", "a plain tar whose media type says gzip", labelled("gzip", "none"),
     expect="contained")
item("kind-gzip-says-plain", "gzip whose media type says plain tar", labelled("none", "gzip"),
     expect="contained")
item("kind-zstd-says-gzip", "zstd whose media type says gzip", labelled("gzip", "zstd"),
     expect="contained")
item("layer-of-nothing", "a layer of zero bytes",
     lambda: layout(b"", compression="none"), expect="contained")
item("layer-of-noise", "a layer that is not a tar",
     lambda: layout(b"\xa5" * 4096), says="tar: a header has a wrong checksum")
