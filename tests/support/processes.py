# SPDX-License-Identifier: Apache-2.0
"""A process and those that it has started."""

import contextlib
import os
import signal


def kill_all(pid):
    """SIGKILL for each, the parent first, so that it starts no more."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            kill_all(int(child))
