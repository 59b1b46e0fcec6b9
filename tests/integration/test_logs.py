# SPDX-License-Identifier: Apache-2.0
"""What containers have written: drivers, rotation, and what `berth logs` shows of it."""

import datetime
import json
import pathlib
import re

import pytest

from support.waiting import wait_until

SHELL = ("sh", "-c")
DRIVERS = ("json-file", "local")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def ran(berth, image, *words):
    """Runs a container `tug` to its end."""
    berth.ok("run", "-d", "--name", "tug", *words[:-1], image, *SHELL, words[-1])
    wait_until(lambda: not json.loads(berth.ok("inspect", "tug"))[0]["State"]["Running"])


def files(berth):
    (directory,) = (pathlib.Path(berth.root) / "containers").iterdir()
    return sorted(path for path in directory.iterdir() if path.name.startswith("log"))


@pytest.mark.parametrize("driver", DRIVERS)
def test_both_streams_come_back_apart(berth, image, driver):
    ran(berth, image, "--log-driver", driver, "echo out; echo err >&2; printf rest")
    done = berth.run("logs", "tug")
    assert (done.stdout, done.stderr) == ("out\nrest", "err\n")


def test_json_file_is_dockers_format(berth, image):
    ran(berth, image, "printf 'a \"quoted\" \\303\\244\\n'")
    (log,) = files(berth)
    entry = json.loads(log.read_text())
    assert (entry["log"], entry["stream"]) == ('a "quoted" ä\n', "stdout")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", entry["time"])


def test_none_keeps_nothing_and_says_so(berth, image):
    ran(berth, image, "--log-driver", "none", "echo out")
    assert files(berth) == []
    done = berth.run("logs", "tug")
    assert done.returncode == 1
    assert done.stderr.startswith("berth: container 'tug' has no log: ")


@pytest.mark.parametrize("driver", DRIVERS)
def test_max_size_and_max_file_bound_the_disk(berth, image, driver):
    ran(berth, image, "--log-driver", driver, "--log-opt", "max-size=20k", "--log-opt",
        "max-file=3", "seq 1 20000")
    assert [path.name for path in files(berth)] == ["log", "log.1", "log.2"]
    assert sum(path.stat().st_size for path in files(berth)) < 80_000
    lines = berth.ok("logs", "tug").split()
    assert lines == [str(20001 - len(lines) + i) for i in range(len(lines))] and len(lines) > 100


@pytest.mark.parametrize("driver", DRIVERS)
def test_following_over_rotations_shows_every_line_once(berth, image, driver):
    berth.ok("run", "-d", "--name", "tug", "--log-driver", driver, "--log-opt", "max-size=64k",
             "--log-opt", "max-file=20", image, *SHELL,
             "i=0; while [ $i -lt 30 ]; do seq 1 1000; i=$((i+1)); sleep 0.02; done")
    assert berth.ok("logs", "-f", "tug").split() == [str(n) for n in range(1, 1001)] * 30


@pytest.mark.parametrize("driver", DRIVERS)
def test_tail_counts_from_the_end(berth, image, driver):
    ran(berth, image, "--log-driver", driver, "seq 1 200000")
    assert berth.ok("logs", "--tail", "2", "tug") == "199999\n200000\n"
    assert berth.ok("logs", "-n", "0", "tug") == ""
    assert len(berth.ok("logs", "-n", "150000", "tug").split()) == 150000
    assert len(berth.ok("logs", "-n", "all", "tug").split()) == 200000
    assert len(berth.ok("logs", "-n", "-1", "tug").split()) == 200000
    assert berth.run("logs", "-n", "x", "tug").returncode == 125


@pytest.mark.parametrize("driver", DRIVERS)
def test_since_and_until_cut_by_time(berth, image, driver):
    ran(berth, image, "--log-driver", driver, "echo one; sleep 1.2; echo two")
    (first, second) = [line.split()[0] for line in berth.ok("logs", "-t", "tug").splitlines()]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", first)
    assert berth.ok("logs", "--since", second, "tug") == "two\n"
    assert berth.ok("logs", "--until", first, "tug") == "one\n"
    assert berth.ok("logs", "--since", "1h", "tug") == "one\ntwo\n"
    assert berth.ok("logs", "--until", "1h", "tug") == ""
    seconds = datetime.datetime.fromisoformat(second[:19] + "+00:00").timestamp()
    assert berth.ok("logs", "--since", f"{seconds:.0f}", "tug") == "two\n"
    done = berth.run("logs", "--since", "yesterday", "tug")
    assert done.returncode == 125 and "expected a time such as" in done.stderr


def test_follow_ends_at_until(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL, "echo up; sleep 100")
    until = (datetime.datetime.now(datetime.timezone.utc)
             + datetime.timedelta(seconds=1)).isoformat()
    assert berth.ok("logs", "-f", "--until", until, "tug") == "up\n"
    assert json.loads(berth.ok("inspect", "tug"))[0]["State"]["Running"]
    berth.ok("rm", "-f", "tug")


def test_details_leaves_room_as_docker_does(berth, image):
    ran(berth, image, "echo out")
    assert berth.ok("logs", "--details", "tug") == " out\n"
