# SPDX-License-Identifier: Apache-2.0
"""What callers of runc and crun count on beside the runtime spec: their flags, variables, messages
and what is where."""

import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from support.oci_fixtures import (bundle, hybrid, kind, mounted_hierarchies, ok,  # noqa: F401
                                  own_user_namespace, place, runtime, start, until)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
HOME = "HOME=/root"


# ---- flags --------------------------------------------------------------------------------------

@pytest.mark.parametrize("where", ["other.json", "deep/other.json", "absolute"])
def test_another_file_is_the_configuration(runtime, bundle, where):
    bundle.args("/bin/echo", "of the other").write()
    path = bundle.directory / ("elsewhere.json" if where == "absolute" else where)
    path.parent.mkdir(exist_ok=True)
    (bundle.directory / "config.json").rename(path)
    word = str(path) if where == "absolute" else where
    assert ok(runtime.call("run", "-b", str(bundle.directory), "--config", word, "c1")) == "of the other\n"
    done = runtime.call("run", "-b", str(bundle.directory), "-f", "missing.json", "c1")
    assert "open 'missing.json': No such file or directory" in done.stderr


@ROOT
def test_exec_goes_by_the_configuration_that_the_container_was_made_from(runtime, bundle):
    bundle.process["env"].append("FROM=other")
    bundle.args("/bin/sleep", "100").write()
    (bundle.directory / "config.json").rename(bundle.directory / "other.json")
    done = runtime.call("run", "-d", "-b", str(bundle.directory), "-f", "other.json", "c1",
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, capture_output=False)
    assert done.returncode == 0
    try:
        assert ok(runtime.call("exec", "c1", "/bin/sh", "-c", "echo $FROM")) == "other\n"
    finally:
        ok(runtime.call("delete", "--force", "c1"))


@pytest.fixture
def three(runtime, bundle):
    """Containers a1, a2 and b1; afterwards none is left."""
    bundle.args("/bin/sleep", "100").write()
    group = bundle.linux["cgroupsPath"]
    for name in ("a1", "a2", "b1"):
        bundle.linux["cgroupsPath"] = f"{group}-{name}"
        bundle.write()
        done = runtime.call("run", "-d", "-b", str(bundle.directory), name, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, capture_output=False)
        assert done.returncode == 0
    yield
    ok(runtime.call("delete", "--force", "--regex", "."))


@ROOT
def test_a_regular_expression_names_several_containers(runtime, three):
    ok(runtime.call("kill", "--regex", "^a", "KILL"))
    until(lambda: runtime.state("a1")["status"] == runtime.state("a2")["status"] == "stopped")
    assert runtime.state("b1")["status"] == "running"
    ok(runtime.call("delete", "-r", "a[12]"))
    assert ok(runtime.call("list", "-q")) == "b1\n"
    assert ok(runtime.call("delete", "-r", "none")) == ""


@ROOT
def test_one_that_cannot_be_deleted_does_not_keep_the_others(runtime, three):
    ok(runtime.call("kill", "-r", "1$", "KILL"))
    until(lambda: runtime.state("a1")["status"] == runtime.state("b1")["status"] == "stopped")
    done = runtime.call("delete", "-r", "[ab]")
    assert done.returncode == 1
    assert done.stderr.startswith("berth-runtime: warning: cannot delete container 'a2': container 'a2' is running")
    assert len(done.stderr.splitlines()) == 1
    assert ok(runtime.call("list", "-q")) == "a2\n"


@pytest.mark.parametrize("verb", ["kill", "delete"])
def test_what_is_no_regular_expression_is_told(runtime, verb):
    done = runtime.call(verb, "--regex", "a[")
    assert done.returncode == 1
    assert done.stderr.startswith("berth-runtime: --regex: 'a[' is not a regular expression: ")


@ROOT
def test_a_capability_that_nobody_knows_is_not_passed_over_when_typed(runtime, bundle, start):
    bundle.args("/bin/sleep", "100")
    start()
    done = runtime.call("exec", "--cap", "CAP_NONE", "c1", "/bin/true")
    assert done.returncode == 255 and "unknown capability 'CAP_NONE'" in done.stderr


