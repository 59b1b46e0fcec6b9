# SPDX-License-Identifier: Apache-2.0
"""One more process in a running container."""

import signal
import time

import pytest

SHELL = ("sh", "-c")


@pytest.fixture(autouse=True)
def tug(berth, busybox):
    """A container that runs, and the image."""
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "-d", "--name", "tug", "-e", "CARGO=tea", busybox, *SHELL,
             "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    yield busybox
    berth.ok("rm", "-f", "tug")


def test_it_sees_what_the_container_sees(berth):
    assert berth.ok("exec", "tug", "cat", "/proc/1/comm") == "sh\n"
    assert berth.ok("exec", "tug", *SHELL, "echo $CARGO > /new; hostname") == (
        berth.ok("exec", "tug", "cat", "/etc/hostname"))
    assert berth.ok("exec", "tug", "cat", "/new") == "tea\n"


def test_its_status_is_the_commands(berth):
    assert berth.run("exec", "tug", *SHELL, "exit 42").returncode == 42
    assert berth.run("exec", "tug", *SHELL, "kill -9 $$").returncode == 137
    line = berth.fail("exec", "tug", "no such command", status=127)
    assert "no such command" in line and "executable file not found" in line
    assert "/etc/hostname" in berth.fail("exec", "tug", "/etc/hostname", status=126)


