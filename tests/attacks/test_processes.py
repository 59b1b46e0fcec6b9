# SPDX-License-Identifier: Apache-2.0
"""Containers that reach for the runtime's own processes: its program, its descriptors, its memory,
its terminal and what it leaves open for others."""

import fcntl
import os
import pty
import shutil
import stat
import subprocess
import termios
from pathlib import Path

import pytest

from support.attacks import (DESCRIPTORS, ROUNDS, RUNTIME, UP, digest, give_tool, holds, identity,
                             may_trace)


def join(bundle, pid, *kinds):
    """Has the container share namespaces of the process, as the containers of a pod do."""
    for space in bundle.linux["namespaces"]:
        if space["type"] in kinds:
            space["path"] = f"/proc/{pid}/ns/{space['type']}"


def map_ids(bundle):
    """A user namespace whose root is nobody of the host; the image is his."""
    bundle.linux["namespaces"].append({"type": "user"})
    mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    bundle.linux["uidMappings"] = bundle.linux["gidMappings"] = mapping
    for path in (bundle.rootfs, *bundle.rootfs.rglob("*")):
        os.chown(path, 100000, 100000, follow_symlinks=False)


# ---- the program of the runtime -----------------------------------------------------------------

@pytest.mark.attack("the runtime's program through /proc/PID/exe, at run")
@pytest.mark.parametrize("program", ["/bin/true", "/proc/self/exe", "#!/proc/self/exe"])
def test_cve_2019_5736_the_program_at_run(target, new_bundle, watch, program):
    """A container of a shared pid namespace opens the program of its neighbour while that still is
    the runtime, and writes to it afterwards; the file may not change."""
    before = digest(target.program)
    watcher = watch(may_trace(new_bundle()), "overwrite", identity(target.program))
    neighbour = new_bundle()
    join(neighbour, watcher.pid, "pid")
    if program.startswith("#!"):
        script = neighbour.rootfs / "bin/script"
        script.write_text(f"{program}\n")
        script.chmod(0o755)
        program = "/bin/script"
    neighbour.args(program, "--version")
    for _ in range(max(ROUNDS // 4, 3)):
        if target.run(neighbour).code == 0:
            target.entered = True
    lines = watcher.stop()
    holds("overwritten" not in lines and digest(target.program) == before,
          "the runtime's program was overwritten")


# ---- descriptors and memory ---------------------------------------------------------------------

@pytest.mark.attack("the host's root through a container's first process, by root of the user namespace that it joins")
def test_cve_2016_9962_the_first_process_in_joined_namespaces(target, new_bundle, watch, outside):
    """Root of a user namespace looks through the processes of the containers that join it; while
    they are the runtime, with the host's root, he may not."""
    mine = new_bundle()
    map_ids(mine)
    watcher = watch(may_trace(mine), "read-through", outside.mark)
    neighbour = new_bundle()
    map_ids(neighbour)
    join(neighbour, watcher.pid, "user", "pid")
    if target.run(neighbour.shell("echo in")).code != 0:  # newer ones have to be told without
        for name in ("uidMappings", "gidMappings"):
            del neighbour.linux[name]
    for _ in range(ROUNDS):
        done = target.run(neighbour.shell("echo in"))
    lines = watcher.stop()
    if not target.entered:
        pytest.skip(f"cannot join a user namespace: {done.err.strip()}")
    holds(not any(line.startswith("stolen") for line in lines), f"a way to the host: {set(lines)}")


@pytest.mark.attack("the host's root through a container's first process, by a neighbour in a shared pid namespace")
def test_cve_2016_9962_a_new_user_namespace_in_a_joined_pid_namespace(target, new_bundle, watch,
                                                                      outside):
    """A container without CAP_SYS_PTRACE looks through its neighbours, who get a user namespace of
    their own; while they are the runtime, with the host's root, it may not."""
    watcher = watch(new_bundle(), "read-through", outside.mark)
    neighbour = new_bundle()
    map_ids(neighbour)
    join(neighbour, watcher.pid, "pid")
    for mount in neighbour.config["mounts"]:
        if mount["type"] == "proc":  # one of that pid namespace is not his to mount
            mount |= {"type": "bind", "source": "/proc", "options": ["rbind"]}
    for _ in range(ROUNDS):
        done = target.run(neighbour.shell("echo in"))
    lines = watcher.stop()
    if not target.entered:
        pytest.skip(f"cannot make a user namespace in a joined pid namespace: {done.err.strip()}")
    holds(not any(line.startswith("stolen") for line in lines), f"a way to the host: {set(lines)}")


@pytest.mark.attack("the host's files, through a descriptor of the runtime as working directory, at run")
@pytest.mark.parametrize("form", ["/proc/self/fd/{}", "/proc/1/fd/{}/", "/link"])
def test_cve_2024_21626_the_directory_at_run(target, bundle, outside, form):
    """A container's working directory is a descriptor of the runtime's; nothing of the host may be
    reached from there."""
    bundle.shell(f"echo in; cat {UP}{outside.mark}")
    link = bundle.rootfs / "link"
    for number in DESCRIPTORS:
        link.unlink(missing_ok=True)
        link.symlink_to(f"/proc/self/fd/{number}")
        bundle.process["cwd"] = form.format(number)
        done = target.run(bundle)
        holds(outside.SECRET not in done.out, f"a file of the host was read by way of {number}")


@pytest.mark.attack("a program of the host, through a descriptor of the runtime")
@pytest.mark.parametrize("form", ["args", "script"])
def test_cve_2024_21626_the_program(target, bundle, outside, place, form):
    """A container's program, or its interpreter, is a path through a descriptor of the runtime's;
    no program of the host may be executed."""
    shutil.copy2(bundle.rootfs / "bin/busybox", place / "busybox")
    for number in DESCRIPTORS:
        path = f"/proc/self/fd/{number}/{UP}{place}/busybox"
        if form == "script":
            script = bundle.rootfs / "bin/script"
            script.write_text(f"#!{path} cat\nit came from the host\n")
            script.chmod(0o755)
            done = target.run(bundle.args("/bin/script"))
        else:
            done = target.run(bundle.args(path, "echo", "it came from the host"))
        holds("from the host" not in done.out, f"a program was executed by way of {number}")


# ---- the caller's terminal, sockets, state ------------------------------------------------------

def on_a_terminal(command):
    """Runs `command` with a terminal as its own in every sense; → what it printed."""
    master, slave = pty.openpty()

    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    try:
        return subprocess.run(command, stdin=slave, stdout=subprocess.PIPE, check=False, text=True,
                              start_new_session=True, preexec_fn=take_terminal, timeout=30).stdout
    finally:
        os.close(slave)
        os.close(master)


@pytest.mark.attack("the caller's terminal (TIOCSTI)")
def test_cve_2017_5226_the_callers_terminal(target, bundle):
    """A container is started from a terminal and pushes characters into it; the caller's shell may
    not find any, nor may the container have that terminal as its own."""
    bundle.args(give_tool(bundle, "intruder"), "inject").write()
    out = on_a_terminal([*target.inside, str(target.program), "--root", str(target.root), "run",
                         "--bundle", str(bundle.directory), "c1"])
    assert "tried" in out
    target.entered = True
    holds("injected" not in out, "a character was pushed into the caller's terminal")
    holds("has a terminal" not in out, "the caller's terminal is the container's")


def abstract_sockets():
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return {line.split()[-1] for line in lines if line.split()[-1].startswith("@")}


@pytest.mark.attack("the runtime's abstract sockets, from a container on the host's network")
def test_cve_2020_15257_abstract_sockets(target, bundle):
    """A container on the host's network looks for sockets of the runtime's that no directory
    protects; there may be none."""
    spaces = bundle.linux["namespaces"]
    bundle.linux["namespaces"] = [one for one in spaces if one["type"] != "network"]
    before = abstract_sockets()
    name, done, _ = target.create(bundle.args("/bin/sleep", "60"))
    assert done.code == 0, done
    created = abstract_sockets()
    target.start(name)
    running = abstract_sockets()
    target.delete(name)
    new = (created | running) - before
    holds(not new, f"sockets that every container can reach: {new}")


def open_to_others(target):
    """The files and sockets below the state directory that an ordinary user can read or write. A
    FIFO that he can write to keeps runc waiting, no more."""
    paths = [str(path) for path in target.root.rglob("*")
             if not path.is_dir() and not path.is_fifo()]
    assert paths
    script = 'for p; do { [ -r "$p" ] || [ -w "$p" ]; } && echo "$p"; done; true'
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh",
                           "-c", script, "sh", *paths], check=True, capture_output=True,
                          text=True).stdout.split()


