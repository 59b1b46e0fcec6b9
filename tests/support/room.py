#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A view of this machine for one test session, so that two of them run side by side.

usage: room.py COMMAND [ARGUMENT…]

The sessions make users, mounts, cgroups, bridges and files at known paths, and check what they left. In a
room all of these are private: /etc in an overlay, /tmp, /run and /dev/shm in memory, a network of loopback
and an unconnected 'eth0', and a subtree of the machine's cgroups as the apparent root. With only cgroup v2, a
directory with processes cannot delegate controllers: a room then uses the machine's cgroups, and the next one
waits. When the command has ended, the kernel kills all remaining processes. Without root the command runs
directly."""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

CGROUPS = pathlib.Path("/sys/fs/cgroup")
# With the pid namespace, since a pid identifies no process of another one (./dev elsewhere).
NAME = f"berth-tests-room-{os.stat('/proc/self/ns/pid').st_ino}"
NAMESPACES = ("--mount", "--propagation=private", "--pid", "--fork", "--mount-proc", "--ipc",
              "--net", "--kill-child")
LOCK = pathlib.Path("/run/lock/berth-tests-rooms")
IN_MEMORY = (("/tmp", "mode=1777"), ("/run", "mode=755"), ("/dev/shm", "mode=1777"))


def cgroup_mounts():
    """[(mount point, type, options)] of the v1 hierarchies and the unified one."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        head, _, tail = line.partition(" - ")
        kind, _, options = tail.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            options = ",".join(o for o in options.split(",") if o not in ("rw", "nsdelegate"))
            found[pathlib.Path(head.split()[4])] = (kind, options)
    return [(place, *rest) for place, rest in sorted(found.items())]


# ---- outside: the cgroups -----------------------------------------------------------------------

def _remove_tree(directory):
    for path, _, _ in sorted(os.walk(directory), reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _remove_those_of_killed_rooms():
    for place, _, _ in cgroup_mounts():
        for directory in place.glob(f"{NAME}-*"):
            if not pathlib.Path("/proc", directory.name.rpartition("-")[2]).exists():
                _remove_tree(directory)


def _make_cgroups():
    """This process's cgroups, one in each hierarchy, named by its pid."""
    made = []
    for place, kind, _ in cgroup_mounts():
        directory = place / f"{NAME}-{os.getpid()}"
        _remove_tree(directory)  # of a killed process with the same pid
        directory.mkdir()
        made.append(directory)
        for name in ("cpuset.cpus", "cpuset.mems") if kind == "cgroup" else ():
            if (place / name).exists():
                (directory / name).write_text((place / name).read_text())
        if (place / "cpu.rt_runtime_us").exists():
            (directory / "cpu.rt_runtime_us").write_text("20000")  # per second: rooms share it
    return made


@contextlib.contextmanager
def _alone():
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with open(LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def outside(command):
    if any(kind == "cgroup" for _, kind, _ in cgroup_mounts()):
        _remove_those_of_killed_rooms()
        return _run(command, _make_cgroups(), [*NAMESPACES, "--cgroup"])
    with _alone():
        return _run(command, [], NAMESPACES)


def _run(command, made, namespaces):
    def enter():
        for directory in made:
            (directory / "cgroup.procs").write_text("0")
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL

    try:
        return subprocess.run(["unshare", *namespaces, sys.executable, __file__, "--inside",
                               *command], preexec_fn=enter, check=False).returncode
    finally:
        for directory in made:
            _remove_tree(directory)


# ---- inside, as the first process ---------------------------------------------------------------

def _mount(kind, place, options="", source=None):
    subprocess.run(["mount", "-t", kind, "-o", options or "rw", source or kind, place], check=True)


def own_etc():
    _mount("tmpfs", "/mnt")
    for name in ("upper", "work"):
        os.mkdir(f"/mnt/{name}")
    _mount("overlay", "/etc", "lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work")
    subprocess.run(["umount", "--lazy", "/mnt"], check=True)


def _own_memory():
    """Keeps the directories of the tests and programs visible, wherever the checkout is."""
    checkout, here = pathlib.Path(__file__).resolve().parents[2], pathlib.Path.cwd()
    wanted = [checkout,
              *(pathlib.Path(os.environ[name]).resolve()
                for name in ("BERTH_TEST_PROGRAMS", "BERTH_TEST_CACHE") if name in os.environ)]
    kept = [(path, os.open(path, os.O_PATH)) for path in wanted
            if path.is_dir() and any(path.is_relative_to(place) for place, _ in IN_MEMORY)]
    for place, options in IN_MEMORY:
        _mount("tmpfs", place, options)
    for path, handle in kept:
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{handle}", path],
                       check=True, pass_fds=[handle])
        os.close(handle)
    os.makedirs("/run/lock", exist_ok=True)
    os.chdir(here if here.is_dir() else checkout)


def _own_sys(cgroups):
    """A sysfs that shows this network, and cgroups with the room's as their root."""
    subprocess.run(["umount", "--recursive", "--lazy", "/sys"], check=True)
    _mount("sysfs", "/sys")
    if CGROUPS not in [place for place, _, _ in cgroups]:
        _mount("tmpfs", CGROUPS, "mode=755")
    for place, kind, options in cgroups:
        place.mkdir(exist_ok=True)
        _mount(kind, place, options)


def _own_network():
    for command in ("link set lo up", "link add eth0 type veth peer name wire", "link set wire up",
                    "address add 192.0.2.2/24 dev eth0", "link set eth0 up",
                    "route add default via 192.0.2.1"):
        subprocess.run(["ip", *command.split()], check=True)


def _open_fuse():
    """For all users, as udev does: images in files need it. It is the machine's device."""
    if os.path.exists("/dev/fuse"):
        os.chmod("/dev/fuse", 0o666)


def inside(command):
    cgroups = cgroup_mounts()
    own_etc()
    _own_memory()
    _own_sys(cgroups)
    _own_network()
    _open_fuse()
    child = subprocess.Popen(command)
    while True:
        pid, status = os.wait()  # also orphans: no other process reaps them
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def main(arguments):
    if arguments[:1] == ["--inside"]:
        return inside(arguments[1:])
    if not arguments:
        sys.exit(__doc__.splitlines()[2])
    if os.geteuid() != 0 or not shutil.which("unshare"):
        os.execvp(arguments[0], arguments)
    status = outside(arguments)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
