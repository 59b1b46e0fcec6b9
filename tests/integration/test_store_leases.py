# SPDX-License-Identifier: Apache-2.0
"""A store that several machines write to, where no lock reaches from one to the other. A machine is
a host name, a boot and process ids of its own, and a kernel without flock."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

from support import images, registry_front, store_check
from support.berth import Berth

pytestmark = pytest.mark.profiles("root")

EXPIRY = 3
WITHOUT_LOCKS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from support import missing_calls
missing_calls.without("flock")()
os.execvp(sys.argv[2], sys.argv[2:])
"""
MACHINE = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
           "sh", "-c", 'mount --bind "$1" /proc/sys/kernel/random/boot_id && hostname "$2" && '
           'shift 2 && exec "$@"', "sh")
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Machine(Berth):
    def __init__(self, programs, account, directory, name, store):
        super().__init__(programs, account, directory)
        self.name, self.root = name, store
        self.boot = self.directory / "boot"
        self.boot.write_text(f"{uuid.uuid4()}\n")

    def argv(self, *args):
        return [*MACHINE, self.boot, self.name, sys.executable, "-c", WITHOUT_LOCKS, TESTS,
                *super().argv(*args)]

    def _options(self, env):
        return super()._options({"BERTH_STORE_LEASES": 1, "BERTH_LEASE_SECONDS": EXPIRY,
                                 **(env or {})})