def test_streams_stay_apart_and_input_reaches_it(berth):
    done = berth.run("exec", "tug", *SHELL, "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert berth.ok("exec", "-i", "tug", "cat", input="ahoy\n") == "ahoy\n"
    assert berth.ok("exec", "tug", "cat", input="not wanted") == ""


def test_a_terminal_of_its_own(berth):
    terminal = berth.terminal("exec", "-it", "tug", "sh", rows=33, columns=99)
    terminal.expect("# ")
    terminal.send("stty size; echo $TERM\n")
    terminal.expect("33 99")
    terminal.expect("xterm")
    terminal.send("exit 5\n")
    assert terminal.wait() == 5
    assert berth.fail("exec", "-it", "tug", "sh", status=1) == (
        "berth: the input device is not a TTY; try: berth exec -i, without -t")


def test_user_directory_and_environment(berth, profile):
    assert berth.ok("exec", "-w", "/tmp", "tug", "pwd") == "/tmp\n"
    assert berth.ok("exec", "-e", "A=1", "-e", "CARGO=rum", "tug", *SHELL, "echo $A $CARGO") == (
        "1 rum\n")
    assert berth.ok("exec", "-e", "FROM_HERE", "tug", *SHELL, "echo $FROM_HERE",
                    env={"FROM_HERE": "yes"}) == "yes\n"
    assert berth.ok("exec", "-e", "CARGO", "tug", *SHELL, "echo ${CARGO-unset}") == "unset\n"
    if profile.kind != "single_id":
        assert berth.ok("exec", "-u", "sailor", "tug", *SHELL, "id -un; echo $HOME") == (
            "sailor\n/home/sailor\n")
        assert berth.ok("exec", "-u", "5:6", "tug", *SHELL, "id -u; id -g") == "5\n6\n"
    assert berth.fail("exec", "-u", "nobody-here", "tug", "id", status=126).startswith(
        "berth: ")


@pytest.mark.profiles("root", "user")
def test_a_named_user_has_the_groups_of_that_user_alone(berth, tug):
    """Those of the container's own user may be root's; what --group-add says is for all."""
    account = "echo '{0}:x:{1}:{1}::/home/{0}:/bin/sh' >> /etc/passwd; echo '{0}:x:{1}:' >> /etc/group; "
    berth.ok("run", "-d", "--name", "crew", "--group-add", "44", tug, *SHELL,
             account.format("cook", 33) + "echo 'galley:x:50:cook' >> /etc/group; "
             "echo secret > /f; chmod 640 /f; sleep 1000")
    try:
        berth.ok("exec", "crew", *SHELL, "until [ -e /f ]; do sleep 0.05; done")
        assert berth.ok("exec", "-u", "cook", "crew", "id", "-G") == "33 44 50\n"
        assert berth.ok("exec", "-u", "33", "crew", "id", "-G") == "33 44 50\n"
        assert berth.ok("exec", "-u", "33:33", "crew", "id", "-G") == "33 44\n"
        assert berth.ok("exec", "-u", "2000", "crew", "id", "-G") == "0 44\n"
        assert "Permission denied" in berth.run("exec", "-u", "cook", "crew", "cat", "/f").stderr
        assert berth.ok("exec", "crew", "id", "-G") == "0 44\n"
    finally:
        berth.ok("rm", "-f", "crew")


@pytest.mark.profiles("root", "user")
def test_a_named_user_has_the_capabilities_of_that_user(berth, tug):
    """Root in a container of somebody else is root there, and the reverse."""
    effective = ("grep", "CapEff", "/proc/self/status")
    rooted = berth.ok("exec", "tug", *effective)
    berth.ok("run", "-d", "--name", "crew", "-u", "33:33", tug, "sleep", "1000")
    try:
        assert berth.ok("exec", "-u", "0", "crew", *effective) == rooted
        assert int(berth.ok("exec", "crew", *effective).split()[1], 16) == 0
        assert int(berth.ok("exec", "-u", "33", "tug", *effective).split()[1], 16) == 0
    finally:
        berth.ok("rm", "-f", "crew")


@pytest.mark.profiles("root", "user")
def test_a_home_that_the_container_was_given_stays(berth, tug):
    berth.ok("run", "-d", "--name", "crew", "-e", "HOME=/deck", tug, "sleep", "1000")
    try:
        assert berth.ok("exec", "-u", "sailor", "crew", *SHELL, "echo $HOME") == "/deck\n"
        assert berth.ok("exec", "-u", "sailor", "tug", *SHELL, "echo $HOME") == "/home/sailor\n"
    finally:
        berth.ok("rm", "-f", "crew")


@pytest.mark.profiles("root", "user")
def test_groups_and_home_also_in_one_that_goes_with_its_caller(berth, tug):
    front = berth.spawn("run", "--rm", "--name", "front", "--group-add", "44", "-e", "HOME=/deck", tug,
                        *SHELL, "echo up; sleep 100")
    assert front.stdout.readline() == "up\n"
    assert berth.ok("exec", "-u", "sailor", "front", *SHELL, "id -G; echo $HOME").split("\n")[:2] == [
        "1000 44 2000", "/deck"]
    berth.ok("exec", "-u", "0", "front", *SHELL, "echo > /etc/group")
    assert berth.ok("exec", "-u", "0", "front", "id", "-u") == "0\n"
    berth.ok("rm", "-f", "front")
    front.communicate(timeout=20)


@pytest.mark.parametrize("user", ((), ("-u", "0")), ids=("own", "named"))
def test_a_working_directory_that_is_not_there_is_not_made(berth, user):
    line = berth.fail("exec", *user, "-w", "/no/such", "tug", "pwd", status=126)
    assert line == ("berth: cannot exec in container 'tug': cannot enter working directory "
                    "'/no/such': No such file or directory")
    assert berth.run("exec", "tug", "ls", "-d", "/no").returncode != 0


def test_detached_it_goes_on(berth):
    assert berth.ok("exec", "-d", "tug", *SHELL, "sleep 0.3; touch /done") == ""
    end = time.monotonic() + 10
    while berth.run("exec", "tug", "test", "-e", "/done").returncode != 0:
        assert time.monotonic() < end
    assert "no such command" in berth.fail("exec", "-d", "tug", "no such command", status=127)


def test_it_needs_a_container_that_runs(berth, tug):
    assert berth.fail("exec", "nobody", "true", status=1) == (
        "berth: no such container: nobody; try: berth ps --all")
    berth.ok("create", "--name", "idle", tug, "true")
    assert berth.fail("exec", "idle", "true", status=1) == (
        "berth: Container idle is not running; try: berth start idle")
    berth.ok("rm", "idle")
    if berth.run("pause", "tug").returncode == 0:
        assert berth.fail("exec", "tug", "true", status=1) == (
            "berth: Container tug is paused, unpause the container before exec; "
            "try: berth unpause tug")
        berth.ok("unpause", "tug")


def test_also_in_one_in_front_of_another_process(berth, tug):
    front = berth.spawn("run", "--rm", "--name", "front", tug, *SHELL, "echo up; sleep 100")
    assert front.stdout.readline() == "up\n"
    assert berth.ok("exec", "front", "echo", "ahoy") == "ahoy\n"
    berth.ok("rm", "-f", "front")
    front.communicate(timeout=20)


def test_privileged_gives_what_the_caller_has(berth):
    plain = int(berth.ok("exec", "tug", *SHELL, "grep CapEff /proc/self/status | cut -f2"), 16)
    wide = int(berth.ok("exec", "--privileged", "tug", *SHELL,
                        "grep CapEff /proc/self/status | cut -f2"), 16)
    assert wide & plain == plain and wide & (1 << 21) and not plain & (1 << 21)  # SYS_ADMIN


def test_a_signal_reaches_it(berth):
    front = berth.spawn("exec", "tug", *SHELL,
                        "trap 'echo heard; exit 8' TERM; echo up; while :; do sleep 0.05; done")
    assert front.stdout.readline() == "up\n"
    front.send_signal(signal.SIGTERM)
    out, _ = front.communicate(timeout=20)
    assert (out, front.returncode) == ("heard\n", 8)


def test_a_link_at_the_place_of_passwd_leads_nowhere_else(berth, work):
    secret = work / "passwd"
    secret.write_text("pirate:x:77:77::/:/bin/sh\n")
    berth.ok("exec", "tug", *SHELL, f"rm /etc/passwd; ln -s {secret} /etc/passwd")
    line = berth.fail("exec", "-u", "pirate", "tug", "id", status=126)
    assert "pirate" in line
