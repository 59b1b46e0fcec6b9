# SPDX-License-Identifier: Apache-2.0
"""ps: which processes it names, and how it shows what the host's ps says of them."""

import json
import os

import pytest

from support.oci_fixtures import bundle, kind, ok, place, runtime, start, until  # noqa: F401


def command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[:-1]


@pytest.fixture
def three(runtime, bundle, start):
    """A container of three processes."""
    bundle.shell("sleep 1001 & sleep 1002 & wait")
    start()

    def sleeps():
        pids = json.loads(ok(runtime.call("ps", "--format", "json", "c1")))
        return sorted(word for pid in pids for word in command(pid)[1:] if word.isdigit())
    until(lambda: sleeps() == [b"1001", b"1002"])


def test_gives_the_ids_that_the_host_knows(runtime, three):
    pids = json.loads(ok(runtime.call("ps", "-f", "json", "c1")))
    assert pids[0] == runtime.state()["pid"] or runtime.state()["pid"] in pids
    assert sorted(command(pid)[1] for pid in pids)[1:] == [b"1001", b"1002"]


def test_shows_the_rows_of_the_hosts_ps(runtime, three):
    lines = ok(runtime.call("ps", "c1")).splitlines()
    assert lines[0].split()[:3] == ["UID", "PID", "PPID"]
    pids = json.loads(ok(runtime.call("ps", "-f", "json", "c1")))
    assert sorted(int(line.split()[1]) for line in lines[1:]) == sorted(pids)


def test_passes_the_words_after_the_id_to_ps(runtime, three):
    lines = ok(runtime.call("ps", "c1", "-e", "-o", "pid,args")).splitlines()
    assert lines[0].split() == ["PID", "COMMAND"]
    assert {"sleep 1001", "sleep 1002"} <= {" ".join(line.split()[1:]) for line in lines[1:]}


def test_needs_a_column_of_ids(runtime, three):
    done = runtime.call("ps", "c1", "-o", "args")
    assert (done.returncode, done.stderr) == (
        1, "berth-runtime: find the column PID in the output of ps\n")


def test_passes_on_what_ps_complains_about(runtime, three):
    done = runtime.call("ps", "c1", "--no-such-flag")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "berth-runtime: execute 'ps': error: unknown gnu long option\n"


def test_a_ps_of_the_callers_path_is_not_executed(runtime, place, three):
    (place / "ps").write_text("#!/bin/sh\necho PID\n")
    (place / "ps").chmod(0o755)
    words = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    assert ok(runtime.call("ps", "c1", env=words)).startswith("UID")


def test_a_stopped_container_has_none(runtime, bundle, start):
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    assert ok(runtime.call("ps", "-f", "json", "c1")) == "[]\n"
    assert len(ok(runtime.call("ps", "c1")).splitlines()) == 1


def test_an_unknown_container_is_an_error(runtime):
    assert runtime.call("ps", "none").stderr == "berth-runtime: container 'none' does not exist\n"