def test_the_character_that_an_id_may_not_have_is_named(runtime, bundle):
    bundle.write()
    for name, character, where in ((".a", ".", "at the start of"), ("a b", " ", "in"), ("a:b", ":", "in")):
        done = runtime.call("run", "-b", str(bundle.directory), name)
        assert f"invalid character '{character}' {where} container ID '{name}'" in done.stderr


# ---- variables ----------------------------------------------------------------------------------

def accounts(bundle, *lines):
    (bundle.rootfs / "etc/passwd").write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize("lines, home", [
    (["root:x:0:0::/home/of-root:/bin/sh"], "/home/of-root"), ([], "/root"),
    (["broken", "root:x:0:0"], "/root"), (["root:x:0:0::relative:/bin/sh"], "/root")])
def test_home_is_that_of_the_user_where_the_configuration_has_none(runtime, bundle, lines, home):
    bundle.process["env"].remove(HOME)
    accounts(bundle, *lines)
    assert runtime.out(bundle.shell("echo $HOME")) == home + "\n"


@ROOT
def test_home_of_a_user_without_an_account_is_the_root(runtime, bundle):
    bundle.process["env"].remove(HOME)
    bundle.process["user"] = {"uid": 4321, "gid": 4321}
    assert runtime.out(bundle.shell("echo $HOME")) == "/\n"


@pytest.mark.parametrize("said, home", [("HOME=", "/root"), ("HOME=/else", "/else")])
def test_a_home_that_the_configuration_has_stays_unless_it_is_empty(runtime, bundle, said, home):
    bundle.process["env"].append(said)
    bundle.process["env"].remove(HOME)
    assert runtime.out(bundle.shell("env | grep HOME")) == f"HOME={home}\n"


@ROOT
def test_exec_has_the_home_of_its_own_user(runtime, bundle, start):
    bundle.process["env"].remove(HOME)
    accounts(bundle, "root:x:0:0::/root:/bin/sh", "ada:x:7:7::/home/ada:/bin/sh")
    bundle.args("/bin/sleep", "100")
    start()
    assert ok(runtime.call("exec", "-u", "7:7", "c1", "/bin/sh", "-c", "echo $HOME")) == "/home/ada\n"


@pytest.mark.parametrize("trap", ["fifo", "device", "link out", "huge", "directory", "secret"])
def test_a_passwd_that_is_a_trap_gives_the_default_home(runtime, bundle, place, kind, trap):
    bundle.process["env"].remove(HOME)
    path = bundle.rootfs / "etc/passwd"
    path.unlink()
    host = place / "passwd"
    host.write_text("root:x:0:0::/of-the-host:/bin/sh\n")
    if trap == "fifo":
        os.mkfifo(path)
    elif trap == "device":
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    elif trap == "link out":
        path.symlink_to(f"../../../../../../../..{host}")
    elif trap == "huge":
        path.write_text("root:x:0:0::/huge:/bin/sh\n")
        os.truncate(path, 1 << 40)
    elif trap == "directory":
        path.mkdir()
    else:
        path.write_text("root:x:0:0::/readable:/bin/sh\n")
        path.chmod(0)
    begin = time.monotonic()
    home = runtime.out(bundle.shell("echo $HOME"))
    assert home in ("/root\n", "/readable\n" if trap == "secret" else "/root\n")
    assert time.monotonic() - begin < 10


def test_the_last_value_of_a_variable_counts(runtime, bundle):
    (bundle.rootfs / "own").mkdir()
    (bundle.rootfs / "own/here").symlink_to("/bin/busybox")
    bundle.process["env"] += ["A=1", "B=2", "A=3", "PATH=/own:/bin"]
    bundle.args("env")
    assert runtime.out(bundle).split() == [HOME, "B=2", "A=3", "PATH=/own:/bin"]


@ROOT
def test_exec_gives_a_variable_of_the_container_another_value(runtime, bundle, start):
    bundle.args("/bin/sleep", "100")
    start()
    out = ok(runtime.call("exec", "-e", "HOME=/other", "c1", "/bin/sh", "-c", "env | grep HOME"))
    assert out == "HOME=/other\n"


