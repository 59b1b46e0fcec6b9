# SPDX-License-Identifier: Apache-2.0
"""runtime::CgroupSet on the real kernel: as this machine mounts its cgroups, and with some of the
mounts put aside, which makes it a legacy or a v2 machine."""

import os
import pathlib
import signal
import subprocess
import time
from concurrent import futures

import pytest
from support.confine import Confine
from support.oci_fixtures import mounted_hierarchies

ROOT = pathlib.Path("/sys/fs/cgroup")
NAME = "/berth-test-cgroup"
DENY_ALL = {"allow": False, "access": "rwm"}
V1 = [what for what in mounted_hierarchies() if what not in ("unified", "rw", "ro", "xattr")]
HYBRID = "unified" in mounted_hierarchies() and {"memory", "pids", "devices", "freezer"} <= set(V1)


@pytest.fixture
def confine(work):
    return Confine(work)


@pytest.fixture
def hybrid():
    if not HYBRID:
        pytest.skip("cgroups are not hybrid here")


def without(*mounts):
    """A shell that puts these cgroup mounts aside, for itself alone."""
    places = " ".join(mounted_hierarchies()[what] for what in mounts)
    return ["unshare", "--mount", "sh", "-ec",
            f'for m in {places}; do umount "$m"; done; exec "$@"', "sh"]


def left():
    return [path for path, _, _ in os.walk(ROOT) if "berth-test-cgroup" in path]


def directory(what):
    return pathlib.Path(mounted_hierarchies()[what] + NAME)


def read(what, file):
    return (directory(what) / file).read_text(encoding="utf-8").strip()


@pytest.fixture
def sleeper():
    """sleeper(what…) → a process in these directories of the container."""
    started = []

    def start(*places, below=""):
        process = subprocess.Popen(["sleep", "60"])
        started.append(process)
        for what in places:
            (directory(what) / below / "cgroup.procs").write_text(str(process.pid),
                                                                  encoding="utf-8")
        return process
    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def created(confine, hybrid):
    """created(resources) makes the container's cgroup; it is removed in the end."""
    def create(**resources):
        return confine.ok("cgroup-create", confine.config(**resources), NAME).split()
    yield create
    confine.run("cgroup-kill", NAME)
    time.sleep(0.05)
    confine.ok("cgroup-remove", NAME)
    assert left() == []


@pytest.mark.profiles("root")
def test_limits_are_in_the_files_of_the_kernel(created):
    paths = created(memory={"limit": 64 << 20, "reservation": 32 << 20},
                    cpu={"shares": 512, "quota": 50000, "period": 100000, "cpus": "0"},
                    pids={"limit": 17})
    assert read("memory", "memory.limit_in_bytes") == str(64 << 20)
    assert read("memory", "memory.soft_limit_in_bytes") == str(32 << 20)
    assert read("cpu", "cpu.shares") == "512"
    assert read("cpu", "cpu.cfs_quota_us") == "50000"
    assert read("cpuset", "cpuset.cpus") == "0"
    assert read("cpuset", "cpuset.mems") != "", "a cpuset without memory takes no process"
    assert read("pids", "pids.max") == "17"
    assert set(paths) == {mounted_hierarchies()[what] + NAME
                          for what in ("memory", "cpu", "cpuacct", "cpuset", "pids",
                                       "unified")}


@pytest.mark.profiles("root")
def test_a_container_without_limits_is_in_the_v2_hierarchy_alone(created):
    assert created() == [mounted_hierarchies()["unified"] + NAME]


@pytest.mark.profiles("root")
def test_a_process_is_in_all_directories_from_its_first_instruction(confine, hybrid):
    config = confine.config(memory={"limit": 64 << 20}, pids={"limit": 10}, devices=[DENY_ALL])
    lines = confine.ok("cgroup-run", config, NAME, "cat", "/proc/self/cgroup").split()
    inside = {line.split(":")[1] for line in lines if line.endswith(":" + NAME)}
    assert inside == {"", "memory", "pids"}
    assert left() == []


