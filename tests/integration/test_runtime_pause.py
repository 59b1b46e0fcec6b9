# SPDX-License-Identifier: Apache-2.0
"""pause and resume, what the other verbs do with a paused container, and that nothing stays
frozen."""

import json
import time
from pathlib import Path

import pytest

from support.bundle import Runtime
from support.oci_fixtures import (bundle, hybrid, kind, ok, place, runtime, start,  # noqa: F401
                                  until, without_hierarchies)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
COUNTER = "trap 'echo usr1; exit 3' USR1; while :; do echo x >> /count; sleep 0.01; done"


def count(bundle):
    path = bundle.rootfs / "count"
    return path.stat().st_size if path.exists() else 0


def counts(bundle):
    before = count(bundle)
    time.sleep(0.2)
    return count(bundle) != before


@pytest.fixture
def paused(runtime, bundle, start):
    bundle.shell(COUNTER)
    start()
    until(lambda: count(bundle) > 0)
    ok(runtime.call("pause", "c1"))


def test_a_paused_container_stands_still_until_it_is_resumed(runtime, bundle, paused):
    assert not counts(bundle)
    assert runtime.state()["status"] == "paused" and runtime.state()["pid"] > 0
    assert json.loads(ok(runtime.call("list", "-f", "json")))[0]["status"] == "paused"
    assert ok(runtime.call("list")).splitlines()[1].split()[2] == "paused"
    ok(runtime.call("resume", "c1"))
    assert counts(bundle)
    assert runtime.state()["status"] == "running"


@ROOT
def test_refuses_what_a_paused_container_cannot_do(runtime, paused):
    assert runtime.call("pause", "c1").stderr == (
        "berth-runtime: cannot pause container 'c1': container not running: 'c1' is paused\n")
    assert runtime.call("start", "c1").stderr == (
        "berth-runtime: cannot start container 'c1': container 'c1' is paused, not created\n")
    done = runtime.call("delete", "c1")
    assert (done.returncode, done.stderr) == (1, (
        "berth-runtime: cannot delete container 'c1': container 'c1' is paused, not stopped; try: "
        "berth-runtime kill c1 KILL, or delete --force c1\n"))
    ok(runtime.call("resume", "c1"))
    assert runtime.call("resume", "c1").stderr == (
        "berth-runtime: cannot resume container 'c1': container not paused: 'c1' is running\n")


@ROOT
def test_refuses_to_pause_and_resume_what_has_ended(runtime, bundle, start):
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    for verb, words in (("pause", "not running"), ("resume", "not paused")):
        done = runtime.call(verb, "c1")
        assert (done.returncode, done.stderr) == (1, (
            f"berth-runtime: cannot {verb} container 'c1': container {words}: 'c1' is stopped\n"))
        assert runtime.call(verb, "none").stderr == (
            f"berth-runtime: cannot {verb} container 'none': container 'none' does not exist\n")


@ROOT
def test_a_created_container_can_be_paused_and_starts_after_resume(runtime, bundle):
    bundle.shell("exit 0").write()
    with open(bundle.directory / "out", "w", encoding="utf-8") as out:
        done = runtime.call("create", "-b", str(bundle.directory), "c1", capture_output=False,
                            stdout=out, stderr=out)
    assert done.returncode == 0
    ok(runtime.call("pause", "c1"))
    assert runtime.state()["status"] == "paused"
    ok(runtime.call("resume", "c1"))
    assert runtime.state()["status"] == "created"
    ok(runtime.call("start", "c1"))
    ok(runtime.call("delete", "--force", "c1"))


@ROOT
def test_a_signal_waits_for_resume_but_kill_does_not(runtime, bundle, paused):
    ok(runtime.call("kill", "c1", "USR1"))
    assert runtime.state()["status"] == "paused" and not counts(bundle)
    ok(runtime.call("resume", "c1"))
    until(lambda: runtime.state()["status"] == "stopped")
    assert (bundle.directory / "out").read_text() == "usr1\n"


@pytest.mark.parametrize("flags", [(), ("--all",)])
def test_kill_ends_a_paused_container(runtime, paused, flags):
    ok(runtime.call("kill", *flags, "c1", "KILL"))
    until(lambda: runtime.state()["status"] == "stopped")
    ok(runtime.call("delete", "c1"))


@ROOT
def test_delete_by_force_ends_a_paused_container(runtime, paused):
    ok(runtime.call("delete", "--force", "c1"))
    assert ok(runtime.call("list", "-q")) == ""


@ROOT
@pytest.mark.parametrize("end", [("kill", "c1", "KILL"), ("kill", "--all", "c1", "KILL"),
                                 ("delete", "--force", "c1")])
def test_the_freezer_of_v1_does_as_well(place, runtime, bundle, start, hybrid, end):
    legacy = Runtime(place / "state", without_hierarchies("unified"))
    bundle.shell(COUNTER)
    start(by=legacy)
    until(lambda: count(bundle) > 0)
    frozen = Path(hybrid["freezer"] + bundle.linux["cgroupsPath"]) / "freezer.state"
    ok(legacy.call("pause", "c1"))
    assert frozen.read_text() == "FROZEN\n" and not counts(bundle)
    assert legacy.state()["status"] == "paused"
    ok(legacy.call("resume", "c1"))
    assert frozen.read_text() == "THAWED\n" and counts(bundle)
    ok(legacy.call("pause", "c1"))
    ok(legacy.call(*end))
    if end[0] == "kill":
        until(lambda: legacy.state()["status"] == "stopped")
        assert frozen.read_text() == "THAWED\n"


@ROOT
def test_signals_to_all_reach_every_process_once(runtime, bundle, start):
    bundle.shell("for i in 1 2 3; do sh -c 'trap \"echo got\" USR1; echo ready; "
                 "while :; do sleep 0.02; done' & done; trap true USR1; while :; do wait; done")
    start()
    text = (bundle.directory / "out").read_text
    until(lambda: text().count("ready") == 3)
    ok(runtime.call("kill", "--all", "c1", "USR1"))
    until(lambda: text().count("got") == 3)
    assert runtime.state()["status"] == "running", "what was frozen for the signals is thawed"


@ROOT
def test_says_that_there_is_no_freezer(place, runtime, bundle, start, hybrid):
    bare = Runtime(place / "state", without_hierarchies("unified", "freezer"))
    bundle.args("/bin/sleep", "100")
    start(by=bare)
    done = bare.call("pause", "c1")
    assert (done.returncode, done.stderr) == (1, (
        "berth-runtime: cannot pause container 'c1': freeze the container: it has no cgroup with "
        "a freezer\n"))
    assert bare.state()["status"] == "running"
