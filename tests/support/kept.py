# SPDX-License-Identifier: Apache-2.0
"""Things that tests make once and keep: images of other builders, root file systems, guests' disks.

    storage = kept.directory("registry-bookworm-1", build)      # build(path) makes the directory `path`

A cache may be lost, half copied, or changed: beside each directory there is a list of its files with digests,
written last; a directory that does not match is removed and made again. A file is read only if its size, time
or inode has changed since its last check.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile


def cache():
    """BERTH_TEST_CACHE, or 'berth-tests' in the user's cache directory."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("BERTH_TEST_CACHE") or pathlib.Path(caches) / "berth-tests")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _look(path):
    """The attributes that change with a file: [type and mode, size, time, inode]."""
    seen = path.lstat()
    return [seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ino]


def _content(path):
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode):
        return sha256_of(path)
    return os.readlink(path) if stat.S_ISLNK(mode) else ""


def _files(directory):
    for folder, folders, names in os.walk(directory):
        for name in [*names, *(one for one in folders if os.path.islink(os.path.join(folder, one)))]:
            yield pathlib.Path(folder, name)


def _list_of(directory, before=None):
    """name → {look, content} of all files; does not read those with the same look as in `before`."""
    made = {}
    for path in _files(directory):
        name, look = str(path.relative_to(directory)), _look(path)
        old = (before or {}).get(name)
        made[name] = old if old and old["look"] == look else {"look": look, "content": _content(path)}
    return made


def _is_whole(directory, listed):
    """Whether `directory` matches `listed`, which is updated if only looks have changed."""
    try:
        before = json.loads(listed.read_text(encoding="utf-8"))
        now = _list_of(directory, before)
        if {name: one["content"] for name, one in before.items()} != {name: one["content"] for name, one in now.items()}:
            return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    if now != before:
        _write(listed, now)
    return True


def _remove(directory):
    """Removes a directory, and the mounts that a killed program left in it."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # A blank in a path is '\040' there.
    places = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4]) for line in mounts]
    for place in reversed(places):
        if pathlib.Path(place).is_relative_to(directory):
            subprocess.run(["umount", "--lazy", place], check=True)
    shutil.rmtree(directory)


def _write(path, files):
    staged = path.with_suffix(".new")
    staged.write_text(json.dumps(files), encoding="utf-8")
    staged.rename(path)


def directory(name, make, within=None):
    """The directory `name` of the cache, or of `within`. Unless it is complete, calls make(path) with a path
    that does not exist. Removes everything else made beside it afterwards, mounts too."""
    place = pathlib.Path(within or cache())
    place.mkdir(parents=True, exist_ok=True)
    kept, listed = place / name, place / f"{name}.files"
    with open(place / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in place.glob(f"{name}.making-*"):  # from a killed session
            _remove(left)
        if not _is_whole(kept, listed):
            if kept.exists():
                print(f"{kept} is not as it was made; it is made anew", file=sys.stderr)
                _remove(kept)
            scratch = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}.making-", dir=place))
            try:
                make(scratch / "made")
                (scratch / "made").rename(kept)
            finally:
                _remove(scratch)
            _write(listed, _list_of(kept))
    return kept
