# SPDX-License-Identifier: Apache-2.0
"""Containers behind berth-monitor, and what is left when somebody is killed."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from support import images
from support.processes import command_lines
from support.store_listing import store_listing
from support.waiting import wait_until

SHELL = ("sh", "-c")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def inspect(berth, name):
    return json.loads(berth.ok("inspect", name))[0]


def monitors(berth):
    """Pids of the monitors of this store's containers."""
    return [pid for pid, line in command_lines().items()
            if line.startswith(b"berth-monitor\0") and bytes(berth.root) in line]


def test_run_prints_the_id_and_returns(berth, image):
    identity = berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    assert len(identity) == 65 and int(identity, 16) >= 0
    assert inspect(berth, "tug")["State"]["Running"] is True
    assert berth.ok("rm", "-f", "tug").strip() in ("tug", identity.strip())
    assert berth.ok("ps", "-a", "-q") == ""


def test_output_goes_to_the_log(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL, "echo out; echo err >&2; printf rest")
    wait_until(lambda: not inspect(berth, "tug")["State"]["Running"])
    done = berth.run("logs", "tug")
    assert (done.stdout, done.stderr) == ("out\nrest", "err\n")
    lines = pathlib.Path(inspect(berth, "tug")["LogPath"])
    if os.geteuid() == 0:
        entries = [json.loads(line) for line in lines.read_text().splitlines()]
        assert {(entry["log"], entry["stream"]) for entry in entries} == {
            ("out\n", "stdout"), ("err\n", "stderr"), ("rest", "stdout")}
    berth.ok("rm", "tug")


def test_a_long_line_is_logged_in_parts_and_read_as_one(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL,
             "head -c 40000 /dev/zero | tr '\\0' x; echo; echo end")
    wait_until(lambda: not inspect(berth, "tug")["State"]["Running"])
    assert berth.ok("logs", "tug") == "x" * 40000 + "\nend\n"
    assert berth.ok("logs", "--tail", "1", "tug") == "end\n"
    berth.ok("rm", "tug")


def test_the_exit_status_is_kept(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL, "exit 42")
    wait_until(lambda: inspect(berth, "tug")["State"]["Status"] == "exited")
    assert inspect(berth, "tug")["State"]["ExitCode"] == 42
    assert berth.ok("wait", "tug") == "42\n"
    berth.ok("rm", "tug")


def test_stop_asks_and_then_kills(berth, image):
    berth.ok("run", "-d", "--name", "polite", image, *SHELL,
             "trap 'exit 3' TERM; while :; do sleep 0.1; done")
    berth.ok("stop", "polite")
    assert inspect(berth, "polite")["State"]["ExitCode"] == 3
    berth.ok("run", "-d", "--name", "stubborn", image, "sleep", "100")
    berth.ok("stop", "-t", "0", "stubborn")
    assert inspect(berth, "stubborn")["State"]["ExitCode"] == 137
    berth.ok("rm", "polite", "stubborn")


def test_stop_sends_the_signal_that_the_image_or_the_user_names(berth, push):
    image = push(images.build([images.busybox_layer()], {"StopSignal": "SIGUSR1"}))
    command = (*SHELL, "trap 'exit 4' USR1; trap 'exit 5' USR2; while :; do sleep 0.1; done")
    berth.ok("run", "-d", "--name", "image", image, *command)
    berth.ok("run", "-d", "--name", "user", "--stop-signal", "usr2", image, *command)
    berth.ok("stop", "image", "user")
    assert inspect(berth, "image")["State"]["ExitCode"] == 4
    assert inspect(berth, "user")["State"]["ExitCode"] == 5
    berth.ok("rm", "image", "user")


def test_stop_waits_as_long_as_the_container_was_given(berth, image):
    berth.ok("run", "-d", "--name", "stubborn", "--stop-timeout", "0", image, "sleep", "100")
    assert inspect(berth, "stubborn")["Config"]["StopTimeout"] == 0
    started = time.monotonic()
    berth.ok("stop", "stubborn")
    assert time.monotonic() - started < 8, "ten seconds are those of who says nothing"
    assert inspect(berth, "stubborn")["State"]["ExitCode"] == 137
    berth.ok("start", "stubborn")
    started = time.monotonic()
    berth.ok("restart", "stubborn")
    assert time.monotonic() - started < 8
    berth.ok("rm", "-f", "stubborn")


