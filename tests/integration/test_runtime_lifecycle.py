# SPDX-License-Identifier: Apache-2.0
"""create, start, state, kill, delete and list; hooks; terminals; and what is left when somebody is
killed half-way (nothing, says the fixture)."""

import json
import os
import pty
import signal
import socket
import subprocess
import time

import pytest

from support.bundle import Runtime
from support.oci_fixtures import (bundle, kind, ok, place, processes, runtime,  # noqa: F401
                                  until)
from support.socket_fd import receive_fd


@pytest.fixture
def create(runtime, bundle):
    """Creates c1 and takes it away at the end."""
    def call(*flags):
        bundle.write()
        # Not by pipes: the container keeps them.
        with open(bundle.directory / "out", "w+", encoding="utf-8") as out:
            done = subprocess.run(runtime.command("create", "-b", str(bundle.directory), *flags,
                                                  "c1"), stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=out, timeout=60, check=False)
        assert done.returncode == 0, (bundle.directory / "out").read_text()

    yield call
    ok(runtime.call("delete", "--force", "c1"))


def output(bundle):
    return (bundle.directory / "out").read_text()


pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)


def test_goes_from_created_to_running_to_stopped(runtime, bundle, create):
    bundle.shell("echo started; while ! test -e /stop; do sleep 0.05; done")
    create("--pid-file", str(bundle.directory / "pid"))
    state = runtime.state()
    assert state["status"] == "created" and state["id"] == "c1"
    assert state["bundle"] == str(bundle.directory)
    assert state["pid"] == int((bundle.directory / "pid").read_text())
    assert output(bundle) == ""
    ok(runtime.call("start", "c1"))
    assert runtime.state()["status"] == "running"
    until(lambda: output(bundle) == "started\n")
    (bundle.rootfs / "stop").write_text("")
    until(lambda: runtime.state()["status"] == "stopped")
    assert runtime.state()["pid"] == 0
    ok(runtime.call("delete", "c1"))
    assert runtime.call("state", "c1").stderr == "berth-runtime: container 'c1' does not exist\n"


def test_lists_what_there_is(runtime, bundle, create):
    assert ok(runtime.call("list", "-q")) == ""
    create()
    assert ok(runtime.call("list", "-q")) == "c1\n"
    listed = json.loads(ok(runtime.call("list", "--format", "json")))
    assert [(one["id"], one["status"], one["owner"]) for one in listed] == [("c1", "created", "0")]
    titles, row = ok(runtime.call("list")).splitlines()
    assert titles.split() == ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"]
    assert row.index("created") == titles.index("STATUS") and row.startswith("c1   ")


def test_refuses_what_the_state_does_not_allow(runtime, bundle, create):
    bundle.args("/bin/sleep", "100")
    create()
    done = runtime.call("create", "-b", str(bundle.directory), "c1")
    assert done.stderr == ("berth-runtime: cannot create container 'c1': container 'c1' already "
                           "exists; try: berth-runtime delete c1\n")
    ok(runtime.call("start", "c1"))
    assert runtime.call("start", "c1").stderr == (
        "berth-runtime: cannot start container 'c1': container 'c1' is running, not created\n")
    assert runtime.call("delete", "c1").stderr == (
        "berth-runtime: cannot delete container 'c1': container 'c1' is running, not stopped; try: "
        "berth-runtime kill c1 KILL, or delete --force c1\n")
    ok(runtime.call("kill", "c1", "KILL"))
    until(lambda: runtime.state()["status"] == "stopped")
    assert runtime.call("kill", "c1").stderr == "berth-runtime: container not running: 'c1'\n"
    assert runtime.call("kill", "c1", "MOON").stderr == "berth-runtime: unknown signal 'MOON'\n"


def test_sends_signals(runtime, bundle, create):
    bundle.shell("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done")
    create()
    ok(runtime.call("start", "c1"))
    until(lambda: output(bundle) == "ready\n")
    ok(runtime.call("kill", "c1", "SIGUSR1"))
    until(lambda: output(bundle) == "ready\nusr1\n")
    ok(runtime.call("kill", "--all", "c1", "9"))
    until(lambda: runtime.state()["status"] == "stopped")