def activated(runtime, bundle, environment, script):
    """Runs the container with a listening socket as descriptor 3, as a service manager would."""
    bundle.shell(script).write()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        command = runtime.command("run", "-b", str(bundle.directory), "c1")
        shell = f"exec 3<&{server.fileno()}; {environment} exec \"$@\""
        done = subprocess.run(["bash", "-c", shell, "bash", *command], pass_fds=[server.fileno()], text=True,
                              capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


SHOW = "echo $LISTEN_FDS $LISTEN_PID $LISTEN_FDNAMES; readlink /proc/self/fd/3 | grep -o socket"


@pytest.mark.parametrize("environment, seen", [
    ("LISTEN_FDS=1", ["1", "1", "socket"]),
    ("LISTEN_FDS=1 LISTEN_FDNAMES=web", ["1", "1", "web", "socket"]),
    ("LISTEN_FDS=x", []), ("LISTEN_FDS=1 LISTEN_PID=1", [])])
def test_sockets_of_a_service_manager_are_handed_on(runtime, bundle, environment, seen):
    assert activated(runtime, bundle, environment, SHOW + " || :") == seen


def test_what_an_image_says_of_sockets_does_not_count(runtime, bundle):
    bundle.process["env"] += ["LISTEN_FDS=7", "LISTEN_PID=1", "LISTEN_FDNAMES=false"]
    assert activated(runtime, bundle, "LISTEN_FDS=1", SHOW) == ["1", "1", "socket"]


# ---- what is where ------------------------------------------------------------------------------

def test_the_working_directory_is_made_in_a_root_that_is_read_only(runtime, bundle):
    bundle.config["root"]["readonly"] = True
    bundle.process["cwd"] = "/srv/made/here"
    assert runtime.out(bundle.shell("pwd; touch x 2>/dev/null || echo read-only")) == "/srv/made/here\nread-only\n"


@ROOT
def test_a_slash_at_the_end_of_a_device_does_not_matter(runtime, bundle):
    bundle.linux["devices"] = [{"path": "/dev/seven/", "type": "c", "major": 1, "minor": 7}]
    assert runtime.out(bundle.shell("stat -c '%t %T' /dev/seven")) == "1 7\n"


@ROOT
def test_all_v1_hierarchies_are_there(runtime, bundle, hybrid):
    names = sorted({os.path.basename(path) for path in hybrid.values()})
    assert set(runtime.out(bundle.args("/bin/ls", "/sys/fs/cgroup")).split()) >= set(names)
    own = runtime.out(bundle.shell("cat /sys/fs/cgroup/*/cgroup.procs | sort -u"))
    assert "1" in own.split()
    assert runtime.out(bundle.shell("cat /sys/fs/cgroup/memory/memory.usage_in_bytes")).strip().isdigit()


@ROOT
def test_a_process_in_real_time_keeps_the_processors_of_its_caller(runtime, bundle, hybrid):
    bundle.process["scheduler"] = {"policy": "SCHED_RR", "priority": 3}
    out = runtime.out(bundle.shell("ls /sys/fs/cgroup; cut -d' ' -f41 /proc/self/stat"))
    assert out.split()[-1] == "2" and "memory" in out.split()


@ROOT
def test_without_a_view_of_cgroups_a_container_joins_what_it_needs(runtime, bundle, hybrid):
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "cgroup"]
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"] if one["type"] != "cgroup"]
    lines = runtime.out(bundle.args("/bin/cat", "/proc/self/cgroup")).splitlines()
    joined = [line for line in lines if bundle.linux["cgroupsPath"] in line]
    assert [line.split(":")[1] for line in joined] == [""]


def file_as_stream(runtime, bundle, place, number):
    """Whose a file is after a run of user 7 with it as standard input or output."""
    path = place / "stream"
    path.write_text("in\n")
    bundle.process["user"] = {"uid": 7, "gid": 8}
    bundle.args("/bin/cat").write()
    command = runtime.command("run", "-b", str(bundle.directory), "c1")
    with open(path, "r+" if number == 1 else "r", encoding="utf-8") as stream:
        streams = {"stdin": stream, "stdout": subprocess.PIPE} if number == 0 else \
            {"stdin": subprocess.DEVNULL, "stdout": stream}
        subprocess.run(command, check=True, timeout=60, **streams)
    info = path.stat()
    return info.st_uid, info.st_gid


@ROOT
def test_a_file_that_is_written_to_is_given_to_the_containers_user(runtime, bundle, place):
    assert file_as_stream(runtime, bundle, place, 1) == (7, 8)


