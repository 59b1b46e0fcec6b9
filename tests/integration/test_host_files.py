# SPDX-License-Identifier: Apache-2.0
"""No file, device or directory of the host gets another mode, owner or time from a container, and
none is opened for one."""

import contextlib
import os
import pathlib
import subprocess
import threading

import pytest
from support import images
from support.missing_calls import without

SHELL = ("sh", "-c")


def facts(path):
    """What a container could change of the file of the host at `path`."""
    status = os.lstat(path)
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns


# ---- filling a volume ---------------------------------------------------------------------------

@contextlib.contextmanager
def exchanging(directory, victim):
    """Whatever appears in `directory` is exchanged with a link to `victim`, as a container that has
    the volume can do."""
    stop = threading.Event()
    exchanged = []

    def exchange(path):
        if path.is_symlink() and os.readlink(path) == str(victim):
            return
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        path.symlink_to(victim)
        exchanged.append(path.name)

    def run():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                for name in os.listdir(directory):
                    exchange(directory / name)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield exchanged
    finally:
        stop.set()
        thread.join()


@pytest.mark.profiles("root")
@pytest.mark.parametrize("call, entry", (
    ("mknodat", images.fifo("data/entry", mode=0o777)),
    ("mknodat", images.character_device("data/entry", 1, 3, mode=0o777)),
    ("symlinkat", images.symlink("data/entry", "elsewhere", uid=7, gid=7)),
    ("mkdirat", images.directory("data/entry", mode=0o777, uid=7, gid=7)),
    ("openat", images.file("data/entry", b"x", mode=0o777, uid=7, gid=7)),
), ids=lambda value: value if isinstance(value, str) else "")
def test_filling_a_volume_follows_no_link_that_somebody_puts_there(berth, push, work, call, entry):
    """Each call that makes an entry is held back on its return, until the entry is exchanged."""
    victim = work / "victim"
    victim.write_text("secret")
    victim.chmod(0o600)
    before = facts(victim)
    image = push(images.build([images.busybox_layer(),
                               images.layer([images.directory("data", mode=0o777), entry])]))
    berth.ok("pull", "-q", image)
    berth.ok("volume", "create", "hold")
    data = berth.root / "volumes/hold/_data"
    argv = ["strace", "-f", "-qq", "-o", work / "trace", "-P", data,
            "-e", f"inject={call}:delay_exit=100000",
            *berth.argv("run", "--rm", "-v", "hold:/data", image, "true")]
    with exchanging(data, victim) as exchanged:
        subprocess.run(argv, check=False, capture_output=True, timeout=60)
    assert exchanged, "nothing was attacked"
    assert facts(victim) == before


# ---- inodes of the host -------------------------------------------------------------------------

# Changes what it can of each argument, and of its standard streams.
TOUCH = """
for path in "$@" /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; do
  chmod 0123 "$path"; chown 12:13 "$path"; touch -d '2001-02-03 04:05:06' "$path"
done 2>/dev/null
true"""


@pytest.fixture(autouse=True)
def null():
    """/dev/null of the host, put back whatever a test did."""
    path = pathlib.Path("/dev/null")
    before = path.stat()
    yield path
    os.chown(path, before.st_uid, before.st_gid)
    path.chmod(before.st_mode & 0o7777)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.profiles("root")
@pytest.mark.parametrize("flags", ((), ("-d",), ("-i",)), ids=" ".join)
def test_the_hosts_null_device_stays_as_it_is(berth, busybox, null, flags):
    before = facts(null)
    masked = ("/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/kcore", "/dev/null")
    berth.ok("run", "--name", "tug", *flags, busybox, *SHELL, TOUCH, "sh", *masked)
    berth.ok("wait", "tug")
    assert facts(null) == before


@pytest.mark.profiles("root")
def test_exec_and_a_health_check_leave_the_hosts_null_device_as_it_is(berth, busybox, null, work):
    before = facts(null)
    berth.ok("run", "-d", "--name", "tug", "--health-interval", "100ms", "--health-cmd",
             TOUCH + "; touch /checked", busybox, "sleep", "1000")
    berth.ok("exec", "tug", *SHELL, TOUCH, "sh")
    berth.ok("exec", "-d", "tug", *SHELL, TOUCH, "sh")
    berth.ok("exec", "tug", *SHELL, "until [ -e /checked ]; do sleep 0.1; done", timeout=30)
    berth.ok("rm", "-f", "tug")
    assert facts(null) == before