def children(pid):
    """The processes below it, by host ids."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                    parents.setdefault(int(stat.read().rpartition(")")[2].split()[1]),
                                       []).append(int(entry))
            except OSError:
                continue
    found, wanted = [], [pid]
    while wanted:
        below = parents.get(wanted.pop(), [])
        found += below
        wanted += below
    return found


def send(machine, number):
    for pid in children(machine.pid):
        os.kill(pid, number)


@pytest.fixture
def machines(programs, profile, work):
    made = [Machine(programs, profile, work / name, name, work / "store") for name in ("one", "two")]
    yield made
    for machine in made:
        machine.close()


class Gate:
    """The first request for each layer waits until it is opened, or longer than anybody does."""

    def __init__(self, front, image):
        self.opened, self.reached = threading.Event(), threading.Event()
        self.counts = dict.fromkeys(image.layer_digests, 0)
        self._lock = threading.Lock()
        front.before = self

    def __call__(self, method, path):
        digest = path.rpartition("/")[2]
        if method != "GET" or digest not in self.counts:
            return
        with self._lock:
            self.counts[digest] += 1
            first = self.counts[digest] == 1
        self.reached.set()
        if first:
            self.opened.wait(60)


@pytest.fixture
def front(registry):
    with registry_front.running(registry) as running:
        yield running


@pytest.fixture
def image(registry):
    made = images.build([images.busybox_layer(),
                         *(images.layer([images.file(name, os.urandom(9000))]) for name in "ab")])
    made.push(registry, "test/leases")
    return made


def ended(process, status=0, seconds=60):
    out, errors = process.communicate(timeout=seconds)
    assert process.returncode == status, (out, errors)
    return errors


def whole(machines, image):
    root = machines[0].root
    assert store_check.wrong(root) == []
    assert sorted(path.name for path in (root / "layers").iterdir()) == \
        sorted(digest.removeprefix("sha256:") for digest in image.diff_ids)
    for machine in machines:
        assert machine.run("system", "check").returncode == 0


def held_pull(machine, front, image):
    """A pull that has begun, and goes on when its gate is opened."""
    gate = Gate(front, image)
    reference = f"{front.address}/test/leases"
    pull = machine.spawn("pull", "-q", reference)
    assert gate.reached.wait(30)
    return gate, reference, pull


def test_two_machines_fetch_each_layer_once(machines, front, image):
    one, two = machines
    gate, reference, first = held_pull(one, front, image)
    second = two.spawn("pull", "-q", reference)
    time.sleep(2 * EXPIRY)  # the first one is slow and not dead
    assert second.poll() is None
    gate.opened.set()
    ended(first)
    ended(second)
    assert set(gate.counts.values()) == {1}
    whole(machines, image)
    assert list((one.root / "tmp").iterdir()) == []


def test_a_machine_takes_over_from_one_that_was_killed(machines, front, image):
    one, two = machines
    gate, reference, first = held_pull(one, front, image)
    second = two.spawn("pull", "-q", reference)
    time.sleep(1)
    began = time.monotonic()
    first.kill()
    first.communicate()
    ended(second)
    assert time.monotonic() - began >= EXPIRY - 1
    gate.opened.set()
    assert set(gate.counts.values()) == {2}
    whole(machines, image)
    # What the dead one left goes when somebody has to know what is needed.
    assert list((one.root / "tmp").glob("stage-*"))
    two.ok("tag", reference, "other:1")
    two.ok("rmi", "other:1")
    assert list((one.root / "tmp").iterdir()) == []
    whole(machines, image)


def test_a_machine_that_was_suspended_for_too_long_does_no_damage(machines, front, image):
    one, two = machines
    gate, reference, first = held_pull(one, front, image)
    send(first, signal.SIGSTOP)
    two.ok("pull", "-q", reference)
    whole(machines, image)
    send(first, signal.SIGCONT)
    gate.opened.set()
    ended(first)
    whole(machines, image)
    assert list((one.root / "tmp").iterdir()) == []


def test_nothing_is_collected_while_another_machine_pulls(machines, front, image, busybox):
    one, two = machines
    two.ok("pull", "-q", busybox)
    gate, _, first = held_pull(one, front, image)
    removed = two.run("rmi", busybox)
    assert removed.returncode == 0, removed
    assert f"on {one.name} is at work there" in removed.stderr
    assert len(list((one.root / "layers").iterdir())) == 1
    gate.opened.set()
    ended(first)
    two.ok("system", "prune", "-f", "--keep", "1g")
    whole(machines, image)


def test_who_died_with_many_pulls_is_waited_for_once(machines, busybox):
    one, two = machines
    two.ok("pull", "-q", busybox)
    for number in range(5):
        (one.root / f"tmp/pins-{number:016}").write_text(f"lease {uuid.uuid4()} gone 1\n")
    began = time.monotonic()
    done = two.run("rmi", busybox)
    assert done.returncode == 0 and done.stderr == "", done
    assert EXPIRY <= time.monotonic() - began < 3 * EXPIRY
    assert list((one.root / "layers").iterdir()) == []
    assert list((one.root / "tmp").iterdir()) == []


def test_who_was_taken_for_dead_finds_that_out(machines, front, image, busybox):
    one, two = machines
    gate, reference, first = held_pull(one, front, image)
    send(first, signal.SIGSTOP)
    two.ok("pull", "-q", busybox)
    two.ok("rmi", busybox)
    assert list((one.root / "layers").iterdir()) == []
    send(first, signal.SIGCONT)
    gate.opened.set()
    line = ended(first, status=1).strip().splitlines()[-1]
    assert line.startswith(f"berth: cannot pull '{reference}': "), line
    assert list((one.root / "images").iterdir()) == []
    one.ok("pull", "-q", reference)
    whole(machines, image)


def test_leases_beside_locks_change_nothing(programs, profile, work, busybox):
    berth = Berth(programs, profile, work / "berth")
    with_leases = {"BERTH_STORE_LEASES": "1"}
    berth.ok("pull", "-q", busybox, env=with_leases)
    assert berth.ok("run", "--rm", busybox, "echo", "x", env=with_leases) == "x\n"
    berth.ok("tag", busybox, "other:1", env=with_leases)
    berth.ok("rmi", busybox, env=with_leases)
    assert json.loads(berth.ok("system", "check", "--format", "json",
                               env=with_leases))["damaged"] == 0
    berth.ok("rmi", "other:1", env=with_leases)
    for name in ("tmp", "layers", "images"):
        assert list((berth.root / name).iterdir()) == []
    berth.close()


def test_a_store_on_a_file_system_without_locks_works_with_leases(machines, busybox):
    one, two = machines
    one.ok("pull", "-q", busybox)
    assert len(two.ok("images", "-q").splitlines()) == 1
    two.ok("rmi", busybox)
    assert list((one.root / "layers").iterdir()) == []


def test_a_pull_on_a_local_disk_makes_no_lease(programs, profile, work, busybox):
    """Counted: what a lease would be made of."""
    berth = Berth(programs, profile, work / "berth")
    trace = work / "trace"
    done = subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=symlinkat,utimensat,fstatfs",
                           *berth.argv("pull", "-q", busybox)], capture_output=True, text=True,
                          timeout=60, **berth._options(None))
    assert done.returncode == 0, done
    calls = trace.read_text()
    assert "fstatfs" in calls
    assert not any(name in calls for name in ("/lease-", "/holder-", "/pins-"))
    berth.close()
