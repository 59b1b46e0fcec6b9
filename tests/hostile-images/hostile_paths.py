# SPDX-License-Identifier: Apache-2.0
"""Names, links and whiteouts that lead somewhere else."""

from hostile_item import CANARY, UP, entries, item, layout, of_entries, of_tar, pax, record
from support.images import directory, fifo, file, hardlink, opaque, symlink, whiteout

OUT = symlink("out", CANARY)
PAST = UP + CANARY[1:]  # the same from wherever one is

# ---- names ----
item("name-up", "a name that begins with ..", of_entries(file(f"{PAST}/made")), expect="contained")
item("name-down-and-up", "a name that goes down, then up", of_entries(file(f"a/b/{PAST}/made")),
     expect="contained")
item("name-absolute", "a name from the root of the host", of_entries(file(f"{CANARY}/made")),
     expect="contained")
item("name-of-dots-for-a-directory", "the directory above gets a mode (CVE-2021-32760)",
     of_tar(record("../", b"5", mode=b"0000777\0")), expect="contained")
item("name-empty", "a file without a name", of_tar(record("")), says="the root is a directory")
item("name-with-nul", "a NUL in the middle of a pax path",
     of_tar(pax(("path", b"a\0/../b")), record("x")), says="a pax header has a NUL in a name")
item("name-with-escape", "a name that would repaint the terminal of who reads the error",
     of_entries(file("f"), file("f/\x1b[2J\x1b[31mall is well/x")),
     says=r"entry 'f/\x1b[2J\x1b[31mall is well/x': 'f' is not a directory")
item("name-with-newline", "a name that would begin a line of the log",
     of_entries(file("a\nberth: all is well")), expect="contained")
item("name-not-utf8", "a name that is no UTF-8", of_tar(record(b"\xff\xfe\x80")),
     expect="contained")
item("name-of-4096", "a path one byte too long", of_tar(pax(("path", "/".join(["n" * 240] * 17))),
                                                        record("x")),
     says="its path is longer than 4095 bytes")
item("name-part-of-256", "a part of a path that no file system takes",
     of_entries(file("n" * 256)), says="a part of its path is longer than 255 bytes")
item("name-4000-deep", "four thousand directories in each other",
     of_tar(pax(("path", "d/" * 4000)), record("x", b"5")),
     says="its path is deeper than 512 directories; try: BERTH_UNPACK_LIMITS, if this image may be "
          "so large")
item("name-deep-by-links", "a tower of links, each into the next, that no one sees in the names",
     lambda: layout(entries(*[symlink(f"l{n}", f"l{n + 1}") for n in range(100)],
                            directory("l100"), file("l0/made"))),
     says="its path goes through too many symbolic links",
     why="the kernel follows 40 links of one path, so no container could open it")

# ---- symbolic links ----
item("symlink-absolute-then-file", "a link to the host, then a file through it",
     of_entries(OUT, file("out/made")), expect="contained")
item("symlink-relative-then-file", "the same by way of ..",
     of_entries(symlink("out", PAST), file("out/made")), expect="contained")
item("symlink-to-root-then-file", "a link to / (umoci's CVE-2021-29136 is its cousin)",
     of_entries(symlink("out", "/"), file(f"out{CANARY}/made")), expect="contained")
item("symlink-chain-then-file", "the link is reached by a link",
     of_entries(symlink("a", "out"), OUT, file("a/made")), expect="contained")
item("symlink-then-directory", "the link is made a directory again, then filled",
     of_entries(OUT, directory("out"), file("out/made")), expect="contained")
item("symlink-replaces-filled-directory", "a directory with a file in it becomes a link",
     of_entries(directory("out"), file("out/x"), OUT, file("out/made")), expect="contained")
item("symlink-of-a-lower-layer", "the link is in one layer, the file through it in the next",
     lambda: layout(entries(OUT), entries(file("out/made"))), expect="contained")
item("symlink-replaced-between-layers", "directory, link, file: three layers swap a parent",
     lambda: layout(entries(directory("out"), file("out/x")), entries(OUT),
                    entries(directory("out"), file("out/made"))), expect="contained")
item("symlink-then-same-name", "a file of the link's name, to be written through it",
     of_entries(symlink("f", f"{CANARY}/precious"), file("f", "overwritten")), expect="contained")
item("symlink-then-directory-mode", "a directory of the link's name, to chmod what it points at",
     of_entries(OUT, directory("out", mode=0o777, uid=1)), expect="contained")
item("symlink-loop", "a symlink loop, and a file below it",
     of_entries(symlink("a", "b"), symlink("b", "a"), file("a/x")),
     says="its path goes through too many symbolic links")
item("symlink-to-proc", "a file through a link into /proc/self",
     of_entries(symlink("out", "/proc/self/fd"), file("out/1")), expect="contained")
item("symlink-target-of-5000", "a target that no file system takes",
     of_tar(pax(("linkpath", "t" * 5000)), record("l", b"2", "t")),
     says="a symbolic link needs a target of 1 to 4095 bytes")
