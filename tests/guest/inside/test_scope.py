# SPDX-License-Identifier: Apache-2.0
"""berth-runtime --systemd-cgroup, on a machine that runs systemd: tests/guest/test_systemd.py runs
this file in a guest."""

import os
import pathlib
import pwd
import stat
import subprocess

import pytest
from support.bundle import Runtime
from support.oci_fixtures import (assert_nothing_is_left, bundle, ok, place,  # noqa: F401
                                  start, until)

MIB = 1 << 20


def show(unit, *names):
    """{name: value} of a unit's properties; those with several values have one on each line."""
    done = subprocess.run(["systemctl", "show", unit, *(f"--property={name}" for name in names)],
                          check=True, capture_output=True, text=True)
    shown = {}
    for line in sorted(done.stdout.splitlines()):
        name, _, value = line.partition("=")
        shown[name] = f"{shown[name]}\n{value}" if name in shown else value
    return shown


def is_gone(unit):
    return show(unit, "LoadState") == {"LoadState": "not-found"}


def scopes():
    done = subprocess.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "*.scope"],
                          check=True, capture_output=True, text=True)
    return {line.split()[0] for line in done.stdout.splitlines()} - {"init.scope"}


class ScopeRuntime(Runtime):
    def command(self, *words):
        return super().command("--systemd-cgroup", *words)


@pytest.fixture
def runtime(place):
    before = scopes()
    made = ScopeRuntime(place / "state")
    yield made
    made.call("delete", "--force", "c1")
    assert_nothing_is_left(place, made)
    assert scopes() == before


@pytest.fixture(autouse=True)
def in_a_slice(bundle):
    bundle.linux["cgroupsPath"] = "nested-a-b.slice:berth:c1"


UNIT = "berth-c1.scope"
GROUP = f"/nested.slice/nested-a.slice/nested-a-b.slice/{UNIT}"


def test_a_container_is_a_scope_in_its_slice_and_has_its_limits(runtime, bundle, start):
    bundle.args("/bin/sleep", "60")
    bundle.linux["resources"].update({
        "memory": {"limit": 64 * MIB, "reservation": 32 * MIB, "swap": 96 * MIB},
        "cpu": {"shares": 512, "quota": 25000, "period": 50000, "cpus": "0", "mems": "0"},
        "pids": {"limit": 50}, "unified": {"memory.high": str(60 * MIB)}})
    start()
    pid = runtime.state()["pid"]
    assert pathlib.Path(f"/proc/{pid}/cgroup").read_text() == f"0::{GROUP}\n"
    expected = {
        "Slice": "nested-a-b.slice", "Delegate": "yes", "DefaultDependencies": "no",
        "MemoryMax": str(64 * MIB), "MemoryLow": str(32 * MIB), "MemorySwapMax": str(32 * MIB),
        "MemoryHigh": str(60 * MIB), "TasksMax": "50", "CPUWeight": "59",
        "CPUQuotaPerSecUSec": "500ms", "CPUQuotaPeriodUSec": "50ms", "AllowedCPUs": "0",
        "AllowedMemoryNodes": "0", "DevicePolicy": "strict", "MemoryAccounting": "yes",
        "TimeoutStopUSec": "10s", "ControlGroup": GROUP}
    assert show(UNIT, *expected) == expected
    directory = pathlib.Path("/sys/fs/cgroup" + GROUP)
    assert (directory / "memory.max").read_text() == f"{64 * MIB}\n"
    assert (directory / "cpu.max").read_text() == "25000 50000\n"
    ok(runtime.call("delete", "--force", "c1"))
    assert is_gone(UNIT) and not directory.exists()


def test_the_scope_goes_with_the_container_that_ran_in_it(runtime, bundle):
    bundle.shell("cat /proc/self/cgroup; ls /sys/fs/cgroup")
    out = runtime.out(bundle).splitlines()
    assert out[0] == "0::/" and "memory.max" in out
    assert is_gone(UNIT)


