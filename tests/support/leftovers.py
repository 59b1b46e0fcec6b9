# SPDX-License-Identifier: Apache-2.0
"""Things that a test must not leave on the machine: mounts, cgroups, processes, files."""

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
    """Ignores cgroups of sessions in rooms (support/room.py)."""
    return {directory for directory, _, _ in os.walk("/sys/fs/cgroup")
            if "berth" in directory and "/berth-tests-room-" not in directory}


def is_empty_store(path):
    """The machine's default store, which all rooms share. A berth without --root makes it: a berth-runtime
    that asks it for the GPUs."""
    return path == STORE and not any(path.iterdir())


def files():
    """Ignores files of another session that waits for its turn, or of a demo."""
    found = {str(path) for place in PLACES for path in pathlib.Path(place).glob("*berth*")
             if not path.name.startswith(("berth-tests-", "berth-demo-", "berth-bench-"))
             and not is_empty_store(path) and path != LEDGER}
    return found | {str(path) for path in LEDGER.glob("*") if path.name != "lock"}


def processes(base, uids):
    """{pid: command line} of processes with their program or directory in `base`, with it in their mount
    table, or of the session's users."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            # A kernel thread or a zombie has no exe: OSError, and not a leftover.
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
    """One line for each thing that is not in `before`. Gives ending processes a moment."""
    deadline = time.monotonic() + patience
    while True:
        found = _new(before, snapshot(base, uids))
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def clear(before, base, uids):
    """Ends and removes a failed test's leftovers, so that the next test starts clean."""
    for pid in processes(base, uids).keys() - before.processes.keys():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for path in sorted(mounts() - before.mounts, reverse=True):
        subprocess.run(["umount", "--lazy", path], check=False, capture_output=True)
    time.sleep(0.2)
    for path in sorted(cgroups() - before.cgroups, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)
