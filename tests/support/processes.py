# SPDX-License-Identifier: Apache-2.0
"""A process and those that it has started."""

import contextlib
import os
import signal
import subprocess


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