def test_keeps_a_state_of_many_pages(runtime, bundle, create):
    bundle.config["annotations"] = {"long": "x" * 20000}
    bundle.args("/bin/sleep", "1000")
    create()
    ok(runtime.call("start", "c1"))
    state = runtime.state()
    assert state["status"] == "running" and state["annotations"] == {"long": "x" * 20000}
    assert os.listdir(runtime.root / "c1") == ["state.json"]


def test_deletes_a_created_container(runtime, bundle, create):
    create()
    ok(runtime.call("delete", "c1"))
    assert ok(runtime.call("list", "-q")) == ""


def test_tells_at_create_that_the_command_is_missing(runtime, bundle):
    bundle.args("nosuch").write()
    done = runtime.call("create", "-b", str(bundle.directory), "c1")
    assert (done.returncode, done.stderr) == (1, (
        "berth-runtime: cannot create container 'c1': execute 'nosuch': executable file not found "
        "in $PATH\n"))


def test_tells_at_start_that_the_program_cannot_run(runtime, bundle, create):
    (bundle.rootfs / "bin/broken").write_bytes(b"\x7fELF nothing")
    (bundle.rootfs / "bin/broken").chmod(0o755)
    bundle.args("/bin/broken")
    create()
    assert runtime.call("start", "c1").stderr == (
        "berth-runtime: cannot start container 'c1': execute '/bin/broken': Exec format error\n")


def hook(place, name, body, **more):
    path = place / f"hook-{name}"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [{"path": str(path), "args": [name], **more}]


def test_runs_hooks_in_the_order_of_the_spec_with_their_own_environment(runtime, bundle, place,
                                                                        create):
    log = place / "log"
    log.write_text("")
    note = (f"echo \"$0 $(cat | tr -d ' \\n' | sed 's/.*\"status\":\"\\([a-z]*\\)\".*/\\1/') "
            f"$(env | grep -v '^PWD=\\|^_=\\|^SHLVL=' | tr '\\n' ' ')$(pwd)\" >> {log}")
    stages = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")
    bundle.config["hooks"] = {stage: hook(place, stage, note, env=["K=v"]) for stage in stages}
    bundle.config["hooks"]["startContainer"] = [
        {"path": "/bin/sh", "args": ["sh", "-c", "echo startContainer > /started"]}]
    bundle.mount("/hooklog", place, "bind")
    bundle.args("/bin/true")
    os.environ["LEAK"] = "1"
    try:
        create()
        assert not (bundle.rootfs / "started").exists()
        ok(runtime.call("start", "c1"))
        until(lambda: runtime.state()["status"] == "stopped")
        ok(runtime.call("delete", "c1"))
    finally:
        del os.environ["LEAK"]
    assert (bundle.rootfs / "started").read_text() == "startContainer\n"
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [line[0].rsplit("-")[-1] for line in lines] == list(stages)
    assert [line[1] for line in lines] == ["creating", "creating", "creating", "running",
                                          "stopped"]
    there = [str(bundle.directory)] * len(stages)
    there[stages.index("createContainer")], there[stages.index("poststop")] = str(bundle.rootfs), "/"
    assert [line[2:] for line in lines] == [["K=v", directory] for directory in there], lines


@pytest.mark.parametrize("signal", ["TERM", "INT", "HUP", "QUIT"])
def test_a_container_that_waits_for_its_start_is_ended_by_a_signal(runtime, bundle, create, signal):
    create()
    ok(runtime.call("kill", "c1", signal))
    until(lambda: runtime.state()["status"] == "stopped")


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer"])
def test_ends_a_container_whose_hook_fails(runtime, bundle, place, stage):
    bundle.config["hooks"] = {stage: hook(place, stage, "echo no >&2; exit 3")}
    assert runtime.error(bundle) == (f"cannot run container 'c1': the {stage} hook failed with "
                                     f"exit code 3: '{place}/hook-{stage}': no")


def test_ends_a_hook_that_takes_too_long(runtime, bundle, place):
    bundle.config["hooks"] = {"createRuntime": hook(place, "slow", "exec sleep 60", timeout=1)}
    assert runtime.error(bundle) == (
        "cannot run container 'c1': cannot run the createRuntime hook: run "
        f"'{place}/hook-slow': no end within 1000 ms")


