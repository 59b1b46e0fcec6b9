# SPDX-License-Identifier: Apache-2.0
"""Somebody is killed at any moment of a container's life. Afterwards nothing may be left that has
no owner: no process, control group, mount, name, monitor directory; and what is shown is true."""

import json
import os
import random
import subprocess
import time

import pytest

from support.processes import command_lines, kill_each
from support.waiting import wait_until

SHELL = ("sh", "-c")
ALIVE = ("running", "paused", "restarting")
POINTS = int(os.environ.get("BERTH_FAULT_POINTS", "0"))


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture
def points(profile):
    """Random parts of a second, the same in every run of a test unless BERTH_FAULT_SEED says;
    BERTH_FAULT_POINTS=50 for a long run."""
    count = POINTS or (20 if profile.kind == "root" else 6)
    chance = random.Random(os.environ.get("BERTH_FAULT_SEED", "berth"))
    return [chance.random() for _ in range(count)]


def processes_of(berth, program=None):
    """Those of a program, or of any, that were given a path of this store."""
    return [pid for pid, line in command_lines().items()
            if bytes(berth.root) in line and program in (None, line.split(b"\0")[0].decode(errors="replace"))]


def kill_all(berth):
    """A holder and its monitor start each other again, and a child has its parent's words until
    it has executed its program: all that is left is killed until nothing comes any more."""
    def none_is_left():
        kill_each(processes_of(berth))
        time.sleep(0.1)
        return not processes_of(berth)
    wait_until(none_is_left)


def containers(berth):
    listed = berth.ok("ps", "-a", "--no-trunc", "--format", "json").splitlines()
    return {c["Names"]: c for c in map(json.loads, listed)}


def let_age(berth):
    # What was killed between two system calls has no record yet and is left alone for a minute.
    old = time.time() - 120
    for path in (berth.root / "containers").iterdir():
        if not (path / "container.json").exists():
            try:
                os.utime(path, (old, old))
            except FileNotFoundError:
                pass


def entries(directory):
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


def check(berth, patience=15):
    """Every invariant, as soon as whoever was about to do something has done it."""
    end = time.monotonic() + patience
    while True:
        try:
            return look(berth)
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def look(berth):
    """What there is, after a command that sweeps."""
    let_age(berth)
    berth.run("info")
    shown = containers(berth)
    ids = {c["ID"] for c in shown.values()}
    on_disk = {path.name for path in (berth.root / "containers").iterdir()}
    assert on_disk == ids
    assert entries(berth.root / "names") == set(shown)
    alive = {c["ID"] for c in shown.values() if c["State"] in ALIVE}
    assert entries(berth.state / "runtime") == alive
    assert entries(berth.state / "monitors") == alive
    for name, container in shown.items():
        if container["State"] == "running":
            state = inspect(berth, name)["State"]
            assert not state["Running"] or os.path.exists(f"/proc/{state['Pid']}")
    for program in ("berth-monitor", "berth-holder"):
        assert len(processes_of(berth, program)) == len(alive)
    return shown


def inspect(berth, name):
    return json.loads(berth.ok("inspect", name))[0]


def clear(berth):
    names = list(containers(berth))
    if names:
        berth.run("rm", "-f", *names)
    assert check(berth) == {}


def test_of_the_monitor(berth, image, points):
    """The container goes on, and its end is seen, unless holder and monitor both were killed."""
    for point in points:
        berth.ok("run", "-d", "--name", "tug", image, *SHELL, "sleep 0.15; exit 7")
        time.sleep(0.25 * point)
        kill_each(processes_of(berth, "berth-monitor"))
        wait_until(lambda: containers(berth)["tug"]["State"] != "running")
        state = inspect(berth, "tug")["State"]
        assert (state["Status"], state["ExitCode"]) == ("exited", 7), point
        berth.ok("rm", "tug")
    check(berth)


def test_of_holder_and_monitor(berth, image, points):
    for point in points:
        berth.ok("run", "-d", "--name", "tug", image, "sleep", "0.3")
        time.sleep(0.15 * point)
        for program in ("berth-holder", "berth-monitor"):
            kill_each(processes_of(berth, program))
        check(berth)
        wait_until(lambda: containers(berth)["tug"]["State"] != "running")
        berth.run("rm", "-f", "tug")
    clear(berth)


def test_of_the_first_process(berth, image, points):
    for point in points:
        berth.ok("run", "-d", "--restart", "on-failure:2", "--name", "tug", image, "sleep", "100")
        time.sleep(0.1 * point)
        for _ in range(3):
            pid = inspect(berth, "tug")["State"]["Pid"]
            if pid:
                kill_each([pid])
            time.sleep(0.02)
        berth.ok("rm", "-f", "tug")
    check(berth)


def killed_after(berth, seconds, *args):
    front = berth.spawn(*args)
    time.sleep(seconds)
    front.kill()
    front.communicate()