@ROOT
def test_a_file_that_is_read_keeps_its_owner(runtime, bundle, place):
    assert file_as_stream(runtime, bundle, place, 0) == (0, 0)


# ---- hooks --------------------------------------------------------------------------------------

STAGES = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")


def hooked(place, script, **more):
    path = place / "hook"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"path": str(path), "args": ["hook"], **more}


@pytest.mark.parametrize("env, seen", [(None, "of-the-caller"), ([], ""), (["SAID=own"], "own")])
def test_a_hook_without_variables_has_those_of_the_runtime_and_never_the_containers(runtime, bundle, place, env,
                                                                                    seen):
    log = place / "log"
    more = {} if env is None else {"env": env}
    bundle.process["env"] += ["SAID=of-the-container", "LD_PRELOAD=/evil.so"]
    bundle.config["hooks"] = {stage: [hooked(place, f'echo "$SAID $LD_PRELOAD $(pwd)" >>{log}', **more)]
                              for stage in STAGES}
    bundle.args("/bin/true")
    done = runtime.run(bundle, env={**os.environ, "SAID": "of-the-caller"})
    assert done.returncode == 0, done
    there = [str(bundle.directory)] * len(STAGES)
    there[STAGES.index("createContainer")] = str(bundle.rootfs)
    there[STAGES.index("poststop")] = "/"  # the bundle may be going
    assert [line.split(" ") for line in log.read_text().splitlines()] == [[seen, "", place] for place in there]


def test_a_hook_that_runs_inside_has_the_variables_of_the_program(runtime, bundle):
    bundle.process["env"] = ["PATH=/bin", "ONE=two"]
    bundle.config["hooks"] = {"startContainer": [{"path": "/bin/sh", "args": ["sh", "-c", "env >/seen"]}]}
    runtime.out(bundle.args("/bin/true"), env={**os.environ, "SECRET": "of-the-caller"})
    seen = (bundle.rootfs / "seen").read_text().split()
    assert {"PATH=/bin", "ONE=two", "HOME=/root"} <= set(seen) and "SECRET=of-the-caller" not in seen


def test_a_hook_sees_the_mounts_below_the_bundle(runtime, bundle, place):
    bundle.config["hooks"] = {"createContainer": [hooked(place, f"test -e {bundle.rootfs}/proc/self")]}
    assert runtime.out(bundle.args("/bin/echo", "fine")) == "fine\n"


def test_a_hook_can_add_files_to_the_root_by_relative_names(runtime, bundle, place):
    bundle.config["hooks"] = {"createContainer": [hooked(place, "echo laid >bin/of-the-hook && test -e proc/self")]}
    assert runtime.out(bundle.args("/bin/cat", "/bin/of-the-hook")) == "laid\n"


def test_what_hooks_print_goes_to_the_files_of_the_annotations(runtime, bundle, place):
    files = {name: place / name for name in ("stdout", "stderr")}
    files["stdout"].write_text("before\n")
    bundle.config["annotations"] = {f"run.oci.hooks.{name}": str(path) for name, path in files.items()}
    bundle.config["hooks"] = {"createRuntime": [hooked(place, "echo out; echo err >&2")]}
    runtime.out(bundle.args("/bin/true"))
    assert files["stdout"].read_text() == "before\nout\n" and files["stderr"].read_text() == "err\n"
    assert stat.S_IMODE(files["stderr"].stat().st_mode) == 0o600
    for path in files.values():
        path.unlink()
    # Who takes annotations from images, or makes them of their labels, leaves a mark.
    for mark in ("io.container.manager", "org.opencontainers.image.os"):
        marked = bundle.config["annotations"] | {mark: ""}
        bundle.config["annotations"], unmarked = marked, bundle.config["annotations"]
        runtime.out(bundle.args("/bin/true"))
        assert not any(path.exists() for path in files.values())
        bundle.config["annotations"] = unmarked


@ROOT
def test_an_annotation_gives_nobody_the_groups_of_root_nor_another_cgroup(runtime, bundle):
    bundle.config["annotations"] = {"run.oci.keep_original_groups": "1",
                                    "dev.berth.callers-cgroup": "yes"}
    bundle.config["process"]["user"] = {"uid": 0, "gid": 0, "additionalGids": [7]}
    assert runtime.out(bundle.args("/bin/id", "-G")).split() == ["0", "7"]


