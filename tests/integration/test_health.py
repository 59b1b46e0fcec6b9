# SPDX-License-Identifier: Apache-2.0
"""Health checks: what is run in a container again and again, and what ps and inspect say of it."""

import contextlib
import json
import pathlib
import time

import pytest
from support import images
from support.waiting import wait_until

SHELL = ("sh", "-c")
QUICK = ("--health-interval", "200ms", "--health-timeout", "2s")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    yield busybox
    berth.run("rm", "-f", "tug")


def health(berth):
    return json.loads(berth.ok("inspect", "tug"))[0]["State"].get("Health")


def status(berth):
    return health(berth)["Status"]


def test_a_container_is_starting_then_healthy(berth, image):
    berth.ok("run", "-d", "--name", "tug", "--health-interval", "1s", "--health-cmd", "echo fine",
             image, "sleep", "1000")
    assert status(berth) == "starting"
    assert "(health: starting)" in berth.ok("ps")
    wait_until(lambda: status(berth) == "healthy")
    assert "(healthy)" in berth.ok("ps")
    assert berth.ok("ps", "-q", "--filter", "health=healthy") != ""
    result = health(berth)["Log"][0]
    assert (result["ExitCode"], result["Output"]) == (0, "fine\n")
    assert result["Start"] <= result["End"]


def test_failures_in_a_row_make_it_unhealthy_and_a_success_healthy(berth, image):
    berth.ok("run", "-d", "--name", "tug", *QUICK, "--health-retries", "2", "--health-cmd",
             "cat /tmp/ok", image, *SHELL, "sleep 4; echo yes > /tmp/ok; sleep 1000")
    wait_until(lambda: status(berth) == "unhealthy")
    assert "(unhealthy)" in berth.ok("ps")
    found = health(berth)
    assert found["FailingStreak"] >= 2 and len(found["Log"]) <= 5
    assert found["Log"][-1]["ExitCode"] == 1 and "No such file" in found["Log"][-1]["Output"]
    wait_until(lambda: status(berth) == "healthy")
    assert health(berth)["FailingStreak"] == 0


def test_a_check_that_takes_too_long_is_killed_in_the_container(berth, image):
    berth.ok("run", "-d", "--name", "tug", "--health-interval", "300ms", "--health-timeout",
             "300ms", "--health-retries", "1", "--health-cmd", "exec sleep 777", image, "sleep",
             "1000")
    wait_until(lambda: status(berth) == "unhealthy")
    result = health(berth)["Log"][0]
    assert result["ExitCode"] == -1
    assert result["Output"].startswith("Health check exceeded timeout (")
    assert berth.ok("top", "tug", "-o", "pid,args").count("sleep 777") <= 1


def test_the_start_period_forgives(berth, image):
    berth.ok("run", "-d", "--name", "tug", *QUICK, "--health-retries", "1",
             "--health-start-period", "60s", "--health-cmd", "false", image, "sleep", "1000")
    wait_until(lambda: len(health(berth)["Log"]) >= 3)
    assert status(berth) == "starting"


def test_without_a_check_there_is_no_health(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "1000")
    assert health(berth) is None
    assert "health" not in berth.ok("ps")


def test_in_front_with_rm_a_check_that_was_asked_for_is_run(berth, image):
    done = berth.run("run", "--rm", "--name", "tug", *QUICK, "--health-cmd", "touch /tmp/checked",
                     image, *SHELL, "i=0; until [ -e /tmp/checked ]; do i=$((i+1)); "
                     "[ $i -lt 100 ] || exit 1; sleep 0.1; done; echo checked")
    assert (done.returncode, done.stdout) == (0, "checked\n")


def test_the_next_start_is_checked_anew(berth, image):
    berth.ok("run", "-d", "--name", "tug", *QUICK, "--health-cmd", "true", image, "sleep", "1000")
    wait_until(lambda: status(berth) == "healthy")
    berth.ok("restart", "-t", "0", "tug")
    wait_until(lambda: status(berth) == "healthy")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("members, flag, kept", (
    ({"Interval": 1, "Timeout": 2}, "interval", {"Interval": 10**9, "Timeout": 10**9}),
    ({"Interval": 5 * 10**9, "Timeout": 10**6}, "timeout", {"Interval": 5 * 10**9, "Timeout": 10**9}),
    ({"Interval": 2**63 - 1, "StartPeriod": 2**63 - 1}, None, {"Interval": 2**63 - 1})))
def test_an_image_does_not_make_its_checks_faster_than_one_a_second(
        berth, push, work, members, flag, kept):
    checked = push(images.build([images.busybox_layer()], config={
        "Cmd": ["sleep", "1000"],
        "Healthcheck": {"Test": ["CMD-SHELL", "echo x >> /checks"], **members}}))
    berth.ok("pull", "--quiet", checked)
    done = berth.run("run", "-d", "--name", "tug", checked)
    assert done.returncode == 0
    what = {"interval": "an interval", "timeout": "a time limit"}.get(flag)
    assert done.stderr == ("" if flag is None else
                           f"berth: warning: the image's health check has {what} of less than a "
                           f"second, using 1s instead; --health-{flag} may be less\n")
    time.sleep(2.5)
    checks = berth.run("exec", "tug", "cat", "/checks").stdout.count("x")
    assert checks <= 2 and (checks >= 1 or kept["Interval"] > 10**9)


@pytest.mark.profiles("root")
def test_what_a_check_costs_is_counted_to_its_container(berth, image):
    """berth-runtime, which makes its process, is in the container's cgroup like that process."""
    berth.ok("run", "-d", "--name", "tug", "--health-interval", "100ms", "--health-cmd",
             "cat /proc/self/cgroup > /mine; exec sleep 0.2", image, "sleep", "1000")
    pid = json.loads(berth.ok("inspect", "tug"))[0]["State"]["Pid"]
    own = set(pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines())

    def checker():
        for directory in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (directory / "cmdline").read_bytes().split(b"\0")
                if b"--charge-container" in words and b"exec" in words:
                    return set((directory / "cgroup").read_text().splitlines())
        return set()

    wait_until(lambda: {line for line in own if "cpu" in line or line.startswith("0::")}
               & checker())


def test_the_check_of_an_image_is_done_in_front_of_its_caller_too(berth, push, image):
    checked = push(images.build([images.busybox_layer()], config={
        "Cmd": ["sleep", "1000"], "Healthcheck": {"Test": ["CMD-SHELL", "echo fine"],
                                                  "Interval": 200_000_000}}))
    berth.ok("pull", "--quiet", checked)
    front = berth.spawn("run", "--rm", "--name", "tug", checked)
    wait_until(lambda: "(healthy)" in berth.ok("ps"))
    berth.ok("kill", "tug")
    assert front.wait(10) == 137
    assert berth.ok("run", "--rm", "--no-healthcheck", checked, "echo", "up") == "up\n"
