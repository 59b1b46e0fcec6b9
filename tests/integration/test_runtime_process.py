# SPDX-License-Identifier: Apache-2.0
"""What a process gets of processors, disks, memory and clocks, and its labels."""

import contextlib
import ctypes
import os
import subprocess

import pytest

from support import missing_calls
from support.oci_fixtures import bundle, kind, ok, place, runtime, start  # noqa: F401
from support.waiting import wait_until

SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}.get(os.uname().machine)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)


@pytest.mark.parametrize("scheduler, policy, nice", [
    ({"policy": "SCHED_BATCH", "nice": 5}, 3, 5),
    ({"policy": "SCHED_OTHER", "nice": 7}, 0, 7),
    ({"policy": "SCHED_IDLE"}, 5, 0),
])
def test_is_scheduled_as_the_config_says(runtime, bundle, scheduler, policy, nice):
    bundle.process["scheduler"] = scheduler
    bundle.args("/bin/cat", "/proc/self/stat")
    fields = runtime.out(bundle).rsplit(")", 1)[1].split()
    assert (int(fields[38]), int(fields[16])) == (policy, nice)


@ROOT
def test_may_be_real_time(runtime, bundle):
    bundle.process["scheduler"] = {"policy": "SCHED_FIFO", "priority": 3,
                                   "flags": ["SCHED_FLAG_RESET_ON_FORK"]}
    bundle.args("/bin/cat", "/proc/self/stat")
    fields = runtime.out(bundle).rsplit(")", 1)[1].split()
    assert (int(fields[38]), int(fields[37])) == (1, 3)


def test_has_its_io_priority(runtime, bundle):
    bundle.process["ioPriority"] = {"class": "IOPRIO_CLASS_BE", "priority": 2}
    assert runtime.out(bundle.args("/bin/ionice")) == "best-effort: prio 2\n"
    bundle.process["ioPriority"] = {"class": "IOPRIO_CLASS_IDLE"}
    assert runtime.out(bundle.args("/bin/ionice")).startswith("idle")


def test_takes_memory_by_its_policy(runtime, bundle):
    if not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("no NUMA in this kernel")
    bundle.linux["memoryPolicy"] = {"mode": "MPOL_BIND", "nodes": "0",
                                    "flags": ["MPOL_F_STATIC_NODES"]}
    assert " bind=static:0 " in runtime.out(bundle.args("/bin/head", "-1", "/proc/self/numa_maps"))
    bundle.linux["memoryPolicy"] = {"mode": "MPOL_INTERLEAVE", "nodes": "4000"}
    assert runtime.error(bundle) == (
        "cannot run container 'c1': cannot apply linux.memoryPolicy: set the memory policy: "
        "Invalid argument")


@ROOT
def test_the_processors_of_a_service_are_not_those_of_its_containers(runtime, bundle, start):
    """An engine that is a service may be bound to a few, by systemd's CPUAffinity= for one."""
    bundle.linux["cgroupsPath"] = f"/berth-tests-{os.getpid()}"
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        pytest.skip("needs two processors")

    def allowed(text):
        line = next(line for line in text.splitlines() if line.startswith("Cpus_allowed:"))
        return bin(int(line.split()[1].replace(",", ""), 16)).count("1")
    bundle.args("/bin/cat", "/proc/self/status")
    os.sched_setaffinity(0, every[:1])
    try:
        assert allowed(runtime.out(bundle)) >= len(every)
        bundle.args("/bin/sleep", "100")
        start()
        assert allowed(ok(runtime.call("exec", "c1", "/bin/cat", "/proc/self/status"))) >= len(every)
    finally:
        os.sched_setaffinity(0, every)


@ROOT
def test_the_binding_of_a_task_is_that_of_its_container(runtime, bundle, start):
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        pytest.skip("needs two processors")
    look = ("/bin/grep", "Cpus_allowed_list", "/proc/self/status")
    bundle.args(*look)
    bundle.linux.pop("cgroupsPath", None)  # it is the caller's own
    os.sched_setaffinity(0, every[1:2])
    try:
        assert runtime.out(bundle).split() == ["Cpus_allowed_list:", str(every[1])]
        bundle.args("/bin/sleep", "100")
        start()
        assert ok(runtime.call("exec", "c1", *look)).split()[1] == str(every[1])
    finally:
        os.sched_setaffinity(0, every)


@ROOT
def test_a_cpuset_that_is_asked_for_counts_more_than_the_binding_of_the_caller(runtime, bundle):
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        pytest.skip("needs two processors")
    bundle.args("/bin/grep", "Cpus_allowed_list", "/proc/self/status")
    os.sched_setaffinity(0, every[1:2])
    try:
        for asked in (f"{every[0]}", f"{every[0]}-{every[1]}"):
            bundle.linux["resources"] = {"cpu": {"cpus": asked}}
            assert runtime.out(bundle).split() == ["Cpus_allowed_list:", asked]
    finally:
        os.sched_setaffinity(0, every)