@pytest.mark.profiles("root")
def test_too_many_processes_are_refused(confine, hybrid):
    config = confine.config(pids={"limit": 4})
    done = confine.run("cgroup-run", config, NAME, "sh", "-c",
                       "for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait")
    assert "Cannot fork" in done.stderr
    assert left() == []


@pytest.mark.profiles("root")
def test_too_much_memory_ends_the_process(confine, hybrid):
    config = confine.config(memory={"limit": 32 << 20})
    done = confine.run("cgroup-run", config, NAME, "/usr/bin/python3", "-c",
                       "x = bytearray(100 << 20); print('not ended')")
    assert (done.returncode, done.stdout) == (128 + signal.SIGKILL, "")
    assert left() == []


DEVICES = """
head -c 1 /dev/zero | wc -c
echo x > /dev/null
mknod {work}/kmsg c 1 11 && echo made
head -c 0 {work}/kmsg
head -c 1 /dev/kmsg
"""


@pytest.mark.profiles("root")
@pytest.mark.parametrize("how", ["bpf", "v1"])
def test_only_granted_devices_can_be_opened(confine, hybrid, work, how):
    script = DEVICES.format(work=work)
    inside = without("unified") if how == "v1" else ()
    config = confine.config(devices=[DENY_ALL])
    done = confine.run("cgroup-run", config, NAME, "sh", "-c", script, inside=inside)
    assert done.stdout == "1\nmade\n"
    assert done.stderr.count("Operation not permitted") == 2, done.stderr
    (work / "kmsg").unlink()

    config = confine.config(devices=[DENY_ALL, {"allow": True, "type": "c", "major": 1,
                                                "minor": 11, "access": "rw"}])
    done = confine.run("cgroup-run", config, NAME, "head", "-c", "0", "/dev/kmsg", inside=inside)
    assert (done.returncode, done.stderr) == (0, "")
    assert left() == []


@pytest.mark.profiles("root")
def test_a_value_the_kernel_refuses_is_named_and_nothing_is_left(confine, hybrid):
    config = confine.config(memory={"limit": 64 << 20}, cpu={"cpus": "4000"}, devices=[DENY_ALL])
    line = confine.fail("cgroup-create", config, NAME)
    assert line == ("cannot set linux.resources.cpu.cpus: write '4000' to 'cpuset.cpus': "
                    "Numerical result out of range")
    assert left() == []


@pytest.mark.profiles("root")
def test_a_directory_with_processes_is_not_taken_over(confine, created, sleeper):
    created()
    sleeper("unified")
    line = confine.fail("cgroup-create", confine.config(), NAME)
    assert line == f"make cgroup '{mounted_hierarchies()['unified']}{NAME}': it has processes"
    assert directory("unified").exists()


@pytest.mark.profiles("root")
def test_kill_reaches_child_cgroups(confine, created, sleeper):
    created()
    (directory("unified") / "child").mkdir()
    processes = [sleeper("unified"), sleeper("unified", below="child")]
    confine.ok("cgroup-kill", NAME)
    assert [process.wait(timeout=5) for process in processes] == [-signal.SIGKILL] * 2


@pytest.mark.profiles("root")
def test_remove_takes_child_cgroups_along(confine, created):
    created(pids={"limit": 5})
    for what in ("unified", "pids"):
        (directory(what) / "a" / "b").mkdir(parents=True)
    confine.ok("cgroup-remove", NAME)
    assert left() == []


@pytest.mark.profiles("root")
def test_remove_waits_for_the_dying(confine, created):
    created()
    script = f"echo $$ > {directory('unified')}/cgroup.procs; exec sleep 0.3"
    with subprocess.Popen(["sh", "-c", script]) as process:
        while not read("unified", "cgroup.procs"):
            time.sleep(0.01)
        confine.ok("cgroup-remove", NAME)
        process.wait()
    assert left() == []


