# SPDX-License-Identifier: Apache-2.0
"""The parts of the attack suite: the runtime under attack, the host outside of its containers, and attackers
beside and inside them."""

import contextlib
import ctypes
import dataclasses
import errno
import hashlib
import json
import os
import select
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support import mount_view
from support.bundle import PROGRAMS, Bundle

BERTH = PROGRAMS / "berth-runtime"
RUNTIME = Path(os.environ.get("RUNTIME") or BERTH).resolve()
TOOLS = PROGRAMS.parent / "tests"
ROUNDS = int(os.environ.get("BERTH_ATTACK_ROUNDS", "20"))


class Broken(AssertionError):
    """The attack succeeded."""


def holds(condition, what):
    """Fails the test if the attack succeeded; `what` is what the attacker got."""
    if not condition:
        raise Broken(what)


def run_command(command, **options):
    """Runs a command; retries if an attacker has the program open for writing at that moment."""
    for _ in range(20):
        try:
            return subprocess.run(command, check=False, timeout=30, **options).returncode
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
        time.sleep(0.001)
    raise AssertionError(f"cannot execute {command[0]}")


@dataclasses.dataclass
class Done:
    code: int
    out: str
    err: str


class Target:
    """A copy of the runtime's program, which an attack may overwrite, with a separate --root."""

    def __init__(self, program, directory, inside=()):
        self.program = program
        self.inside = list(inside)  # a command in front of all others
        self.directory = directory
        self.root = directory / "state"
        self.entered = False  # a container of the attack has run
        self.prefix = []
        self._names = 0
        self.alive = []

    def name(self):
        self._names += 1
        return f"a{self._names}"

    def call(self, *words, **options):
        command = [*self.inside, *self.prefix, str(self.program), "--root", str(self.root), *words]
        options.setdefault("stdin", subprocess.DEVNULL)
        # To files: with a pipe, a process that keeps it open would make this wait.
        with tempfile.TemporaryFile("w+", dir=self.directory) as out, \
                tempfile.TemporaryFile("w+", dir=self.directory) as err:
            code = run_command(command, stdout=out, stderr=err, **options)
            out.seek(0)
            err.seek(0)
            return Done(code, out.read(), err.read())

    def run(self, bundle, **options):
        """Runs a container to its end. Its program reports that it ran with a first line "in"."""
        bundle.write()
        name = self.name()
        done = self.call("run", "--bundle", str(bundle.directory), name, **options)
        if done.code != 0:
            self.call("delete", "--force", name)
        if "in" in done.out.splitlines():
            self.entered = True
        return done

    def create(self, bundle, *flags, **options):
        """→ (name, Done, path of the output of the container)"""
        bundle.write()
        name = self.name()
        self.alive.append(name)
        command = [*self.inside, *self.prefix, str(self.program), "--root", str(self.root),
                   "create", *flags, "--bundle", str(bundle.directory), name]
        output = self.directory / f"{name}.out"
        options.setdefault("stdin", subprocess.DEVNULL)
        with open(output, "w", encoding="utf-8") as file:
            code = run_command(command, stdout=file, stderr=file, **options)
        return name, Done(code, "", output.read_text()), output

    def start(self, name):
        done = self.call("start", name)
        self.entered = self.entered or done.code == 0
        return done

    def run_on_terminal(self, bundle):
        """Runs a container with a terminal whose master this process holds; then deletes it."""
        bundle.process["terminal"] = True
        path = self.directory / "tty"
        with socket.socket(socket.AF_UNIX) as console:
            console.bind(str(path))
            console.listen()
            name, done, _ = self.create(bundle, "--console-socket", str(path))
            if done.code == 0:
                with console.accept()[0] as connection:
                    _, terminals, _, _ = socket.recv_fds(connection, 256, 4)
                    self.start(name)
                    self._await_end(terminals[0])
                    for terminal in terminals:
                        os.close(terminal)
        self.delete(name)
        path.unlink()
        return done

    @staticmethod
    def _await_end(terminal, patience=5):
        """At the end of a terminal, a read from its master fails."""
        while select.select([terminal], [], [], patience)[0]:
            try:
                os.read(terminal, 4096)
            except OSError:
                return

    def exec(self, name, *command, flags=(), **options):
        done = self.call("exec", *flags, name, *command, **options)
        if "in" in done.out.splitlines():
            self.entered = True
        return done

    def pid(self, name):
        done = self.call("state", name)
        assert done.code == 0, done
        return json.loads(done.out)["pid"]

    def delete(self, name):
        self.call("delete", "--force", name)
        self.alive.remove(name)

    def clear(self):
        for name in list(self.alive):
            self.delete(name)

    def needs(self, bundle, what):
        """The harmless variant of an attack must run; otherwise its refusal would prove nothing."""
        done = self.run(bundle)
        self.entered = False
        if done.code != 0:
            pytest.skip(f"{self.program.name} cannot run {what}: {done.err.strip()}")


