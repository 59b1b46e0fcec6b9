#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The hostile corpus: images and answers of registries, each named by its attack.

usage: make.py DIRECTORY [NAME…]   writes OCI layouts, DIRECTORY/NAME
       make.py --list              names and attacks

Nothing large is written: bombs are a few bytes many times, and what only a registry can do is in
an item's `faults`, for tests/support/hostile_registry.py."""

import pathlib
import sys

import hostile_documents  # noqa: F401
import hostile_kinds  # noqa: F401
import hostile_paths  # noqa: F401
import hostile_running  # noqa: F401
import hostile_sizes  # noqa: F401
from hostile_item import CANARY, ITEMS

BY_NAME = {each.name: each for each in ITEMS}
assert len(BY_NAME) == len(ITEMS), "two items of one name"
PRECIOUS = "what nobody may touch\n"


def make_canary(path=CANARY):
    """What the attacks reach for; its owner is who makes it."""
    canary = pathlib.Path(path)
    canary.mkdir(mode=0o755)
    (canary / "precious").write_text(PRECIOUS)
    (canary / "passwd").write_text("hostuser:x:0:0::/:/bin/sh\n")


def look_at_canary(path=CANARY):
    """{name: all that an attack could change}."""
    canary = pathlib.Path(path)
    found = {}
    for each in (canary, *sorted(canary.rglob("*"))):
        status = each.lstat()
        content = each.read_bytes() if each.is_file() and not each.is_symlink() else b""
        found[each.name] = (oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns,
                            status.st_nlink, content)
    return found


def write(item, directory):
    """The layout of an item, below `directory`."""
    path = pathlib.Path(directory) / item.name
    item.make().write(path)
    return path


def main(arguments):
    if arguments == ["--list"]:
        for each in ITEMS:
            print(f"{each.name:40} {each.attack}")
        return
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__.split("\n\n")[1])
    unknown = [name for name in arguments[1:] if name not in BY_NAME]
    if unknown:
        sys.exit(f"make.py: no item {unknown[0]!r}; try: make.py --list")
    for name in arguments[1:] or BY_NAME:
        write(BY_NAME[name], arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
