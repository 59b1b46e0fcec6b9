# SPDX-License-Identifier: Apache-2.0
"""The cgroups of a container from its creation to its end: what the members of linux.resources
become, whose the directory is, and that nothing stands still or is left."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import missing_calls
from support.bundle import Runtime
from support.oci_fixtures import (bundle, hybrid, kind, mounted_hierarchies, ok,  # noqa: F401
                                  own_user_namespace, place, runtime, start, until,
                                  without_hierarchies)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
MOUNTS = mounted_hierarchies()
UNIFIED = MOUNTS.get("unified")
ORDINARY = 4242  # a user without an account, who owns nothing


def unified(bundle):
    return Path(UNIFIED + bundle.linux["cgroupsPath"])


def all_directories(bundle):
    return {mount + bundle.linux["cgroupsPath"] for mount in MOUNTS.values()
            if os.path.exists(mount + bundle.linux["cgroupsPath"])}


@pytest.fixture
def cgroup(runtime):
    """cgroup(path) makes one that is there before the container; it is removed at the end."""
    made = []

    def make(path):
        path = Path(path)
        path.mkdir()
        made.append(path)
        return path
    yield make
    for path in reversed(made):
        path.rmdir()


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "1001"])
    yield process
    process.kill()
    process.wait()


def show_no_cgroups(bundle):
    """Without a view of them a container joins those alone that it needs."""
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "cgroup"]


# ---- linux.resources ----------------------------------------------------------------------------

@ROOT
def test_is_counted_where_the_config_has_a_member_if_only_an_empty_one(runtime, bundle, start,
                                                                      hybrid):
    """As Docker writes it for every container: its stats come from these directories."""
    bundle.args("/bin/sleep", "1000")
    bundle.linux["resources"].update(memory={}, cpu={"shares": 0}, blockIO={"weight": 0})
    show_no_cgroups(bundle)
    start()
    pid = runtime.state()["pid"]
    own = dict(line.split(":")[1:] for line in
               Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    path = bundle.linux["cgroupsPath"]
    for controller in ("memory", "cpu", "cpuacct", "blkio", ""):
        assert own[controller] == path, controller
    assert own["pids"] == "/"


@ROOT
def test_a_limit_of_a_disk_is_in_the_files_of_its_controller(runtime, bundle):
    numbers = [path.read_text().strip() for path in Path("/sys/block").glob("*/dev")]
    if not numbers:
        pytest.skip("needs a disk")
    major, minor = map(int, numbers[0].split(":"))
    device = {"major": major, "minor": minor}
    bundle.linux["resources"]["blockIO"] = {
        "throttleReadBpsDevice": [{**device, "rate": 1048576}],
        "throttleWriteBpsDevice": [{**device, "rate": 2097152}],
        "throttleReadIOPSDevice": [{**device, "rate": 30}],
        "throttleWriteIOPSDevice": [{**device, "rate": 40}]}
    if "blkio" in MOUNTS:
        path = MOUNTS["blkio"] + bundle.linux["cgroupsPath"]
        files = " ".join(f"blkio.throttle.{name}_device"
                         for name in ("read_bps", "write_bps", "read_iops", "write_iops"))
        expected = [f"{numbers[0]} {rate}" for rate in (1048576, 2097152, 30, 40)]
    else:
        path, files = str(unified(bundle)), "io.max"
        expected = [f"{numbers[0]} rbps=1048576 wbps=2097152 riops=30 wiops=40"]
    bundle.mount("/cg", "/sys/fs/cgroup", "rbind", "ro")
    inside = "/cg" + path.removeprefix("/sys/fs/cgroup")
    assert runtime.out(bundle.shell(f"cd {inside}; cat {files}")).splitlines() == expected


REFUSED = {
    "memory.limit": ({"memory": {"limit": -5}}, "expected -1 or more, got -5"),
    "memory.swap": ({"memory": {"limit": 2 << 20, "swap": 1 << 20}},
                    "it counts memory and swap together, and is below memory.limit"),
    "blockIO.leafWeight": ({"blockIO": {"leafWeight": 7}}, "expected 10 to 1000, got 7"),
    "network.classID": ({"network": {"classID": 5}}, "no cgroup controller 'net_cls'"),
    "network.priorities": ({"network": {"priorities": [{"name": "lo", "priority": 3}]}},
                           "no cgroup controller 'net_prio'"),
    "rdma.mlx5_0": ({"rdma": {"mlx5_0": {"hcaHandles": 2}}}, "no cgroup controller 'rdma'"),
    "unified.nosuch.max": ({"unified": {"nosuch.max": "1"}}, "no cgroup controller 'nosuch'"),
}


@ROOT
@pytest.mark.parametrize("place_", REFUSED)
def test_refuses_what_cannot_be_limited_by_its_path(runtime, bundle, place_):
    controller = {"network.classID": "net_cls", "network.priorities": "net_prio",
                  "rdma.mlx5_0": "rdma"}.get(place_)
    if controller and (controller in MOUNTS or controller in Path(
            UNIFIED or "/", "cgroup.controllers").read_text().split()):
        pytest.skip("the controller is here")
    resources, reason = REFUSED[place_]
    bundle.linux["resources"].update(resources)
    assert runtime.error(bundle).removeprefix("cannot run container 'c1': ").removeprefix(
        "cannot make the cgroup: ") == f"linux.resources.{place_}: {reason}"


@ROOT
def test_a_file_of_v2_is_an_error_where_its_controller_is_one_of_v1(runtime, bundle, hybrid):
    bundle.linux["resources"]["unified"] = {"memory.high": "100000000"}
    assert runtime.error(bundle) == (
        "cannot run container 'c1': linux.resources.unified.memory.high: controller 'memory' is "
        "one of cgroup v1 here")


def test_a_file_of_v2_that_cannot_be_set_is_an_error_for_everybody(runtime, bundle):
    bundle.linux["resources"]["unified"] = {"cgroup.max.depth": "3", "nosuch.max": "1"}
    assert runtime.error(bundle) == (
        "cannot run container 'c1': linux.resources.unified.nosuch.max: no cgroup controller "
        "'nosuch'")


@ROOT
def test_files_of_v2_are_written(runtime, bundle):
    bundle.linux["resources"]["unified"] = {"cgroup.max.depth": "3", "cgroup.max.descendants": "7"}
    out = runtime.out(bundle.shell("cd /sys/fs/cgroup; cat cgroup.max.* unified/cgroup.max.* "
                                   "2>/dev/null; true"))
    assert out.split() == ["3", "7"]


@ROOT
def test_a_controller_of_the_v2_half_is_set_there(runtime, bundle):
    if not UNIFIED or "hugetlb" not in Path(UNIFIED, "cgroup.controllers").read_text().split():
        pytest.skip("needs the controller hugetlb on cgroup v2")
    sizes = [path.name.removeprefix("hugetlb.").removesuffix(".max")
             for path in Path(UNIFIED).glob("*/hugetlb.*.max") if ".rsvd." not in path.name]
    size = sizes[0] if sizes else "2MB"
    bundle.linux["resources"]["hugepageLimits"] = [{"pageSize": size, "limit": 4 << 20}]
    out = runtime.out(bundle.shell(f"cd /sys/fs/cgroup; test -d unified && cd unified; "
                                   f"cat hugetlb.{size}.max hugetlb.{size}.rsvd.max"))
    assert out.split() == [str(4 << 20)] * 2


# ---- places that are taken ----------------------------------------------------------------------

@ROOT
@pytest.mark.parametrize("where", ["unified", "pids"])
def test_refuses_a_cgroup_with_processes(runtime, bundle, cgroup, sleeper, where):
    if where not in MOUNTS:
        pytest.skip("cgroups are not hybrid here")
    taken = cgroup(MOUNTS[where] + bundle.linux["cgroupsPath"])
    (taken / "cgroup.procs").write_text(str(sleeper.pid))
    bundle.linux["resources"]["pids"] = {"limit": 10}
    assert runtime.error(bundle) == (
        f"cannot run container 'c1': cannot make the cgroup: make cgroup '{taken}': it has "
        "processes")
    assert all_directories(bundle) == {str(taken)}
    sleeper.kill()
    sleeper.wait()


@ROOT
def test_takes_over_an_empty_cgroup(runtime, bundle):
    unified(bundle).mkdir()
    assert runtime.out(bundle.shell("echo ran")) == "ran\n"
    assert all_directories(bundle) == set()


@ROOT
@pytest.mark.parametrize("above", [False, True], ids=["itself", "one above"])
def test_refuses_a_cgroup_that_stands_still(runtime, bundle, cgroup, above):
    frozen = cgroup(unified(bundle))
    (frozen / "cgroup.freeze").write_text("1")
    if above:
        bundle.linux["cgroupsPath"] += "/child"
    assert runtime.error(bundle) == (
        f"cannot run container 'c1': cannot make the cgroup: make cgroup '{unified(bundle)}': it "
        "is frozen")
    assert not above or not unified(bundle).exists()


# ---- ways in ------------------------------------------------------------------------------------

@ROOT
def test_joins_its_cgroup_where_it_cannot_be_born_in_it(runtime, bundle):
    bundle.linux["resources"]["pids"] = {"limit": 17}
    done = runtime.run(bundle.shell("cat /proc/self/cgroup; cat /sys/fs/cgroup/pids.max "
                                    "/sys/fs/cgroup/pids/pids.max 2>/dev/null"),
                       preexec_fn=missing_calls.without("clone3"))
    assert done.stderr == ""
    assert "0::/" in done.stdout.split(), "its cgroup namespace begins where it is"
    assert done.stdout.split()[-1] == "17"


@ROOT
def test_belongs_to_the_containers_user_when_it_may_write_there(runtime, bundle, start):
    own_user_namespace(bundle)
    mount = next(one for one in bundle.config["mounts"] if one["type"] == "cgroup")
    mount["options"].remove("ro")
    bundle.shell("cd /sys/fs/cgroup; test -d unified && cd unified; mkdir own && "
                 "echo 0 > own/cgroup.procs && echo moved; echo max > pids.max; sleep 1001")
    start()
    text = (bundle.directory / "out").read_text
    until(lambda: "moved\n" in text() and "pids.max" in text())
    assert "pids.max: Permission denied" in text() or "pids.max: nonexistent" in text()
    directory = unified(bundle)
    assert directory.stat().st_uid == 100000
    given = {path.name for path in directory.iterdir() if path.stat().st_uid == 100000}
    assert {"cgroup.procs", "cgroup.subtree_control", "own"} <= given
    assert not any(name.endswith((".max", ".freeze", ".kill")) for name in given)


@ROOT
def test_stays_ours_when_it_is_mounted_read_only(runtime, bundle, start):
    own_user_namespace(bundle)
    bundle.args("/bin/sleep", "1001")
    start()
    assert {path.stat().st_uid for path in [unified(bundle), *unified(bundle).iterdir()]} == {0}


# ---- the end ------------------------------------------------------------------------------------

@pytest.fixture
def shared(bundle):
    """A container in the pid namespace of the machine: its processes outlive the first one."""
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"]
                                  if one["type"] != "pid"]
    bundle.config["mounts"] = [one for one in bundle.config["mounts"]
                               if one["destination"] != "/proc"]
    bundle.linux["maskedPaths"] = bundle.linux["readonlyPaths"] = []
    return bundle


def living(bundle):
    if not unified(bundle).exists():
        return []
    return (unified(bundle) / "cgroup.procs").read_text().split()


@ROOT
@pytest.mark.parametrize("flags", [(), ("--all",)])
def test_kill_ends_all_processes_without_a_pid_namespace(runtime, shared, start, flags):
    shared.shell("sleep 1001 & sleep 1002 & wait")
    start()
    until(lambda: len(living(shared)) == 3)
    ok(runtime.call("kill", *flags, "c1", "KILL"))
    until(lambda: living(shared) == [])
    assert runtime.state()["status"] == "stopped"


@ROOT
def test_kill_ends_what_the_first_process_has_left(runtime, shared, start):
    shared.shell("sleep 1001 & echo started; exit 0")
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    assert len(living(shared)) == 1
    done = runtime.call("kill", "c1", "TERM")
    assert (done.returncode, done.stderr) == (1, "berth-runtime: container not running: 'c1'\n")
    ok(runtime.call("kill", "c1", "KILL"))
    until(lambda: living(shared) == [])


@ROOT
def test_delete_ends_what_the_first_process_has_left(runtime, shared, start):
    shared.shell("trap '' TERM; sleep 1001 & exit 0")
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    ok(runtime.call("delete", "c1"))
    assert all_directories(shared) == set()


@ROOT
def test_no_process_escapes_by_forking(runtime, shared, start):
    shared.linux["resources"]["pids"] = {"limit": 200}
    shared.shell("f() { while :; do sh -c 'exec sleep 0.01' & sleep 0; done; }; f & f & f & wait")
    start()
    until(lambda: len(living(shared)) > 3)
    ok(runtime.call("kill", "--all", "c1", "KILL"))
    until(lambda: living(shared) == [])


@ROOT
def test_neither_cgroups_beyond_a_path_nor_processes_in_them_stay(runtime, shared):
    shared.config["mounts"][-1] |= {"type": "cgroup2", "source": "cgroup2", "options": []}
    name = "x" * 250
    shared.shell(f"cd /sys/fs/cgroup; while mkdir {name} && cd {name}; do echo in; done "
                 "2>/dev/null; echo $$ >cgroup.procs; sleep 1001 & exit 0")
    assert len(runtime.out(shared).split()) > 10
    assert all_directories(shared) == set()


@ROOT
def test_no_process_escapes_by_forking_on_v1(place, runtime, shared, start, hybrid):
    legacy = Runtime(place / "state", without_hierarchies("unified"))
    shared.linux["resources"]["pids"] = {"limit": 200}
    shared.shell("f() { while :; do sh -c 'exec sleep 0.01' & sleep 0; done; }; f & f & f & wait")
    start(by=legacy)
    procs = Path(hybrid["freezer"] + shared.linux["cgroupsPath"]) / "cgroup.procs"
    until(lambda: len(procs.read_text().split()) > 3)
    ok(legacy.call("kill", "--all", "c1", "KILL"))
    until(lambda: procs.read_text() == "")
    assert (procs.parent / "freezer.state").read_text() == "THAWED\n"


@ROOT
@pytest.mark.parametrize("words", [("kill", "c1", "KILL"), ("delete", "--force", "c1")], ids=str)
def test_a_container_cannot_stay_by_freezing_its_processes(place, runtime, bundle, start, hybrid,
                                                           words):
    legacy = Runtime(place / "state", without_hierarchies("unified"))
    bundle.config["mounts"][-1]["options"].remove("ro")
    bundle.shell("cd /sys/fs/cgroup/freezer; mkdir in; sleep 1001 & echo $! >in/cgroup.procs; "
                 "echo FROZEN >in/freezer.state; sleep 1002")
    start(by=legacy)
    inside = Path(hybrid["freezer"] + bundle.linux["cgroupsPath"]) / "in/freezer.state"
    until(lambda: inside.exists() and inside.read_text() == "FROZEN\n")
    ok(legacy.call(*words))
    if words[0] == "kill":
        until(lambda: legacy.state()["status"] == "stopped")


# ---- ordinary users -----------------------------------------------------------------------------

@pytest.fixture
def ordinary(place, bundle, cgroup):
    """ordinary(delegated) → berth-runtime of an ordinary user, in a cgroup of its own whose parent
    belongs to the user when it is delegated; as root of a user namespace, or without one, as the
    containers of a shared one can only be looked into from there."""
    def make(delegated, within=("unshare", "-r")):
        for path, _, _ in os.walk(bundle.rootfs):
            os.chown(path, ORDINARY, ORDINARY)
        state = place / "user-state"
        state.mkdir()
        os.chown(state, ORDINARY, ORDINARY)
        # No other user can be mapped, and so no group of terminals.
        bundle.config["mounts"] = [one for one in bundle.config["mounts"]
                                   if one["type"] != "devpts"]
        slice_ = cgroup(str(unified(bundle)) + "-user")
        session = cgroup(slice_ / "session")
        if delegated:
            for path in (slice_, slice_ / "cgroup.procs", slice_ / "cgroup.subtree_control"):
                os.chown(path, ORDINARY, ORDINARY)
            os.chown(session / "cgroup.procs", ORDINARY, ORDINARY)
        return Runtime(state, (
            "sh", "-ec", f'echo 0 > {session}/cgroup.procs; exec setpriv --reuid {ORDINARY} '
            f'--regid {ORDINARY} --clear-groups "$@"', "sh", *within))
    return make


@ROOT
def test_a_user_with_a_delegated_cgroup_has_limits(runtime, bundle, ordinary):
    user = ordinary(delegated=True)
    bundle.linux["resources"]["unified"] = {"cgroup.max.depth": "3"}
    bundle.shell("cat /sys/fs/cgroup/cgroup.max.depth /sys/fs/cgroup/unified/cgroup.max.depth "
                 "2>/dev/null; cat /proc/self/cgroup | grep ^0")
    done = user.run(bundle)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "3\n0::/\n")
    assert not (Path(str(unified(bundle)) + "-user") / bundle.linux["cgroupsPath"][1:]).exists()


@ROOT
def test_a_user_with_a_delegated_cgroup_can_pause_and_update(runtime, bundle, ordinary):
    user = ordinary(delegated=True)
    bundle.args("/bin/sleep", "1001").write()
    with open(bundle.directory / "out", "w", encoding="utf-8") as out:
        done = user.call("run", "--detach", "-b", str(bundle.directory), "c1",
                         capture_output=False, stdout=out, stderr=out)
    assert done.returncode == 0, (bundle.directory / "out").read_text()
    ok(user.call("pause", "c1"))
    assert user.state()["status"] == "paused"
    ok(user.call("update", "-r", "-", "c1", stdin=None,
                 input='{"unified": {"cgroup.max.depth": "5"}}'))
    ok(user.call("delete", "--force", "c1"))


@ROOT
def test_a_user_without_one_runs_and_is_told(runtime, bundle, ordinary):
    user = ordinary(delegated=False)
    bundle.linux["resources"]["pids"] = {"limit": 10}
    where = MOUNTS.get("pids", UNIFIED)
    done = user.run(bundle.shell("echo ran"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    reason = ", because only root can use cgroup v1" if "pids" in MOUNTS else ""
    assert done.stderr == (f"berth-runtime: warning: linux.resources.pids.limit: no permission for "
                           f"'{where}'{reason}; ignoring\n")


@ROOT
def test_a_warning_that_nobody_reads_any_more_ends_no_start(runtime, bundle, ordinary):
    user = ordinary(delegated=False)
    bundle.linux["resources"]["pids"] = {"limit": 10}
    bundle.shell("echo ran").write()
    read, write = os.pipe()
    os.close(read)
    try:
        done = user.call("--report-fd", str(write), "run", "-b", str(bundle.directory), "c1", pass_fds=[write])
    finally:
        os.close(write)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


@ROOT
def test_signals_reach_all_processes_without_a_cgroup(runtime, bundle, ordinary):
    user = ordinary(delegated=False, within=())
    bundle.linux["namespaces"].append({"type": "user"})
    for name in ("uidMappings", "gidMappings"):
        bundle.linux[name] = [{"containerID": 0, "hostID": ORDINARY, "size": 1}]
    bundle.shell("sh -c 'trap \"echo got\" USR1; echo ready; while :; do sleep 0.02; done' & "
                 "trap true USR1; while :; do wait; done").write()
    with open(bundle.directory / "out", "w", encoding="utf-8") as out:
        user.call("run", "--detach", "-b", str(bundle.directory), "c1", capture_output=False,
                  stdout=out, stderr=out)
    text = (bundle.directory / "out").read_text
    until(lambda: "ready\n" in text())
    ok(user.call("kill", "--all", "c1", str(int(signal.SIGUSR1))))
    until(lambda: "got\n" in text())
    ok(user.call("delete", "--force", "c1"))
