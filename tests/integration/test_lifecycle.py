# SPDX-License-Identifier: Apache-2.0
"""Containers that outlive a command: created, started, looked at from several places, left,
stopped and started again."""

import json
import os
import signal
import time

import pytest

from support.processes import command_lines
from support.waiting import wait_until

SHELL = ("sh", "-c")
DETACH = "\x10\x11"


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def state(berth, name):
    return json.loads(berth.ok("inspect", name))[0]["State"]


def status(berth, name):
    return state(berth, name)["Status"]


# ---- create and start ---------------------------------------------------------------------------

def test_create_makes_a_container_that_start_starts(berth, image):
    identity = berth.ok("create", "--name", "tug", image, "echo", "aboard").strip()
    assert len(identity) == 64
    assert status(berth, "tug") == "created"
    assert "Created" in berth.ok("ps", "-a") and "tug" not in berth.ok("ps")
    assert berth.ok("run", "--rm", image, "true") == ""  # sweeps, and leaves it alone
    assert berth.ok("start", "tug") == "tug\n"
    wait_until(lambda: status(berth, "tug") == "exited")
    assert berth.ok("logs", "tug") == "aboard\n"
    berth.ok("rm", "tug")


def test_start_a_shows_the_output_and_gives_the_status(berth, image):
    berth.ok("create", "--name", "tug", image, *SHELL, "echo out; echo err >&2; exit 9")
    for _ in range(2):
        done = berth.run("start", "-a", "tug")
        assert (done.returncode, done.stdout, done.stderr) == (9, "out\n", "err\n")
    assert berth.ok("logs", "tug").count("out") == 2
    berth.ok("rm", "tug")


def test_start_ai_feeds_the_container(berth, image):
    berth.ok("create", "-i", "--name", "tug", image, "cat")
    assert berth.ok("start", "-a", "-i", "tug", input="ahoy\n") == "ahoy\n"
    berth.ok("rm", "tug")