@pytest.mark.long
def test_without_a_path_the_scope_is_one_of_the_system(bundle, start):
    bundle.args("/bin/sleep", "60")
    del bundle.linux["cgroupsPath"]
    start()
    assert show(UNIT, "Slice", "ControlGroup") == {"Slice": "system.slice",
                                                   "ControlGroup": f"/system.slice/{UNIT}"}


@pytest.mark.long
def test_without_a_cgroup_namespace_it_sees_its_own_directory(runtime, bundle):
    bundle.linux["namespaces"].remove({"type": "cgroup"})
    bundle.shell("cat /proc/self/cgroup; cat /sys/fs/cgroup/cgroup.procs")
    assert runtime.out(bundle).splitlines()[0] == f"0::{GROUP}"


# Not in /tmp, whose file system has no devices on a machine with systemd of today.
DEVICES = """
mknod /dev/allowed b 259 0; mknod /dev/denied c 1 11
try() { dd if=/dev/$1 of=/dev/null bs=512 count=1 2>/dev/null && echo $1 can be read; }
try allowed; try denied
echo waiting; until [ -e /tmp/reloaded ]; do sleep 0.1; done
try allowed; try denied
echo ended
"""


@pytest.mark.parametrize("declared", [
    "declared to systemd", pytest.param("not a list", marks=pytest.mark.long)])
def test_a_reload_does_not_change_the_device_rules(bundle, start, declared):
    rules = [{"allow": False, "access": "rwm"},
             {"allow": True, "type": "b", "major": 259, "access": "r"}]
    if declared == "not a list":
        rules.append({"allow": False, "type": "c", "major": 1, "minor": 11, "access": "rw"})
    bundle.linux["resources"]["devices"] = rules
    bundle.shell(DEVICES)
    start()
    out = bundle.directory / "out"
    until(lambda: "waiting" in out.read_text())
    shown = show(UNIT, "DevicePolicy", "DeviceAllow")
    strict = declared == "declared to systemd"
    assert shown["DevicePolicy"] == ("strict" if strict else "auto")
    assert ("block-259 r" in shown.get("DeviceAllow", "")) == strict
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert show(UNIT, "DevicePolicy", "DeviceAllow") == shown
    (bundle.rootfs / "tmp/reloaded").touch()
    until(lambda: "ended" in out.read_text())
    assert out.read_text().split("\n") == ["allowed can be read", "waiting", "allowed can be read",
                                           "ended", ""]


GPUS = """
mknod /dev/nvidia1 c 195 1
try() { dd if=$1 of=/dev/null bs=1 count=1 2>&1 | grep -o 'No such device.*\|Operation not.*'; }
all() { for node in /dev/nvidia0 /dev/nvidiactl /dev/nvidia1; do echo $node $(try $node); done; }
all; echo waiting; until [ -e /tmp/reloaded ]; do sleep 0.1; done; all
echo ended
"""
# What an open() of the node says that no driver of this machine is behind: the rules let it through.
GIVEN, DENIED = "No such device or address", "Operation not permitted"


@pytest.fixture
def gpu_nodes():
    """NVIDIA's nodes as its own tools make them: nothing in sysfs, so no link in /dev/char."""
    nodes = {"/dev/nvidia0": 0, "/dev/nvidiactl": 255}
    for path, minor in nodes.items():
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(195, minor))
    yield nodes
    for path in nodes:
        os.unlink(path)