@pytest.mark.profiles("root")
@pytest.mark.parametrize("missing", ((), ("mount_setattr",)), ids=" ".join)
def test_a_container_without_a_null_device_gets_none_of_the_host(berth, busybox, null, missing):
    """Where exec and a health check find no /dev/null they make one, also before Linux 5.12."""
    before = facts(null)
    lacking = without(*missing) if missing else None

    def run(*words):
        return subprocess.run(berth.argv(*words), preexec_fn=lacking, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
    done = run("run", "-d", "--name", "tug", "--health-interval", "100ms", "--health-cmd",
               TOUCH + "; : > /checked", busybox, *SHELL, "rm /dev/null; sleep 1000")
    assert done.returncode == 0, done.stderr
    script = "until [ -e /checked ]; do sleep 0.1; done; " + TOUCH + "; echo lost > /proc/self/fd/0"
    assert run("exec", "tug", *SHELL, script, "sh").returncode == 0
    berth.ok("rm", "-f", "tug")
    assert facts(null) == before


@pytest.mark.profiles("root")
def test_what_is_masked_and_read_from_null_still_works(berth, busybox):
    script = "cat /proc/keys | wc -c; echo lost > /proc/keys && echo written; cat | wc -c"
    assert berth.ok("run", "--rm", busybox, *SHELL, script).split() == ["0", "written", "0"]


@pytest.mark.profiles("root")
def test_masks_are_read_only_on_a_kernel_without_mount_setattr(berth, busybox, null):
    before = facts(null)
    done = subprocess.run(berth.argv("run", "--rm", busybox, *SHELL, TOUCH, "sh", "/proc/keys"),
                          preexec_fn=without("mount_setattr"), capture_output=True, text=True,
                          stdin=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert facts(null) == before


def host_devices():
    """Numbers of the host's file systems, as mountinfo has them."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return {os.makedev(*map(int, line.split()[2].split(":"))) for line in lines}


def points(pid):
    """Where something is mounted in the namespace of a process."""
    lines = pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return [line.split()[4].encode().decode("unicode_escape") for line in lines]


@pytest.mark.parametrize("flags", (
    ("--init",), ("-t",), ("--gpus", "all"), ("--gpus", "all", "--gpu-driver", "volume"),
    ("--device", "/dev/fuse"), ("--network", "host"), ("--pid", "host")), ids=" ".join)
def test_nothing_of_the_host_that_a_container_sees_can_be_changed(
        berth, busybox, profile, driver_tree, work, flags):
    """Of every mount of a container, what is the host's and not this container's own. Not of those
    that were asked for as the host's own and writable: -v, --ipc host, --privileged."""
    tree = driver_tree("one") if "--gpus" in flags else None
    before_run = ("--driver-root", str(tree)) if tree else ()
    berth.ok("pull", "-q", busybox)
    berth.ok(*before_run, "run", "-d", "--name", "tug", "--stop-timeout", "1", *flags, busybox,
             "sleep", "1000")
    pid = int(berth.ok("inspect", "-f", "{{.State.Pid}}", "tug"))
    shared = host_devices()
    seen = {}
    for point in points(pid):
        there = f"/proc/{pid}/root{point}"
        with contextlib.suppress(OSError):
            if os.lstat(there).st_dev not in shared:
                continue
            seen[point] = there, facts(there)
    berth.run("exec", "-u", "0", "tug", *SHELL, TOUCH, "sh", *seen)
    changed = [point for point, (there, before) in seen.items() if facts(there) != before]
    berth.ok("rm", "-f", "tug")
    # Files that were made for this container are its own: as under docker.
    assert set(changed) <= {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/"}


# ---- files of a container that are none ---------------------------------------------------------

@pytest.fixture
def trap(berth, busybox):
    """trap(path) → a running container in which a device lies at `path`; its number is one that
    the container's own rules do not let it open."""
    def make(*paths):
        lay = "; ".join(f"rm -f {path}; mknod {path} c 1 11" for path in paths)
        berth.ok("run", "-d", "--name", "tug", busybox, *SHELL, f"{lay}; touch /ready; sleep 1000")
        berth.ok("exec", "tug", *SHELL, "until [ -e /ready ]; do sleep 0.1; done")
        return "tug"
    yield make
    berth.run("rm", "-f", "tug")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("words", (
    ("exec", "-u", "root", "tug", "true"), ("exec", "-u", "root:root", "tug", "true"),
    ("diff", "tug"), ("commit", "tug", "copy:1"), ("export", "-o", "/dev/null", "tug"),
    ("cp", "tug:/etc", "-"), ("top", "tug")), ids=lambda words: " ".join(words[:2]))
def test_no_device_that_a_container_makes_is_opened(berth, trap, work, words):
    """A device's place may be one where the engine reads a file; opening it may already do
    something, and the engine is in the host's device cgroup."""
    trap("/etc/passwd", "/etc/group")
    trace = work / "trace"
    subprocess.run(["strace", "-f", "-y", "-qq", "-o", trace, "-e", "trace=openat,openat2,open",
                    *berth.argv(*words)], check=False, capture_output=True, timeout=60)
    device = [line for line in trace.read_text().splitlines()
              if "<char 1:11>" in line.rpartition("=")[2] and "O_PATH" not in line]
    assert not device


@pytest.mark.profiles("root")
def test_a_user_is_looked_for_in_a_regular_file_alone(berth, trap):
    trap("/etc/passwd")
    assert berth.fail("exec", "-u", "root", "tug", "true", status=126) == (
        "berth: user 'root' is not in the container's /etc/passwd; try: a numeric id")
    assert berth.ok("exec", "-u", "0", "tug", "id", "-u") == "0\n"
