# SPDX-License-Identifier: Apache-2.0
"""exec: one more process in a container."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from support.bundle import Runtime
from support.oci_fixtures import (bundle, kind, mounted_hierarchies, ok, place,  # noqa: F401
                                  runtime, start, until)
from support.socket_fd import receive_fd

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)

SPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts", "time", "user")


@pytest.fixture
def running(runtime, bundle, start):
    bundle.args("/bin/sleep", "1000")
    start()
    return bundle


def execute(runtime, *words, **options):
    return runtime.call("exec", *words, **options)


def shell(runtime, script, *flags):
    return ok(execute(runtime, *flags, "c1", "/bin/sh", "-c", script))


def failed(done):
    """The one error line of an exec that fails, without the program's name."""
    assert (done.returncode, done.stdout) == (255, ""), done
    assert done.stderr.count("\n") == 1, done
    return done.stderr.removeprefix("berth-runtime: ").rstrip("\n")


def document(place, **changes):
    path = place / "process.json"
    path.write_text(json.dumps({"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/true"],
                                "env": ["PATH=/bin"], **changes}))
    return str(path)


def sleeping(runtime, other_than):
    """The pid of a `sleep 1000` of the container that is not `other_than`, or None."""
    for pid in json.loads(ok(runtime.call("ps", "-f", "json", "c1"))):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if pid != other_than and command == b"/bin/sleep\0001000\0":
                return pid
    return None


def test_is_in_every_namespace_and_cgroup_of_the_container(runtime, running):
    # The namespaces of pid 1 are shown as long as one has its rights.
    script = f"for s in {' '.join(SPACES)}; do readlink /proc/self/ns/$s; done"
    first = f"/proc/{runtime.state()['pid']}"
    assert shell(runtime, script).split() == [os.readlink(f"{first}/ns/{s}") for s in SPACES]
    assert "/bin/sleep 1000" in shell(runtime, "ps")
    done = subprocess.Popen(runtime.command("exec", "c1", "/bin/sleep", "1000"))
    # Before exec's own processes have ended, ps may show them too.
    new = until(lambda: sleeping(runtime, other_than=runtime.state()["pid"]))
    assert Path(f"/proc/{new}/cgroup").read_text() == Path(f"{first}/cgroup").read_text()
    os.kill(new, signal.SIGKILL)
    assert done.wait(timeout=20) == 137


def test_has_what_the_flags_change_and_else_what_the_container_has(runtime, running):
    assert shell(runtime, "id; pwd; echo $A $HOME; ulimit -n; umask; grep -E 'NoNew|CapEff' "
                 "/proc/self/status", "-e", "A=b c", "--cwd", "/tmp", "-g", "7", "-g", "8") == (
        "uid=0(root) gid=0 groups=7,8\n/tmp\nb c /root\n1024\n0022\n"
        "CapEff:\t00000000a80425fb\nNoNewPrivs:\t1\n")
    assert shell(runtime, "id", "-u", "5") == "uid=5 gid=0\n"
    assert shell(runtime, "id", "--user", "5:6") == "uid=5 gid=6\n"


def test_adds_capabilities_but_none_that_are_inherited(runtime, running):
    status = shell(runtime, "grep Cap /proc/self/status", "-c", "CAP_NET_ADMIN", "--cap",
                   "CAP_SYS_ADMIN")
    sets = dict(line.split(":\t") for line in status.splitlines())
    added = 1 << 12 | 1 << 21
    assert int(sets["CapInh"], 16) == int(sets["CapAmb"], 16) == 0
    for name in ("CapBnd", "CapPrm", "CapEff"):
        assert int(sets[name], 16) == 0xa80425fb | added


def test_runs_a_process_document(runtime, running, place):
    path = document(place, args=["/bin/sh", "-c", "id; pwd; echo $X$HOME; grep CapEff "
                                 "/proc/self/status; ulimit -n"],
                    user={"uid": 3, "gid": 4, "additionalGids": [9]}, env=["X=y", "PATH=/bin"],
                    cwd="/etc", capabilities={"bounding": ["CAP_KILL"]})
    assert ok(execute(runtime, "--process", path, "c1")) == (
        "uid=3 gid=4 groups=9\n/etc\ny/\nCapEff:\t0000000000000000\n1024\n")