@pytest.mark.long
def test_nothing_that_systemd_does_later_takes_a_gpu_away(bundle, start, gpu_nodes):
    bundle.linux["resources"]["devices"] = [{"allow": False, "access": "rwm"}] + [
        {"allow": True, "type": "c", "major": 195, "minor": minor, "access": "rw"}
        for minor in gpu_nodes.values()]
    bundle.linux["devices"] = [{"path": path, "type": "c", "major": 195, "minor": minor}
                               for path, minor in gpu_nodes.items()]
    bundle.shell(GPUS)
    start()
    out = bundle.directory / "out"
    until(lambda: "waiting" in out.read_text())
    assert not pathlib.Path("/dev/char/195:0").exists()
    declared = show(UNIT, "DeviceAllow")["DeviceAllow"].split("\n")
    assert {"/dev/char/195:0 rw", "/dev/nvidia0 rw", "/dev/char/195:255 rw",
            "/dev/nvidiactl rw"} <= set(declared)
    for command in (["daemon-reload"], ["set-property", UNIT, "TasksMax=77"],
                    ["set-property", "--runtime", UNIT, "CPUWeight=50"], ["daemon-reexec"]):
        subprocess.run(["systemctl", *command], check=True)
    assert show(UNIT, "DeviceAllow")["DeviceAllow"].split("\n") == declared
    (bundle.rootfs / "tmp/reloaded").touch()
    until(lambda: "ended" in out.read_text())
    seen = [f"/dev/nvidia0 {GIVEN}", f"/dev/nvidiactl {GIVEN}", f"/dev/nvidia1 {DENIED}"]
    assert out.read_text().splitlines() == [*seen, "waiting", *seen, "ended"]