@ROOT
def test_a_poststop_hook_that_fails_is_a_warning(runtime, bundle, place):
    bundle.config["hooks"] = {"poststop": [hooked(place, "echo why >&2; exit 3"), hooked(place, "exit 3")]}
    done = runtime.run(bundle.args("/bin/true"))
    line = f"berth-runtime: warning: the poststop hook failed with exit code 3: '{place}/hook'"
    assert done.returncode == 0 and done.stderr == f"{line}; ignoring\n" * 2


# ---- capabilities, clocks, masks ------------------------------------------------------------------

def test_a_user_without_numbers_is_root(runtime, bundle):
    bundle.process["user"] = {}
    assert runtime.out(bundle.shell("id -u; id -g")).split() == ["0", "0"]


@ROOT
def test_exec_adds_an_ambient_capability_that_is_inheritable(runtime, bundle, start):
    sets = bundle.process["capabilities"]
    sets["inheritable"], sets["ambient"] = ["CAP_CHOWN", "CAP_KILL"], ["CAP_CHOWN"]
    bundle.args("/bin/sleep", "100")
    start()
    for words, ambient in (((), "0000000000000001"), (("--cap", "CAP_KILL"), "0000000000000021"),
                           (("--cap", "CAP_SYSLOG"), "0000000000000001")):
        out = ok(runtime.call("exec", *words, "c1", "/bin/grep", "CapAmb", "/proc/self/status"))
        assert out.split() == ["CapAmb:", ambient]


@ROOT
def test_an_ambient_capability_that_cannot_be_is_told(runtime, bundle):
    sets = bundle.process["capabilities"]
    sets["inheritable"], sets["ambient"] = ["CAP_KILL"], ["CAP_KILL", "CAP_CHOWN"]
    done = runtime.run(bundle.args("/bin/grep", "CapAmb", "/proc/self/status"))
    assert done.stdout.split()[1] == "0000000000000020"
    assert done.stderr == ("berth-runtime: warning: process.capabilities.ambient: 'CAP_CHOWN' is not inheritable "
                           "and permitted, ignoring\n")


@ROOT
def test_a_program_that_a_capability_alone_may_execute_is_executed(runtime, bundle):
    (bundle.rootfs / "bin/busybox").chmod(0o744)
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    sets = bundle.process["capabilities"]
    sets["inheritable"] = sets["ambient"] = ["CAP_DAC_OVERRIDE"]
    assert runtime.out(bundle.args("/bin/id", "-u")) == "1000\n"


@ROOT
def test_clocks_are_shifted_in_a_user_namespace_too(runtime, bundle):
    own_user_namespace(bundle)
    bundle.linux["namespaces"].append({"type": "time"})
    bundle.linux["timeOffsets"] = {"monotonic": {"secs": 7881, "nanosecs": 2718281}}
    out = runtime.out(bundle.args("/bin/cat", "/proc/self/timens_offsets"))
    assert out.splitlines()[0].split() == ["monotonic", "7881", "2718281"]


def test_what_is_masked_twice_is_masked_once(runtime, bundle):
    bundle.linux["maskedPaths"] += ["/proc/keys", "/proc//keys/"]
    assert runtime.out(bundle.shell("grep -c ' /proc/keys ' /proc/self/mountinfo")) == "1\n"


# ---- values that contradict ---------------------------------------------------------------------

@pytest.mark.parametrize("value, answer", [("same", 0), ("other", 1)])
def test_a_sysctl_does_not_contradict_the_domain_name(runtime, bundle, value, answer):
    bundle.config["domainname"] = "same"
    bundle.linux["sysctl"] = {"kernel.domainname": value}
    done = runtime.run(bundle.args("/bin/cat", "/proc/sys/kernel/domainname"))
    if answer == 0:
        assert ok(done) == "same\n"
    else:
        assert done.stderr.endswith("linux.sysctl: 'kernel.domainname': domainname says 'same', this says 'other'\n")