@pytest.mark.attack("a state directory that the runtime made, seen by another user")
def test_cve_2021_41103_the_state_directory(target, bundle):
    """Another user of the machine looks into the state directory; he may not even list it, and no
    file or socket in it may be his to read or write."""
    name, done, _ = target.create(bundle.args("/bin/sleep", "60"))
    assert done.code == 0, done
    target.entered = True
    found = open_to_others(target)
    mode = target.root.stat().st_mode
    target.delete(name)
    holds(not found, f"another user may open {found}")
    holds(mode & 0o007 == 0, "another user may enter the state directory")


@pytest.mark.attack("a container's state in a directory that all can enter")
def test_cve_2024_25621_the_state_of_a_container(target, bundle):
    """Another user of the machine looks into a container's state, in a state directory that
    somebody else made; no file or socket in it may be his to read or write."""
    target.root.mkdir()
    target.root.chmod(0o755)
    name, done, _ = target.create(bundle.args("/bin/sleep", "60"))
    assert done.code == 0, done
    target.entered = True
    found = open_to_others(target)
    target.delete(name)
    holds(not found, f"another user may open {found}")


@pytest.mark.attack("setuid, setgid and file capabilities of the runtime's program")
def test_cve_2020_5291_the_program_gives_no_rights(target):
    """An ordinary user executes the runtime and traces it; its file may not give him any rights."""
    target.entered = True
    holds(os.stat(RUNTIME).st_mode & (stat.S_ISUID | stat.S_ISGID) == 0, "the program is set-id")
    holds("security.capability" not in os.listxattr(RUNTIME), "the program has capabilities")


