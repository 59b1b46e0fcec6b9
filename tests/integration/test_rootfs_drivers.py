# SPDX-License-Identifier: Apache-2.0
"""Roots that are no overlay of the kernel's (--rootfs-driver): each driver shows, keeps and tells
the same, and leaves nothing on the host."""

import io
import json
import os
import pathlib
import signal
import subprocess
import tarfile
import tempfile
import time

import pytest
from support import images
from support.berth import Berth

DRIVERS = ("overlay", "fuse-overlayfs", "copy")
LOOK = ("cd /tree && find . | sort | while read f; do stat -c '%n %F %a %u %g' \"$f\"; "
        "[ ! -f \"$f\" ] || md5sum \"$f\"; [ ! -L \"$f\" ] || readlink \"$f\"; done")


def tree_layers():
    """Two layers that hide, replace and link."""
    low = [images.directory("tree", mode=0o755), images.directory("tree/gone", mode=0o700),
           images.file("tree/gone/x", b"x"), images.directory("tree/merged", mode=0o755),
           images.file("tree/merged/low", b"low"), images.file("tree/hidden", b"1"),
           images.file("tree/kept", b"kept\n"), images.file("tree/script", b"s", mode=0o755),
           images.symlink("tree/link", "kept")]
    high = [images.directory("tree", mode=0o755), images.whiteout("tree/hidden"),
            images.opaque("tree/gone"), images.directory("tree/gone", mode=0o711),
            images.file("tree/gone/new", b"new"), images.directory("tree/merged", mode=0o755),
            images.file("tree/merged/high", b"high"),
            images.hardlink("tree/twice", "tree/merged/high")]
    return [images.busybox_layer(), images.layer(low), images.layer(high)]


@pytest.fixture
def reference(berth, push):
    name = push(images.build(tree_layers()))
    berth.ok("pull", "--quiet", name)
    return name


@pytest.fixture(params=DRIVERS)
def driver(request):
    return ("--rootfs-driver", request.param)