def make_bundle(place, name):
    made = Bundle(place / name)
    made.config["ociVersion"] = "1.0.2"  # which old runtimes accept too
    made.linux["cgroupsPath"] = f"/berth-attack-{place.name[-8:]}-{name}"
    for directory in ("proc", "sys", "dev"):
        (made.rootfs / directory).mkdir()
    return made


@contextlib.contextmanager
def view_of_cgroups(runtime, directory):
    """The command in front of `runtime` that makes it accept this machine's cgroups: empty, or one that
    enters a mount namespace with hugetlb as a v1 hierarchy."""
    if "crun" not in runtime.name or not os.path.exists("/sys/fs/cgroup/unified"):
        yield []
        return
    # Debian's crun refuses a hybrid hierarchy with a controller in its v2 half.
    with mount_view.view(mount_view.CGROUPS, directory, "hugetlb") as command:
        yield command


def may_trace(bundle):
    """Gives the attacker CAP_SYS_PTRACE: no protection may depend on its absence."""
    for name, names in bundle.process["capabilities"].items():
        bundle.process["capabilities"][name] = [*names, "CAP_SYS_PTRACE"]
    return bundle


CORE_PATTERN = "/proc/sys/kernel/core_pattern"


def watched_proc(*places):
    """A script that prints "writable" for each of `places` with a procfs whose settings can be opened for
    writing; it writes nothing."""
    return (f"for d in {' '.join(places)}; do [ \"$(cat $d/1/comm 2>/dev/null)\" ] && "
            "(: >>$d/sys/kernel/core_pattern) 2>/dev/null && echo writable $d; done; true")


def let_dev_be(bundle, keep=()):
    """Keeps the image's own /dev visible, except for the mounts at `keep`."""
    mounts = bundle.config["mounts"]
    mounts[:] = [one for one in mounts
                 if not one["destination"].startswith("/dev") or one["destination"] in keep]


