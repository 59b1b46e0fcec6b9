# SPDX-License-Identifier: Apache-2.0
"""Tenants of several users who come and go on eight GPUs while somebody kills at random: engines,
monitors, holders, runtimes, containers. What must hold is looked at from outside, in the mount
namespaces of the containers' processes: no GPU that one keeps to himself is in another's, and in the
end none is lost. BERTH_FAULT_POINTS=50 makes it 500 rounds."""

import contextlib
import os
import pathlib
import random
import signal
import threading
import time

import pytest

from support.berth import Berth
from support.processes import command_lines

LEDGER = pathlib.Path("/run/berth-ledger")
ROUNDS = int(os.environ.get("BERTH_FAULT_POINTS", "0")) * 10 or 12
SEED = int(os.environ.get("BERTH_FAULT_SEED", "1"))
PARTIES = ("berth", "berth-holder", "berth-monitor", "berth-runtime", "sleep")
KINDS = ("root", "user", "single_id")
SLEEP = 86400  # and the tenant's number: by this its container's process is known


class Tenant:
    def __init__(self, number, berth, flags, image):
        self.number, self.berth, self.flags, self.image = number, berth, flags, image
        self.mark = str(SLEEP + number)
        self.name = f"tenant{number}"
        self.started = None

    def start(self, count, detached):
        how = ["-d"] if detached else ["--rm"]
        self.started = self.berth.spawn(
            *self.flags, "run", *how, "--name", self.name, "--gpus", str(count), "--gpus-exclusive",
            "--wait-gpus=20s", self.image, "sleep", self.mark)

    def remove(self):
        self.berth.run(*self.flags, "rm", "--force", self.name)


def clear(tenants, directory):
    """Whatever became of them: nothing runs afterwards. A start whose engine was killed goes on in
    its monitor and its runtime, and may come to a container after the first look."""
    for tenant in tenants:
        with contextlib.suppress(ProcessLookupError):
            tenant.started.kill()
    end = time.monotonic() + 30
    while any(victims(directory, party) for party in PARTIES):
        assert time.monotonic() < end, f"something runs on\n{who_holds()}"
        for tenant in tenants:
            tenant.remove()
    for tenant in tenants:
        tenant.started.communicate(timeout=30)
        tenant.remove()  # what has a record and no process


def commands():
    """{pid: words} of every process."""
    return {pid: line.split(b"\0")[:-1] for pid, line in command_lines().items()}


def processes_with(mark):
    return [pid for pid, words in commands().items() if words[:1] == [b"sleep"] and mark.encode() in words]


def gpus_seen_by(pid):
    """The GPUs in the mount namespace of a process."""
    with contextlib.suppress(OSError):
        return {name for name in os.listdir(f"/proc/{pid}/root/dev")
                if name.startswith("nvidia") and name[6:].isdigit()}
    return set()


class Observer(threading.Thread):
    """Looks again and again who has what."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.faults, self.looks, self.most = threading.Event(), [], 0, 0

    def run(self):
        while not self.over.is_set():
            owner = {}
            for pid, words in commands().items():
                if words[:1] != [b"sleep"] or len(words) != 2 or not words[1].startswith(b"864"):
                    continue
                gpus = gpus_seen_by(pid)
                if len(gpus) == 8 and pathlib.Path(f"/proc/{pid}/root/dev/kmsg").exists():
                    continue  # it has ended, or is not there yet: this is the host's /dev
                for gpu in gpus:
                    other = owner.setdefault(gpu, words[1])
                    if other != words[1] and still_there(pid, other):
                        self.faults.append(f"{gpu}: {other} and {words[1]}")
            self.looks += 1
            self.most = max(self.most, len(owner))
            time.sleep(0.01)


def still_there(pid, other):
    """Both at this moment: one may have ended while the processes were listed."""
    return pathlib.Path(f"/proc/{pid}/root/dev/null").exists() and processes_with(other.decode())


def who_holds():
    """The ledger's files, and whose locks they have."""
    locks = pathlib.Path("/proc/locks").read_text().splitlines()
    told = []
    for path in LEDGER.iterdir():
        inode = f":{path.stat().st_ino} "
        told.append(f"{path.name} {path.read_text().strip()}")
        told += [f"  {line}" for line in locks if inode in line]
    told += [f"{pid} {b' '.join(words)[:150]!r}" for pid, words in sorted(commands().items())
             if b"berth" in b" ".join(words) or words[:1] == [b"sleep"]]
    return "\n".join(told)


def victims(directory, party):
    found = []
    for pid, words in commands().items():
        ours = str(directory).encode() in b" ".join(words)
        named = words and os.path.basename(words[0]) == party.encode()
        if party == "sleep":
            named, ours = words[:1] == [b"sleep"] and words[-1].startswith(b"864"), True
        if named and ours:
            found.append(pid)
    return found


@pytest.mark.profiles("root")
@pytest.mark.parametrize("tenants", [2, 8])
def test_no_kill_gives_a_gpu_twice_or_loses_one(programs, accounts, driver_tree, busybox, work, tenants):
    chance = random.Random(SEED * 100 + tenants)
    work.chmod(0o755)
    flags = ("--driver-root", driver_tree("eight"))
    berths = {kind: Berth(programs, accounts[kind], work / kind) for kind in KINDS}
    for berth in berths.values():  # root's first: it makes the machine's ledger
        berth.ok("pull", "--quiet", busybox)
        berth.ok(*flags, "run", "--rm", "--gpus", "1", busybox, "true")
    observer = Observer()
    observer.start()
    kills = 0
    try:
        for _ in range(ROUNDS):
            running = [Tenant(number, berths[KINDS[number % 3]], flags, busybox)
                       for number in range(tenants)]
            for tenant in running:
                tenant.start(chance.randint(1, 8 if tenants == 2 else 4), chance.random() < 0.7)
            for _ in range(chance.randint(1, 4)):
                time.sleep(chance.random() * 0.4)
                found = victims(work, chance.choice(PARTIES))
                if found:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(found), signal.SIGKILL)
                        kills += 1
            clear(running, work)
            assert not observer.faults, observer.faults
            everything = berths["root"].run(*flags, "run", "--rm", "--gpus", "all", "--gpus-exclusive",
                                            "--wait-gpus=10s", busybox, "true")
            assert everything.returncode == 0, f"{everything.stderr}\n{who_holds()}"
    finally:
        observer.over.set()
        observer.join()
        for berth in berths.values():
            names = berth.ok("ps", "-aq").split()
            if names:
                berth.ok("rm", "--force", *names)
            berth.run(*flags, "gpu", "list")  # removes what is dead of its user's
            berth.close()
    assert not observer.faults, observer.faults
    assert kills >= ROUNDS // 2 and observer.most >= 2, (kills, observer.most, observer.looks)
    assert sorted(path.name for path in LEDGER.iterdir()) == ["lock"]
