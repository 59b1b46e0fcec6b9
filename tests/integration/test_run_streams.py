# SPDX-License-Identifier: Apache-2.0
"""The standard streams of a container in the foreground without a terminal of its own: what is
passed on, and that a file or a terminal of the caller cannot be opened again from inside."""

import hashlib
import os
import subprocess
import time

import pytest
from support.waiting import wait_until

SHELL = ("sh", "-c")


@pytest.fixture
def shell(berth, busybox):
    """shell(line): by a shell, for its redirections; BERTH, RUN and RUND stand for berth, berth run
    --rm and berth run -d, IMAGE for busybox."""
    berth.ok("pull", "--quiet", busybox)
    words = {"RUND": ("run", "-d"), "RUN": ("run", "--rm"), "BERTH": ()}

    def run(line, timeout=60):
        for word, arguments in words.items():
            line = line.replace(word, " ".join(map(str, berth.argv(*arguments))))
        return subprocess.run(["sh", "-c", line.replace("IMAGE", busybox)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env=berth.account.environment(), cwd=berth.directory)
    return run


def test_a_file_given_as_input_cannot_be_written(shell, work):
    cargo = work / "cargo"
    cargo.write_text("tea\n")
    cargo.chmod(0o666)
    done = shell(f"RUN -i IMAGE sh -c 'cat; echo rum >/proc/self/fd/0' < {cargo}")
    assert done.stdout == "tea\n"
    assert cargo.read_text() == "tea\n"


def test_a_log_given_for_appending_keeps_what_it_has(shell, work):
    log = work / "log"
    log.write_text("before\n")
    log.chmod(0o666)
    done = shell("RUN IMAGE sh -c ': >/proc/self/fd/1; exec 3>&1;"
                 " { timeout 1 cat /proc/self/fd/3 >/seen; } 2>/dev/null; test -s /seen && echo read;"
                 f" echo after; echo error >&2' >> {log} 2>> {log}")
    assert done.returncode == 0
    assert log.read_text() == "before\nafter\nerror\n"


def test_output_and_errors_in_one_file_keep_their_order(shell, work):
    log = work / "log"
    log.touch()
    log.chmod(0o666)
    line = 'for i in $(seq 500); do echo out $i; echo err $i >&2; done'
    assert shell(f"RUN IMAGE sh -c '{line}' > {log} 2>&1").returncode == 0
    assert log.read_text() == "".join(f"out {i}\nerr {i}\n" for i in range(1, 501))


def test_a_large_output_arrives_in_a_file_whole(shell, work):
    log = work / "log"
    log.touch()
    log.chmod(0o666)
    assert shell(f"RUN IMAGE seq -w 6500000 > {log}").returncode == 0
    wanted = hashlib.sha256()
    for number in range(1, 6500001):
        wanted.update(b"%07d\n" % number)
    assert log.stat().st_size == 52_000_000
    assert hashlib.sha256(log.read_bytes()).hexdigest() == wanted.hexdigest()


def test_a_large_input_arrives_from_a_file_whole(shell, work):
    cargo = work / "cargo"
    data = os.urandom(1 << 20) * 20
    cargo.write_bytes(data)
    cargo.chmod(0o644)
    assert shell(f"RUN -i IMAGE sha256sum < {cargo}").stdout == (
        hashlib.sha256(data).hexdigest() + "  -\n")


def test_a_reader_that_leaves_early_ends_the_writer(shell):
    done = shell("RUN IMAGE yes | head -n 1")
    assert (done.stdout, done.returncode) == ("y\n", 0)


@pytest.mark.profiles("root", "user")
def test_a_command_that_reads_no_input_ends_all_the_same(shell, work):
    cargo = work / "cargo"
    cargo.write_bytes(bytes(1 << 20))
    cargo.chmod(0o644)
    assert shell(f"RUN -i IMAGE sh -c 'exit 7' < {cargo}").returncode == 7
    assert shell("RUN -i IMAGE head -c 4 < /dev/zero | wc -c").stdout == "4\n"


@pytest.mark.profiles("root", "user")
def test_a_full_disk_is_said(shell):
    done = shell("RUN IMAGE echo lost > /dev/full")
    assert (done.returncode, done.stderr) == (
        1, "berth: write 'standard output': No space left on device\n")


@pytest.mark.profiles("root", "user")
def test_streams_that_are_closed_are_empty_ones(shell):
    done = shell("RUN -i IMAGE sh -c 'cat; readlink -f /proc/self/fd/0 >&2' <&- >&-")
    assert (done.returncode, done.stderr) == (0, "/dev/null\n")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("closed", ("<&-", ">&- 2>&-", "<&- >&- 2>&-"))
def test_nothing_is_lost_or_mixed_up_where_streams_are_closed(shell, berth, work, closed):
    """Of every program, and of those that it starts: what it opens is never a standard stream."""
    seen = work / "seen"
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    assert shell(f"RUN -v {seen}:/seen IMAGE sh -c 'echo yes > /seen/run' {closed}").returncode == 0
    detached = shell(f"RUND --name tug -v {seen}:/seen IMAGE sh -c "
                     f"'echo yes > /seen/detached; sleep 1000' {closed}")
    assert detached.returncode == 0
    assert shell(f"BERTH exec tug sh -c 'echo yes > /seen/exec' {closed}").returncode == 0
    assert shell(f"BERTH exec -d tug sh -c 'echo yes > /seen/behind' {closed}").returncode == 0
    for verb in ("tag IMAGE other:1", "commit tug other:2", "rename tug boat", "stop -t 0 boat",
                 "start boat", "rm -f boat", "rmi other:1 other:2"):
        assert shell(f"BERTH {verb} {closed}").returncode == 0, verb
    wait_until(lambda: (seen / "behind").exists())
    assert {path.name: path.read_text() for path in seen.iterdir()} == {
        name: "yes\n" for name in ("run", "detached", "exec", "behind")}
    assert berth.ok("images", "-q").count("\n") == 1


@pytest.mark.profiles("root", "user")
def test_an_ordinary_user_of_the_container_may_open_its_output(shell, work):
    log = work / "log"
    log.touch()
    log.chmod(0o600)
    os.chown(log, work.stat().st_uid, work.stat().st_gid)
    assert shell(f"RUN -u 1000 IMAGE sh -c 'echo open >/dev/stdout' > {log}").returncode == 0
    assert log.read_text() == "open\n"


def test_the_callers_terminal_stays_the_callers(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    terminal = berth.terminal("run", "--rm", "-i", busybox, *SHELL,
                              "for i in 0 1 2; do test -t $i && echo terminal $i; done;"
                              "stty -echo </proc/self/fd/1 || echo refused; cat; exit 5")
    terminal.expect("refused\r\n")
    terminal.send("knock\n")
    terminal.expect("knock\r\nknock\r\n")  # as typed, and as read
    terminal.send("\x04")
    assert terminal.wait() == 5
    assert "terminal" not in terminal.output


@pytest.mark.profiles("root", "user")
def test_a_terminal_that_takes_no_more_loses_nothing_and_hears_signals(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    terminal = berth.terminal("run", "--rm", busybox, *SHELL,
                              "trap 'echo asked; exit 3' TERM; seq 100000; echo end;"
                              "while :; do sleep 0.1; done")
    time.sleep(1)  # nobody reads
    before = terminal.expect("end\r\n", timeout=60)
    assert before.split() == [str(number) for number in range(1, 100001)]
    terminal.process.terminate()
    terminal.expect("asked\r\n")
    assert terminal.wait() == 3


@pytest.mark.profiles("root")
def test_an_input_that_stays_open_does_not_keep_it(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    terminal = berth.terminal("run", "--rm", "-i", busybox, "echo", "done")
    terminal.expect("done\r\n")
    assert terminal.wait() == 0
