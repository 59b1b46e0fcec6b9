# SPDX-License-Identifier: Apache-2.0
"""events: the numbers of the kernel in the members that callers of runc read, and the word that
there was no memory."""

import json
import shutil
import subprocess
import time

import pytest

from support.bundle import Runtime
from support.oci_fixtures import (bundle, kind, mounted_hierarchies, ok, place,  # noqa: F401
                                  runtime, start, until)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
MIB = 1 << 20
V1 = "memory" in mounted_hierarchies()


def stats(runtime):
    lines = ok(runtime.call("events", "--stats", "c1")).splitlines()
    assert len(lines) == 1
    event = json.loads(lines[0])
    assert (event["type"], event["id"]) == ("stats", "c1")
    return event["data"]


@pytest.fixture
def busy(bundle, start):
    """A container that is in all hierarchies, and works. Its quota is so small that it reaches it also beside
    others."""
    bundle.linux["resources"].update(
        memory={"limit": 64 * MIB}, cpu={"quota": 5000, "period": 100000, "cpus": "0"},
        pids={"limit": 20})
    bundle.shell("dd if=/dev/zero of=/dev/shm/x bs=1M count=4 2>/dev/null; "
                 "sleep 1001 & while :; do :; done")
    start()


@ROOT
def test_stats_are_what_the_kernel_counts(runtime, busy):
    until(lambda: stats(runtime)["cpu"]["throttling"].get("throttledTime", 0) > 0)
    until(lambda: stats(runtime)["memory"]["usage"]["usage"] > 4 * MIB)
    until(lambda: stats(runtime)["cpu"]["usage"]["user"] + stats(runtime)["cpu"]["usage"]["kernel"] > 0)  # in ticks
    data = stats(runtime)
    assert list(data) == ["cpu", "cpuset", "memory", "pids", "blkio", "hugetlb", "intel_rdt",
                          "network_interfaces"]
    usage = data["cpu"]["usage"]
    assert 0 < usage["total"] and usage["user"] + usage["kernel"] > 0
    assert data["cpu"]["throttling"]["periods"] >= data["cpu"]["throttling"]["throttledPeriods"] > 0
    assert data["cpuset"]["cpus"] == [0] and data["cpuset"]["mems"]
    memory = data["memory"]
    assert memory["usage"]["limit"] == 64 * MIB and memory["usage"]["failcnt"] == 0
    assert memory["raw"]["total_pgfault" if V1 else "pgfault"] > 0
    assert memory["cache"] >= 4 * MIB, "what is in a tmpfs is cache"
    assert data["pids"] == {"current": 2, "limit": 20}


def keys(value, path=""):
    """The places of all members of a document."""
    if not isinstance(value, dict):
        return {path}
    return {path}.union(*(keys(member, f"{path}/{name}") for name, member in value.items()))


@ROOT
def test_has_the_members_that_runc_prints(place, runtime, bundle, busy):
    if shutil.which("runc") is None:
        pytest.skip("needs runc")
    until(lambda: stats(runtime)["cpu"]["throttling"].get("throttledTime", 0) > 0)
    ours = keys(stats(runtime))
    ok(runtime.call("delete", "--force", "c1"))
    runc = Runtime(place / "runc")
    runc.program = shutil.which("runc")
    bundle.linux["cgroupsPath"] += "-runc"
    bundle.write()
    subprocess.run(runc.command("run", "--detach", "-b", str(bundle.directory), "c1"),
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, timeout=60)
    try:
        until(lambda: stats(runc)["cpu"]["throttling"].get("throttledTime", 0) > 0)
        theirs = keys(stats(runc))
    finally:
        ok(runc.call("delete", "--force", "c1"))
    # Counted for each processor only where the container is in cpuacct, which no limit asks for;
    # what was read from a disk may be nothing.
    silent = ("/cpu/usage/percpu", "/blkio/", "/memory/raw/", "/hugetlb/")
    missing = {key for key in theirs - ours if not key.startswith(silent)}
    assert missing == set()


def test_processor_time_is_known_without_a_limit(runtime, bundle, start):
    bundle.linux["resources"] = {}
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "cgroup"]
    bundle.shell("while :; do :; done")
    start()
    if not mounted_hierarchies().get("unified"):
        pytest.skip("needs cgroup v2")
    until(lambda: stats(runtime)["cpu"]["usage"]["total"] > 10 ** 7)
    if V1:
        assert stats(runtime)["memory"] in ({}, {"psi": stats(runtime)["memory"].get("psi")})
        assert stats(runtime)["pids"] == {}, "nobody counts them"


@pytest.fixture
def follow(runtime):
    """follow(*flags) → a running `events`, and a way to its lines so far."""
    started = []

    def call(*flags):
        process = subprocess.Popen(runtime.command("events", *flags, "c1"), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        started.append(process)
        return process
    yield call
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_stats_come_at_every_interval_until_the_end(runtime, bundle, start, follow):
    bundle.args("/bin/sleep", "1001")
    start()
    process = follow("--interval", "50ms")
    for _ in range(3):
        assert json.loads(process.stdout.readline())["type"] == "stats"
    ok(runtime.call("kill", "c1", "KILL"))
    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == ""


@ROOT
@pytest.mark.parametrize("limited", ["from the start", "later"])
def test_tells_when_there_was_no_memory(runtime, bundle, start, follow, limited):
    if limited == "from the start":
        bundle.linux["resources"]["memory"] = {"limit": 16 * MIB, "swap": 16 * MIB}
    bundle.shell("until test -e /go; do sleep 0.02; done; "
                 "dd if=/dev/zero of=/dev/null bs=64M count=1; sleep 1001")
    start()
    process = follow("--interval", "50ms")
    assert json.loads(process.stdout.readline())["type"] == "stats"
    if limited == "later":
        ok(runtime.call("update", "--memory", "16m", "c1"))
        time.sleep(0.2)  # the watch is set at the next interval
    (bundle.rootfs / "go").write_text("")
    while True:
        event = json.loads(process.stdout.readline())
        if event["type"] != "stats":
            break
    assert event == {"type": "oom", "id": "c1"}


@ROOT
def test_refuses_what_has_no_events(runtime, bundle, start):
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    for flags in ((), ("--stats",)):
        done = runtime.call("events", *flags, "c1")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", (
            "berth-runtime: cannot watch container 'c1': container not running: 'c1' is "
            "stopped\n"))
    assert runtime.call("events", "none").stderr == (
        "berth-runtime: cannot watch container 'none': container 'none' does not exist\n")
    assert runtime.call("events", "--interval", "0s", "c1").stderr == (
        "berth-runtime: cannot use --interval: expected a duration such as 5s, got '0s'\n")