@pytest.mark.parametrize("values, line", [
    ({"deadline": 10**6, "period": 10**6}, "runtime: missing for SCHED_DEADLINE"),
    ({"runtime": 10**6}, "deadline: missing for SCHED_DEADLINE"),
    ({"runtime": 2 * 10**6, "deadline": 10**6}, "runtime: 2000000 is more than the deadline, 1000000"),
    ({"runtime": 10**6, "deadline": 3 * 10**6, "period": 2 * 10**6},
     "deadline: 3000000 is more than the period, 2000000"),
    ({"runtime": 1000, "deadline": 10**6}, "runtime: expected 1024 nanoseconds or more, got 1000")])
def test_a_deadline_that_cannot_be_is_told_by_its_member(runtime, bundle, values, line):
    bundle.process["scheduler"] = {"policy": "SCHED_DEADLINE", **values}
    assert runtime.error(bundle).endswith(f"config.json: process.scheduler.{line}")


def test_a_system_call_that_nobody_knows_can_be_an_error(runtime, bundle):
    bundle.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["read", "no_such_call"], "action": "SCMP_ACT_ALLOW"}]}
    runtime.out(bundle.args("/bin/true"))
    bundle.config["annotations"] = {"run.oci.seccomp_fail_unknown_syscall": "1"}
    assert runtime.error(bundle).endswith("linux.seccomp.syscalls[0].names: unknown system call 'no_such_call'")


@ROOT
def test_signal_0_asks_whether_a_container_runs(runtime, bundle, start):
    bundle.args("/bin/sleep", "100")
    start()
    ok(runtime.call("kill", "c1", "0"))
    assert runtime.state()["status"] == "running"
    ok(runtime.call("kill", "c1", "KILL"))
    until(lambda: runtime.state()["status"] == "stopped")
    assert "container not running" in runtime.call("kill", "c1", "0").stderr


@ROOT
def test_exec_has_the_priorities_of_the_configuration(runtime, bundle, start):
    bundle.process["ioPriority"] = {"class": "IOPRIO_CLASS_BE", "priority": 2}
    bundle.process["scheduler"] = {"policy": "SCHED_BATCH", "nice": 5}
    bundle.args("/bin/sleep", "100")
    start()
    assert ok(runtime.call("exec", "c1", "/bin/ionice")) == "best-effort: prio 2\n"
    fields = ok(runtime.call("exec", "c1", "/bin/cat", "/proc/self/stat")).rsplit(")", 1)[1].split()
    assert (int(fields[38]), int(fields[16])) == (3, 5)


@ROOT
def test_an_update_takes_a_burst_back(runtime, bundle, start, hybrid):
    path = Path(hybrid["cpu"] + bundle.linux["cgroupsPath"], "cpu.cfs_burst_us")
    bundle.linux["resources"]["cpu"] = {"quota": 500000, "period": 900000}
    bundle.args("/bin/sleep", "100")
    start()
    for burst in ("300000", "0"):
        ok(runtime.call("update", "--cpu-burst", burst, "c1"))
        assert path.read_text().strip() == burst


@ROOT
def test_a_process_that_was_put_into_one_v1_group_alone_is_ended_too(runtime, bundle, start, hybrid):
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"] if one["type"] != "pid"]
    bundle.args("/bin/sleep", "100")
    start()
    stray = subprocess.Popen(["sleep", "100"])
    try:
        Path(hybrid["pids"] + bundle.linux["cgroupsPath"], "cgroup.procs").write_text(str(stray.pid))
        ok(runtime.call("kill", "c1", "KILL"))
        assert stray.wait(timeout=20) == -signal.SIGKILL
    finally:
        stray.kill()
        stray.wait()


@pytest.mark.parametrize("no_new_privileges", [True, False])
def test_a_hook_that_runs_inside_is_under_the_filter(runtime, bundle, no_new_privileges):
    bundle.process["noNewPrivileges"] = no_new_privileges
    bundle.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 99}]}
    bundle.config["hooks"] = {"startContainer": [{"path": "/bin/mkdir", "args": ["mkdir", "/made"]}]}
    assert "the startContainer hook failed with exit code 1" in runtime.error(bundle.args("/bin/true"))
    assert not (bundle.rootfs / "made").exists()


# ---- frozen by somebody else --------------------------------------------------------------------