def test_prefers_the_place_that_its_config_wishes_for(runtime, bundle):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    if not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("no NUMA in this kernel")
    bundle.shell("grep Cpus_allowed_list /proc/self/status; head -n1 /proc/self/numa_maps")

    def place(cpus, nodes):
        bundle.config["annotations"] = {"dev.berth.processors": cpus,
                                        "dev.berth.memory-nodes": nodes}
        words = runtime.out(bundle).split()
        return words[1], words[3]
    assert place("1,4000", "0") == ("1", "prefer:0")
    everywhere, policy = place("4000", "63")
    assert len(everywhere) > 1 and policy == "default", "what is not there is passed over"
    bundle.linux["memoryPolicy"] = {"mode": "MPOL_BIND", "nodes": "0"}
    assert place("1", "0") == ("1", "bind:0")


@pytest.mark.parametrize("name", ["sched_setaffinity", "set_mempolicy", "get_mempolicy"])
def test_a_wish_that_is_refused_stops_nobody(runtime, bundle, name):
    bundle.config["annotations"] = {"dev.berth.processors": "0", "dev.berth.memory-nodes": "0"}
    bundle.args("/bin/echo", "runs")
    assert runtime.out(bundle, preexec_fn=missing_calls.without(name)) == "runs\n"


def test_a_policy_of_the_caller_stays(runtime, bundle):
    if not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("no NUMA in this kernel")
    bundle.config["annotations"] = {"dev.berth.memory-nodes": "0"}
    bundle.args("/bin/head", "-n1", "/proc/self/numa_maps")
    assert runtime.out(bundle).split()[1] == "prefer:0"
    library = ctypes.CDLL(None, use_errno=True)
    one = ctypes.c_ulong(1)
    interleave = 3
    assert library.syscall(SET_MEMPOLICY, interleave, ctypes.byref(one), 65) == 0
    try:
        assert runtime.out(bundle).split()[1] == "interleave:0"
    finally:
        library.syscall(SET_MEMPOLICY, 0, None, 0)


def test_has_its_personality(runtime, bundle):
    if os.uname().machine != "x86_64":
        pytest.skip("needs x86-64")
    bundle.linux["personality"] = {"domain": "LINUX32"}
    assert runtime.out(bundle.args("/bin/uname", "-m")) == "i686\n"
    bundle.linux["personality"] = {"domain": "LINUX"}
    assert runtime.out(bundle.args("/bin/uname", "-m")) == "x86_64\n"


def test_has_clocks_of_its_own(runtime, bundle):
    bundle.linux["namespaces"].append({"type": "time"})
    bundle.linux["timeOffsets"] = {"boottime": {"secs": 1000000, "nanosecs": 5},
                                   "monotonic": {"secs": 7}}
    bundle.shell("cat /proc/uptime; cat /proc/self/timens_offsets; readlink /proc/self/ns/time")
    out = runtime.out(bundle).split()
    uptime = float(open("/proc/uptime", encoding="utf-8").read().split()[0])
    assert uptime + 999000 < float(out[0]) < uptime + 1001000
    assert out[2:8] == ["monotonic", "7", "0", "boottime", "1000000", "5"]
    assert out[8] != os.readlink("/proc/self/ns/time")


@ROOT
def test_joins_a_time_namespace_by_its_path(runtime, bundle):
    holder = subprocess.Popen(["unshare", "--time", "--fork", "--boottime", "5000000", "sleep",
                               "1000"])
    try:
        space = f"/proc/{holder.pid}/ns/time_for_children"
        while os.readlink(space) == os.readlink("/proc/self/ns/time"):
            pass
        bundle.linux["namespaces"].append({"type": "time", "path": space})
        bundle.args("/bin/cat", "/proc/uptime")
        assert float(runtime.out(bundle).split()[0]) > 5000000
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(holder.pid)], check=False)
        holder.wait(timeout=20)


