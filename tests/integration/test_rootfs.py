# SPDX-License-Identifier: Apache-2.0
"""Containers without an image (--rootfs), and --init."""

import os
import shutil
import time

import pytest

SHELL = ("sh", "-c")
HOST_ROOT = ("run", "--rm", "--rootfs")


@pytest.fixture
def tree(work, profile):
    """A directory of the user's own with busybox in it."""
    root = profile.own(work / "root")
    for name in ("bin", "etc", "proc", "dev", "sys", "tmp"):
        profile.own(root / name)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    for applet in ("sh", "cat", "ls", "mount", "hostname", "id", "grep", "touch", "true", "sleep",
                   "kill", "ps"):
        (root / "bin" / applet).symlink_to("busybox")
    return root


def top(directory):
    return sorted(os.listdir(directory))


def test_a_directory_is_the_root_as_it_is(berth, tree, profile):
    assert berth.ok("run", "--rm", "--rootfs", tree, *SHELL, "echo $$; echo tea >/cargo") == "1\n"
    assert (tree / "cargo").read_text() == "tea\n"
    assert (tree / "cargo").stat().st_uid == profile.uid
    assert berth.ok("run", "--rm", "--rootfs", tree, "cat", "/cargo") == "tea\n"


def test_a_read_only_directory_stays_as_it_is(berth, tree):
    berth.ok("run", "--rm", "--rootfs", tree, "true")  # the places of the three files of /etc
    before = top(tree)
    out = berth.ok("run", "--rm", "--read-only", "--rootfs", tree, *SHELL,
                   "touch /cargo 2>&1 || true")
    assert "Read-only file system" in out
    assert top(tree) == before


def test_it_is_confined_as_an_image_is(berth, tree, busybox):
    berth.ok("pull", "--quiet", busybox)
    script = "grep -E 'CapBnd|Seccomp:|NoNewPrivs' /proc/self/status; ls /dev; hostname | wc -c"
    tools = ("--cap-drop", "CHOWN", "--hostname", "box")
    os.symlink("busybox", tree / "bin/wc")
    assert berth.ok("run", "--rm", *tools, "--rootfs", tree, *SHELL, script) == (
        berth.ok("run", "--rm", *tools, busybox, *SHELL, script))


def test_it_can_be_started_again(berth, tree):
    berth.ok("run", "--name", "c1", "--rootfs", tree, *SHELL, "echo x >>/count; cat /count")
    assert berth.ok("start", "-a", "c1") == "x\nx\n"
    assert str(tree) in berth.ok("ps", "-a", "--no-trunc")


def test_what_is_no_directory_is_refused(berth, work, profile):
    fail = lambda path: berth.fail(*HOST_ROOT, path, "true", status=125)  # noqa: E731
    assert fail("/no/such") == ("berth: cannot use it as the root: open '/no/such': "
                                "No such file or directory")
    assert fail("/etc/passwd") == "berth: root file system '/etc/passwd' is not a directory"


def test_the_hosts_programs_run_with_namespaces_of_their_own(berth, profile):
    out = berth.ok(*HOST_ROOT, "/", "sh", "-c",
                   "echo $$; readlink /proc/self/ns/net; ls /dev | wc -l; cat /etc/hostname; "
                   "hostname")
    lines = out.splitlines()
    assert lines[0] == "1"
    assert lines[1] != os.readlink("/proc/self/ns/net")
    assert int(lines[2]) < 25
    assert lines[3] == open("/etc/hostname").read().strip()
    assert lines[4] == os.uname().nodename


def test_nothing_is_made_in_the_hosts_own_root(berth, work, profile):
    source = profile.own(work / "data")
    before = top("/"), top("/etc"), top("/usr/local"), top("/sbin")
    with open("/proc/self/mountinfo") as mounts:
        mounted = mounts.read()
    line = berth.fail("run", "--rm", "-v", f"{source}:/berth-test-place", "--rootfs", "/", "true",
                      status=125)
    assert line == ("berth: '/berth-test-place' does not exist in the root file system, which is a directory of "
                    "the host: nothing is created there; try: a place that exists")
    berth.ok("run", "--rm", "--init", "--hostname", "box", "--tmpfs", "/mnt", "--rootfs", "/",
             "true")
    assert (top("/"), top("/etc"), top("/usr/local"), top("/sbin")) == before
    with open("/proc/self/mountinfo") as mounts:
        assert mounts.read() == mounted


