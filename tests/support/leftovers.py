# SPDX-License-Identifier: Apache-2.0
"""What a test must not leave on the machine: mounts, cgroups, processes, files."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

PLACES = ("/tmp", "/run", "/dev/shm", "/var/lib", "/var/tmp")
STORE = pathlib.Path("/var/lib/berth")
LEDGER = pathlib.Path("/run/berth-ledger")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        return {line.split()[4] for line in lines}


def cgroups():
    """Those of sessions in rooms (support/room.py) are not ours."""
    return {directory for directory, _, _ in os.walk("/sys/fs/cgroup")
            if "berth" in directory and "/berth-tests-room-" not in directory}


def is_empty_store(path):
    """The machine's own, which all rooms see, and which the first berth makes that is not told
    another: a berth-runtime that asks it for the GPUs."""
    return path == STORE and not any(path.iterdir())


def files():
    """Those of another session that waits for its turn, or a demo, are not ours."""
    found = {str(path) for place in PLACES for path in pathlib.Path(place).glob("*berth*")
             if not path.name.startswith(("berth-tests-", "berth-demo-", "berth-bench-"))
             and not is_empty_store(path) and path != LEDGER}
    return found | {str(path) for path in LEDGER.glob("*") if path.name != "lock"}


def processes(base, uids):
    """{pid: command line} of what runs out of `base` or in it, has it in its mount table, or
    belongs to one of the session's users."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            # A kernel thread and a zombie have no exe: OSError, and not a leftover.
            ours = (str(base) in os.readlink(entry / "exe") or str(base).encode() in command
                    or str(base) in os.readlink(entry / "cwd")
                    or entry.stat().st_uid in uids
                    or f"{base}/" in (entry / "mountinfo").read_text())
            if ours:
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


@dataclasses.dataclass
class Snapshot:
    mounts: set
    cgroups: set
    files: set
    processes: dict


def snapshot(base, uids):
    return Snapshot(mounts(), cgroups(), files(), processes(base, uids))


def _new(before, after):
    found = [f"mount {path}" for path in sorted(after.mounts - before.mounts)]
    found += [f"cgroup {path}" for path in sorted(after.cgroups - before.cgroups)]
    found += [f"file {path}" for path in sorted(after.files - before.files)]
    found += [f"process {pid}: {command}" for pid, command in sorted(after.processes.items())
              if pid not in before.processes]
    return found


def since(before, base, uids, patience=3.0):
    """One line per thing that was not there in `before`. What is about to end gets a moment."""
    deadline = time.monotonic() + patience
    while True:
        found = _new(before, snapshot(base, uids))
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def clear(before, base, uids):
    """Ends and removes what a failed test left, so that the next one starts clean."""
    for pid in processes(base, uids).keys() - before.processes.keys():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for path in sorted(mounts() - before.mounts, reverse=True):
        subprocess.run(["umount", "--lazy", path], check=False, capture_output=True)
    time.sleep(0.2)
    for path in sorted(cgroups() - before.cgroups, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)