INVALID = [
    ("process.scheduler", {"policy": "SCHED_X"},
     "process.scheduler.policy: unknown value 'SCHED_X'"),
    ("process.scheduler", {"policy": "SCHED_OTHER", "nice": 20},
     "process.scheduler.nice: expected -20 to 19, got 20"),
    ("process.scheduler", {"policy": "SCHED_OTHER", "priority": 1},
     "process.scheduler.priority: only SCHED_FIFO and SCHED_RR have priorities"),
    ("process.scheduler", {"policy": "SCHED_FIFO", "priority": 100},
     "process.scheduler.priority: expected 1 to 99, got 100"),
    ("process.scheduler", {"policy": "SCHED_FIFO", "runtime": 1},
     "process.scheduler: runtime, deadline and period are for SCHED_DEADLINE only"),
    ("process.scheduler", {"policy": "SCHED_OTHER", "flags": ["x"]},
     "process.scheduler.flags: unknown value 'x'"),
    ("process.ioPriority", {"class": "IOPRIO_CLASS_BE", "priority": 8},
     "process.ioPriority.priority: expected 0 to 7, got 8"),
    ("process.ioPriority", {"class": "x"}, "process.ioPriority.class: unknown value 'x'"),
    ("process.apparmorProfile", "x",
     "process.apparmorProfile: AppArmor is not enabled on this machine"),
    ("process.selinuxLabel", "x", "process.selinuxLabel: SELinux is not enabled on this machine"),
    ("linux.mountLabel", "x", "linux.mountLabel: SELinux is not enabled on this machine"),
    ("linux.memoryPolicy", {"mode": "MPOL_X"}, "linux.memoryPolicy.mode: unknown value 'MPOL_X'"),
    ("linux.memoryPolicy", {"mode": "MPOL_BIND", "nodes": "1-0"},
     "linux.memoryPolicy.nodes: expected a list such as '0-3,7', got '1-0'"),
    ("linux.memoryPolicy", {"mode": "MPOL_BIND", "flags": ["x"]},
     "linux.memoryPolicy.flags: unknown value 'x'"),
    ("linux.personality", {"domain": "x"}, "linux.personality.domain: unknown value 'x'"),
    ("linux.personality", {"domain": "LINUX", "flags": ["x"]},
     "linux.personality.flags: expected none, got 'x'"),
    ("linux.timeOffsets", {"monotonic": {"secs": 1}},
     "linux.timeOffsets: needs a new time namespace"),
    ("linux.intelRdt", {"closID": "x"},
     "linux.intelRdt: '/sys/fs/resctrl' is not mounted on this machine"),
    ("linux.intelRdt", {"closID": "a/b"}, "linux.intelRdt.closID: 'a/b' cannot name a directory"),
]


@ROOT
@pytest.mark.parametrize("member, value, line", INVALID)
def test_an_invalid_or_unsupported_value_is_named_by_its_place(runtime, bundle, member, value, line):
    for here, enabled in (("apparmor", "/sys/module/apparmor/parameters/enabled"),
                          ("selinux", "/sys/fs/selinux/enforce"), ("mountLabel", "/sys/fs/selinux/enforce"),
                          ("'/sys/fs/resctrl'", "/sys/fs/resctrl/schemata")):
        if here in (member if here != "'/sys/fs/resctrl'" else line) and os.path.exists(enabled):
            pytest.skip(f"{enabled} is there")
    folder, name = member.split(".")
    bundle.config[folder][name] = value
    assert runtime.error(bundle) == f"cannot run container 'c1': config.json: {line}"


@ROOT
def test_unconfined_needs_no_apparmor(runtime, bundle):
    bundle.process["apparmorProfile"] = "unconfined"
    assert runtime.out(bundle) == ""


@ROOT
def test_a_container_without_process_is_created_and_refused_at_start(runtime, bundle):
    del bundle.config["process"]
    assert runtime.error(bundle) == "cannot run container 'c1': config.json: process: missing"
    with open("/dev/null", "wb") as null:
        subprocess.run(runtime.command("create", "-b", str(bundle.directory), "c1"), stdout=null,
                       stderr=null, check=True, timeout=20)
    assert runtime.state()["status"] == "created"
    assert runtime.call("start", "c1").stderr == (
        "berth-runtime: cannot start container 'c1': config.json: process: missing\n")
    ok(runtime.call("delete", "--force", "c1"))


KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN_SESSION_KEYRING, DESCRIBE, SESSION_KEYRING = 1, 6, -3
TELL_KEYRING = f"""
import ctypes
text = ctypes.create_string_buffer(200)
ctypes.CDLL(None).syscall({KEYCTL.get(os.uname().machine)}, {DESCRIBE}, {SESSION_KEYRING}, text, 200)
print(text.value.decode())
"""


