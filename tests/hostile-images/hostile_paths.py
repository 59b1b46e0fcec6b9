# SPDX-License-Identifier: Apache-2.0
"""Names, links and whiteouts that lead somewhere else."""

from hostile_item import CANARY, UP, entries, item, layout, of_entries, of_tar, pax, record
from support.images import directory, fifo, file, hardlink, opaque, symlink, whiteout

OUT = symlink("out", CANARY)
PAST = UP + CANARY[1:]  # the same from wherever one is

# ---- names ----
item("name-up", "a name that begins with ..", of_entries(file(f"{PAST}/made")), expect="contained")
item("name-down-and-up", "a name with .. in the middle", of_entries(file(f"a/b/{PAST}/made")),
     expect="contained")
item("name-absolute", "an absolute name", of_entries(file(f"{CANARY}/made")),
     expect="contained")
item("name-of-dots-for-a-directory",
     "a directory entry named ../, to set the mode of the directory above (CVE-2021-32760)",
     of_tar(record("../", b"5", mode=b"0000777\0")), expect="contained")
item("name-empty", "a file without a name", of_tar(record("")), says="the root is a directory")
item("name-with-nul", "a NUL in the middle of a pax path",
     of_tar(pax(("path", b"a\0/../b")), record("x")), says="a pax header has a NUL in a name")
item("name-with-escape", "a name with control sequences for the terminal on which the error is printed",
     of_entries(file("f"), file("f/\x1b[2J\x1b[31mall is well/x")),
     says=r"entry 'f/\x1b[2J\x1b[31mall is well/x': 'f' is not a directory")
item("name-with-newline", "a name with a newline, to forge a line of the log",
     of_entries(file("a\nberth: all is well")), expect="contained")
item("name-not-utf8", "a name that is not UTF-8", of_tar(record(b"\xff\xfe\x80")),
     expect="contained")
item("name-of-4096", "a path of 4096 bytes (Linux allows 4095)", of_tar(pax(("path", "/".join(["n" * 240] * 17))),
                                                        record("x")),
     says="its path is longer than 4095 bytes")
item("name-part-of-256", "a path component of 256 bytes (Linux allows 255)",
     of_entries(file("n" * 256)), says="a part of its path is longer than 255 bytes")
item("name-4000-deep", "directories nested four thousand deep",
     of_tar(pax(("path", "d/" * 4000)), record("x", b"5")),
     says="its path is deeper than 512 directories; try: BERTH_UNPACK_LIMITS, if this image may be "
          "so large")
item("name-deep-by-links", "a chain of 100 symbolic links, then a file through the first",
     lambda: layout(entries(*[symlink(f"l{n}", f"l{n + 1}") for n in range(100)],
                            directory("l100"), file("l0/made"))),
     says="its path goes through too many symbolic links",
     why="the kernel follows at most 40 links in a path, so no container could open the file")

# ---- symbolic links ----
item("symlink-absolute-then-file", "a symbolic link to a directory of the host, then a file through the link",
     of_entries(OUT, file("out/made")), expect="contained")
item("symlink-relative-then-file", "the same with a relative link (../..)",
     of_entries(symlink("out", PAST), file("out/made")), expect="contained")
item("symlink-to-root-then-file", "a link to /, then a file through it (similar to umoci's CVE-2021-29136)",
     of_entries(symlink("out", "/"), file(f"out{CANARY}/made")), expect="contained")
item("symlink-chain-then-file", "a link to a link to the host, then a file through both",
     of_entries(symlink("a", "out"), OUT, file("a/made")), expect="contained")
item("symlink-then-directory", "a link to the host, a directory of the same name, then a file in it",
     of_entries(OUT, directory("out"), file("out/made")), expect="contained")
item("symlink-replaces-filled-directory",
     "a directory with a file, a link of the same name, then a file through the link",
     of_entries(directory("out"), file("out/x"), OUT, file("out/made")), expect="contained")
item("symlink-of-a-lower-layer", "a link in one layer, a file through it in the next",
     lambda: layout(entries(OUT), entries(file("out/made"))), expect="contained")
item("symlink-replaced-between-layers",
     "three layers: a directory, a link in its place, a directory with a file in the link's place",
     lambda: layout(entries(directory("out"), file("out/x")), entries(OUT),
                    entries(directory("out"), file("out/made"))), expect="contained")
item("symlink-then-same-name", "a link to a file of the host, then a file of the same name, to write through the link",
     of_entries(symlink("f", f"{CANARY}/precious"), file("f", "overwritten")), expect="contained")
item("symlink-then-directory-mode",
     "a link, then a directory of the same name, to change mode and owner of the link's target",
     of_entries(OUT, directory("out", mode=0o777, uid=1)), expect="contained")
item("symlink-loop", "a symlink loop, and a file below it",
     of_entries(symlink("a", "b"), symlink("b", "a"), file("a/x")),
     says="its path goes through too many symbolic links")
item("symlink-to-proc", "a file through a link into /proc/self",
     of_entries(symlink("out", "/proc/self/fd"), file("out/1")), expect="contained")
item("symlink-target-of-5000", "a link target of 5000 bytes (Linux allows 4095)",
     of_tar(pax(("linkpath", "t" * 5000)), record("l", b"2", "t")),
     says="a symbolic link needs a target of 1 to 4095 bytes")
