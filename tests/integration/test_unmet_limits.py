# SPDX-License-Identifier: Apache-2.0
"""A limit that was asked for and does not hold is said to whoever typed it, as the flag that was
typed: an ordinary user has no cgroup here."""

import json

import pytest

USERS = pytest.mark.profiles("user", "single_id")
LIMITS = {"--memory": "40m", "--cpus": "0.5", "--pids-limit": "40", "--cpu-shares": "5",
          "--cpuset-cpus": "0", "--blkio-weight": "100", "--memory-reservation": "30m"}


@pytest.fixture
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def unmet(done):
    """The flags of the warnings, which are all that was said."""
    lines = done.stderr.splitlines()
    assert all(line.startswith("berth: warning: --") and line.endswith("; ignoring") for line in lines), lines
    return sorted(line.split(": ")[2] for line in lines)


@USERS
@pytest.mark.parametrize("flag", LIMITS)
def test_a_limit_that_does_not_hold_is_a_warning_with_its_flag(berth, image, flag):
    done = berth.run("run", "--rm", flag, LIMITS[flag], image, "echo", "well")
    assert (done.returncode, done.stdout, unmet(done)) == (0, "well\n", [flag])


@USERS
def test_it_is_said_where_the_container_was_started_and_not_in_its_log(berth, image):
    done = berth.run("run", "-d", "--name", "ship", "--stop-timeout", "0", "-m", "40m", image, "sleep", "100")
    assert done.returncode == 0 and unmet(done) == ["--memory"]
    for words in (["restart", "ship"], ["stop", "ship"], ["start", "ship"]):
        done = berth.run(*words)
        assert done.returncode == 0 and unmet(done) == (["--memory"] if "stop" not in words else [])
    done = berth.run("logs", "ship")
    assert (done.stdout, done.stderr) == ("", "")
    berth.ok("rm", "-f", "ship")


@USERS
def test_an_update_that_changes_nothing_is_an_error(berth, image):
    berth.ok("run", "-d", "--name", "ship", "--stop-timeout", "0", image, "sleep", "100")
    assert berth.fail("update", "--memory", "50m", "ship", status=1) == (
        "berth: cannot update container 'ship': --memory: the container has no cgroup")
    assert berth.ok("inspect", "--format", "{{.HostConfig.Memory}}", "ship") == "0\n"
    berth.ok("rm", "-f", "ship")


@USERS
def test_strict_makes_a_limit_that_does_not_hold_an_error(berth, image):
    line = berth.fail("run", "--rm", "--strict", "-m", "40m", image, "true")
    assert line.startswith("berth: cannot run container '") and "--memory: no permission for '" in line
    assert berth.run("run", "--rm", "--strict", image, "true").stderr == ""


@USERS
def test_warnings_of_the_runtime_are_json_where_the_others_are(berth, image):
    for words in (["run", "--rm"], ["run", "-d", "--rm"]):
        done = berth.run("--log-format", "json", *words, "-m", "40m", image, "true")
        line, = done.stderr.splitlines()
        assert json.loads(line)["message"].startswith("--memory: ")


@USERS
def test_no_limit_needs_no_cgroup(berth, image):
    done = berth.run("run", "--rm", "--pids-limit", "-1", "--memory-swap", "-1", image, "true")
    assert (done.returncode, done.stderr) == (0, "")