@ROOT
def test_does_not_have_the_session_keyring_of_its_caller(runtime, bundle):
    if not os.path.exists("/proc/keys"):
        pytest.skip("no keyrings in this kernel")
    libc = ctypes.CDLL(None, use_errno=True)

    def own_keyring():
        if libc.syscall(KEYCTL[os.uname().machine], JOIN_SESSION_KEYRING, b"berth-test-keys") < 0:
            raise OSError(ctypes.get_errno(), "keyctl")

    bundle.config["root"] = {"path": "/", "readonly": True}
    bundle.args("/usr/bin/python3", "-c", TELL_KEYRING)
    kept = runtime.run(bundle, "c1", "--no-new-keyring", preexec_fn=own_keyring)
    assert kept.stdout.endswith(";berth-test-keys\n"), kept
    assert runtime.out(bundle, "c2", preexec_fn=own_keyring).endswith(";_ses\n")


@ROOT
def test_a_run_may_leave_the_stopped_container(runtime, bundle):
    bundle.shell("exit 4")
    assert runtime.run(bundle, "c1", "--keep", "--no-subreaper").returncode == 4
    assert runtime.state()["status"] == "stopped"
    ok(runtime.call("delete", "c1"))


@ROOT
def test_may_stay_in_the_cgroup_of_its_caller(runtime, bundle):
    bundle.args("/bin/cat", "/proc/self/cgroup").write()
    bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                  if space["type"] != "cgroup"]
    bundle.write()
    done = runtime.call("--cgroup-manager", "disabled", "--rootless", "auto", "run", "-b",
                        str(bundle.directory), "c1")
    assert (done.returncode, done.stderr) == (0, "")
    with open("/proc/self/cgroup", encoding="utf-8") as own:
        assert done.stdout == own.read()


@ROOT
def test_sets_what_belongs_to_a_joined_namespace_but_not_to_the_callers(runtime, bundle):
    """As the containers of a pod join that of their sandbox."""
    bundle.linux["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "77", "kernel.msgmax": "9000"}
    bundle.shell("cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax; "
                 "hostname")
    holder = subprocess.Popen(["unshare", "--net", "--ipc", "--uts", "sleep", "1000"])
    try:
        own = os.readlink("/proc/self/ns/uts")
        while os.readlink(f"/proc/{holder.pid}/ns/uts") == own:
            pass
        join(bundle, holder.pid)
        assert runtime.out(bundle) == "77\n9000\nberth-test\n"
    finally:
        holder.kill()
        holder.wait(timeout=20)
    join(bundle, os.getpid())
    assert runtime.error(bundle) == (
        "cannot run container 'c1': config.json: hostname: the uts namespace is the one of the "
        "caller")
    del bundle.config["hostname"]
    assert runtime.error(bundle) == (
        "cannot run container 'c1': config.json: linux.sysctl: 'kernel.msgmax': the ipc namespace "
        "is the one of the caller")


def join(bundle, pid):
    for space in bundle.linux["namespaces"]:
        names = {"network": "net", "ipc": "ipc", "uts": "uts"}
        if space["type"] in names:
            space["path"] = f"/proc/{pid}/ns/{names[space['type']]}"


# ---- standard streams ---------------------------------------------------------------------------

MEMORY = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
TOUCH = """for stream in 0 1 2; do
  chmod 0123 /proc/self/fd/$stream; busybox chown 12:13 /proc/self/fd/$stream
  touch -d '2001-02-03 04:05:06' /proc/self/fd/$stream
done 2>/tmp/said; """


@contextlib.contextmanager
def as_it_was(path):
    """The device has to be left alone; afterwards it is what it was."""
    before = os.stat(path)
    yield
    after = os.stat(path)
    kept = [(status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns) for status in (before, after)]
    os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, before.st_mode & 0o7777)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept[0] == kept[1]


@ROOT
@pytest.mark.parametrize("missing", [(), ("mount_setattr",)], ids=" ".join)
@pytest.mark.parametrize("device", MEMORY)
def test_a_device_of_memory_that_is_a_stream_is_not_the_hosts(runtime, bundle, device, missing):
    """Whoever is root in the container would set its mode, owner and time for all of the machine."""
    lacking = missing_calls.without(*missing) if missing else None
    with open(device, "r+b", buffering=0) as stream, as_it_was(device):
        bundle.shell(TOUCH + "head -c 1 | wc -c >/read; touch /up; exec sleep 1000")
        bundle.write()
        streams = {"stdin": stream, "stdout": stream, "stderr": stream, "capture_output": False,
                   "preexec_fn": lacking}
        done = runtime.call("run", "--detach", "--bundle", str(bundle.directory), "c1", **streams)
        assert done.returncode == 0
        wait_until((bundle.rootfs / "up").exists)
        assert (bundle.rootfs / "read").read_text() == ("0\n" if device == "/dev/null" else "1\n")
        assert runtime.call("exec", "c1", "/bin/sh", "-c", TOUCH + "true", **streams).returncode == 0
        ok(runtime.call("delete", "--force", "c1"))