item("root-is-a-symlink", "the root itself becomes a link (CVE-2021-29136)",
     of_tar(record(".", b"2", CANARY), record("made")), says="the root is a directory")
item("root-is-a-file", "the root itself becomes a file", of_tar(record("./", b"0")),
     expect="contained")

# ---- hard links ----
MISSING = "which is not in this layer"
item("hardlink-up", "a hard link to a file above the root (../..)", of_entries(hardlink("h", f"{PAST}/precious")),
     says=MISSING)
item("hardlink-absolute", "a hard link to a file of the host",
     of_entries(hardlink("h", f"{CANARY}/precious")), says=MISSING)
item("hardlink-to-symlink", "a hard link to a link to a file of the host",
     of_entries(symlink("s", f"{CANARY}/precious"), hardlink("h", "s")), expect="contained")
item("hardlink-to-symlink-then-write", "the same, then a file of the hard link's name, to write through both links",
     of_entries(symlink("s", f"{CANARY}/precious"), hardlink("h", "s"), file("h", "overwritten")),
     expect="contained")
item("hardlink-through-symlink", "a hard link whose target is reached through a symbolic link",
     of_entries(OUT, hardlink("h", "out/precious")), says=MISSING)
item("hardlink-into-symlink", "a hard link created through a symbolic link",
     of_entries(OUT, file("x"), hardlink("out/made", "x")), expect="contained")
item("hardlink-to-itself", "a hard link to its own name", of_entries(hardlink("h", "h")),
     says=MISSING)
item("hardlink-before-its-target", "a hard link to a file that comes later in the layer",
     of_entries(hardlink("h", "later"), file("later")), says=MISSING)
item("hardlink-to-a-lower-layer", "a hard link to a file of another layer",
     lambda: layout(entries(file("low")), entries(hardlink("h", "low"))),
     says=MISSING,
     why="each layer is unpacked into a directory of its own, which images share, so a file of one layer cannot be "
         "linked into another; podman and docker refuse this on an overlay, too (podman used vfs here, which copies "
         "all layers into one directory)")
item("hardlink-to-a-directory", "a hard link to a directory",
     of_entries(directory("d"), hardlink("h", "d")), says="which is a directory")
item("hardlink-over-its-own-parent", "a hard link that would replace the directory of its target",
     of_entries(directory("d"), file("d/x"), hardlink("d", "d/x")), says="which it would replace")

# ---- whiteouts ----
item("whiteout-through-symlink", "a whiteout whose path goes through a symbolic link of the same layer",
     of_entries(OUT, whiteout("out/precious")), expect="contained")
item("whiteout-through-lower-symlink", "a whiteout whose path goes through a symbolic link of the layer below",
     lambda: layout(entries(OUT), entries(whiteout("out/precious"))), expect="contained")
item("whiteout-up", "a whiteout of a file above the root (../..)", of_entries(whiteout(f"{PAST}/precious")),
     expect="contained")
item("whiteout-absolute", "a whiteout of a file of the host",
     of_entries(whiteout(f"{CANARY}/precious")), expect="contained")
item("whiteout-of-parent", "a whiteout of '..' (the name is '.wh...')", of_entries(file("a/.wh...")),
     says="a whiteout of '..' does not name a file")
item("whiteout-of-itself", "a whiteout of '.' in a directory (the name is '.wh..')", of_entries(file("a/.wh..")),
     says="a whiteout of '.' does not name a file",
     why="such a whiteout hides nothing, and programs treat it differently")
item("whiteout-of-nothing", "a whiteout of no name (only '.wh.')", of_entries(file("a/.wh.")),
     says="a whiteout of '' does not name a file",
     why="such a whiteout hides nothing, and programs treat it differently")
item("whiteout-of-root", "a whiteout of '.' in the root", of_entries(file(".wh..")),
     says="a whiteout of '.' does not name a file")
item("whiteout-with-a-child", "a file in a directory whose name is a whiteout's", of_entries(file(".wh.a/b")),
     says="it lies below a whiteout",
     why="a whiteout is not a directory, and programs treat what lies below it differently")
item("whiteout-of-aufs", "AUFS's own whiteout names, one of them a link to the host",
     of_entries(file(".wh..wh.aufs"), symlink(".wh..wh.plnk", CANARY),
                file(".wh..wh.plnk/made"), file(".wh..wh.orph/made")), expect="contained")
item("opaque-through-symlink", "an opaque whiteout whose path goes through a symbolic link of the same layer",
     of_entries(OUT, opaque("out")), expect="contained")
item("opaque-through-lower-symlink", "an opaque whiteout whose path goes through a symbolic link of the layer below",
     lambda: layout(entries(OUT), entries(opaque("out"))), expect="contained")

# ---- the same name again ----
item("type-changes", "one name as directory, file, link, FIFO, and directory again",
     of_entries(directory("n"), file("n/x"), file("n"), symlink("n", CANARY), fifo("n"),
                directory("n"), file("n/made")), expect="contained")
item("file-below-a-file", "a file, then a file below it",
     of_entries(file("f"), file("f/made")), says="'f' is not a directory")
item("file-replaces-directory", "a directory that is replaced by a file, then a file below it",
     of_entries(directory("d"), file("d/x"), file("d"), file("d/made")),
     says="'d' is not a directory")
