# SPDX-License-Identifier: Apache-2.0
"""A directory for a session's stores and programs: in memory, because removing ten thousand files from a disk
mounted with 'discard' takes longer than the tests themselves."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

LOCK = pathlib.Path("/run/lock/berth-tests")


def _remove(path):
    subprocess.run(["umount", "--lazy", path], check=False, capture_output=True)
    shutil.rmtree(path, ignore_errors=True)


def _remove_those_of_killed_sessions(name):
    for path in pathlib.Path(tempfile.gettempdir()).glob(f"{name}-*-*"):
        pid = path.name.removeprefix(f"{name}-").partition("-")[0]
        if pid.isdigit() and not pathlib.Path("/proc", pid).exists():
            _remove(path)


@contextlib.contextmanager
def _alone():
    """Permits one session at a time on a machine, or in a room of it (support/room.py): all make the same
    users, and check for leftovers."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with open(LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def directory(name):
    """A directory that every user can reach, removed afterwards: for root, who makes the users, a tmpfs that
    permits programs and device nodes."""
    with _alone():
        _remove_those_of_killed_sessions(name)
        path = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-"))
        try:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", name, path], check=True,
                           capture_output=True)
            yield path
        finally:
            _remove(path)
