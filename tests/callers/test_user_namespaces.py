# SPDX-License-Identifier: Apache-2.0
"""Containers of podman, containerd and dockerd whose root is somebody else on the host: what root's
caller may reach and the container's user namespace may not is there (docs/decisions/0175), mapped by
the kernel or not."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import threading

import pytest

from callers.test_gpu import NODES, SECOND, VARIABLE, Site
from support import callers

FIRST, COUNT = 200000, 65536
MAPS = [f"--uidmap=0:{FIRST}:{COUNT}", f"--gidmap=0:{FIRST}:{COUNT}"]


class Remapping(callers.Docker):
    """A dockerd all of whose containers are in a user namespace."""

    def configuration(self):
        path = super().configuration()
        wanted = json.loads(path.read_text())
        path.write_text(json.dumps({**wanted, "userns-remap": "remapped"}))
        return path


@pytest.fixture(scope="module")
def remapping(session_directory, tested, view):
    place = session_directory / "remapping"
    place.mkdir()
    subprocess.run([*view, "sh", "-c", f"echo remapped:{FIRST}:{COUNT} | tee -a /etc/subuid >>/etc/subgid;"
                    f"echo remapped:x:{FIRST}: >>/etc/group; echo remapped:x:{FIRST}:{FIRST}::/:/bin/false >>/etc/passwd"],
                   check=True)
    with Remapping(tested, place, view).running() as made:
        yield made


@pytest.fixture(params=["podman", "containerd", "dockerd"])
def engine(request, started):
    """(the engine, its flags for a user namespace)"""
    made = request.getfixturevalue("remapping") if request.param == "dockerd" else started(request.param)
    yield made, [] if request.param == "dockerd" else MAPS
    made.remove_all()


@pytest.fixture
def shut(shared):
    """A directory that only the host's root may pass."""
    shared.chmod(0o755)
    made = shared / "shut"
    made.mkdir(mode=0o700)
    return made


def bind(engine, source, target, *options):
    if isinstance(engine, callers.Containerd):
        return ["--mount", f"type=bind,src={source},dst={target},options={':'.join(['rbind', *options])}"]
    return ["--volume", f"{source}:{target}:{','.join(options) or 'rw'}"]


def run(engine, flags, script, name="mapped", **wanted):
    argv = engine.argv_to_run(name, "sh", "-c", script, **wanted)
    argv[1:1] = flags
    done = engine.call(*argv)
    assert done.returncode == 0, done
    return done.stdout


def test_its_root_is_somebody_else_on_the_host(engine):
    made, flags = engine
    out = run(made, flags, "cat /proc/self/uid_map; id -u; touch /made && echo made")
    assert [line.split() for line in out.splitlines()] == [["0", str(FIRST), str(COUNT)], ["0"], ["made"]]


KINDS = {"directory": stat.S_IFDIR, "file": stat.S_IFREG, "socket": stat.S_IFSOCK, "fifo": stat.S_IFIFO,
         "character device": stat.S_IFCHR, "block device": stat.S_IFBLK}


