# SPDX-License-Identifier: Apache-2.0
"""update: the limits of a running container, on hybrid machines and on those with cgroup v2 alone.
A container is only in the hierarchies that its limits needed so far: update takes it into others."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from support.oci_fixtures import (bundle, kind, mounted_hierarchies, ok,  # noqa: F401
                                  own_user_namespace, place, runtime, start, until)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
MIB = 1 << 20
MOUNTS = mounted_hierarchies()


def value(bundle, controller, v1, v2):
    """What the kernel has in the file of the container, by the names of v1 and v2; nothing where
    the container has no such directory."""
    mount, name = (MOUNTS[controller], v1) if controller in MOUNTS else (MOUNTS["unified"], v2)
    path = Path(mount + bundle.linux["cgroupsPath"]) / name
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


LIMIT = ("memory", "memory.limit_in_bytes", "memory.max")
PIDS = ("pids", "pids.max", "pids.max")
SHARES = ("cpu", "cpu.shares", "cpu.weight")
QUOTA = ("cpu", "cpu.cfs_quota_us", "cpu.max")


def by_version(controller, v1, v2):
    return v1 if controller in MOUNTS else v2


def members(bundle, controller):
    mount = MOUNTS.get(controller, MOUNTS.get("unified"))
    return (Path(mount + bundle.linux["cgroupsPath"]) / "cgroup.procs").read_text().split()


def directories(bundle):
    return {mount for mount in MOUNTS.values() if os.path.exists(mount + bundle.linux["cgroupsPath"])}


@pytest.fixture
def unseen(bundle):
    """Without a view of its cgroups a container joins those alone that it needs."""
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "cgroup"]


@pytest.fixture
def running(runtime, bundle, start):
    bundle.shell("sleep 1001 & sleep 1002 & wait")
    start()
    until(lambda: len(json.loads(ok(runtime.call("ps", "-f", "json", "c1")))) == 3)


def update(runtime, *flags, **resources):
    if resources:
        return runtime.call("update", "--resources", "-", "c1", input=json.dumps(resources),
                            stdin=None)
    return runtime.call("update", *flags, "c1")


FLAGS = {
    ("--memory", "64m"): (LIMIT, str(64 * MIB), str(64 * MIB)),
    ("--memory", "-1"): (LIMIT, "9223372036854771712", "max"),
    ("--memory-reservation", "1m"): (
        ("memory", "memory.soft_limit_in_bytes", "memory.low"), str(MIB), str(MIB)),
    ("--pids-limit", "17"): (PIDS, "17", "17"),
    ("--pids-limit", "-1"): (PIDS, "max", "max"),
    ("--cpu-share", "512"): (SHARES, "512", "59"),
    ("--cpu-quota", "20000"): (QUOTA, "20000", "20000 100000"),
    ("--cpu-period", "50000"): (("cpu", "cpu.cfs_period_us", "cpu.max"), "50000", "max 50000"),
    ("--cpu-idle", "1"): (("cpu", "cpu.idle", "cpu.idle"), "1", "1"),
    ("--cpuset-cpus", "0"): (("cpuset", "cpuset.cpus", "cpuset.cpus"), "0", "0"),
    ("--cpuset-mems", "0"): (("cpuset", "cpuset.mems", "cpuset.mems"), "0", "0"),
}


@ROOT
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_a_flag_sets_the_value_and_takes_all_processes_along(runtime, bundle, running, flags):
    place_, v1, v2 = FLAGS[flags]
    assert ok(update(runtime, *flags)) == ""
    assert value(bundle, *place_) == by_version(place_[0], v1, v2)
    assert len(members(bundle, place_[0])) == 3


@ROOT
def test_flags_of_a_quota_may_come_one_by_one(runtime, bundle, running):
    ok(update(runtime, "--cpu-quota", "20000"))
    ok(update(runtime, "--cpu-period", "50000"))
    ok(update(runtime, "--cpu-burst", "10000"))
    assert value(bundle, *QUOTA) == by_version("cpu", "20000", "20000 50000")
    assert value(bundle, "cpu", "cpu.cfs_burst_us", "cpu.max.burst") == "10000"


def test_json_comes_from_a_file_or_from_standard_input(runtime, bundle, running, place):
    ok(update(runtime, memory={"limit": 32 * MIB}, pids={"limit": 30}))
    assert (value(bundle, *LIMIT), value(bundle, *PIDS)) == (str(32 * MIB), "30")
    (place / "resources.json").write_text('{"memory": {"limit": 67108864}, "other": 1}')
    ok(runtime.call("update", "-r", str(place / "resources.json"), "c1"))
    assert (value(bundle, *LIMIT), value(bundle, *PIDS)) == (str(64 * MIB), "30")


@ROOT
def test_zero_changes_nothing_as_docker_means_it(runtime, bundle, running):
    ok(update(runtime, memory={"limit": 32 * MIB}))
    before = directories(bundle)
    ok(update(runtime, memory={"limit": 0, "swap": 0, "reservation": 0, "kernel": 0},
              cpu={"shares": 0, "quota": 0, "period": 0, "cpus": "", "mems": ""},
              blockIO={"weight": 0}))
    assert value(bundle, *LIMIT) == str(32 * MIB)
    assert directories(bundle) == before


@ROOT
def test_a_limit_counts_for_what_runs_already(runtime, bundle, start):
    bundle.shell("until test -e /go; do sleep 0.05; done; "
                 "for i in 1 2 3 4 5 6; do sleep 1001 & done; echo all")
    start()
    ok(update(runtime, "--pids-limit", "4"))
    (bundle.rootfs / "go").write_text("")
    until(lambda: "can't fork" in (bundle.directory / "out").read_text())


@ROOT
def test_refuses_a_bad_value_and_changes_nothing(runtime, bundle, running):
    ok(update(runtime, "--memory", "64m", "--pids-limit", "30"))
    before = directories(bundle)
    done = update(runtime, memory={"limit": 32 * MIB}, pids={"limit": 10},
                  cpu={"shares": 100, "cpus": "4000"})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", (
        "berth-runtime: cannot update container 'c1': cannot set linux.resources.cpu.cpus: write "
        "'4000' to 'cpuset.cpus': Numerical result out of range\n"))
    assert (value(bundle, *LIMIT), value(bundle, *PIDS)) == (str(64 * MIB), "30")
    assert directories(bundle) == before
    assert len(members(bundle, "pids")) == 3


@ROOT
def test_a_limit_that_nobody_has_undoes_the_others(runtime, bundle, running):
    ok(update(runtime, "--pids-limit", "30"))
    before = directories(bundle)
    done = update(runtime, memory={"limit": 64 * MIB}, pids={"limit": 10},
                  unified={"nosuch.max": "1"})
    assert (done.returncode, done.stderr) == (1, (
        "berth-runtime: cannot update container 'c1': linux.resources.unified.nosuch.max: no "
        "cgroup controller 'nosuch'\n"))
    assert value(bundle, *PIDS) == "30" and directories(bundle) == before


@ROOT
def test_a_run_in_the_foreground_leaves_none_of_the_new_directories(runtime, bundle):
    bundle.shell("until test -e /go; do sleep 0.02; done").write()
    process = subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"),
                               stdin=subprocess.DEVNULL)
    until(lambda: runtime.call("state", "c1").stdout.count('"running"'))
    ok(update(runtime, "--memory", "64m", "--pids-limit", "30", "--cpu-share", "100"))
    assert value(bundle, *LIMIT) == str(64 * MIB)
    (bundle.rootfs / "go").write_text("")
    assert process.wait(timeout=20) == 0
    assert directories(bundle) == set()


@ROOT
def test_updates_and_the_end_at_once_leave_nothing(runtime, bundle):
    bundle.args("/bin/sleep", "1001")
    for _ in range(15):
        bundle.write()
        with open(bundle.directory / "out", "w", encoding="utf-8") as out:
            subprocess.run(runtime.command("run", "-d", "-b", str(bundle.directory), "c2"),
                           stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True)
        updates = [subprocess.Popen(runtime.command("update", *flags, "c2"),
                                    stderr=subprocess.DEVNULL)
                   for flags in (("--memory", "64m"), ("--pids-limit", "30"),
                                 ("--cpu-share", "100"))]
        ok(runtime.call("delete", "--force", "c2"))
        for process in updates:
            process.wait(timeout=20)
        assert directories(bundle) == set()


@ROOT
def test_leaves_a_container_that_can_be_deleted_whenever_it_is_killed(runtime, bundle, running):
    for delay in range(0, 20):
        killed = subprocess.Popen(runtime.command("update", "--memory", f"{64 + delay}m",
                                                  "--pids-limit", "30", "--cpu-share", "100", "c1"))
        time.sleep(delay / 1000)
        killed.kill()
        killed.wait()
        assert runtime.state()["status"] == "running"
    ok(update(runtime, "--memory", "64m"))
    assert value(bundle, *LIMIT) == str(64 * MIB)


@ROOT
@pytest.mark.skipif("memory" not in MOUNTS, reason="needs cgroup v1")
def test_takes_processes_into_directories_that_a_killed_update_left_empty(runtime, bundle, unseen, running):
    inside = ok(runtime.call("ps", "c1"))
    left = [controller for controller in ("memory", "pids", "cpu")
            if MOUNTS[controller] not in directories(bundle)]
    assert left  # the container is in none of those that an update may have died in
    for controller in left:
        os.makedirs(MOUNTS[controller] + bundle.linux["cgroupsPath"])
    assert ok(runtime.call("ps", "c1")) == inside
    ok(update(runtime, "--memory", "64m", "--pids-limit", "30"))
    assert (value(bundle, *LIMIT), value(bundle, *PIDS)) == (str(64 * MIB), "30")
    for controller in left:
        assert len(members(bundle, controller)) == 3, controller


@ROOT
@pytest.mark.skipif("memory" not in MOUNTS, reason="needs cgroup v1")
def test_a_refused_update_moves_processes_back_out_of_an_empty_directory(runtime, bundle, unseen, running):
    os.makedirs(MOUNTS["memory"] + bundle.linux["cgroupsPath"])
    assert update(runtime, cpu={"cpus": "4000"}, memory={"limit": 64 * MIB}).returncode == 1
    assert members(bundle, "memory") == []
    assert len(json.loads(ok(runtime.call("ps", "-f", "json", "c1")))) == 3


REKMSGD = {
    '{"memory":{"limit":"64m"}}':
        "standard input: memory.limit: expected an integer, got a string",
    '{"memory":{"limit":20971520,"swap":10485760}}':
        "linux.resources.memory.swap: it counts memory and swap together, and is below memory.limit",
    '{"blockIO":{"weight":5}}': "linux.resources.blockIO.weight: expected 10 to 1000, got 5",
    '{"devices":[{"allow":true,"type":"x"}]}':
        "linux.resources.devices[0].type: expected a, b or c, got 'x'",
    '{"unified":{"nosuch.max":"1"}}':
        "linux.resources.unified.nosuch.max: no cgroup controller 'nosuch'",
    '{"hugepageLimits":[{"pageSize":"../x","limit":1}]}':
        "linux.resources.hugepageLimits[0].pageSize: '../x' cannot name a file",
    '{': "standard input: line 1, column 1: invalid JSON",
}


@ROOT
@pytest.mark.parametrize("text", REKMSGD)
def test_refuses_what_makes_no_sense(runtime, bundle, running, text):
    before = directories(bundle)
    done = runtime.call("update", "-r", "-", "c1", input=text, stdin=None)
    assert (done.returncode, done.stdout) == (1, "")
    line = f"berth-runtime: cannot update container 'c1': {REKMSGD[text]}"
    assert done.stderr.startswith(line) and done.stderr.count("\n") == 1, done.stderr
    assert directories(bundle) == before


@ROOT
def test_a_limit_below_the_use_is_refused_when_asked_to_check(runtime, bundle, start):
    bundle.linux["resources"]["memory"] = {"limit": 200 * MIB}
    bundle.shell("dd if=/dev/zero of=/dev/shm/x bs=1M count=20 2>/dev/null; echo full; sleep 1001")
    start()
    until(lambda: (bundle.directory / "out").read_text() == "full\n")
    done = update(runtime, memory={"limit": 8 * MIB, "checkBeforeUpdate": True})
    assert done.returncode == 1
    assert "cannot update container 'c1': linux.resources.memory.limit: " in done.stderr
    assert f" bytes are in use, more than {8 * MIB}\n" in done.stderr
    assert value(bundle, *LIMIT) == str(200 * MIB)
    ok(update(runtime, memory={"limit": 100 * MIB, "checkBeforeUpdate": True}))


@ROOT
def test_swap_alone_is_counted_from_the_present_limit(runtime, bundle, running):
    ok(update(runtime, "--memory", "64m"))
    if value(bundle, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max") is None:
        pytest.skip("needs swap accounting")
    ok(update(runtime, "--memory-swap", "96m"))
    assert value(bundle, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max") == by_version(
        "memory", str(96 * MIB), str(32 * MIB))


@ROOT
def test_device_rules_replace_those_before(runtime, bundle, start):
    # No driver has this number: opening it says so, unless it is refused before.
    bundle.shell("mknod /node c 239 11; for step in a b c; do "
                 "until test -e /$step; do sleep 0.02; done; "
                 "echo $step $(head -c 0 /node 2>&1); done")
    start()
    denied = {"allow": False, "access": "rwm"}

    def step(name, *rules):
        if rules:
            ok(update(runtime, devices=list(rules)))
        (bundle.rootfs / name).write_text("")
        lines = (bundle.directory / "out").read_text
        until(lambda: f"{name} head" in lines())
        return lines().splitlines()[-1]

    assert step("a") == "a head: /node: Operation not permitted"
    allowed = {"allow": True, "type": "c", "major": 239, "minor": 11, "access": "r"}
    assert step("b", denied, allowed) == "b head: /node: No such device or address"
    assert step("c", denied) == "c head: /node: Operation not permitted"


@ROOT
def test_a_paused_container_stays_paused(runtime, bundle, running):
    ok(runtime.call("pause", "c1"))
    ok(update(runtime, "--memory", "64m"))
    assert value(bundle, *LIMIT) == str(64 * MIB)
    assert len(members(bundle, "memory")) == 3
    assert runtime.state()["status"] == "paused"
    ok(runtime.call("resume", "c1"))


@ROOT
def test_a_stopped_container_has_no_limits(runtime, bundle, start):
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    done = update(runtime, "--memory", "64m")
    assert (done.returncode, done.stderr) == (1, (
        "berth-runtime: cannot update container 'c1': container not running: 'c1' is stopped\n"))
    assert runtime.call("update", "--memory", "1g", "none").stderr == (
        "berth-runtime: cannot update container 'none': container 'none' does not exist\n")


@ROOT
def test_refuses_schemas_of_a_cache(runtime, running):
    for flag in ("--l3-cache-schema", "--mem-bw-schema"):
        assert update(runtime, flag, "L3:0=f").stderr == (
            "berth-runtime: cannot update container 'c1': set a schema of Intel RDT: it is not "
            "supported for a running container\n")


# ---- devices ------------------------------------------------------------------------------------

# Of every kernel, opened for writing by anybody, and nothing that containers have anyway.
KMSG = {"type": "c", "path": "/dev/kmsg", "major": 1, "minor": 11, "fileMode": 0o666}
LOOP = {"type": "c", "path": "/dev/sub/loop-control", "major": 10, "minor": 237, "uid": 5, "gid": 6,
        "fileMode": 0o640}
NOTHING = {"allow": False, "access": "rwm"}


def allow(device):
    return {"allow": True, "type": "c", "major": device["major"], "minor": device["minor"],
            "access": "rwm"}


def set_devices(bundle, *devices):
    bundle.linux["devices"] = list(devices)
    bundle.linux["resources"] = {"devices": [NOTHING, *map(allow, devices)]}


def change(runtime, bundle, *devices):
    wanted = json.loads(json.dumps(bundle.config))
    wanted["linux"]["devices"] = list(devices)
    wanted["linux"]["resources"] = {"devices": [NOTHING, *map(allow, devices)]}
    done = runtime.call("update", "--devices-of", "-", "c1", input=json.dumps(wanted), stdin=None)
    if done.returncode == 0:
        bundle.config = wanted  # as the caller of it has to
        bundle.write()
    return done


def inside(runtime, script):
    return runtime.call("exec", "c1", "/bin/sh", "-c", script)


@ROOT
def test_devices_come_and_go_while_it_runs(runtime, bundle, start):
    set_devices(bundle, KMSG)
    bundle.shell("sleep 1000")
    start()
    ok(inside(runtime, "exec 3>/dev/kmsg"))
    ok(change(runtime, bundle, LOOP))
    shown = inside(runtime, "stat -c '%F %a %u %g %t:%T' /dev/sub/loop-control; ls /dev/kmsg")
    assert shown.stdout == "character special file 640 5 6 a:ed\n"
    assert "No such file" in shown.stderr
    made = inside(runtime, "mknod /also c 1 11 && echo > /also")
    assert "Operation not permitted" in made.stderr
    ok(change(runtime, bundle, KMSG))
    ok(inside(runtime, "exec 3>/dev/kmsg; ! [ -e /dev/sub/loop-control ]"))


IN_USE = {  # what a process does with 3, the device
    "open": "sleep 1001",
    "of a child": "(exec sleep 1001) & exec 3>&-; wait",
}


@ROOT
@pytest.mark.parametrize("how", IN_USE)
def test_a_device_in_use_is_not_taken_away(runtime, bundle, start, how):
    set_devices(bundle, KMSG)
    bundle.shell(f"exec 3>/dev/kmsg; {IN_USE[how]}")
    start()
    until(lambda: "sleep" in ok(runtime.call("ps", "c1")))
    refused = change(runtime, bundle, LOOP)
    assert refused.returncode == 1
    assert "take away '/dev/kmsg': process " in refused.stderr and "has it open" in refused.stderr
    ok(inside(runtime, "exec 3>/dev/kmsg; ! [ -e /dev/sub ]"))
    assert "Operation not permitted" in inside(runtime, "mknod /l c 10 237; cat /l").stderr
    assert json.loads(ok(runtime.call("state", "c1")))["status"] == "running"


@ROOT
def test_a_device_that_cannot_be_made_changes_nothing(runtime, bundle, start):
    set_devices(bundle, KMSG)
    bundle.shell("ln -s /etc /dev/sub; sleep 1000")
    start()
    until(lambda: inside(runtime, "[ -h /dev/sub ]").returncode == 0)
    refused = change(runtime, bundle, dict(KMSG, path="/dev/first"), LOOP)
    assert refused.returncode == 1 and "cannot make device '/dev/sub/loop-control'" in refused.stderr
    ok(inside(runtime, "exec 3>/dev/kmsg; ! [ -e /etc/loop-control ] && ! [ -e /dev/first ]"))
    outside = dict(LOOP, path="/etc/loop-control")
    assert "only character devices in /dev can be added and removed" in change(runtime, bundle, outside).stderr
    outside = dict(LOOP, path="/dev/../etc/loop-control")
    assert "only character devices in /dev can be added and removed" in change(runtime, bundle, outside).stderr


@ROOT
def test_devices_of_a_user_namespace_stay(runtime, bundle, start):
    own_user_namespace(bundle)
    bundle.shell("sleep 1000")
    start()
    refused = change(runtime, bundle, KMSG)
    assert refused.returncode == 1 and "it is in a user namespace" in refused.stderr