def processor_time(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").split()[13:15]


@pytest.mark.profiles("root")
def test_freeze_stops_and_thaw_continues(confine, created):
    created()
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as process:
        (directory("unified") / "cgroup.procs").write_text(str(process.pid), encoding="utf-8")
        confine.ok("cgroup-freeze", NAME)
        used = processor_time(process)
        time.sleep(0.1)
        assert processor_time(process) == used
        confine.ok("cgroup-thaw", NAME)
        assert "frozen 0" in read("unified", "cgroup.events")
        process.kill()


@pytest.mark.profiles("root")
def test_limits_can_be_changed(confine, created):
    created(memory={"limit": 64 << 20}, pids={"limit": 5})
    confine.ok("cgroup-update", confine.config(memory={"limit": 128 << 20}), NAME)
    assert read("memory", "memory.limit_in_bytes") == str(128 << 20)
    assert read("pids", "pids.max") == "5"


@pytest.mark.profiles("root")
def test_a_hierarchy_that_a_new_limit_needs_is_joined(confine, created, sleeper):
    created()
    (directory("unified") / "child").mkdir()
    inside = {str(sleeper("unified").pid), str(sleeper("unified", below="child").pid)}
    done = confine.run("cgroup-update", confine.config(cpu={"shares": 2}), NAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert read("cpu", "cpu.shares") == "2"
    assert set(read("cpu", "cgroup.procs").split()) == inside


@pytest.mark.profiles("root")
def test_a_legacy_machine_kills_through_the_freezer(confine, hybrid):
    inside = without("unified")
    config = confine.config(devices=[DENY_ALL])
    paths = confine.ok("cgroup-create", config, NAME, inside=inside).split()
    assert set(paths) == {mounted_hierarchies()[what] + NAME for what in ("devices", "freezer")}
    with subprocess.Popen(["sleep", "60"]) as process:
        for path in paths:
            pathlib.Path(path, "cgroup.procs").write_text(str(process.pid), encoding="utf-8")
        confine.ok("cgroup-kill", NAME, inside=inside)
        assert process.wait(timeout=5) == -signal.SIGKILL
    assert read("freezer", "freezer.state") == "THAWED"
    confine.ok("cgroup-remove", NAME, inside=inside)
    assert left() == []


@pytest.mark.profiles("root")
def test_a_machine_with_v2_alone_says_which_controllers_it_lacks(confine, hybrid):
    config = confine.config(memory={"limit": 64 << 20}, devices=[DENY_ALL])
    done = confine.run("cgroup-run", config, NAME, "cat", "/proc/self/cgroup",
                       inside=without(*V1))
    assert done.stderr == "unmet: memory.limit: no cgroup controller 'memory'\n"
    assert f"0::{NAME}" in done.stdout.split()
    assert left() == []


@pytest.mark.profiles("root")
def test_a_v2_value_for_a_controller_of_v1_is_told(confine, hybrid):
    config = confine.config(unified={"memory.high": "1000000", "cgroup.max.depth": "3"})
    done = confine.run("cgroup-run", config, NAME, "cat",
                       f"{mounted_hierarchies()['unified']}{NAME}/cgroup.max.depth")
    assert done.stdout == "3\n"
    assert done.stderr == (
        "unmet: unified.memory.high: controller 'memory' is one of cgroup v1 here\n")


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_without_limits_is_not_troubled(confine, profile):
    assert confine.ok("cgroup-run", confine.config(), NAME, "echo", "ran",
                      account=profile) == "ran\n"


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_is_told_which_limits_do_not_hold(confine, hybrid, profile):
    config = confine.config(memory={"limit": 64 << 20}, devices=[DENY_ALL])
    done = confine.run("cgroup-run", config, NAME, "echo", "ran", account=profile)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.split("\n") == [
        f"unmet: memory.limit: no permission for '{mounted_hierarchies()['memory']}', because only root can use "
        "cgroup v1",
        f"unmet: devices: no permission for '{mounted_hierarchies()['devices']}'", ""]
    assert left() == []


@pytest.mark.profiles("root")
def test_containers_that_come_and_go_do_not_disturb_one_another(confine, hybrid):
    # They share a parent that the last one removes, and the next one makes again.
    config = confine.config(pids={"limit": 10})

    def come_and_go(worker):
        return [confine.run("cgroup-run", config, f"/berth/race-{worker}", "true").stderr
                for _ in range(40)]
    with futures.ThreadPoolExecutor(4) as pool:
        said = list(pool.map(come_and_go, range(4)))
    assert said == [[""] * 40] * 4