@pytest.mark.attack("the runtime's verb ps, by a program ps in the image")
def test_cve_2022_1227_ps_of_the_image(target, bundle):
    """An image brings programs with the names of those that list processes; they may not be
    executed when the host lists the container's."""
    for name in ("ps", "nsenter"):
        fake = bundle.rootfs / "bin" / name
        fake.unlink(missing_ok=True)
        fake.write_text("#!/bin/sh\n: >/fooled\n")
        fake.chmod(0o755)
    name, done, _ = target.create(bundle.args("/bin/sleep", "60"))
    assert done.code == 0 and target.start(name).code == 0
    done = target.call("ps", name)
    assert done.code == 0, done
    target.delete(name)
    holds(not (bundle.rootfs / "fooled").exists(), "a program of the image was executed")


# ---- the attackers work -------------------------------------------------------------------------

def test_payload_a_program_without_protection_is_overwritten(target, bundle, watch, place):
    victim = place / "busybox"
    shutil.copy2(shutil.which("busybox"), victim)
    watcher = watch(may_trace(bundle), "overwrite", identity(victim))
    subprocess.run(["nsenter", f"--pid=/proc/{watcher.pid}/ns/pid", victim, "sleep", "0.3"],
                   check=True)
    watcher.wait_for("overwritten")
    assert victim.read_bytes().startswith(b"pwned")


def test_payload_a_way_to_the_host_is_found(target, bundle, watch, outside):
    watcher = watch(may_trace(bundle), "read-through", outside.mark)
    directory = os.open(outside.path, os.O_RDONLY)
    try:
        subprocess.run(["nsenter", f"--pid=/proc/{watcher.pid}/ns/pid", "sleep", "0.3"], check=True,
                       cwd=outside.path, pass_fds=[directory])
    finally:
        os.close(directory)
    lines = watcher.stop()
    assert {"stolen: root", "stolen: cwd", "stolen: fd"} <= set(lines)


def test_payload_a_terminal_can_be_injected_into(bundle):
    program = bundle.rootfs / give_tool(bundle, "intruder")[1:]
    out = on_a_terminal([str(program), "inject"])
    assert "has a terminal" in out and "tried" in out
    if Path("/proc/sys/dev/tty/legacy_tiocsti").read_text().strip() == "1":
        assert "injected" in out