@ROOT
@pytest.mark.parametrize("verb", ["kill", "delete"])
def test_a_container_that_somebody_else_has_frozen_is_ended_and_nobody_else_thawed(runtime, bundle, hybrid, place,
                                                                                   verb):
    bundle.args("/bin/sleep", "100").write()
    done = runtime.call("run", "-d", "-b", str(bundle.directory), "c1", stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, capture_output=False)
    assert done.returncode == 0
    frozen = Path(hybrid["freezer"]) / f"frozen-{place.name}"
    frozen.mkdir()
    other = subprocess.Popen(["sleep", "100"])
    try:
        for pid in (runtime.state()["pid"], other.pid):
            (frozen / "cgroup.procs").write_text(str(pid))
        (frozen / "freezer.state").write_text("FROZEN")
        begin = time.monotonic()
        if verb == "kill":
            ok(runtime.call("kill", "c1", "KILL"))
            until(lambda: runtime.state()["status"] == "stopped")
        ok(runtime.call("delete", "--force", "c1"))
        assert time.monotonic() - begin < 5
        assert (frozen / "freezer.state").read_text() == "FROZEN\n"
        assert (frozen / "cgroup.procs").read_text() == f"{other.pid}\n"
    finally:
        (frozen / "freezer.state").write_text("THAWED")
        other.send_signal(signal.SIGKILL)
        other.wait()
        until(lambda: not (frozen / "cgroup.procs").read_text())
        frozen.rmdir()


# ---- a user namespace that root asks for --------------------------------------------------------

@pytest.fixture
def shut(place):
    """A directory that only the host's root may pass."""
    made = place / "shut"
    made.mkdir(mode=0o700)
    return made


@ROOT
@pytest.mark.parametrize("what", ["directory", "file", "socket", "mount below"])
def test_a_source_that_only_the_hosts_root_can_reach_is_mounted(runtime, bundle, shut, what):
    own_user_namespace(bundle)
    source = shut / "source"
    kind_of = {"directory": "directory", "file": "regular file", "socket": "socket", "mount below": "directory"}
    if what == "file":
        source.write_text("text\n")
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(source))
    else:
        source.mkdir()
        (source / "inside").mkdir()
    if what == "mount below":
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", source / "inside"], check=True)
        (source / "inside/mounted").touch()
    try:
        bundle.mount("/given", source, "rbind", "ro")
        seen = runtime.out(bundle.shell("stat -c %F /given; ls /given/inside 2>/dev/null || :"))
        assert seen.splitlines()[0] == kind_of[what]
        assert ("mounted" in seen) == (what == "mount below")
    finally:
        if what == "mount below":
            subprocess.run(["umount", source / "inside"], check=True)


@ROOT
def test_such_a_mount_has_the_attributes_that_were_asked_for(runtime, bundle, shut):
    own_user_namespace(bundle)
    (shut / "source").mkdir(mode=0o777)
    os.chown(shut / "source", 100000, 100000)
    bundle.mount("/given", shut / "source", "bind", "ro", "nosuid", "noexec", "nodev")
    line = runtime.out(bundle.shell("grep ' /given ' /proc/self/mountinfo; touch /given/x 2>/dev/null || echo ro"))
    options = line.split()[5].split(",")
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(options) and line.endswith("ro\n")
    assert "shared:" not in line and os.listdir(shut / "source") == []


@ROOT
def test_a_root_that_only_the_hosts_root_can_reach_is_entered(runtime, bundle, place):
    own_user_namespace(bundle)
    bundle.directory.chmod(0o700)
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "cgroup"]
    assert runtime.out(bundle.shell("id -u; touch /made; ls /")).split()[0] == "0"
    assert (bundle.rootfs / "made").stat().st_uid == 100000


