# SPDX-License-Identifier: Apache-2.0
"""What the flags of `berth run` beyond the first ones do to a container."""

import json
import os
import time

import pytest

SHELL = ("sh", "-c")


@pytest.fixture
def shell(berth, busybox):
    """shell(script, flag…) → the output of a script in a container."""
    berth.ok("pull", "--quiet", busybox)

    def run(script, *flags):
        return berth.ok("run", "--rm", *flags, busybox, *SHELL, script)
    return run


def capability_set(shell, name, *flags):
    line = shell(f"grep {name} /proc/self/status", *flags)
    return int(line.split()[1], 16)


def test_capabilities_are_added_and_dropped_by_any_spelling(shell):
    usual = capability_set(shell, "CapBnd")
    assert capability_set(shell, "CapBnd", "--cap-drop", "chown") == usual & ~1
    assert capability_set(shell, "CapEff", "--cap-add", "CAP_SYS_PTRACE") == usual | 1 << 19
    assert capability_set(shell, "CapBnd", "--cap-drop", "ALL") == 0
    assert capability_set(shell, "CapBnd", "--cap-drop", "ALL", "--cap-add", "KILL") == 1 << 5


def test_all_capabilities_are_those_of_the_caller(shell, profile):
    every = capability_set(shell, "CapBnd", "--cap-add", "ALL")
    if profile.name == "root":
        own = next(line for line in open("/proc/self/status") if line.startswith("CapPrm"))
        assert every == int(own.split()[1], 16)
    assert every & 1 << 21  # CAP_SYS_ADMIN, over what is the container's own
    assert capability_set(shell, "CapBnd", "--cap-add", "ALL", "--cap-drop", "SYS_ADMIN") == (
        every & ~(1 << 21))


def test_an_unknown_capability_is_refused_with_the_nearest(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    line = berth.fail("run", "--rm", "--cap-add", "NET_ADMINS", busybox, "true", status=125)
    assert line.startswith("berth: invalid CapAdd: unknown capability: 'NET_ADMINS'")
    assert "NET_ADMIN" in line.partition("try: ")[2]


def test_no_new_privileges_is_set(shell):
    assert shell("grep NoNewPrivs /proc/self/status").split()[1] == "0"
    assert shell("grep NoNewPrivs /proc/self/status", "--security-opt",
                 "no-new-privileges").split()[1] == "1"


def test_a_profile_of_seccomp_is_read_from_a_file_or_there_is_none(shell, work, profile):
    assert shell("grep Seccomp: /proc/self/status").split()[1] == "2"
    assert shell("grep Seccomp: /proc/self/status", "--security-opt",
                 "seccomp=unconfined").split()[1] == "0"
    rules = profile.own(work / "rules") / "no-mkdir.json"
    rules.write_text(json.dumps({
        "defaultAction": "SCMP_ACT_ALLOW",
        "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
                    {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []}],
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO",
                      "excludes": {"caps": ["CAP_SYS_PTRACE"]}}]}))
    option = ("--security-opt", f"seccomp={rules}")
    assert "Operation not permitted" in shell("mkdir /tmp/x 2>&1 || true", *option)
    assert shell("mkdir /tmp/x 2>&1 || true", *option, "--cap-add", "SYS_PTRACE") == ""


def test_a_profile_that_is_none_is_an_error(berth, busybox, work, profile):
    berth.ok("pull", "--quiet", busybox)
    rules = profile.own(work / "rules") / "bad.json"
    rules.write_text("{")
    line = berth.fail("run", "--rm", "--security-opt", f"seccomp={rules}", busybox, "true",
                      status=125)
    assert line.startswith("berth: the seccomp profile: line 1")
    line = berth.fail("run", "--rm", "--security-opt", "seccomp=/no/such", busybox, "true",
                      status=125)
    assert line == ("berth: cannot open the seccomp profile: open '/no/such': "
                    "No such file or directory")


