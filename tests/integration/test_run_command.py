# SPDX-License-Identifier: Apache-2.0
"""What `berth run` gives to the command of a container: arguments, environment, user, directory,
standard streams, signals."""

import json
import signal
import time

import pytest

from support import images

SHELL = ("sh", "-c")


def configured(**config):
    """A busybox image whose config has these members."""
    return images.build([images.busybox_layer()], config=config)


def test_run_pulls_nothing_twice(berth, busybox):
    berth.ok("run", "--rm", busybox, "true")
    assert berth.run("run", "--rm", busybox, "true").stderr == ""


def test_arguments_follow_the_images_entrypoint(berth, push):
    image = push(configured(Entrypoint=["echo", "a"], Cmd=["b"]))
    assert berth.ok("run", "--rm", image) == "a b\n"
    assert berth.ok("run", "--rm", image, "c", "d") == "a c d\n"
    assert berth.ok("run", "--rm", "--entrypoint", "hostname", "--hostname", "tug", image) == "tug\n"
    assert berth.ok("run", "--rm", "--entrypoint", "", image, "echo", "e") == "e\n"
    assert berth.fail("run", "--rm", "--entrypoint", "", image) == (
        "berth: the image has no command and none was given; "
        "try: a command after the image, e.g. /bin/sh")