@ROOT
def test_a_device_that_only_the_hosts_root_can_reach_is_bound(runtime, bundle, shut):
    own_user_namespace(bundle)
    os.mknod(shut / "node", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.chmod(shut / "node", 0o666)
    bundle.linux["devices"] = [{"path": "/dev/given", "type": "c", "major": 1, "minor": 3}]
    bundle.config["annotations"] = {"dev.berth.device-source:/dev/given": str(shut / "node")}
    assert runtime.out(bundle.shell("stat -c '%t %T' /dev/given; echo x >/dev/given && echo written")) == \
        "1 3\nwritten\n"


@ROOT
@pytest.mark.parametrize("users", [False, True])
def test_a_ptmx_among_the_devices_opens_terminals_of_the_container(runtime, bundle, users):
    """Engines name it that give a privileged container all devices of the host."""
    if users:
        own_user_namespace(bundle)
    bundle.linux["devices"] = [{"path": "/dev/ptmx", "type": "c", "major": 5, "minor": 2}]
    assert runtime.out(bundle.shell("readlink /dev/ptmx; exec 3<>/dev/ptmx && ls /dev/pts")) == \
        "pts/ptmx\n0\nptmx\n"


@ROOT
def test_what_is_not_there_is_still_told(runtime, bundle, shut):
    own_user_namespace(bundle)
    bundle.mount("/given", shut / "missing", "bind")
    assert "open '" + str(shut / "missing") in runtime.error(bundle)


@ROOT
@pytest.mark.parametrize("space", ["net", "ipc", "uts"])
def test_a_namespace_of_the_host_is_joined_beside_a_new_user_namespace(runtime, bundle, space):
    """Whose owner is not the container's: only the caller can join it."""
    own_user_namespace(bundle)
    flag = {"net": "--net", "ipc": "--ipc", "uts": "--uts"}[space]
    word = {"net": "network"}.get(space, space)
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"] if one["type"] != word]
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] not in ("sysfs", "cgroup",
                                                                                            "mqueue")]
    del bundle.config["hostname"]
    holder = subprocess.Popen(["unshare", flag, "sleep", "100"])
    try:
        path = Path(f"/proc/{holder.pid}/ns/{space}")
        until(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
        bundle.linux["namespaces"].append({"type": word, "path": str(path)})
        wanted, own = os.readlink(path), os.readlink(f"/proc/self/ns/{space}")
        assert wanted != own
        assert runtime.out(bundle.args("/bin/readlink", f"/proc/self/ns/{space}")) == wanted + "\n"
    finally:
        holder.kill()
        holder.wait()


@ROOT
@pytest.mark.parametrize("more", [("pid",), ("pid", "network")])
def test_all_namespaces_of_a_container_with_a_user_namespace_are_joined(runtime, bundle, start, more):
    """The network is the host's, which the user namespace has no rights over: only the caller can join it."""
    own_user_namespace(bundle)
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] not in ("sysfs", "cgroup",
                                                                                            "mqueue")]
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"] if one["type"] != "network"]
    bundle.args("/bin/sleep", "100")
    start()
    first = runtime.state()["pid"]
    own = {"user": "user", "pid": "pid", "network": "net"}
    bundle.linux["namespaces"] = [{"type": "mount"}] + [
        {"type": word, "path": f"/proc/{first}/ns/{own[word]}"} for word in ("user", *more)]
    for member in ("uidMappings", "gidMappings"):
        del bundle.linux[member]
    del bundle.config["hostname"]
    bundle.linux["cgroupsPath"] += "-other"
    bundle.args("/bin/sleep", "1000").write()
    done = runtime.call("run", "-d", "-b", str(bundle.directory), "c2", stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, capture_output=False)
    assert done.returncode == 0
    pid = runtime.state("c2")["pid"]
    try:
        assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"/bin/sleep\x001000\0"
        for word in ("user", *more):
            assert os.readlink(f"/proc/{pid}/ns/{own[word]}") == os.readlink(f"/proc/{first}/ns/{own[word]}")
        out = ok(runtime.call("exec", "c2", "/bin/cat", "/proc/self/uid_map"))
        assert out.split() == ["0", "100000", "65536"]
    finally:
        ok(runtime.call("delete", "--force", "c2"))
    gone = Path(f"/proc/{pid}/stat")  # its parent is the first process of c1, which waits for nobody
    assert not gone.exists() or gone.read_text().rsplit(")", 1)[1].split()[0] == "Z"


@ROOT
def test_settings_of_a_namespace_that_is_the_callers_own_are_refused_beside_a_new_user_namespace(runtime, bundle):
    own_user_namespace(bundle)
    bundle.linux["namespaces"] = [one for one in bundle.linux["namespaces"] if one["type"] != "uts"]
    bundle.linux["namespaces"].append({"type": "uts", "path": "/proc/self/ns/uts"})
    before = socket.gethostname()
    assert runtime.error(bundle).endswith("config.json: hostname: the uts namespace is the one of the caller")
    assert socket.gethostname() == before