def test_is_as_likely_to_be_killed_for_memory_as_the_container(runtime, bundle, start, place):
    """The caller may be a daemon that is spared."""
    bundle.process["oomScoreAdj"] = 345
    bundle.args("/bin/sleep", "1000")
    start()
    score = ("/bin/cat", "/proc/self/oom_score_adj")
    assert ok(execute(runtime, "c1", *score)) == "345\n"
    assert ok(execute(runtime, "-p", document(place, args=score), "c1")) == "345\n"
    assert ok(execute(runtime, "-p", document(place, args=score, oomScoreAdj=346), "c1")) == "346\n"


def test_gives_the_exit_status_of_the_process(runtime, running):
    assert execute(runtime, "c1", "/bin/sh", "-c", "exit 3").returncode == 3
    assert execute(runtime, "c1", "/bin/sh", "-c", "kill -9 $$").returncode == 137


@pytest.mark.parametrize("words, line", [
    (("c1", "nosuch"), "execute 'nosuch': executable file not found in $PATH"),
    (("c1", "/nosuch"), "execute '/nosuch': No such file or directory"),
    (("c1", "/tmp"), "execute directory '/tmp': Permission denied"),
    (("c1", "/etc/passwd"), "execute '/etc/passwd': Permission denied"),
    (("c1",), "config.json: process.args: empty"),
    (("--cwd", "tmp", "c1", "true"),
     "config.json: process.cwd: expected an absolute path, got 'tmp'"),
    (("--cgroup", "nosuch", "c1", "true"), None),
    (("-t", "-d", "c1", "true"), "cannot allocate tty if it will detach without setting console "
                                 "socket; try: --console-socket PATH"),
    (("--console-socket", "/x", "c1", "true"),
     "cannot use console socket if it will not detach or allocate tty"),
])
def test_says_why_it_cannot(runtime, running, words, line):
    got = failed(execute(runtime, *words))
    if line is None:
        assert got.startswith("cannot exec in container 'c1': cannot open cgroup 'nosuch': open "
                              "'/sys/fs/cgroup/")
        assert got.endswith("/nosuch': No such file or directory")
    else:
        assert got == "cannot exec in container 'c1': " + line


@pytest.mark.parametrize("user", ["1000x", "", "-1", "4294967295", "4294967296", "1:", ":1",
                                  "0x10", " 1", "root", "1:2:3"])
def test_a_user_is_two_whole_numbers_or_an_error(runtime, running, user):
    assert failed(execute(runtime, f"--user={user}", "c1", "id")) == (
        f"invalid value '{user}' for '--user': expected a number up to 4294967294; see "
        "'berth-runtime exec --help'")


def test_needs_a_container_that_runs(runtime, bundle, start):
    bundle.args("/bin/true")
    start()
    until(lambda: runtime.state()["status"] == "stopped")
    assert failed(execute(runtime, "c1", "true")) == (
        "cannot exec in container 'c1': container not running: 'c1'")
    assert failed(execute(runtime, "nosuch", "true")) == (
        "cannot exec in container 'nosuch': container 'nosuch' does not exist")


def test_needs_one_that_is_not_paused(runtime, running):
    ok(runtime.call("pause", "c1"))
    assert failed(execute(runtime, "c1", "true")) == (
        "cannot exec in container 'c1': container 'c1' is paused; try: berth-runtime resume c1")
    ok(runtime.call("resume", "c1"))
    ok(execute(runtime, "c1", "true"))


def test_works_before_the_container_has_been_started(runtime, bundle):
    bundle.args("/bin/sleep", "1000").write()
    with open("/dev/null", "wb") as null:
        subprocess.run(runtime.command("create", "-b", str(bundle.directory), "c1"), stdout=null,
                       stderr=null, check=True, timeout=20)
    assert "berth-runtime" in shell(runtime, "ps")
    ok(runtime.call("delete", "--force", "c1"))