def test_removal_of_a_running_container_needs_force(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    assert berth.fail("rm", "tug", status=1) == (
        "berth: cannot remove container 'tug': container is running; "
        "try: berth stop tug, or --force")
    berth.ok("rm", "-f", "tug")


def test_rm_leaves_nothing_when_the_command_ends(berth, image):
    def kept():
        return store_listing(berth.root), store_listing(berth.state)

    def is_as_before():
        try:
            return kept() == before
        except FileNotFoundError:  # it went while it was read
            return False

    berth.ok("run", "-d", "--rm", image, "true")
    wait_until(lambda: not monitors(berth))
    before = kept()
    berth.ok("run", "-d", "--rm", image, "true")
    wait_until(is_as_before)
    berth.ok("run", "-d", "--rm", "--name", "tug", image, "true")
    wait_until(is_as_before)


@pytest.mark.parametrize("flags", [("-d",), ("-d", "--rm"), ("--rm",)])
def test_wait_tells_the_status_even_of_what_removes_itself(berth, image, work, flags):
    front = berth.spawn("run", *flags, "--name", "tug", "-v", f"{work}:/hold", image, *SHELL,
                        "until [ -e /hold/go ]; do sleep 0.1; done; exit 7")
    wait_until(lambda: "running" in berth.ok("ps", "--format", "json"))
    waiters = [berth.spawn("wait", "tug") for _ in range(3)]
    time.sleep(0.5)
    assert [waiter.poll() for waiter in waiters] == [None] * 3
    (work / "go").touch()
    for waiter in waiters:
        assert waiter.communicate(timeout=20) == ("7\n", "")
    front.communicate(timeout=20)
    if "--rm" not in flags:
        assert berth.ok("wait", "tug") == "7\n"
        berth.ok("rm", "tug")


def test_a_command_that_could_not_start_leaves_no_container(berth, image):
    def kept():
        return store_listing(berth.root), store_listing(berth.state)

    berth.ok("run", "-d", "--rm", image, "true")
    wait_until(lambda: not monitors(berth))
    before = kept()
    for flags in (("-d",), ("-d", "--rm"), ("-d", "--name", "tug")):
        assert "no such command" in berth.fail("run", *flags, image, "no such command", status=127)
        assert kept() == before


def test_a_name_that_was_given_by_berth_belongs_to_one_container(berth, image):
    front = berth.spawn("run", "--rm", image, *SHELL, "echo up; sleep 1000")
    assert front.stdout.readline() == "up\n"
    name, full_id = berth.ok("ps", "--no-trunc", "--format", "{{.Names}} {{.ID}}").split()
    assert berth.fail("run", "--rm", "--name", name, image, "true") == (
        f'berth: Conflict. The container name "/{name}" is already in use by '
        f'container "{full_id}"; try: berth rm {name}')
    berth.ok("rm", "-f", name)
    front.communicate(timeout=20)


@pytest.mark.profiles("root")
def test_a_full_disk_at_the_end_costs_neither_the_status_nor_the_container(berth, image):
    berth.ok("run", "--rm", image, "true")
    containers = berth.root / "containers"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", containers], check=True)
    try:
        done = berth.run("run", "--name", "tug", image, *SHELL, "cat /dev/zero > /full; exit 7")
        assert done.returncode == 7
        assert inspect(berth, "tug")["State"]["ExitCode"] == 7
        berth.ok("rm", "tug")
    finally:
        subprocess.run(["umount", containers], check=True)


def test_a_damaged_record_hides_one_container_and_stops_nothing(berth, image):
    berth.ok("run", "--name", "tug", image, "true")
    berth.ok("run", "--name", "other", image, "true")
    identity = inspect(berth, "tug")["Id"]
    (berth.root / "containers" / identity / "container.json").write_text('{"id": 3')
    done = berth.run("ps", "-a")
    assert done.returncode == 0 and "other" in done.stdout
    assert done.stderr.startswith(
        f"berth: warning: cannot read container '{identity[:12]}': container.json: ")
    assert done.stderr.endswith(", ignoring\n") and done.stderr.count("\n") == 1
    assert berth.ok("wait", "other") == "0\n"
    berth.ok("info")
    berth.ok("run", "--rm", image, "true")  # sweeps
    assert (berth.root / "containers" / identity / "upper").exists()
    assert berth.fail("inspect", identity[:12], status=1).startswith(
        f"berth: cannot read container '{identity[:12]}': container.json: ")
    assert berth.ok("rm", identity[:12]) == f"{identity[:12]}\n"
    assert not (berth.root / "names/tug").is_symlink()
    assert not (berth.root / "containers" / identity).exists()
    berth.ok("rm", "other")


def test_a_terminal_without_anybody_in_front(berth, image):
    berth.ok("run", "-d", "-t", "--name", "tug", image, *SHELL, "tty; echo err >&2")
    wait_until(lambda: not inspect(berth, "tug")["State"]["Running"])
    assert berth.ok("logs", "tug").replace("\r", "") == "/dev/pts/0\nerr\n"
    berth.ok("rm", "tug")


def test_standard_input_stays_open_with_i(berth, image):
    berth.ok("run", "-d", "-i", "--name", "open", image, "cat")
    berth.ok("run", "-d", "--name", "closed", image, "cat")
    wait_until(lambda: not inspect(berth, "closed")["State"]["Running"])
    assert inspect(berth, "open")["State"]["Running"] is True
    berth.ok("rm", "-f", "open", "closed")


def test_what_stays_is_small(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    (pid,) = monitors(berth)
    if os.geteuid() == 0:
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        assert pss <= 2048
    berth.ok("rm", "-f", "tug")


# ---- somebody is killed -------------------------------------------------------------------------

def test_a_killed_berth_takes_its_container_along(berth, image, listing):
    berth.ok("run", "--rm", image, "true")
    before = listing()
    front = berth.spawn("run", "--rm", "--name", "tug", image, *SHELL, "echo up; sleep 1000")
    assert front.stdout.readline() == "up\n"
    front.send_signal(signal.SIGKILL)
    front.wait()
    # The pipe ends when the last process of the container is gone.
    assert front.stdout.read() == ""
    berth.ok("run", "--rm", image, "true")
    assert listing() == before
    assert berth.ok("run", "--rm", "--name", "tug", image, "echo", "free") == "free\n"


def test_a_killed_berth_at_any_moment_leaves_nothing(berth, image, listing):
    berth.ok("run", "--rm", image, "true")
    before = listing()
    for step in range(25):
        front = berth.spawn("run", "--rm", image, "true")
        time.sleep(0.001 * step)
        front.send_signal(signal.SIGKILL)
        front.communicate()
    # What was killed between two system calls has no record yet and is left alone for a minute.
    old = time.time() - 120
    for path in (berth.root / "containers").iterdir():
        if not (path / "container.json").exists():
            os.utime(path, (old, old))
    berth.ok("run", "--rm", image, "true")
    berth.ok("run", "--rm", image, "true")
    assert listing() == before


def test_a_killed_runtime_in_the_foreground_leaves_nothing(berth, image):
    berth.ok("run", "--rm", image, "true")
    front = berth.spawn("run", "--rm", image, *SHELL, "echo up; sleep 1000")
    assert front.stdout.readline() == "up\n"
    (pid,) = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
              and parent_of(entry) == front.pid and command(entry) == "berth-runtime"]
    os.kill(pid, signal.SIGKILL)
    front.wait(timeout=10)
    assert (front.returncode, front.stdout.read()) == (128 + signal.SIGKILL, "")
    assert list((berth.state / "runtime").iterdir()) == []


def test_a_container_of_its_own_outlives_the_berth_in_front_of_it(berth, image):
    front = berth.spawn("run", "--name", "tug", image, *SHELL, "echo up; sleep 1; echo more")
    assert front.stdout.readline() == "up\n"
    front.send_signal(signal.SIGKILL)
    front.communicate()
    assert inspect(berth, "tug")["State"]["Running"] is True
    assert berth.ok("wait", "tug") == "0\n"
    assert berth.ok("logs", "tug") == "up\nmore\n"
    berth.ok("rm", "tug")


def parent_of(entry):
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def command(entry):
    try:
        return (entry / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def has_ended(pid):
    try:
        return "State:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def holder_of(monitor):
    return parent_of(pathlib.Path(f"/proc/{monitor}"))


@pytest.mark.parametrize("flags", [[], ["-t"]])
def test_a_killed_monitor_is_replaced_and_the_container_goes_on(berth, image, flags):
    berth.ok("run", "-d", *flags, "--name", "tug", image, *SHELL,
             "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.05; done; exit 6")
    (pid,) = monitors(berth)
    for _ in range(5):
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        (pid,) = wait_until(lambda: [other for other in monitors(berth) if other != pid])
    shown = berth.run("ps")
    assert "tug" in shown.stdout
    assert berth.ok("wait", "tug") == "6\n"
    lines = [int(line) for line in berth.ok("logs", "tug").replace("\r", "").split()]
    # What one had read and not yet written down is lost with it: at most a line each time.
    assert lines == sorted(set(lines)) and lines[-1] == 39 and len(lines) >= 35
    assert "the monitor of container 'tug' was killed" in shown.stderr
    berth.ok("rm", "tug")


# With subordinate ids sailor is somebody else on the host than the user who runs berth.
@pytest.mark.parametrize("user", ["root", "sailor"])
def test_who_loses_holder_and_monitor_is_given_new_ones(berth, image, user, profile):
    if (profile.kind, user) == ("single_id", "sailor"):
        return  # there is nobody else in a namespace of one id
    berth.ok("run", "-d", "--name", "tug", "-u", user, image, *SHELL, "sleep 1.5; exit 4")
    (pid,) = monitors(berth)
    container = inspect(berth, "tug")["State"]["Pid"]
    killed = holder_of(pid), pid
    for process in killed:
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: all(map(has_ended, killed)))  # either holds the container's lock
    done = berth.run("ps")
    assert "tug" in done.stdout and "container 'tug' had lost its monitor" in done.stderr
    assert not has_ended(container)
    assert inspect(berth, "tug")["State"]["Status"] == "running"
    assert len(monitors(berth)) == 1
    wait_until(lambda: inspect(berth, "tug")["State"]["Status"] != "running")
    # Who was nobody's child is asked of the kernel, which tells since Linux 6.15.
    assert inspect(berth, "tug")["State"]["ExitCode"] in (4, None)
    berth.ok("rm", "tug")


@pytest.mark.profiles("root", "user")
def test_removal_reaches_the_processes_of_other_users(berth, image):
    berth.ok("run", "-d", "--name", "owned", "-u", "sailor", image, "sleep", "1000")
    (monitor,) = monitors(berth)
    berth.ok("run", "-d", "--name", "alone", "-u", "sailor", image, "sleep", "1000")
    (other,) = set(monitors(berth)) - {monitor}
    pids = [inspect(berth, name)["State"]["Pid"] for name in ("owned", "alone")]
    killed = holder_of(other), other
    for process in killed:
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: all(map(has_ended, killed)))
    assert berth.ok("rm", "-f", "owned") == "owned\n"
    assert has_ended(pids[0]) and not has_ended(pids[1])
    assert berth.run("rm", "-f", "alone").stdout == "alone\n"
    assert has_ended(pids[1])
    assert list((berth.state / "runtime").iterdir()) == []


def test_many_at_once(berth, image, listing):
    berth.ok("run", "--rm", image, "true")
    before = listing()
    fronts = [berth.spawn("run", "--rm", image, "echo", str(i)) for i in range(12)]
    for i, front in enumerate(fronts):
        out, err = front.communicate(timeout=60)
        assert (out, err, front.returncode) == (f"{i}\n", "", 0)
    assert listing() == before