def test_paths_are_hidden_and_shown_as_asked(shell):
    assert shell("wc -c </proc/keys").strip() == "0"
    assert shell("wc -c </proc/keys", "--security-opt", "unmask=/proc/keys").strip() != "0"
    assert shell("wc -c </proc/uptime", "--security-opt", "mask=/proc/uptime").strip() == "0"
    mounts = "grep -c ' /proc/' /proc/mounts || true"
    assert shell(mounts, "--security-opt", "systempaths=unconfined").strip() == "0"


def test_privileged_hides_nothing_and_holds_all(berth, busybox, profile):
    berth.ok("pull", "--quiet", busybox)
    script = ("grep -E 'CapEff|Seccomp:' /proc/self/status; grep -c ' /proc/' /proc/mounts; "
              "mkdir /m && mount -t tmpfs none /m && echo mounted; ls /dev/fuse /dev/loop-control 2>&1")
    done = berth.run("run", "--rm", "--privileged", busybox, *SHELL, script)
    lines = done.stdout.splitlines()
    assert int(lines[0].split()[1], 16) & 1 << 21
    assert lines[1].split()[1] == "0"
    assert lines[2:4] == ["0", "mounted"]
    warning = ("--privileged gives a rootless container what its user has: no rights over the host, and only "
               "the devices that this user may open")
    assert (warning in done.stderr) == (profile.name != "root")
    if profile.name == "root":
        here = [path for path in ("/dev/fuse", "/dev/loop-control") if os.path.exists(path)]
        assert [line for line in lines if line in here] == here


def test_a_device_is_given_by_its_path_with_its_rights(shell, profile):
    assert shell("ls /dev/full2 2>&1 || true").endswith("No such file or directory\n")
    assert shell("ls -l /dev/full2 | cut -c1; echo x >/dev/full2 || true",
                 "--device", "/dev/full:/dev/full2").startswith("c")
    if profile.name == "root":  # device control groups are root's
        out = shell("cat /dev/zero2 2>&1 | head -c 1; true", "--device", "/dev/zero:/dev/zero2:w")
        # The same device has a rule of its own that lets everybody read it.
        assert out == "\0"