def test_leaves_a_detached_process_to_itself(runtime, running, place):
    with open("/dev/null", "wb") as null:
        subprocess.run(runtime.command("exec", "-d", "--pid-file", str(place / "pid"), "c1",
                                       "/bin/sleep", "1000"), stdout=null, stderr=null, check=True,
                       timeout=20)
    pid = int((place / "pid").read_text())
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"/bin/sleep\x001000\x00"
    os.kill(pid, signal.SIGKILL)


def test_gives_a_terminal(runtime, running, place):
    # Through script(1) there is a terminal on our side; here the relay of a pipe is enough.
    done = execute(runtime, "-t", "c1", "/bin/sh", "-c", "tty; test -t 0 && echo terminal; exit 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "/dev/pts/0\nterminal\n", "")


def test_hands_terminal_and_pidfd_over(runtime, running, place):
    with socket.socket(socket.AF_UNIX) as console, socket.socket(socket.AF_UNIX) as pidfds:
        for listener, name in ((console, "console"), (pidfds, "pidfd")):
            listener.bind(str(place / name))
            listener.listen(1)
        ok(execute(runtime, "-d", "-t", "--console-socket", str(place / "console"),
                   "--pidfd-socket", str(place / "pidfd"), "--pid-file", str(place / "pid"), "c1",
                   "/bin/sh", "-c", "echo here; read x"))
        received = []
        for listener in (console, pidfds):
            connection, _ = listener.accept()
            with connection:
                received.append(receive_fd(connection))
    master, pidfd = received
    text = b""
    while not text.endswith(b"\n"):
        text += os.read(master, 100)
    assert text == b"here\r\n"
    info = Path(f"/proc/self/fdinfo/{pidfd}").read_text()
    assert f"Pid:\t{(place / 'pid').read_text()}\n" in info
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(master)
    os.close(pidfd)


def test_is_filtered_as_the_container_is(runtime, bundle, start):
    bundle.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}
    bundle.args("/bin/sleep", "1000")
    start()
    done = execute(runtime, "c1", "mkdir", "/x")
    assert (done.returncode, done.stderr) == (
        1, "mkdir: can't create directory '/x': Operation not supported\n")


def test_passes_signals_on(runtime, running):
    process = subprocess.Popen(
        runtime.command("exec", "c1", "/bin/sh", "-c",
                        "trap 'echo usr1; exit 6' USR1; echo ready; while :; do sleep 0.05; done"),
        stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=20)[0] == "usr1\n" and process.returncode == 6


def test_a_killed_runtime_takes_its_process_along(runtime, running):
    process = subprocess.Popen(runtime.command("exec", "c1", "/bin/sleep", "1000"))
    members = lambda: json.loads(ok(runtime.call("ps", "-f", "json", "c1")))  # noqa: E731
    until(lambda: len(members()) == 2)
    process.kill()
    process.wait()
    until(lambda: len(members()) == 1)
    assert runtime.state()["status"] == "running"


@pytest.mark.parametrize("flags", [(), ("--detach",)], ids=str)
def test_leaves_nothing_whenever_it_is_killed(runtime, running, flags):
    first = runtime.state()["pid"]
    command = runtime.command("exec", *flags, "c1", "/bin/sleep", "0.1")
    for delay in range(0, 20):
        killed = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        time.sleep(delay / 1000)
        killed.kill()
        killed.wait()
        until(lambda: json.loads(ok(runtime.call("ps", "-f", "json", "c1"))) == [first])
    shell(runtime, "true")