def servers(berth):
    """Processes of fuse-overlayfs that hold something of this store."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() != "fuse-overlayfs":
                continue
            held = [os.readlink(path) for path in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(path.startswith(str(berth.root)) for path in held):
            found.append(process.name)
    return found


def eventually(holds, seconds=10):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def nothing_left(berth):
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    return (not servers(berth) and "fuse-overlayfs" not in mounts
            and not list(berth.root.glob("containers/*")))


def test_a_container_sees_the_same_by_each_driver(berth, reference, driver):
    plain = berth.ok("run", "--rm", reference, "sh", "-c", LOOK)
    assert "./gone/new" in plain and "./gone/x" not in plain and "./hidden" not in plain
    assert berth.ok(*driver, "run", "--rm", reference, "sh", "-c", LOOK) == plain
    assert eventually(lambda: nothing_left(berth))


def test_names_of_one_file_stay_so_in_a_copy(berth, reference):
    assert berth.ok("--rootfs-driver", "copy", "run", "--rm", reference, "sh", "-c",
                    "echo more >> /tree/twice; cat /tree/merged/high") == "highmore\n"


def test_holes_of_an_image_take_no_space_in_a_copy(berth, push):
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes",
              "GNU.sparse.realsize": str(1 << 40)}
    where = b"2\n0\n4\n%d\n4\n" % ((1 << 40) - 4)
    content = where.ljust(512, b"\0") + b"headtail"
    reference = push(images.build([images.busybox_layer(), images.layer([
        images.file("GNUSparseFile.0/holes", content, pax_headers=sparse)])]))
    script = "stat -c %s /holes; head -c 4 /holes; tail -c 4 /holes; du -k /holes | cut -f1"
    size, ends, kilobytes = berth.ok("--rootfs-driver", "copy", "run", "--rm", reference, "sh", "-c",
                                     script.replace("; du", "; echo; du")).split()
    assert (size, ends) == (str(1 << 40), "headtail") and int(kilobytes) < 1024


def test_files_that_a_copy_shares_with_its_image_are_out_of_reach(berth, reference):
    berth.ok("--rootfs-driver", "copy", "run", "-d", "--read-only", "--name", "hold", reference,
             "sleep", "100")
    line = berth.fail("exec", "--privileged", "hold", "true", status=1)
    assert "may be those of the image itself" in line
    assert berth.ok("exec", "hold", "echo", "still") == "still\n"
    berth.ok("rm", "-f", "hold")


def test_what_is_removed_stays_gone_and_what_is_written_stays(berth, reference, driver):
    berth.ok(*driver, "run", "--name", "hold", reference, "sh", "-c",
             "[ -e /stamp ] || { rm /tree/kept; rm -r /tree/merged; mkdir /tree/merged; "
             "echo 1 > /stamp; exit 0; }; cat /stamp; ls -A /tree /tree/merged")
    again = berth.ok("start", "-a", "hold").split()
    assert again[0] == "1"
    assert "kept" not in again and "low" not in again and "high" not in again
    berth.ok("rm", "hold")
    assert eventually(lambda: nothing_left(berth))


def test_two_containers_share_nothing_that_is_written(berth, reference, driver):
    berth.ok(*driver, "run", "--rm", reference, "sh", "-c", "echo changed > /tree/kept")
    assert berth.ok(*driver, "run", "--rm", reference, "cat", "/tree/kept") == "kept\n"


def test_a_read_only_root_is_not_written_to(berth, reference, driver):
    done = berth.run(*driver, "run", "--rm", "--read-only", reference, "sh", "-c",
                     "echo x > /tree/kept || cat /tree/kept")
    assert (done.returncode, done.stdout) == (0, "kept\n")
    assert "Read-only file system" in done.stderr
    assert eventually(lambda: nothing_left(berth))


def test_a_command_joins_a_running_container(berth, reference, driver):
    berth.ok(*driver, "run", "-d", "--name", "hold", reference, "sleep", "600")
    berth.ok("exec", "hold", "sh", "-c", "echo told > /tree/told")
    assert berth.ok("exec", "hold", "cat", "/tree/told") == "told\n"
    berth.ok("rm", "-f", "hold")
    assert eventually(lambda: nothing_left(berth))


def test_changes_are_told_committed_and_exported(berth, reference, driver):
    berth.ok(*driver, "run", "--name", "hold", reference, "sh", "-c",
             "echo more >> /tree/kept; rm /tree/link; rm -r /tree/gone; chmod 700 /tree/script; "
             "mkdir /tree/dir; echo 1 > /tree/dir/new")
    told = set(berth.ok("diff", "hold").splitlines())
    assert told >= {"C /tree/kept", "D /tree/link", "D /tree/gone", "C /tree/script",
                    "A /tree/dir", "A /tree/dir/new"}
    assert not {line for line in told if line.endswith(("/merged", "/merged/low", "/bin"))}
    with tarfile.open(fileobj=io.BytesIO(berth.ok("export", "hold", text=False))) as archive:
        names = {name.removeprefix("./").rstrip("/") for name in archive.getnames()}
        assert "tree/dir/new" in names
        assert not names & {"tree/link", "tree/gone", "tree/hidden"}
        assert not [name for name in names if "/.wh." in name]
    berth.ok("commit", "hold", "after:1")
    assert berth.ok("run", "--rm", "after:1", "sh", "-c",
                    "cat /tree/kept /tree/dir/new; ls /tree | grep -c -e link -e gone; "
                    "stat -c %a /tree/script") == "kept\nmore\n1\n0\n700\n"
    berth.ok("rm", "hold")
    assert eventually(lambda: nothing_left(berth))


def test_files_are_copied_into_a_stopped_container(berth, reference, driver):
    berth.ok(*driver, "create", "--name", "hold", reference, "cat", "/tree/in")
    (berth.directory / "in").write_text("brought\n")
    os.chmod(berth.directory / "in", 0o644)
    berth.ok("cp", "in", "hold:/tree/in")
    assert berth.ok("start", "-a", "hold") == "brought\n"
    berth.ok("rm", "hold")
    assert eventually(lambda: nothing_left(berth))


def test_a_container_that_is_killed_leaves_no_server_and_no_copy(berth, reference, driver):
    berth.ok(*driver, "run", "-d", "--name", "hold", reference, "sleep", "600")
    assert bool(servers(berth)) == (driver[1] == "fuse-overlayfs")
    os.kill(int(berth.ok("inspect", "--format", "{{.State.Pid}}", "hold")), signal.SIGKILL)
    assert berth.ok("wait", "hold") == "137\n"
    assert eventually(lambda: not servers(berth))
    berth.ok("rm", "hold")
    assert eventually(lambda: nothing_left(berth))


def root_items(berth, name):
    text = berth.ok("explain", "--format", "json", name)
    return [(item["object"], item["why"]) for item in json.loads(text)["items"]
            if item["kind"] == "rootfs"]


def test_explain_tells_which_driver_and_why(berth, reference):
    berth.ok("--rootfs-driver", "copy", "run", "--name", "hold", reference, "true")
    assert root_items(berth, "hold") == [
        ("copy", "--rootfs-driver or BERTH_ROOTFS_DRIVER asks for it")]
    assert "nothing requests one" in berth.ok("explain", "hold")


@pytest.fixture
def no_overlay(programs, profile):
    """A store on a file system that takes no overlay above it: one that is an overlay itself,
    twice."""
    with tempfile.TemporaryDirectory(prefix="berth-tests-rootfs-", dir="/var/tmp") as path:
        base = pathlib.Path(path)
        mounted = []
        try:
            below = base / "0"
            below.mkdir()
            for level in ("1", "2"):
                top = base / level
                for part in ("upper", "work", "merged"):
                    (top / part).mkdir(parents=True)
                if level == "2":
                    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", top], check=True)
                    mounted.append(top)
                    for part in ("upper", "work", "merged"):
                        (top / part).mkdir()
                subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                                f"lowerdir={below},upperdir={top}/upper,workdir={top}/work",
                                top / "merged"], check=True)
                mounted.append(top / "merged")
                below = top / "merged"
            command = Berth(programs, profile, below / "berth")
            yield command
            command.close()
        finally:
            for place in reversed(mounted):
                subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(params=["fuse-overlayfs", "copy"])
def falls_back_to(request):
    program = "/usr/bin/fuse-overlayfs"
    if request.param == "copy":
        subprocess.run(["mount", "--bind", "/dev/null", program], check=True)
    yield request.param
    if request.param == "copy":
        subprocess.run(["umount", program], check=True)


@pytest.mark.profiles("root")
def test_where_no_overlay_can_be_a_container_runs_and_says_so(no_overlay, push, falls_back_to):
    # Without whiteouts, which such a file system does not take either.
    reference = push(images.build(tree_layers()[:2]))
    no_overlay.ok("pull", "--quiet", reference)
    done = no_overlay.run("run", "--name", "hold", reference, "cat", "/tree/kept")
    assert (done.returncode, done.stdout) == (0, "kept\n")
    warnings = [line for line in done.stderr.splitlines() if "overlay cannot be mounted" in line]
    assert len(warnings) == 1 and f"using {'a ' * (falls_back_to == 'copy')}{falls_back_to}" in warnings[0]
    (driver, why), = root_items(no_overlay, "hold")
    assert driver == falls_back_to and "the kernel's overlay cannot be mounted" in why
    again = no_overlay.run("start", "-a", "hold")
    assert (again.returncode, again.stdout, again.stderr) == (0, "kept\n", "")
    no_overlay.ok("rm", "hold")
    assert json.loads(no_overlay.ok("info", "--format", "json"))["Driver"] == falls_back_to
    overlay, = (check for check in json.loads(no_overlay.run("doctor", "--format", "json").stdout)
                ["checks"] if check["id"] == "host.overlay")
    instead = {"copy": "a copy of its image", "fuse-overlayfs": "fuse-overlayfs is used"}
    assert overlay["status"] == "warning" and instead[falls_back_to] in overlay["cause"]


def test_a_driver_that_does_not_exist_is_refused(berth, reference):
    assert berth.fail("run", "--rm", reference, "true", env={"BERTH_ROOTFS_DRIVER": "zfs"}) == (
        "berth: --rootfs-driver: expected overlay, fuse-overlayfs or copy, got 'zfs'")