def test_what_is_no_device_is_refused_in_docker_s_words(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    fail = lambda device: berth.fail("run", "--rm", "--device", device, busybox, "true",  # noqa: E731
                                     status=125)
    assert fail("/dev/none") == (
        'berth: error gathering device information while adding custom device "/dev/none": '
        "no such file or directory")
    assert fail("/etc/passwd") == (
        'berth: error gathering device information while adding custom device "/etc/passwd": '
        "not a device node")


@pytest.mark.profiles("root")
def test_a_rule_opens_devices_that_the_container_makes(shell):
    script = "mknod /tmp/loop b 7 200 && (head -c 0 /tmp/loop 2>&1; true)"
    assert "Operation not permitted" in shell(script)
    assert "Operation not permitted" not in shell(script, "--device-cgroup-rule", "b 7:* r")


def test_limits_of_processes_are_set(shell):
    assert shell("ulimit -n; ulimit -Hn", "--ulimit", "nofile=100:200") == "100\n200\n"
    assert shell("ulimit -c", "--ulimit", "core=0").strip() == "0"


def test_kernel_parameters_of_its_namespaces_are_set(shell):
    assert shell("cat /proc/sys/net/core/somaxconn /proc/sys/kernel/shmmni",
                 "--sysctl", "net.core.somaxconn=77",
                 "--sysctl", "kernel.shmmni=99") == "77\n99\n"


def test_a_parameter_of_the_host_is_refused(berth, busybox):
    line = berth.fail("run", "--rm", "--sysctl", "vm.swappiness=1", busybox, "true", status=125)
    assert "sysctl 'vm.swappiness=1' is not allowed" in line
    line = berth.fail("run", "--rm", "--network", "host", "--sysctl", "net.core.somaxconn=7",
                      busybox, "true", status=125)
    assert line == "berth: sysctl 'net.core.somaxconn' is not allowed in the network of the host"


def test_names_and_servers_are_added_to_its_files(shell):
    assert shell("grep -w db /etc/hosts", "--add-host", "db:10.0.0.9") == "10.0.0.9\tdb\n"
    out = shell("cat /etc/resolv.conf", "--dns", "10.0.0.2", "--dns-search", "example.org",
                "--dns-option", "ndots:1")
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    assert lines == ["search example.org", "nameserver 10.0.0.2", "options ndots:1"]


def test_the_domain_name_is_set(shell):
    out = shell("cat /proc/sys/kernel/domainname; grep box /etc/hosts", "--hostname", "box",
                "--domainname", "example.org")
    assert out == "example.org\n127.0.1.1\tbox.example.org box\n"


def test_namespaces_of_the_host_are_shared_when_asked(shell):
    for flag, name in (("pid", "pid"), ("ipc", "ipc"), ("uts", "uts"), ("cgroupns", "cgroup")):
        inside = shell(f"readlink /proc/self/ns/{name}", f"--{flag}", "host").strip()
        assert inside == os.readlink(f"/proc/self/ns/{name}"), flag
    assert shell("hostname", "--uts", "host").strip() == os.uname().nodename
    assert int(shell("ls -d /proc/[0-9]* | wc -l", "--pid", "host")) > 5


def test_without_ipc_there_is_no_shared_memory(shell):
    assert "No such file" in shell("ls /dev/shm 2>&1; true", "--ipc", "none")


def test_namespaces_of_another_container_are_joined(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "-d", "--name", "first", "--hostname", "one", busybox, "sleep", "100")
    try:
        names = "for n in pid ipc uts net cgroup; do readlink /proc/self/ns/$n; done"
        own = berth.ok("run", "--rm", busybox, *SHELL, names)
        joined = berth.ok("run", "--rm", "--pid", "container:first", "--ipc", "container:first",
                          "--uts", "container:first", "--network", "container:first",
                          "--cgroupns", "container:first", busybox, *SHELL, names)
        for flag in ("--pid", "--uts"):  # an ordinary user is in the other's user namespace then
            berth.ok("run", "--rm", flag, "container:first", busybox, "true")
        assert not set(own.splitlines()) & set(joined.splitlines())
        again = berth.ok("run", "--rm", "--network", "container:first", "--pid", "container:first",
                         busybox, *SHELL, "readlink /proc/self/ns/net; cat /etc/hostname; ps")
        assert again.splitlines()[0] == joined.splitlines()[3]
        assert again.splitlines()[1] == "one"
        assert "sleep 100" in again
    finally:
        berth.ok("rm", "-f", "first")
    line = berth.fail("run", "--rm", "--pid", "container:first", busybox, "true", status=125)
    assert line == "berth: no such container: first; try: berth ps --all"


def test_shared_memory_comes_with_the_ipc_namespace(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    join = ("run", "--rm", "--ipc", "container:first", busybox, *SHELL)
    berth.ok("run", "-d", "--name", "first", "--ipc", "shareable", "--shm-size", "1m", busybox,
             *SHELL, "echo of first > /dev/shm/said; sleep 100")
    try:
        assert berth.ok(*join, "cat /dev/shm/said; echo of second > /dev/shm/said; "
                        "grep /dev/shm /proc/mounts").startswith("of first\nshm /dev/shm tmpfs ")
        assert berth.ok("exec", "first", "cat", "/dev/shm/said") == "of second\n"
        # A link of the other container leads to nothing but its own files.
        berth.ok("rm", "-f", "first")
        berth.ok("run", "-d", "--name", "first", "--ipc", "none", busybox, *SHELL,
                 "rm -rf /dev/shm; ln -s /etc /dev/shm; sleep 100")
        assert berth.ok(*join, "ls -A /dev/shm") == ""
    finally:
        berth.ok("rm", "-f", "first")


def test_who_joins_another_container_is_created_and_started_beside_it(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    names = "for n in pid ipc uts net cgroup; do readlink /proc/self/ns/$n; done"
    berth.ok("run", "-d", "--name", "first", busybox, *SHELL, names + "; echo; sleep 100")

    def said(of):
        end = time.monotonic() + 10
        while berth.ok("logs", "first").count("\n\n") < of:
            assert time.monotonic() < end
            time.sleep(0.02)
        return berth.ok("logs", "first").split("\n\n")[of - 1] + "\n"
    try:
        berth.ok("create", "--name", "second", "--pid", "container:first", "--ipc",
                 "container:first", "--uts", "container:first", "--network", "container:first",
                 "--cgroupns", "container:first", busybox, *SHELL, names)
        first = said(1)
        assert berth.ok("start", "-a", "second") == first
        berth.ok("restart", "second")
        assert berth.ok("wait", "second") == "0\n"
        assert berth.ok("logs", "second") == first * 2
        berth.ok("restart", "-t", "0", "first")
        again = said(2)
        assert berth.ok("start", "-a", "second") == again
        berth.ok("stop", "-t", "0", "first")
        line = berth.fail("start", "second", status=1)
        id_of_first = berth.ok("ps", "-aq", "--filter", "name=first").strip()
        assert line == ("berth: cannot join the pid namespace of a non running container: "
                        f"{id_of_first}")
    finally:
        berth.ok("rm", "-f", "first", "second")


def test_contradictions_are_refused_in_docker_s_words(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    for flags, said in (
            (("--uts", "host", "--hostname", "a"),
             "conflicting options: hostname and the UTS mode"),
            (("--restart", "always", "--rm"), "Conflicting options: --restart and --rm"),
            (("--no-healthcheck", "--health-cmd", "true"),
             "--no-healthcheck conflicts with --health-* options"),
            (("-d", "-a", "stdout"), "Conflicting options: -a and -d"),
            (("--memory-swap", "1g"), "You should always set the Memory limit when using "
                                      "Memoryswap limit, see usage")):
        assert berth.fail("run", *flags, busybox, "true", status=125) == "berth: " + said


def test_groups_are_added_by_name_and_number(shell, berth, busybox, profile):
    if profile.kind != "single_id":
        out = shell("id -G", "--group-add", "crew", "--group-add", "1234")
        assert set(out.split()) >= {"2000", "1234"}
    line = berth.fail("run", "--rm", "--group-add", "no-such", busybox, "true", status=125)
    assert line == "berth: Unable to find group no-such"


def test_the_id_is_written_once_and_never_over_a_file(berth, busybox, work, profile):
    berth.ok("pull", "--quiet", busybox)
    path = profile.own(work / "ids") / "cid"
    berth.ok("run", "--name", "c1", "--cidfile", path, busybox, "true")
    written = path.read_text()
    assert len(written) == 64
    line = berth.fail("run", "--rm", "--cidfile", path, busybox, "true", status=125)
    assert line == ("berth: container ID file found, make sure the other container isn't running "
                    f"or delete {path}")
    assert path.read_text() == written
    path.unlink()
    # Of a start that failed nothing stays.
    berth.fail("run", "--rm", "--cidfile", path, "--user", "nobody-here", busybox, "true",
               status=125)
    assert not path.exists()


def test_the_score_for_the_killer_is_set(shell):
    assert shell("cat /proc/self/oom_score_adj", "--oom-score-adj", "700").strip() == "700"


def test_flags_of_others_are_refused_with_what_to_type(berth, busybox):
    for flag, said in (
            ("--link=db:db", "unknown flag '--link': containers of a network find each other by "
                             "name; try: berth network create app, and --network app for both"),
            ("--link-local-ip=a", "unknown flag '--link-local-ip': networks assign addresses "
                                  "themselves"),
            ("--volume-driver=nfs", "unknown flag '--volume-driver': volumes are in the store, and there are no "
                                    "plugins")):
        assert berth.fail("run", flag, busybox, "true", status=125) == "berth: " + said