def test_stops_a_container_whose_poststart_hook_fails(runtime, bundle, place, create):
    bundle.config["hooks"] = {"poststart": hook(place, "poststart", "exit 1")}
    bundle.args("/bin/sleep", "100")
    create()
    assert runtime.call("start", "c1").stderr == (
        "berth-runtime: cannot start container 'c1': the poststart hook failed with exit code "
        f"1: '{place}/hook-poststart'\n")
    assert ok(runtime.call("list", "-q")) == ""


def test_hands_the_terminal_to_the_console_socket(runtime, bundle, place, create):
    bundle.process["terminal"] = True
    bundle.process["consoleSize"] = {"height": 33, "width": 77}
    bundle.shell("tty; stty size; test -t 0 && echo terminal; ls -l /dev/console | cut -c1; read x;"
                 " echo got $x")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "console"))
        listener.listen(1)
        create("--console-socket", str(place / "console"))
        connection, _ = listener.accept()
        with connection:
            master = receive_fd(connection)
    ok(runtime.call("start", "c1"))
    text = b""
    os.write(master, b"line\n")
    try:
        while b"got line" not in text:
            text += os.read(master, 4096)
    finally:
        os.close(master)
    assert b"/dev/pts/0\r\n33 77\r\nterminal\r\nc\r\n" in text.replace(b"line\r\n", b"", 1), text


def test_relays_the_terminal_of_a_run_and_restores_ours(runtime, bundle):
    import termios
    bundle.process["terminal"] = True
    bundle.shell("test -t 1 && echo terminal; read x; echo got $x; exit 5").write()
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    running = subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"),
                               stdin=slave, stdout=slave, stderr=slave)
    text = b""
    while b"terminal" not in text:
        text += os.read(master, 4096)
    assert termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO) == 0
    os.write(master, b"line\r")
    while b"got line" not in text:
        text += os.read(master, 4096)
    assert running.wait(timeout=20) == 5
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def start_run(runtime, bundle, script, **options):
    bundle.shell(script).write()
    running = subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"),
                               stdout=subprocess.PIPE, text=True, **options)
    assert running.stdout.readline() == "ready\n"
    return running


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_passes_signals_on(runtime, bundle, name):
    running = start_run(runtime, bundle, f"trap 'echo {name}; exit 3' {name}; echo ready; "
                                         "while :; do sleep 0.05; done")
    running.send_signal(getattr(signal, f"SIG{name}"))
    assert running.communicate(timeout=20)[0] == f"{name}\n"
    assert running.returncode == 3


def test_takes_the_container_along_when_it_is_killed(runtime, bundle, place):
    running = start_run(runtime, bundle, "echo ready; sleep 1000 & sleep 1000")
    running.kill()
    running.wait()
    # What is about to end has no mount table any more, and is not yet gone.
    until(lambda: not processes(place) and runtime.state()["status"] == "stopped")
    ok(runtime.call("delete", "c1"))


def test_leaves_nothing_whenever_it_is_killed(runtime, bundle, place):
    bundle.args("/bin/sleep", "1000").write()
    for delay in range(0, 40, 2):
        running = subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"))
        time.sleep(delay / 1000)
        running.kill()
        running.wait()
        until(lambda: not processes(place))
        ok(runtime.call("delete", "--force", "c1"))


def test_does_not_die_with_whoever_created_it(runtime, bundle, create):
    bundle.args("/bin/sleep", "1000")
    create()
    ok(runtime.call("start", "c1"))
    pid = runtime.state()["pid"]
    os.kill(pid, 0)
    assert runtime.state()["status"] == "running"


def test_runs_detached(runtime, bundle, place):
    bundle.shell("sleep 1000")
    bundle.write()
    done = subprocess.run(runtime.command("run", "-d", "-b", str(bundle.directory), "c1"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=20,
                          check=False)
    assert done.returncode == 0
    assert runtime.state()["status"] == "running"
    ok(runtime.call("delete", "--force", "c1"))


def test_is_busy_with_one_container_per_name(runtime, bundle, place):
    running = start_run(runtime, bundle, "echo ready; sleep 1000")
    other = Runtime(runtime.root)
    assert other.error(bundle).startswith("cannot run container 'c1': container 'c1' already")
    running.terminate()  # the first process of a pid namespace does not die of TERM
    assert runtime.state()["status"] == "running"
    ok(runtime.call("kill", "c1", "KILL"))
    assert running.wait(timeout=20) == 137