def test_the_environment_is_the_images_then_the_requests(berth, push, work):
    image = push(configured(Env=["PATH=/bin", "A=image", "B=image", "C=image"]))
    file = work / "vars"
    file.write_text("# comment\nB=file\nX=file\n")
    out = berth.ok("run", "--rm", "--hostname", "tug", "--env-file", file, "-e", "X=flag", "-e",
                   "MINE", "-e", "C", image, "env", env={"MINE": "callers"})
    assert sorted(out.splitlines()) == ["A=image", "B=file", "HOME=/root", "HOSTNAME=tug",
                                        "MINE=callers", "PATH=/bin", "X=flag"]
    assert berth.ok("run", "--rm", push(configured(Env=[])), *SHELL, "echo $PATH $TERM") == (
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("wish,ids", [
    ("sailor", "uid=1000(sailor) gid=1000(sailor) groups=1000(sailor),2000(crew)"),
    ("1000", "uid=1000(sailor) gid=1000(sailor) groups=1000(sailor),2000(crew)"),
    ("sailor:2000", "uid=1000(sailor) gid=2000(crew) groups=2000(crew)"),
    ("sailor:crew", "uid=1000(sailor) gid=2000(crew) groups=2000(crew)"),
    ("4242", "uid=4242 gid=0(root) groups=0(root)"),
    ("4242:4343", "uid=4242 gid=4343 groups=4343"),
])
def test_user_forms(berth, busybox, wish, ids):
    assert berth.ok("run", "--rm", "-u", wish, busybox, "id").strip() == ids


@pytest.mark.profiles("root", "user")
def test_an_ordinary_user_in_the_container_has_a_home_and_no_capability(berth, busybox):
    out = berth.ok("run", "--rm", "-u", "sailor", busybox, *SHELL,
                   "echo $HOME; grep CapEff /proc/self/status; grep CapBnd /proc/self/status")
    assert out == "/home/sailor\nCapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\n"


@pytest.mark.profiles("single_id")
def test_a_user_of_a_single_id_can_be_nobody_else(berth, busybox, push):
    berth.ok("pull", "--quiet", busybox)
    assert berth.fail("run", "--rm", "-u", "sailor", busybox, "id") == (
        "berth: user 'sailor': this user has only one user id; "
        "try: ask for subordinate ids in /etc/subuid and /etc/subgid")
    done = berth.run("run", "--rm", push(configured(User="sailor")), "id", "-u")
    assert done.stdout == "0\n"
    assert "berth: warning: the image's user 'sailor' cannot be mapped to the ids that this user has, " \
           "using this user as root instead" in done.stderr


def test_the_working_directory_is_the_images_unless_another_is_named(berth, push):
    image = push(configured(WorkingDir="/not/there/yet"))
    assert berth.ok("run", "--rm", image, "pwd") == "/not/there/yet\n"
    assert berth.ok("run", "--rm", "-w", "/tmp", image, "pwd") == "/tmp\n"


def test_standard_input_is_only_given_with_i(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    assert berth.ok("run", "--rm", "-i", busybox, "cat", input="ahoy\n") == "ahoy\n"
    assert berth.ok("run", "--rm", busybox, "cat", input="ahoy\n") == ""


def test_output_and_errors_stay_apart(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    done = berth.run("run", "--rm", busybox, *SHELL, "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_a_large_output_arrives_whole(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    done = berth.run("run", "--rm", busybox, "dd", "if=/dev/zero", "bs=65536", "count=160",
                     text=False)
    assert len(done.stdout) == 160 * 65536


def test_a_signal_is_passed_on(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    process = berth.spawn("run", "--rm", busybox, *SHELL,
                          "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "got it\n"
    assert process.wait(10) == 9


def test_limits_of_zero_are_none_and_tiny_memory_is_refused(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    assert berth.ok("run", "--rm", "--memory", "0", "--cpus", "0", "--pids-limit", "0", busybox,
                    "echo", "afloat") == "afloat\n"
    assert berth.fail("run", "--rm", "--memory", "6143k", busybox, "true") == (
        "berth: Minimum memory limit allowed is 6MB")


def test_flags_that_scripts_for_docker_use(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    out = berth.ok("run", "--name", "tug", "--net", "none", "--shm-size", "3m", busybox, *SHELL,
                   "ls /sys/class/net; df -k /dev/shm | tail -n 1")
    assert out.splitlines()[0] == "lo" and out.splitlines()[1].split()[1] == "3072"
    assert berth.ok("rm", "-v", "tug") == "tug\n"


def test_a_read_only_container_cannot_change_its_hosts(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    done = berth.run("run", "--rm", "--read-only", busybox, *SHELL,
                     "for f in hosts hostname resolv.conf; do echo x >> /etc/$f; done; true")
    assert done.stderr.count("Read-only file system") == 3
    berth.ok("run", "--rm", busybox, *SHELL, "echo x >> /etc/hosts")


def test_death_by_a_signal_is_128_and_its_number(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    front = berth.spawn("run", "--rm", "--name", "tug", busybox, *SHELL, "echo up; sleep 100")
    assert front.stdout.readline() == "up\n"
    berth.ok("kill", "tug")
    assert front.wait(10) == 137


@pytest.mark.parametrize("command,status,what", [
    ("nosuchprogram", 127, "execute 'nosuchprogram': executable file not found in $PATH"),
    ("/no/such/program", 127, "execute '/no/such/program': No such file or directory"),
    ("/etc", 126, "execute directory '/etc': Permission denied"),
    ("/etc/passwd", 126, "execute '/etc/passwd': Permission denied"),
])
def test_a_command_that_cannot_run(berth, busybox, listing, command, status, what):
    berth.ok("run", "--rm", busybox, "true")
    before = listing()
    assert berth.fail("run", "--rm", "--name", "tug", busybox, command, status=status) == (
        f"berth: cannot run container 'tug': {what}")
    assert listing() == before
    assert berth.fail("run", "--name", "tug", busybox, command, status=status) == (
        f"berth: cannot run container 'tug': {what}")
    assert berth.fail("run", "--name", "tug", "-d", busybox, command, status=status) == (
        f"berth: cannot run container 'tug': {what}")
    assert listing() == before


def test_a_terminal_is_a_terminal(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    shell = berth.terminal("run", "--rm", "-it", busybox, "sh", rows=40, columns=100)
    shell.expect("# ")
    shell.send("stty size; echo $TERM; tty\r")
    shell.expect("40 100\r\nxterm\r\n/dev/pts/0\r\n")
    shell.expect("# ")
    shell.resize(50, 120)
    shell.send("stty size\r")
    shell.expect("50 120\r\n")
    shell.send("sleep 100\r")
    shell.expect("sleep 100\r\n")
    time.sleep(0.3)
    shell.send("\x03")
    shell.expect("# ")
    shell.send("exit 5\r")
    assert shell.wait() == 5


def test_ctrl_c_without_a_terminal_of_its_own_arrives_once(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    front = berth.terminal("run", "--rm", busybox, *SHELL,
                           "trap 'echo int' INT; trap 'exit 3' TERM; echo ready; "
                           "while :; do sleep 0.1; done")
    front.expect("ready\r\n")
    front.send("\x03")
    front.expect("int\r\n")
    time.sleep(0.5)
    front.process.send_signal(signal.SIGTERM)
    front.wait()
    assert "int" not in front.output
    assert front.process.returncode == 3


def test_dry_run_starts_and_leaves_nothing(berth, busybox, listing):
    berth.ok("run", "--rm", busybox, "true")
    before = listing()
    plan = berth.ok("run", "--dry-run", "--read-only", busybox, "echo", "never printed")
    assert "overlay" in plan
    assert plan.splitlines()[-1].endswith("echo 'never printed'") or "never printed" in plan
    parsed = json.loads(berth.ok("run", "--dry-run", "--format", "json", busybox, "true"))
    assert isinstance(parsed, dict)
    assert listing() == before