def test_of_create(berth, image, points):
    for i, point in enumerate(points):
        killed_after(berth, 0.02 * point, "create", "--name", f"tug{i}", image, "true")
    shown = check(berth)
    for name, container in shown.items():
        assert container["State"] == "created"
        assert berth.ok("start", name) == f"{name}\n"
    wait_until(lambda: not any(c["State"] in ALIVE for c in containers(berth).values()))
    clear(berth)


def test_of_run(berth, image, points):
    for i, point in enumerate(points):
        killed_after(berth, 0.04 * point, "run", "-d", "--name", f"tug{i}", image, "true")
    wait_until(lambda: not any(c["State"] == "running" for c in containers(berth).values()))
    check(berth)
    clear(berth)


def test_of_start(berth, image, points):
    berth.ok("create", "--name", "tug", image, "true")
    for point in points:
        killed_after(berth, 0.03 * point, "start", "tug")
        wait_until(lambda: containers(berth)["tug"]["State"] in ("created", "exited", "dead"))
    check(berth)
    assert berth.ok("start", "tug") == "tug\n"
    wait_until(lambda: containers(berth)["tug"]["State"] == "exited")
    clear(berth)


@pytest.mark.parametrize("ran", [True, False])
def test_of_start_before_there_is_a_monitor(berth, image, ran):
    """Who starts a container makes its monitor's directory first; killed then, he leaves it."""
    identity = berth.ok("create", "--name", "tug", image, "true").strip()
    if ran:
        berth.ok("start", "--attach", "tug")
        wait_until(lambda: containers(berth)["tug"]["State"] == "exited")
    directory = berth.state / "monitors" / identity
    wait_until(lambda: not directory.exists())
    for path in (directory.parent, directory):
        berth.account.own(path)
    check(berth, patience=0)
    assert inspect(berth, "tug")["State"]["Status"] == ("exited" if ran else "created")
    clear(berth)


def test_of_rm(berth, image, points):
    for i, point in enumerate(points):
        berth.ok("create", "--name", f"tug{i}", image, "true")
        killed_after(berth, 0.02 * point, "rm", f"tug{i}")
    for name, container in check(berth).items():
        assert container["State"] == "created", name
    clear(berth)


def test_of_rm_of_what_runs(berth, image, points):
    for i, point in enumerate(points[: len(points) // 2]):
        berth.ok("run", "-d", "--name", f"tug{i}", image, "sleep", "100")
        killed_after(berth, 0.04 * point, "rm", "-f", f"tug{i}")
    check(berth)
    clear(berth)


def test_two_at_once(berth, image):
    for _ in range(5):
        berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
        both = [berth.spawn("rm", "-f", "tug") for _ in range(2)]
        outs = [process.communicate(timeout=30) for process in both]
        assert all(process.returncode == 0 for process in both), outs
    check(berth)


@pytest.mark.profiles("root")
def test_a_full_disk_costs_the_log_and_not_the_container(berth, image):
    berth.ok("run", "--rm", image, "true")
    directory = berth.root / "containers"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", directory], check=True)
    try:
        berth.ok("run", "-d", "--name", "tug", image, *SHELL,
                 "head -c 20000000 /dev/zero | tr '\\0' x | fold -w 80; exit 3")
        assert berth.ok("wait", "tug") == "3\n"
        assert inspect(berth, "tug")["State"]["ExitCode"] == 3
        assert berth.run("logs", "--tail", "1", "tug").returncode in (0, 1)
        berth.ok("rm", "tug")
    finally:
        subprocess.run(["umount", directory], check=True)


def test_a_runtime_that_is_killed_after_its_berth_has_removed_the_container_leaves_nothing(berth, image):
    """It tells how the program ended, then takes the control group away: mpirun kills it there."""
    front = berth.spawn("run", "--rm", "--name", "tug", image, *SHELL, "echo up; sleep 100")
    assert front.stdout.readline() == "up\n"
    identity = inspect(berth, "tug")["Id"]
    kill_all(berth)
    front.communicate(timeout=30)
    # What the killed one had done by then.
    subprocess.run(["rm", "-rf", berth.root / "containers" / identity], check=True)
    (berth.root / "names" / "tug").unlink()
    assert identity in entries(berth.state / "runtime")
    berth.ok("run", "--rm", image, "true")
    assert identity not in entries(berth.state / "runtime")
    check(berth)


def test_an_earlier_boot_is_not_believed(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    identity = inspect(berth, "tug")["Id"]
    pid = inspect(berth, "tug")["State"]["Pid"]
    kill_all(berth)
    # As after a reboot: its process is gone, the number is somebody else's, the boot another one.
    kill_each([pid])
    record = berth.root / "containers" / identity / "container.json"
    lines = record.read_text().splitlines()
    start = json.loads(lines[1])
    start.update(pid=1, boot_id="00000000-0000-0000-0000-000000000000")
    record.write_text("\n".join([lines[0], json.dumps(start, separators=(",", ":"))]))
    assert containers(berth)["tug"]["State"] == "dead"
    assert berth.ok("start", "tug") == "tug\n"
    clear(berth)
