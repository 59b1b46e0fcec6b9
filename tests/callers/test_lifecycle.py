# SPDX-License-Identifier: Apache-2.0
"""The life of containers that Docker, containerd and podman make with the runtime under test."""

import pytest

from support.callers import is_frozen, memory_limit, until

MEGABYTE = 1 << 20
UP = "echo up; while :; do sleep 0.1; done"


def test_runs_a_program_to_its_end(caller):
    done = caller.run("c1", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_passes_streams_on_to_the_last_byte(caller):
    text = "".join(f"line {number}\n" for number in range(20000))
    done = caller.run("c1", "cat", stdin=text)
    assert (done.returncode, done.stderr, done.stdout == text) == (0, "", True)


def test_runs_a_detached_container_until_it_is_killed(caller):
    first = caller.start("c1", "sleep", "600")
    assert (caller.state("c1"), caller.processes("c1")) == ("running", {first})
    caller.signal("c1", "KILL")
    until(lambda: caller.state("c1") == "exited", "the container has ended")


def test_gives_the_status_of_a_program_that_was_killed(caller):
    front = caller.spawn("c1", "sh", "-c", UP)
    assert front.stdout.readline() == "up\n"
    caller.signal("c1", "KILL")
    assert front.wait(20) == 137


def test_lets_a_program_hear_a_signal(caller):
    front = caller.spawn("c1", "sh", "-c", f"trap 'exit 42' USR1; {UP}")
    assert front.stdout.readline() == "up\n"
    caller.signal("c1", "USR1")
    assert front.wait(20) == 42


def test_runs_more_programs_in_a_container(caller):
    caller.start("c1", "sh", "-c", UP)
    done = caller.exec("c1", "sh", "-c", "echo out; exit 9")
    assert (done.returncode, done.stdout) == (9, "out\n")
    done = caller.exec("c1", "sh", "-c", "id -u; id -g; pwd", user="1000:1000", cwd="/tmp")
    assert (done.returncode, done.stdout) == (0, "1000\n1000\n/tmp\n")


def test_leaves_a_detached_program_in_a_container(caller):
    first = caller.start("c1", "sleep", "600")
    assert caller.exec("c1", "sleep", "601", detach=True).returncode == 0
    until(lambda: len(caller.processes("c1")) == 2, "two processes")
    assert first in caller.processes("c1")


def test_pauses_and_resumes(caller):
    first = caller.start("c1", "sh", "-c", UP)
    caller.pause("c1")
    assert (caller.state("c1"), is_frozen(first)) == ("paused", True)
    caller.resume("c1")
    assert (caller.state("c1"), is_frozen(first)) == ("running", False)


@pytest.mark.parametrize("limit_at_start", [0, 64 * MEGABYTE])
def test_changes_a_limit_of_a_running_container(caller, limit_at_start):
    first = caller.start("c1", "sh", "-c", UP, memory=limit_at_start)
    if limit_at_start:
        assert memory_limit(first) == limit_at_start
    caller.limit_memory("c1", 96 * MEGABYTE)
    assert memory_limit(first) == 96 * MEGABYTE


TERMINAL = ('test -t 0 && until [ "$(stty size 2>/dev/null)" = "40 123" ]; do sleep 0.05; done; '
            "tty; exit 5")


def test_gives_a_program_a_terminal_of_the_callers_size(caller):
    argv = caller.argv_to_run("c1", "sh", "-c", TERMINAL, terminal=True)
    assert caller.on_terminal(argv, 40, 123) == (["/dev/pts/0"], 5)


def test_gives_one_more_program_a_terminal(caller):
    caller.start("c1", "sh", "-c", UP)
    argv = caller.argv_to_exec("c1", "sh", "-c", TERMINAL, terminal=True)
    assert caller.on_terminal(argv, 40, 123) == (["/dev/pts/0"], 5)


def test_runs_an_init_that_reaps(caller):
    # The middle process ends at once, and init is what its child gets as a parent.
    script = ("cat /proc/1/comm; echo $(( $$ > 1 )); sh -c 'sleep 0.2 & echo $!' >/tmp/orphan; "
              "while [ -e /proc/$(cat /tmp/orphan) ]; do sleep 0.1; done; exit 3")
    done = caller.run("c1", "sh", "-c", script, init=True)
    assert (done.returncode, done.stdout.splitlines()[1]) == (3, "1")
    assert "init" in done.stdout.splitlines()[0]


def test_kills_what_takes_more_memory_than_it_may(caller):
    # containerd begins to watch once the program runs: of what came before it never hears.
    script = "until [ -e /tmp/now ]; do sleep 0.05; done; exec tail /dev/zero"
    caller.start("c1", "sh", "-c", script, memory=32 * MEGABYTE)
    assert caller.exec("c1", "touch", "/tmp/now").returncode == 0
    until(lambda: caller.state("c1") == "exited", "the container has ended")
    # containerd tells docker of it by an event of its own, which may come after that of the end.
    until(lambda: caller.ran_out_of_memory("c1") in (True, None), "it is known why")
    assert caller.run("c2", "tail", "/dev/zero", memory=32 * MEGABYTE).returncode == 137


@pytest.mark.parametrize("caller", ["docker", "podman"], indirect=True)  # ctr has no such flags
def test_gives_a_read_only_container_a_tmpfs(caller):
    argv = caller.argv_to_run("c1", "sh", "-c", "echo in >/home/new && cat /home/new; "
                              "echo out 2>/dev/null >/bin/new || exit 3")
    argv[1:1] = ["--read-only", "--tmpfs", "/home"]
    done = caller.call(*argv)
    assert (done.returncode, done.stdout) == (3, "in\n"), done


@pytest.mark.parametrize("caller", ["docker", "podman"], indirect=True)  # ctr has no such verb
def test_starts_a_stopped_container_again(caller):
    caller.start("c1", "sh", "-c", UP)
    caller.ok("stop", "--time", "0", "c1")
    assert caller.state("c1") == "exited"
    caller.ok("start", "c1")
    assert caller.state("c1") == "running"
    caller.ok("restart", "--time", "0", "c1")
    assert caller.state("c1") == "running"


def test_runs_twenty_at_once(caller, shared):
    # Each waits until all are there.
    script = "touch /shared/$0; while [ $(ls /shared | wc -l) -lt 20 ]; do sleep 0.2; done; exit $0"
    front = [caller.spawn(f"c{number}", "sh", "-c", script, str(number), volume=shared)
             for number in range(1, 21)]
    assert [one.wait(120) for one in front] == list(range(1, 21))


MISSING = [("nosuch", "executable file not found in $PATH"),
           ("/no/such", "no such file or directory"),
           ("/etc", "permission denied"),
           ("/etc/passwd", "permission denied")]


@pytest.mark.parametrize("number", range(len(MISSING)))
def test_says_that_a_program_cannot_be_run(caller, number):
    command, words = MISSING[number]
    done = caller.run("c1", command)
    assert done.returncode == caller.missing_command["run"][number], done
    assert words in done.stderr.lower().replace("$path", "$PATH")


@pytest.mark.parametrize("number", range(len(MISSING)))
def test_says_that_one_more_program_cannot_be_run(caller, number):
    command, words = MISSING[number]
    caller.start("c1", "sh", "-c", UP)
    done = caller.exec("c1", command)
    assert done.returncode == caller.missing_command["exec"][number], done
    assert words in (done.stderr + done.stdout).lower().replace("$path", "$PATH")


@pytest.mark.parametrize("caller", ["docker"], indirect=True)
def test_takes_no_failure_of_the_runtime_for_one_of_a_program(caller):
    # A working directory below a file cannot be made.
    argv = caller.argv_to_run("c1", "true")
    argv[1:1] = ["--workdir", "/etc/passwd/below"]
    assert caller.call(*argv).returncode == 125