def test_a_name_that_is_another_device_is_not_declared(bundle, start, gpu_nodes):
    """What the container calls its device may be something else on the host. The number alone also
    outlives a reload here, without a link in /dev/char."""
    os.unlink("/dev/nvidia0")
    os.symlink("/dev/nvidiactl", "/dev/nvidia0")
    bundle.linux["resources"]["devices"] = [
        {"allow": False, "access": "rwm"},
        {"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rw"}]
    bundle.linux["devices"] = [
        {"path": path, "type": "c", "major": 195, "minor": 0}
        for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kmsg", "/dev/none")]
    bundle.shell(GPUS)
    start()
    out = bundle.directory / "out"
    until(lambda: "waiting" in out.read_text())
    declared = show(UNIT, "DeviceAllow")["DeviceAllow"].split("\n")
    assert "/dev/char/195:0 rw" in declared
    assert not [line for line in declared if line.startswith(("/dev/nvidia", "/dev/kmsg", "/dev/none"))]
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    (bundle.rootfs / "tmp/reloaded").touch()
    until(lambda: "ended" in out.read_text())
    assert out.read_text().splitlines()[-4:-1] == [
        f"/dev/nvidia0 {GIVEN}", f"/dev/nvidiactl {GIVEN}", f"/dev/nvidia1 {DENIED}"]


def test_systemd_learns_what_an_update_changes(runtime, bundle, start):
    bundle.args("/bin/sleep", "60")
    start()
    ok(runtime.call("update", "--memory", str(80 * MIB), "--cpu-quota", "12345", "--cpuset-cpus",
                    "0", "--pids-limit", "70", "c1"))
    expected = {"MemoryMax": str(80 * MIB), "TasksMax": "70", "CPUQuotaPerSecUSec": "130ms"}
    assert show(UNIT, *expected) == expected
    directory = pathlib.Path("/sys/fs/cgroup" + GROUP)
    assert (directory / "cpu.max").read_text() == "12345 100000\n", "systemd has whole percents"
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert (directory / "memory.max").read_text() == f"{80 * MIB}\n"
    assert runtime.state()["status"] == "running"


def test_a_paused_container_can_be_deleted(runtime, bundle, start):
    bundle.args("/bin/sleep", "60")
    start()
    ok(runtime.call("pause", "c1"))
    assert runtime.state()["status"] == "paused"
    ok(runtime.call("delete", "--force", "c1"))
    assert is_gone(UNIT)


def test_a_killed_runtime_leaves_no_scope(runtime, bundle):
    bundle.args("/bin/sleep", "60").write()
    with subprocess.Popen(runtime.command("run", "--bundle", str(bundle.directory), "c1"),
                          stdin=subprocess.DEVNULL) as process:
        until(lambda: show(UNIT, "ActiveState") == {"ActiveState": "active"})
        process.kill()
    until(lambda: is_gone(UNIT))
    ok(runtime.call("delete", "--force", "c1"))


@pytest.mark.long
def test_a_container_that_fails_leaves_no_scope(runtime, bundle):
    bundle.args("/none")
    assert runtime.error(bundle) == ("cannot run container 'c1': execute '/none': "
                                     "No such file or directory")
    bundle.args("/bin/true").config["hooks"] = {"createRuntime": [{"path": "/bin/false"}]}
    assert "createRuntime hook" in runtime.error(bundle)
    bundle.config["hooks"] = {}
    bundle.linux["resources"]["memory"] = {"limit": 64 * MIB, "swap": 1 * MIB}
    assert "memory.swap" in runtime.error(bundle)
    assert is_gone(UNIT)


@pytest.mark.long
def test_a_scope_that_exists_is_not_touched(runtime, bundle, start):
    bundle.args("/bin/sleep", "60")
    start()
    done = runtime.call("run", "--bundle", str(bundle.directory), "c2")
    assert done.stderr == ("berth-runtime: cannot run container 'c2': cannot make the systemd scope: "
                           f"start unit '{UNIT}': Unit {UNIT} was already loaded or has a fragment "
                           "file.\n")
    assert show(UNIT, "ActiveState") == {"ActiveState": "active"}
    assert runtime.state()["status"] == "running"


@pytest.fixture
def user_runtime(place, bundle):
    """berth-runtime as an ordinary user with a manager of his own, but outside its control group, as
    in a login session."""
    subprocess.run(["useradd", "--create-home", "berthtest"], check=True)
    user = pwd.getpwnam("berthtest")
    subprocess.run(["systemctl", "start", f"user@{user.pw_uid}.service"], check=True)
    subprocess.run(["chown", "--recursive", f"{user.pw_uid}:{user.pw_gid}", place], check=True)
    as_user = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "env",
               f"XDG_RUNTIME_DIR=/run/user/{user.pw_uid}")
    with subprocess.Popen([*as_user, "unshare", "--map-root-user", "sleep", "600"]) as holder:
        until(lambda: pathlib.Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
        made = ScopeRuntime(place / "state", (*as_user, "nsenter", "--user", "--preserve-credentials",
                                              f"--target={holder.pid}"))
        made.uid = user.pw_uid
        yield made
        made.call("delete", "--force", "c1")
        holder.kill()
    assert_nothing_is_left(place, made)
    subprocess.run(["systemctl", "stop", f"user@{user.pw_uid}.service"], check=True)
    subprocess.run(["userdel", "--remove", "berthtest"], check=True, capture_output=True)


def test_an_ordinary_user_gets_a_scope_of_his_own_manager(user_runtime, bundle):
    bundle.linux["cgroupsPath"] = ""
    bundle.linux["resources"]["memory"] = {"limit": 64 * MIB}
    bundle.linux["namespaces"].remove({"type": "cgroup"})
    bundle.shell("cat /proc/self/cgroup /sys/fs/cgroup/memory.max")
    manager = f"/user.slice/user-{user_runtime.uid}.slice/user@{user_runtime.uid}.service"
    assert user_runtime.out(bundle).split("\n") == [f"0::{manager}/user.slice/{UNIT}",
                                                    str(64 * MIB), ""]
    assert not pathlib.Path(f"/sys/fs/cgroup{manager}/user.slice/{UNIT}").exists()

    bundle.args("/bin/sleep", "60").write()
    with open(bundle.directory / "out", "w", encoding="utf-8") as out:
        subprocess.run(user_runtime.command("run", "--detach", "--bundle", str(bundle.directory),
                                            "c1"), check=True, stdin=subprocess.DEVNULL,
                       stdout=out, stderr=out)
    added = user_runtime.call("exec", "c1", "cat", "/proc/self/cgroup")
    assert ok(added) == f"0::{manager}/user.slice/{UNIT}\n"
    ok(user_runtime.call("delete", "--force", "c1"))
