# SPDX-License-Identifier: Apache-2.0
"""The contents of a store, so that a test can check that nothing has changed."""

import hashlib
import os
import pathlib
import stat


def _describe(path):
    status = path.lstat()
    owner = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        return f"{owner} -> {os.readlink(path)}"
    if stat.S_ISREG(status.st_mode):
        return f"{owner} {status.st_size} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return f"{owner} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return owner


def store_listing(root):
    """{path below root: type, mode, owner and content} of every file; empty without a root. Two listings are
    equal if nothing visible to a reader has changed: ignores the store's lock, an empty file that the first
    writer makes, the journal of events, which also records removed objects, and the hints where a blob is
    available, which may grow."""
    root = pathlib.Path(root)
    hints = root / "origins"
    return {path.relative_to(root).as_posix(): "hint" if path.parent == hints else _describe(path)
            for path in sorted(root.rglob("*"))
            if path not in (root / "lock", root / "events", hints)}