def device_volume(place):
    """A directory of the attacker with the entries that a runtime expects in /dev."""
    dev = place / "dev"
    for name in ("", "pts", "shm", "mqueue"):
        (dev / name).mkdir()
    for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
        os.mknod(dev / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (dev / name).chmod(0o666)
    os.mknod(dev / "tty", stat.S_IFCHR | 0o666, os.makedev(5, 0))
    (dev / "ptmx").symlink_to("pts/ptmx")
    return dev


class Outside:
    """A directory of the host that is in no container."""

    SECRET = "the host's"

    def __init__(self, place):
        self.path = place / "outside"
        self.path.mkdir()
        self.mark = place / "mark"
        self.mark.write_text(self.SECRET)
        self.seen = place / "mountinfo"

    def watch_mounts(self, bundle):
        """Adds a hook that records the mount table of the runtime's mount namespace, before the pivot."""
        script = f"cat /proc/self/mountinfo >>{self.seen}"
        hooks = bundle.config.setdefault("hooks", {}).setdefault("createContainer", [])
        hooks.append({"path": "/bin/sh", "args": ["sh", "-c", script]})

    def assert_untouched(self):
        made = sorted(str(path.relative_to(self.path)) for path in self.path.rglob("*"))
        holds(not made, f"the runtime made {made} on the host")
        self.assert_no_mounts()

    def assert_no_mounts(self):
        mounts = self.seen.read_text() if self.seen.exists() else ""
        points = [line.split()[4] for line in mounts.splitlines()]
        escaped = [point for point in points if point.startswith(str(self.path))]
        holds(not escaped, f"the runtime mounted over the host's {escaped[:3]}")


def tool(name):
    path = TOOLS / name
    assert path.exists(), f"no {path}: run './dev build release'"
    return path


def give_tool(bundle, name):
    shutil.copy2(tool(name), bundle.rootfs / "bin" / name)
    return f"/bin/{name}"


@contextlib.contextmanager
def swapping(*pairs):
    """An outside process exchanges the names of each pair until the end of the block."""
    with contextlib.ExitStack() as stack:
        for first, second in pairs:
            process = subprocess.Popen([tool("intruder"), "swap", first, second])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


@contextlib.contextmanager
def opened(path):
    """events() → whether any process has opened the file since. inotify(7)"""
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    in_open = 0x20
    assert libc.inotify_add_watch(queue, bytes(path), in_open) >= 0
    try:
        yield lambda: bool(select.select([queue], [], [], 0)[0])
    finally:
        os.close(queue)


class Watcher:
    """A container of the attacker that inspects the processes around it until it is stopped."""

    def __init__(self, target, bundle, *words):
        self.target = target
        read, self._input = os.pipe()
        try:
            bundle.args(give_tool(bundle, "intruder"), *map(str, words))
            self.name, done, self._output = target.create(bundle, stdin=read)
        finally:
            os.close(read)
        if done.code == 0:
            done = target.start(self.name)
        if done.code != 0:
            self.stop()
            pytest.skip(f"{target.program.name} cannot run the watcher: {done.err.strip()}")
        target.entered = False
        self.pid = target.pid(self.name)
        self.wait_for("looking")

    def lines(self):
        return self._output.read_text().splitlines()

    def wait_for(self, line, patience=5.0):
        deadline = time.monotonic() + patience
        while line not in self.lines() and time.monotonic() < deadline:
            time.sleep(0.005)
        assert line in self.lines(), self.lines()

    def stop(self):
        if self._input is not None:
            os.close(self._input)
            self._input = None
        return self.lines()


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def identity(path):
    info = os.stat(path)
    return f"{os.major(info.st_dev)},{os.minor(info.st_dev)}:{info.st_ino}"


UP = "../" * 20
DESCRIPTORS = range(3, 16)
INHERITING = ("setpriv", "--inh-caps=+net_admin,+sys_admin")
STATUS = "cat /proc/self/status"
GAINING = "/gain/cat /proc/self/status"


def field(status, name):
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return lines[name].strip() if name in lines else None


def give_file_capability(path, number):
    """Sets an inheritable file capability: processes that hold it in their inheritable set gain it."""
    low = 1 << number
    value = struct.pack("<5I", 0x02000000, 0, low, 0, 0)
    os.setxattr(path, "security.capability", value)


def make_gaining(bundle):
    """An image with a program through which an ordinary user gains CAP_NET_ADMIN if it is inheritable."""
    program = bundle.rootfs / "gain/cat"
    program.parent.mkdir()
    shutil.copy2(bundle.rootfs / "bin/busybox", program)
    give_file_capability(program, 12)
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    bundle.process["noNewPrivileges"] = False
    for name in ("bounding", "effective", "permitted"):
        names = bundle.process["capabilities"][name]
        bundle.process["capabilities"][name] = [*names, "CAP_NET_ADMIN"]
    return bundle