def test_goes_below_the_cgroup_of_the_container(runtime, running, bundle):
    def is_below(processes):
        """The one that is there; others of the start come and go."""
        line = f"0::{bundle.linux['cgroupsPath']}/below\n"
        for process in processes:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                if line in Path(f"/proc/{process}/cgroup").read_text() and words[0] == b"/bin/sleep":
                    return process
        return None
    for mount in {mount for name, mount in mounted_hierarchies().items()}:
        directory = Path(mount + bundle.linux["cgroupsPath"])
        if directory.exists():
            (directory / "below").mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):  # a new one of v1 has none
            if (directory / name).exists() and (directory / "cgroup.clone_children").exists():
                (directory / "below" / name).write_text((directory / name).read_text())
    process = subprocess.Popen(runtime.command("exec", "--cgroup", "below", "c1", "/bin/sleep",
                                               "1000"))
    new = until(lambda: is_below(json.loads(ok(runtime.call("ps", "-f", "json", "c1")))))
    os.kill(new, signal.SIGKILL)
    process.wait(timeout=20)


def test_follows_the_first_process_where_the_top_cgroup_takes_none(runtime, running, bundle):
    """A container that has handed controllers to its own groups, as systemd does."""
    top = Path(mounted_hierarchies()["unified"] + bundle.linux["cgroupsPath"])
    (top / "init").mkdir()
    (top / "init/cgroup.procs").write_text(str(runtime.state()["pid"]))
    available = (top.parent / "cgroup.controllers").read_text().split()
    if not available:
        pytest.skip("no controller in the v2 hierarchy")
    for directory in (top.parent, top):
        (directory / "cgroup.subtree_control").write_text("+" + available[0])
    assert shell(runtime, "grep ^0:: /proc/self/cgroup") == "0::/init\n"


def test_starts_on_the_first_processors_and_goes_on_the_last(runtime, running, place):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    affinity = {"initial": "0", "final": "1"}
    path = document(place, args=["/bin/grep", "Cpus_allowed_list", "/proc/self/status"],
                    execCPUAffinity=affinity)
    assert ok(execute(runtime, "-p", path, "c1")) == "Cpus_allowed_list:\t1\n"
    path = document(place, execCPUAffinity={"initial": "0-"})
    assert failed(execute(runtime, "-p", path, "c1")) == (
        "cannot exec in container 'c1': config.json: process.execCPUAffinity.initial: expected a "
        "list such as '0-3,7', got '0-'")


def test_an_ordinary_user_joins_a_user_namespace_that_only_the_container_is_in(kind, place,
                                                                                bundle):
    """The pid namespace belongs to the user namespace of the container: nobody can be born into it
    from outside."""
    uid = 65533
    state = place / "state"
    state.mkdir()
    subprocess.run(["chown", "-R", f"{uid}:{uid}", str(state), str(bundle.rootfs)], check=True)
    bundle.linux["namespaces"] = [{"type": name} for name in ("user", "pid", "mount", "ipc", "uts")]
    for member in ("uidMappings", "gidMappings"):
        bundle.linux[member] = [{"containerID": 0, "hostID": uid, "size": 1}]
    bundle.config["mounts"] = [bundle.config["mounts"][0]]
    del bundle.linux["resources"]
    bundle.args("/bin/sleep", "1000").write()
    runtime = Runtime(state)
    who = {"user": uid, "group": uid, "extra_groups": [], "timeout": 20, "check": False}
    with open(place / "out", "w+", encoding="utf-8") as out:
        done = subprocess.run(runtime.command("run", "-d", "-b", str(bundle.directory), "c1"),
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out, **who)
    assert done.returncode == 0, (place / "out").read_text()
    try:
        script = "id -u; head -c 10 /proc/1/cmdline; echo; readlink /proc/self/ns/user; exit 9"
        done = subprocess.run(runtime.command("exec", "c1", "/bin/sh", "-c", script),
                              capture_output=True, text=True, **who)
        pid = json.loads(subprocess.run(runtime.command("state", "c1"), capture_output=True,
                                        text=True, **who).stdout)["pid"]
        space = os.readlink(f"/proc/{pid}/ns/user")
        assert (done.returncode, done.stdout, done.stderr) == (9, f"0\n/bin/sleep\n{space}\n", "")
    finally:
        assert subprocess.run(runtime.command("delete", "-f", "c1"), **who).returncode == 0