@contextlib.contextmanager
def source(shut, kind, view):
    """Mounts are made where the engines see them."""
    path = shut / kind.replace(" ", "-")
    if kind == "directory":
        path.mkdir()
        (path / "file").write_text("inside\n")
        (path / "below").mkdir()
        below = path / "below"
        subprocess.run([*view, "sh", "-c", f"mount -t tmpfs tmpfs {below} && echo mounted below >{below}/file"], check=True)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "file":
        path.write_text("inside\n")
    else:
        os.mknod(path, KINDS[kind] | 0o666, os.makedev(7, 250) if kind == "block device" else os.makedev(1, 3))
    try:
        yield path
    finally:
        if kind == "directory":
            subprocess.run([*view, "umount", path / "below"], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_below_a_directory_that_is_shut_is_mounted(engine, shut, kind, view):
    made, flags = engine
    with source(shut, kind, view) as path:
        out = run(made, [*flags, *bind(made, path, "/given", "ro")],
                  "stat -c %f /given; [ ! -f /given ] || cat /given; cat /given/file /given/below/file 2>/dev/null; true")
    mode, *text = out.splitlines()
    assert stat.S_IFMT(int(mode, 16)) == KINDS[kind]
    assert text == {"file": ["inside"], "directory": ["inside", "mounted below"]}.get(kind, [])


def test_what_is_written_there_is_written_on_the_host(engine, shut):
    made, flags = engine
    (shut / "data").mkdir()
    os.chown(shut / "data", FIRST + 5, FIRST + 5)
    (shut / "data").chmod(0o777)
    run(made, [*flags, *bind(made, shut / "data", "/data")], "echo hello >/data/new; stat -c %u /data >/data/seen")
    assert (shut / "data/new").stat().st_uid == FIRST
    assert (shut / "data/seen").read_text() == "5\n"


def test_a_mount_whose_ids_are_mapped_by_the_kernel(started, shut):
    """What podman calls idmap, and a kubelet asks for where a pod has hostUsers: false."""
    made = started("podman")
    (shut / "data").mkdir()
    os.chown(shut / "data", 5, 5)
    (shut / "data").chmod(0o777)
    try:
        run(made, [*MAPS, *bind(made, shut / "data", "/data", "idmap")],
            "stat -c %u /data >/data/seen; echo hello >/data/new")
    finally:
        made.remove_all()
    assert ((shut / "data/seen").read_text(), (shut / "data/new").stat().st_uid) == ("5\n", 0)


def test_devices_of_the_command_line(engine):
    made, flags = engine
    given = ["--device", "/dev/full"]
    assert run(made, [*flags, *given], "stat -c %t:%T /dev/full; echo 2>&1 x >/dev/full | head -1; true"
               ).splitlines()[0] == "1:7"


def test_who_waits_on_the_host_is_reached(engine, shut):
    made, flags = engine
    os.mkfifo(shut / "fifo")
    (shut / "fifo").chmod(0o666)
    heard = []
    listener = threading.Thread(target=lambda: heard.append((shut / "fifo").read_text()))
    listener.start()
    run(made, [*flags, *bind(made, shut / "fifo", "/fifo")], "echo hello >/fifo")
    listener.join(10)
    assert heard == ["hello\n"]


def test_exec_and_a_second_life(engine):
    made, flags = engine
    argv = made.argv_to_run("mapped", "sleep", "600", detach=True)
    argv[1:1] = flags
    made.ok(*argv)
    done = made.exec("mapped", "sh", "-c", "id -u; cat /proc/self/uid_map")
    assert done.stdout.split() == ["0", "0", str(FIRST), str(COUNT)], done
    made.remove("mapped")
    assert run(made, flags, "id -u") == "0\n"


STAGES = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")


@pytest.mark.parametrize("stage", STAGES)
def test_hooks_of_podman_run_where_they_are_to_run(started, shared, stage):
    """Those of the container's own namespaces are executed by it: their programs are where it may go."""
    made = started("podman")
    shared.chmod(0o755)
    hooks, program, said = shared / "hooks", shared / "hook", shared / "said"
    hooks.mkdir()
    said.touch()
    said.chmod(0o666)
    program.write_text(f"#!/bin/sh\n(cat >/dev/null; readlink /proc/self/ns/user; id -u) >>{said}\n")
    program.chmod(0o755)
    (hooks / "one.json").write_text(json.dumps({
        "version": "1.0.0", "hook": {"path": str(program)}, "when": {"always": True}, "stages": [stage]}))
    client = made.client
    made.client = [*client, f"--hooks-dir={hooks}"]
    try:
        out = run(made, MAPS, "readlink /proc/self/ns/user")
    finally:
        made.client = client
        made.remove_all()
    callers.until(lambda: said.read_text().count("\n") == 2, "the hook has run")
    namespace, uid = said.read_text().split()
    assert uid == "0"
    # runtime-spec config.md "POSIX-platform Hooks": that one alone runs in the container's namespaces.
    assert (namespace == out.strip()) == (stage == "createContainer")


@pytest.mark.parametrize("more", [[], ["--read-only"], ["--userns=auto:size=4096"]])
def test_a_driver_is_there(started, view, driver_tree, more):
    """Its files lie in berth-runtime's state directory, which is root's alone."""
    made = started("podman")
    site = Site(view, driver_tree("eight"))
    site.write(environment="grant")
    flags = MAPS
    if more and more[0].startswith("--userns"):
        flags = []
        # The user, for libsubid of 2026, which looks for ranges of none that there is not.
        subprocess.run([*view, "sh", "-c", f"echo containers:{FIRST * 2}:{COUNT * 4} | tee -a /etc/subuid >>/etc/subgid;"
                        f"echo containers:x:{FIRST * 2}:{FIRST * 2}::/:/bin/false >>/etc/passwd"], check=True)
    try:
        out = run(made, [*flags, *more, *VARIABLE], f"{NODES}; ls /usr/local/nvidia/lib64; cat /proc/self/uid_map")
    finally:
        made.remove_all()
        site.shell("rm -rf /etc/berth /run/berth/gpu; sed -i /^containers:/d /etc/subuid /etc/subgid /etc/passwd")
    assert sorted(line for line in out.splitlines() if line.startswith("/dev/")) == SECOND
    assert "libcuda.so.1" in out.split() and out.splitlines()[-1].split()[:2] != ["0", "0"]