def test_start_of_what_runs_is_fine(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    pid = state(berth, "tug")["Pid"]
    assert berth.ok("start", "tug") == "tug\n"
    assert state(berth, "tug")["Pid"] == pid
    berth.ok("rm", "-f", "tug")


def test_two_starts_at_once_start_it_once(berth, image):
    berth.ok("create", "--name", "tug", image, *SHELL, "echo up; sleep 100")
    starts = [berth.spawn("start", "tug") for _ in range(4)]
    for start in starts:
        out, err = start.communicate(timeout=30)
        assert (start.returncode, out, err) == (0, "tug\n", "")
    wait_until(lambda: berth.ok("logs", "tug"))
    assert berth.ok("logs", "tug") == "up\n"
    berth.ok("rm", "-f", "tug")


def test_what_was_written_is_still_there_after_a_start(berth, image):
    berth.ok("create", "--name", "tug", image, *SHELL, "echo x >> /log; wc -l < /log")
    assert [berth.ok("start", "-a", "tug").strip() for _ in range(3)] == ["1", "2", "3"]
    berth.ok("rm", "tug")


def test_a_container_that_cannot_start_says_why_and_stays(berth, image):
    berth.ok("create", "--name", "tug", image, "no such command")
    assert berth.fail("start", "tug", status=1) == (
        "berth: cannot run container 'tug': execute 'no such command': "
        "executable file not found in $PATH")
    assert state(berth, "tug")["ExitCode"] == 127
    berth.ok("rm", "tug")


def test_create_with_rm_is_removed_after_its_first_life(berth, image):
    berth.ok("create", "--rm", "--name", "tug", image, "true")
    assert berth.ok("start", "tug") == "tug\n"
    wait_until(lambda: berth.ok("ps", "-aq") == "")


def test_start_of_several_names_what_is_missing_and_starts_the_rest(berth, image):
    berth.ok("create", "--name", "tug", image, "sleep", "100")
    done = berth.run("start", "nobody", "tug")
    assert (done.returncode, done.stdout) == (1, "tug\n")
    assert done.stderr == "berth: no such container: nobody; try: berth ps --all\n"
    assert berth.fail("start", "-a", "nobody", "tug", status=1) == (
        "berth: you cannot start and attach multiple containers at once")
    berth.ok("rm", "-f", "tug")


# ---- restart, pause, rename ---------------------------------------------------------------------

def test_restart_gives_it_another_life(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL,
             "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")
    wait_until(lambda: berth.ok("logs", "tug"))
    pid = state(berth, "tug")["Pid"]
    assert berth.ok("restart", "tug") == "tug\n"
    assert state(berth, "tug")["Running"] is True and state(berth, "tug")["Pid"] != pid
    wait_until(lambda: berth.ok("logs", "tug") == "up\nup\n")
    berth.ok("stop", "tug")
    assert berth.ok("restart", "tug") == "tug\n"
    assert state(berth, "tug")["Running"] is True
    berth.ok("rm", "-f", "tug")


def test_a_paused_container_stands_still(berth, image):
    # The shell counts; nothing of it may move while it is frozen.
    berth.ok("run", "-d", "--name", "tug", image, *SHELL,
             "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")
    done = berth.run("pause", "tug")
    if done.returncode != 0:
        # Who has no control group of his own cannot freeze anything.
        assert "freezer" in done.stderr or "cgroup" in done.stderr, done.stderr
        berth.ok("rm", "-f", "tug")
        return
    assert "(Paused)" in berth.ok("ps") and status(berth, "tug") == "paused"
    before = berth.ok("logs", "tug")
    time.sleep(0.3)
    assert berth.ok("logs", "tug") == before
    assert berth.fail("pause", "tug", status=1) == (
        "berth: cannot pause container 'tug': it is paused")
    assert berth.ok("unpause", "tug") == "tug\n"
    wait_until(lambda: berth.ok("logs", "tug") != before)
    assert berth.fail("unpause", "tug", status=1) == (
        "berth: cannot unpause container 'tug': container is not paused")
    berth.ok("pause", "tug")
    assert berth.ok("stop", "-t", "0", "tug") == "tug\n"
    berth.ok("rm", "tug")


def test_rename_gives_another_name(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    berth.ok("create", "--name", "other", image, "true")
    assert berth.ok("rename", "tug", "barge") == ""
    assert "barge" in berth.ok("ps") and "tug" not in berth.ok("ps")
    assert berth.fail("rename", "barge", "other", status=1).startswith(
        'berth: Conflict. The container name "/other" is already in use by container')
    berth.ok("create", "--name", "tug", image, "true")  # the name is free
    berth.ok("rm", "-f", "barge", "other", "tug")
    assert list((berth.root / "names").iterdir()) == []


# ---- restart policies ---------------------------------------------------------------------------

def test_on_failure_starts_it_again_as_often_as_it_says(berth, image):
    berth.ok("run", "-d", "--restart", "on-failure:3", "--name", "tug", image, *SHELL,
             "echo up; exit 5")
    wait_until(lambda: status(berth, "tug") == "exited")
    assert state(berth, "tug")["ExitCode"] == 5
    assert berth.ok("logs", "tug") == "up\n" * 4
    berth.ok("rm", "tug")


def test_always_starts_it_again_until_a_person_stops_it(berth, image):
    berth.ok("run", "-d", "--restart", "always", "--name", "tug", image, *SHELL, "echo up")
    wait_until(lambda: berth.ok("logs", "tug").count("up") >= 3)
    assert berth.ok("stop", "-t", "0", "tug") == "tug\n"
    assert status(berth, "tug") == "exited"
    lives = berth.ok("logs", "tug")
    time.sleep(0.5)
    assert berth.ok("logs", "tug") == lives
    berth.ok("start", "tug")
    wait_until(lambda: berth.ok("logs", "tug") != lives)
    berth.ok("rm", "-f", "tug")


def test_a_killed_container_is_not_started_again(berth, image):
    berth.ok("run", "-d", "--restart", "always", "--name", "tug", image, "sleep", "100")
    berth.ok("kill", "tug")
    wait_until(lambda: status(berth, "tug") == "exited")
    time.sleep(0.3)
    assert status(berth, "tug") == "exited"
    berth.ok("rm", "tug")


# ---- attach and detach --------------------------------------------------------------------------

def test_the_keys_leave_it_running_and_attach_comes_back(berth, image):
    front = berth.terminal("run", "-it", "--name", "tug", image, "sh")
    front.expect("# ")
    front.send("echo fir''st\n")
    front.expect("first\r\n")
    front.send(DETACH)
    front.expect("read escape sequence")
    assert front.wait() == 0
    assert status(berth, "tug") == "running"
    back = berth.terminal("attach", "tug")
    back.send("echo sec''ond\n")
    back.expect("second\r\n")
    back.send("exit 3\n")
    assert back.wait() == 3
    assert status(berth, "tug") == "exited"
    berth.ok("rm", "tug")


def test_other_keys_can_be_chosen(berth, image):
    front = berth.terminal("run", "-it", "--detach-keys", "ctrl-a,d", "--name", "tug", image, "sh")
    front.expect("# ")
    front.send("\x01")
    front.send("d")
    front.expect("read escape sequence")
    assert front.wait() == 0
    assert berth.fail("attach", "--detach-keys", "ctrl-1", "tug", status=1) == (
        "berth: invalid detach keys 'ctrl-1': expected keys such as 'a' or 'ctrl-p', with commas")
    berth.ok("rm", "-f", "tug")


def test_a_container_of_rm_can_be_left_too(berth, image):
    front = berth.terminal("run", "--rm", "-it", "--name", "tug", image, "sh")
    front.expect("# ")
    front.send(DETACH)
    assert front.wait() == 0
    assert status(berth, "tug") == "running"
    berth.ok("stop", "-t", "0", "tug")
    wait_until(lambda: berth.ok("ps", "-aq") == "")


def test_a_terminal_that_is_gone_leaves_it_running(berth, image):
    front = berth.terminal("run", "-it", "--name", "tug", image, "sh")
    front.expect("# ")
    front.process.kill()
    front.process.wait()
    assert status(berth, "tug") == "running"
    berth.ok("rm", "-f", "tug")


def test_several_see_the_same(berth, image):
    berth.ok("run", "-d", "-it", "--name", "tug", image, "cat")
    seers = [berth.terminal("attach", "tug") for _ in range(3)]
    time.sleep(0.3)
    seers[0].send("hello\n")
    for seer in seers:
        seer.expect("hello")
    berth.ok("rm", "-f", "tug")
    for seer in seers:
        assert seer.wait() == 137


def test_a_slow_one_blocks_nobody(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL,
             "sleep 1; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo done")
    slow = berth.spawn("attach", "tug")  # nobody reads what it prints
    quick = berth.spawn("logs", "-f", "tug")
    time.sleep(0.2)
    slow.send_signal(signal.SIGSTOP)
    out, _ = quick.communicate(timeout=30)
    assert out.endswith("x\ndone\n") and len(out) == 8000000 + 6
    assert berth.ok("wait", "tug") == "0\n"
    slow.send_signal(signal.SIGCONT)
    _, err = slow.communicate(timeout=20)
    assert slow.returncode == 0
    assert "this terminal was too slow" in err
    berth.ok("rm", "tug")


def test_the_one_in_front_misses_nothing_however_slow(berth, image):
    front = berth.spawn("run", "--name", "tug", image, *SHELL,
                        "head -c 3000000 /dev/zero | tr '\\0' x; exit 2")
    time.sleep(1)
    out, err = front.communicate(timeout=30)
    assert (front.returncode, len(out), err) == (2, 3000000, "")
    berth.ok("rm", "tug")


def test_the_window_size_follows(berth, image):
    front = berth.terminal("run", "-it", "--name", "tug", image, "sh", rows=31, columns=97)
    front.expect("# ")
    front.send("stty size\n")
    front.expect("31 97")
    front.resize(20, 70)
    time.sleep(0.2)
    front.send("stty size\n")
    front.expect("20 70")
    front.send("exit\n")
    assert front.wait() == 0
    berth.ok("rm", "tug")


def test_signals_reach_it(berth, image):
    front = berth.spawn("run", "--name", "tug", image, *SHELL,
                        "trap 'echo heard; exit 8' USR1; echo up; while :; do sleep 0.05; done")
    assert front.stdout.readline() == "up\n"
    front.send_signal(signal.SIGUSR1)
    out, _ = front.communicate(timeout=20)
    assert (out, front.returncode) == ("heard\n", 8)
    berth.ok("rm", "tug")


def test_attach_says_what_it_cannot(berth, image):
    berth.ok("create", "--name", "tug", image, "true")
    assert berth.fail("attach", "tug", status=1) == (
        "berth: You cannot attach to a stopped container, start it first; try: berth start tug")
    assert berth.fail("attach", "nobody", status=1) == (
        "berth: no such container: nobody; try: berth ps --all")
    berth.ok("rm", "tug")
    front = berth.spawn("run", "--rm", "--name", "tug", image, *SHELL, "echo up; sleep 100")
    assert front.stdout.readline() == "up\n"
    assert berth.fail("attach", "tug", status=1) == (
        "berth: cannot attach to container 'tug': it runs in the foreground of another process; "
        "try: run it without --rm, or with -t or -d")
    berth.ok("rm", "-f", "tug")
    front.communicate(timeout=10)


def test_a_client_survives_the_death_of_the_monitor(berth, image):
    front = berth.spawn("run", "--name", "tug", image, *SHELL,
                        "echo up; sleep 1; echo more; exit 5")
    assert front.stdout.readline() == "up\n"
    monitor = wait_until(lambda: monitors_of(berth))[0]
    os.kill(monitor, signal.SIGKILL)
    out, _ = front.communicate(timeout=20)
    assert (out, front.returncode) == ("more\n", 5)
    berth.ok("rm", "tug")


def monitors_of(berth):
    return [pid for pid, line in command_lines().items()
            if line.startswith(b"berth-monitor\0") and bytes(berth.root) in line]


def test_replace_takes_the_name_of_another_container_once_its_image_is_here(berth, busybox):
    flags = ["-d", "--replace", "--name", "web"]
    first = berth.ok("run", *flags, busybox, "sleep", "60").strip()
    second = berth.ok("run", *flags, busybox, "sleep", "60").strip()
    assert first != second and berth.ok("ps", "-aq", "--no-trunc").split() == [second]
    # What is only told leaves it, and so does an image that is not to be had.
    berth.ok("run", "--dry-run", "--replace", "--name", "web", busybox, "true")
    berth.fail("run", *flags, "--pull", "never", "nosuch:1", "true")
    assert berth.ok("ps", "-aq", "--no-trunc").split() == [second]
    third = berth.ok("create", "--replace", "--name", "web", busybox, "true").strip()
    assert berth.ok("ps", "-aq", "--no-trunc").split() == [third]
    # The beginning of an id is no name.
    fourth = berth.ok("create", "--replace", "--name", third[:6], busybox, "true").strip()
    assert set(berth.ok("ps", "-aq", "--no-trunc").split()) == {third, fourth}
    assert "--name" in berth.fail("run", "--replace", busybox, "true")
    berth.ok("rm", "-f", third, fourth)