def test_the_root_is_the_hosts_by_any_name(berth, work, profile):
    (profile.own(work / "links") / "up").symlink_to("/")
    line = berth.fail("run", "--rm", "--tmpfs", "/berth-test-place", "--rootfs",
                      work / "links/up", "true", status=125)
    assert "which is a directory of the host" in line
    assert not os.path.exists("/berth-test-place")


def test_a_read_only_host_is_so_below_its_mounts_too(berth):
    with open("/proc/self/mountinfo") as mounts:
        points = [line.split()[4] for line in mounts]
    places = [p for p in points if p.startswith(("/tmp", "/work", "/home", "/var"))] + ["/tmp"]
    for place in places[:3]:
        script = f"touch {place}/berth-test-file 2>&1 && echo wrote"
        out = berth.run("run", "--rm", "--read-only", "--rootfs", "/", "sh", "-c", script).stdout
        assert "wrote" not in out, place


def test_the_host_gets_the_gpus_that_were_granted_and_nothing_is_laid_over_it(berth, driver_tree):
    before = top("/usr/local")
    out = berth.ok("run", "--rm", "--gpus", "none", "--rootfs", "/", "sh", "-c", "ls /dev")
    assert "nvidia" not in out
    assert top("/usr/local") == before


def test_init_reaps_and_passes_signals_on(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    script = ("(sleep 0.1 & exec sleep 0.2) & sleep 0.6; "
              "ps -o pid,stat,comm | grep -c ' Z' || true; cat /proc/1/comm")
    assert berth.ok("run", "--rm", "--init", busybox, *SHELL, script) == "0\ndocker-init\n"
    berth.ok("run", "-d", "--init", "--name", "c1", busybox, *SHELL,
             "trap 'echo bye; exit 7' TERM; echo trapped; while :; do sleep 0.1; done")
    deadline = time.monotonic() + 20
    while "trapped" not in berth.ok("logs", "c1"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    berth.ok("stop", "c1")
    assert berth.ok("wait", "c1") == "7\n"
    assert "bye" in berth.ok("logs", "c1")


def test_init_ends_as_its_program_ended(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    for command, status in ((("sh", "-c", "exit 3"), 3), (("sh", "-c", "kill -9 $$"), 137),
                            (("/etc/passwd",), 126)):
        assert berth.run("run", "--rm", "--init", busybox, *command).returncode == status
    done = berth.run("run", "--rm", "--init", busybox, "no-such-program")
    assert done.returncode == 127
    assert done.stderr == "berth-init: cannot run 'no-such-program': No such file or directory\n"


def test_init_needs_nothing_of_the_image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    assert berth.ok("run", "--rm", "--init", "--read-only", "--cap-drop", "ALL", busybox, "id",
                    "-u") == "0\n"


@pytest.fixture
def gpu_berth(berth, driver_tree):
    return lambda *args: berth.ok("--driver-root", driver_tree("one"), *args)


def test_a_directory_gets_gpus_as_an_image_does(gpu_berth, tree):
    out = gpu_berth("run", "--rm", "--gpus", "all", "--rootfs", tree, *SHELL,
                    "ls /dev/nvidia0; ls /usr/local/nvidia/lib64 | grep -c libcuda")
    assert out.splitlines()[0] == "/dev/nvidia0"
    assert int(out.splitlines()[1]) > 0
    explained = gpu_berth("run", "--explain", "--gpus", "all", "--rootfs", tree, "true")
    assert "/dev/nvidia0" in explained


def test_the_host_gets_nodes_alone_because_the_files_are_there(gpu_berth):
    before = top("/usr/local")
    out = gpu_berth("run", "--rm", "--gpus", "all", "--rootfs", "/", "sh", "-c",
                    "ls /dev/nvidia0; grep -c /usr/local/nvidia /proc/mounts || true")
    assert out == "/dev/nvidia0\n0\n"
    assert top("/usr/local") == before
