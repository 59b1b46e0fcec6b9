# SPDX-License-Identifier: Apache-2.0
"""Running processes, with their children, and how to end them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess


def command_lines():
    """{pid: its words, each terminated by a zero byte} for every process; empty for a zombie."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            found[int(entry.name)] = (entry / "cmdline").read_bytes()
    return found


def matching(pattern):
    """{pid} of processes with a matching command line."""
    return {pid for pid, line in command_lines().items() if re.search(pattern, line)}


def kill_each(pids):
    """SIGKILL for each; the end of one may already have ended the next."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_all(pid):
    """SIGKILL for a process and its children, the parent first, so that it starts no more."""
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
