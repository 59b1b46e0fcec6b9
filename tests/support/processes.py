# SPDX-License-Identifier: Apache-2.0
"""Those that run, one and those that it has started, and their end."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess


def command_lines():
    """{pid: its words, each ended by a zero byte} of every process; a zombie has none."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found[int(entry.name)] = (entry / "cmdline").read_bytes()
    return found


def matching(pattern):
    """{pid} of those whose command line has it."""
    return {pid for pid, line in command_lines().items() if re.search(pattern, line)}


def kill_each(pids):
    """SIGKILL; the end of one may have been that of the next."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_all(pid):
    """SIGKILL for each, the parent first, so that it starts no more."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            kill_all(int(child))


def end(process, patience=20):
    """Asks a child to end, and kills it after `patience` seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
