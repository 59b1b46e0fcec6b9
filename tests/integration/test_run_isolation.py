# SPDX-License-Identifier: Apache-2.0
"""What a container of `berth run` sees and may do: mounts, namespaces, limits."""

import os

import pytest
from support.waiting import wait_until

SHELL = ("sh", "-c")


@pytest.fixture
def shell(berth, busybox):
    """shell(script, flag…) → the output of a script in a container."""
    berth.ok("pull", "--quiet", busybox)

    def run(script, *flags):
        return berth.ok("run", "--rm", *flags, busybox, *SHELL, script)
    return run


def test_namespaces_are_its_own(shell):
    own = shell("for n in mnt pid ipc uts net cgroup; do readlink /proc/self/ns/$n; done")
    for line in own.splitlines():
        kind = line.partition(":")[0]
        assert line != os.readlink(f"/proc/self/ns/{kind}")


def test_only_loopback_is_there_without_a_network(shell):
    assert shell("ls /sys/class/net; cat /sys/class/net/lo/operstate") == "lo\nunknown\n"
    assert shell("ping -c 1 -W 1 127.0.0.1 >/dev/null && echo up") == "up\n"


def test_the_hosts_network_is_shared_when_asked(shell):
    assert shell("readlink /proc/self/ns/net", "--network", "host").strip() == (
        os.readlink("/proc/self/ns/net"))
    assert shell("hostname", "--network", "host").strip() == os.uname().nodename
    assert shell("ls /sys/class/net", "--network", "host").split() == sorted(
        os.listdir("/sys/class/net"))


def test_the_host_name_resolves(shell):
    assert shell("hostname; cat /etc/hostname", "--hostname", "tug") == "tug\ntug\n"
    assert "127.0.1.1\ttug\n" in shell("cat /etc/hosts", "--hostname", "tug")


def test_volumes_are_the_hosts_directories(shell, work, profile):
    source = profile.own(work / "data")
    (source / "in").write_text("from the host")
    assert shell("cat /data/in; echo back >/data/out", "-v", f"{source}:/data") == "from the host"
    assert (source / "out").read_text() == "back\n"
    assert (source / "out").stat().st_uid == profile.uid
    assert "Read-only file system" in shell("echo x 2>&1 >/data/out || true", "-v",
                                            f"{source}:/data:ro")


def test_a_volume_that_is_missing_becomes_a_directory(shell, work, profile):
    profile.own(work / "base")
    shell("touch /mnt/here", "-v", f"{work}/base/new/dir:/mnt")
    assert (work / "base/new/dir/here").exists()


def test_a_single_file_can_be_a_volume(shell, work, profile):
    source = profile.own(work / "data") / "one"
    source.write_text("mine\n")
    assert shell("cat /etc/hosts", "-v", f"{source}:/etc/hosts:ro") == "mine\n"


def test_tmpfs_is_empty_and_of_the_size_that_was_asked(shell):
    line = shell("mount | grep ' /scratch '", "--tmpfs", "/scratch:size=1m")
    assert line.startswith("tmpfs on /scratch type tmpfs (rw,nosuid,nodev,noexec")
    assert "size=1024k" in line


def test_a_read_only_root(shell):
    out = shell("echo x >/file; echo x >/tmp/file && echo wrote", "--read-only", "--tmpfs", "/tmp")
    assert out == "wrote\n"


def test_what_tells_about_the_host_is_masked(shell):
    assert shell("cat /proc/keys /proc/interrupts; ls /proc/acpi /sys/firmware") == (
        "/proc/acpi:\n\n/sys/firmware:\n")
    assert "Read-only file system" in shell("echo 1 2>&1 >/proc/sys/kernel/panic || true")


def test_devices_are_dockers_few(shell):
    assert shell("ls /dev").split() == sorted(
        ["core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
         "stdout", "tty", "urandom", "zero"])
    assert shell("echo x >/dev/null && head -c 3 /dev/zero | wc -c") == "3\n"


@pytest.mark.profiles("root")
def test_a_device_node_that_was_made_inside_does_not_open(shell):
    assert "Operation not permitted" in shell("mknod /tmp/disk b 1 0; cat /tmp/disk 2>&1 || true")