item("root-is-a-symlink", "the root itself becomes a link (CVE-2021-29136)",
     of_tar(record(".", b"2", CANARY), record("made")), says="the root is a directory")
item("root-is-a-file", "the root itself becomes a file", of_tar(record("./", b"0")),
     expect="contained")

# ---- hard links ----
MISSING = "which is not in this layer"
item("hardlink-up", "a hard link to a file above", of_entries(hardlink("h", f"{PAST}/precious")),
     says=MISSING)
item("hardlink-absolute", "a hard link to a file of the host",
     of_entries(hardlink("h", f"{CANARY}/precious")), says=MISSING)
item("hardlink-to-symlink", "a hard link to a link to a file of the host",
     of_entries(symlink("s", f"{CANARY}/precious"), hardlink("h", "s")), expect="contained")
item("hardlink-to-symlink-then-write", "and then its content",
     of_entries(symlink("s", f"{CANARY}/precious"), hardlink("h", "s"), file("h", "overwritten")),
     expect="contained")
item("hardlink-through-symlink", "a hard link whose path goes through a link",
     of_entries(OUT, hardlink("h", "out/precious")), says=MISSING)
item("hardlink-into-symlink", "a hard link whose own name goes through a link",
     of_entries(OUT, file("x"), hardlink("out/made", "x")), expect="contained")
item("hardlink-to-itself", "a hard link to its own name", of_entries(hardlink("h", "h")),
     says=MISSING)
item("hardlink-before-its-target", "a hard link to what comes later",
     of_entries(hardlink("h", "later"), file("later")), says=MISSING)
item("hardlink-to-a-lower-layer", "a hard link to a file of another layer",
     lambda: layout(entries(file("low")), entries(hardlink("h", "low"))),
     says=MISSING,
     why="a layer is one directory for all images that have it, so another layer cannot have a name in it; podman (here with vfs, which copies all layers into one) and docker refuse it on an overlay")
item("hardlink-to-a-directory", "a hard link to a directory",
     of_entries(directory("d"), hardlink("h", "d")), says="which is a directory")
item("hardlink-over-its-own-parent", "a hard link that takes the place of where its target lies",
     of_entries(directory("d"), file("d/x"), hardlink("d", "d/x")), says="which it would replace")

# ---- whiteouts ----
item("whiteout-through-symlink", "a whiteout through a link of this layer",
     of_entries(OUT, whiteout("out/precious")), expect="contained")
item("whiteout-through-lower-symlink", "a whiteout through a link of the layer below",
     lambda: layout(entries(OUT), entries(whiteout("out/precious"))), expect="contained")
item("whiteout-up", "a whiteout of a file above", of_entries(whiteout(f"{PAST}/precious")),
     expect="contained")
item("whiteout-absolute", "a whiteout of a file of the host",
     of_entries(whiteout(f"{CANARY}/precious")), expect="contained")
item("whiteout-of-parent", "a whiteout whose rest is ..", of_entries(file("a/.wh...")),
     says="a whiteout of '..' does not name a file")
item("whiteout-of-itself", "a whiteout whose rest is .", of_entries(file("a/.wh..")),
     says="a whiteout of '.' does not name a file",
     why="it names nothing that could be hidden, and each program makes something else of it")
item("whiteout-of-nothing", "a whiteout without a rest", of_entries(file("a/.wh.")),
     says="a whiteout of '' does not name a file",
     why="it names nothing that could be hidden, and each program makes something else of it")
item("whiteout-of-root", "a whiteout of the root itself", of_entries(file(".wh..")),
     says="a whiteout of '.' does not name a file")
item("whiteout-with-a-child", "a file below a whiteout", of_entries(file(".wh.a/b")),
     says="it lies below a whiteout",
     why="it names nothing that could be hidden, and each program makes something else of it")
item("whiteout-of-aufs", "AUFS's own names, with a link out of them",
     of_entries(file(".wh..wh.aufs"), symlink(".wh..wh.plnk", CANARY),
                file(".wh..wh.plnk/made"), file(".wh..wh.orph/made")), expect="contained")
item("opaque-through-symlink", "an opaque mark through a link of this layer",
     of_entries(OUT, opaque("out")), expect="contained")
item("opaque-through-lower-symlink", "an opaque mark through a link of the layer below",
     lambda: layout(entries(OUT), entries(opaque("out"))), expect="contained")

# ---- the same name again ----
item("type-changes", "one name as directory, file, link, fifo, and directory again",
     of_entries(directory("n"), file("n/x"), file("n"), symlink("n", CANARY), fifo("n"),
                directory("n"), file("n/made")), expect="contained")
item("file-below-a-file", "a file that is somebody's parent",
     of_entries(file("f"), file("f/made")), says="'f' is not a directory")
item("file-replaces-directory", "children of a directory that became a file",
     of_entries(directory("d"), file("d/x"), file("d"), file("d/made")),
     says="'d' is not a directory")