def test_seccomp_refuses_what_docker_refuses(shell):
    assert shell("grep Seccomp: /proc/self/status") == "Seccomp:\t2\n"
    assert "Operation not permitted" in shell("unshare -U true 2>&1 || true")


@pytest.mark.profiles("root")
def test_limits_are_set(shell):
    # In its own cgroup namespace a container sees itself as the root of each hierarchy.
    read = ("f() { cat /sys/fs/cgroup/$1 /sys/fs/cgroup/$2/$3 2>/dev/null; }; "
            "f memory.max memory memory.limit_in_bytes; f cpu.max cpu cpu.cfs_quota_us; "
            "f pids.max pids pids.max; true")
    out = shell(read, "--memory", "64m", "--cpus", "0.5", "--pids-limit", "17")
    assert [line.split()[0] for line in out.splitlines()] == [str(64 << 20), "50000", "17"]


@pytest.mark.profiles("root")
def test_who_was_killed_for_want_of_memory_is_told(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    eat = "dd if=/dev/zero of=/dev/null bs=64M count=1"
    told = {}
    for name, script in (("itself", "exec " + eat), ("child", eat + "; exit 3"), ("none", "true")):
        berth.run("run", "--name", name, "--memory", "32m", busybox, *SHELL, script)
        told[name] = berth.ok("inspect", "-f", "{{.State.OOMKilled}} {{.State.ExitCode}}", name)
    assert told == {"itself": "true 137\n", "child": "true 3\n", "none": "false 0\n"}
    berth.run("start", "-a", "child")
    berth.run("run", "--name", "killed", "--memory", "32m", busybox, *SHELL, "kill -9 $$")
    assert berth.ok("inspect", "-f", "{{.State.OOMKilled}}", "child", "killed") == "true\nfalse\n"
    events = berth.ok("events", "--since", "1h", "--until", "0s", "--filter", "event=oom",
                      "--format", "{{.Actor.Attributes.name}}")
    assert events.split() == ["itself", "child", "child"]


@pytest.mark.profiles("root")
def test_too_much_memory_ends_the_container(berth, busybox):
    done = berth.run("run", "--rm", "--memory", "32m", busybox, *SHELL,
                     "dd if=/dev/zero of=/dev/null bs=200M count=1; exit $?")
    assert done.returncode == 137


def test_the_first_process_is_number_one_and_sees_no_other(shell):
    assert shell("echo $$; ls -d /proc/[0-9]* | wc -l").split()[0] == "1"
    assert int(shell("ls -d /proc/[0-9]* | wc -l")) <= 3


def test_nothing_of_the_store_is_in_sight(shell, berth):
    assert str(berth.root) not in shell("cat /proc/self/mounts | grep -v ' /etc/'")


@pytest.fixture
def bound():
    """The processor that this process, and what it starts, is bound to, as Slurm and numactl bind a task."""
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        pytest.skip("needs two processors")
    os.sched_setaffinity(0, every[1:2])
    yield str(every[1])
    os.sched_setaffinity(0, every)


PROCESSORS = "grep Cpus_allowed_list /proc/self/status | cut -f 2"


def test_the_binding_of_a_task_is_that_of_its_container(berth, shell, busybox, bound):
    assert shell(PROCESSORS).split() == [bound]
    assert shell(PROCESSORS, "--memory", "64m", "--cpus", "1").split() == [bound]
    berth.ok("run", "--detach", "--name", "ship", busybox, *SHELL, f"{PROCESSORS}; sleep 100")
    assert berth.ok("exec", "ship", *SHELL, PROCESSORS).split() == [bound]
    berth.ok("restart", "--time", "0", "ship")
    wait_until(lambda: berth.ok("logs", "ship").split() == [bound, bound])
    berth.ok("rm", "--force", "ship")


@pytest.mark.profiles("root")
def test_a_cpuset_that_is_asked_for_counts_more_than_a_binding(shell, bound):
    assert shell(PROCESSORS, "--cpuset-cpus", "0").split() == ["0"]
    assert shell(PROCESSORS, "--cpuset-cpus", f"0,{bound}").split() in (["0-1"], [f"0,{bound}"])
