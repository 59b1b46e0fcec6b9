# SPDX-License-Identifier: Apache-2.0
"""The programs that call an OCI runtime: Docker, containerd, podman and Slurm, with any runtime, in a private
view of this machine (mount_view) and without a network.

One interface for all of them: argv_to_run(), argv_to_exec(), pause(), …
"""

import contextlib
import fcntl
import functools
import io
import json
import os
import pty
import re
import struct
import subprocess
import tarfile
import termios
import time
from pathlib import Path

from support import images, mount_view, processes
from support.bundle import Bundle
from support.registry import die_with_parent
from support.slurm import Cluster

CGROUP = "berth-callers"  # the parent of all cgroups
IMAGE = "localhost/busybox:latest"
NVIDIAS_HOOK = "nvidia-container-runtime-hook"
PATIENCE = 60  # seconds after which a call counts as hung
# Programs that write outside of their directories write to an overlay.
VIEW = """
set -e
place=$1; shift
mount -t tmpfs -o mode=755 tmpfs /run
for directory in etc opt var/lib; do
  mkdir -p "$place/$directory/upper" "$place/$directory/work"
  mount -t overlay overlay "/$directory" -o \
    "lowerdir=/$directory,upperdir=$place/$directory/upper,workdir=$place/$directory/work"
done
[ $# -eq 0 ] || set -- "$place" "$@"
[ $# -eq 0 ] || mkdir "$place/cgroup"
[ $# -eq 0 ] || { shift; set -- "$place/cgroup" "$@"; }
"""


def until(condition, what, seconds=PATIENCE):
    """Waits until condition() is true, and returns its result."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def private_view(place):
    missing = mount_view.unmounted_hierarchies()
    script = VIEW + (mount_view.CGROUPS if missing else "")
    with mount_view.view(script, place, *missing) as command:
        yield command


@contextlib.contextmanager
def server(argv, directory, **options):
    """A daemon that ends with the block, or with this process."""
    log = directory / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   cwd=directory, preexec_fn=die_with_parent, **options)
    try:
        yield process, log
    finally:
        processes.end(process)


def busybox_tar(directory):
    path = directory / "rootfs.tar"
    path.write_bytes(images.busybox_layer())
    return path


def layout_archive(image, annotations=None, name=IMAGE):
    """An archive of the OCI layout, named for containerd and podman; `annotations`: the manifest's."""
    manifest = image.manifest
    if annotations:
        manifest = json.dumps({**json.loads(manifest), "annotations": annotations}).encode()
    digest = images.digest_of(manifest)
    index = {"schemaVersion": 2, "manifests": [{
        "mediaType": image.media_type, "digest": digest, "size": len(manifest),
        "annotations": {"io.containerd.image.name": name}}]}
    blobs = {**image.blobs, digest: manifest}
    members = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
               "index.json": json.dumps(index).encode(),
               **{f"blobs/{name.replace(':', '/')}": data for name, data in blobs.items()}}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def busybox_layout(directory):
    path = directory / "image.tar"
    path.write_bytes(layout_archive(images.busybox()))
    return path


class Caller:
    """`inside`: the command that enters the private view; `client`: the words before a verb."""

    def __init__(self, runtime, directory, inside):
        self.runtime, self.directory, self.inside = runtime, directory, inside
        self.client = []

    def site_flags(self):
        """The flags of berth-runtime for paths that differ from the machine's."""
        return [f"--config-dir={self.directory}/site", f"--state={self.directory}/berth"]

    def command(self, *words):
        return [str(word) for word in (*self.inside, *self.client, *words)]

    def call(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              timeout=PATIENCE, **options)

    def ok(self, *words, **options):
        done = self.call(*words, **options)
        assert done.returncode == 0, done
        return done.stdout

    def run(self, name, *command, stdin=None, **wanted):
        """Runs a container that is removed at its end; returns its CompletedProcess."""
        more = {"input": stdin} if stdin is not None else {}
        if stdin is not None:
            more["stdin"] = None
            wanted["stdin"] = True
        return self.call(*self.argv_to_run(name, *command, **wanted), **more)

    def spawn(self, name, *command, **wanted):
        return subprocess.Popen(self.command(*self.argv_to_run(name, *command, **wanted)),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def start(self, name, *command, **wanted):
        """Starts a detached container; returns the pid of its first process."""
        self.ok(*self.argv_to_run(name, *command, detach=True, **wanted))
        return self.pid(name)

    def exec(self, name, *command, **wanted):
        return self.call(*self.argv_to_exec(name, *command, **wanted))

    def on_terminal(self, argv, rows, columns):
        """The words printed on a terminal of that size, and the exit status."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with subprocess.Popen(self.command(*argv), stdin=slave, stdout=slave, stderr=slave,
                              start_new_session=True) as process:
            os.close(slave)
            out = b""
            with contextlib.suppress(OSError):  # EIO: no process has the other end open
                while data := os.read(master, 4096):
                    out += data
            os.close(master)
            return out.decode().split(), process.wait(PATIENCE)

    def kept_states(self):
        listing = subprocess.run([*self.inside, "ls", self.states()], capture_output=True,
                                 text=True, check=False)
        return listing.stdout.split()

    def remove_all(self):
        for name in self.names():
            self.remove(name)


@functools.cache
def docker_release():
    """The major version of the dockerd that is installed, such as 28."""
    told = subprocess.run(["dockerd", "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"version (\d+)\.", told)[1])


class Docker(Caller):
    @property
    def missing_command(self):
        absent = 127 if docker_release() >= 28 else 126
        return {"run": (127, 127, 126, 126), "exec": (absent, absent, 126, 126)}

    @contextlib.contextmanager
    def running(self):
        socket = self.directory / "s"
        self.client = ["docker", "--host", f"unix://{socket}"]
        argv = [*self.inside, "dockerd", "--data-root", self.directory / "data",
                "--exec-root", self.directory / "exec", "--pidfile", self.directory / "pid",
                "-H", f"unix://{socket}", "--bridge=none", "--iptables=false", "--ip6tables=false",
                "--config-file", self.configuration(), "--cgroup-parent", f"/{CGROUP}"]
        # After all other directories, so that a hook of NVIDIA would be found first.
        environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{self.runtime.parent}/docker"}
        with server(argv, self.directory, env=environment) as (process, log):
            until(lambda: process.poll() is not None or self.call("version").returncode == 0,
                  "dockerd answers")
            assert process.poll() is None, log.read_text()
            self.ok("import", busybox_tar(self.directory), IMAGE)
            yield self

    def configuration(self):
        """Two runtimes: with the site's default paths, and with those of site_flags()."""
        path = self.directory / "daemon.json"
        path.write_text(json.dumps({"runtimes": {
            "tested": {"path": str(self.runtime)},
            "flagged": {"path": str(self.runtime), "runtimeArgs": self.site_flags()}}}))
        return path

    def states(self):
        """The directory where the runtime keeps the states of containers."""
        return self.directory / "exec/runtime-tested/moby"

    def argv_to_run(self, name, *command, detach=False, terminal=False, stdin=False, init=False,
                    memory=0, volume=None):
        flags = ["--detach" if detach else "--rm"]
        flags += ["--tty"] * terminal + ["--interactive"] * stdin + ["--init"] * init
        flags += ["--memory", memory, "--memory-swap", memory] if memory else []
        flags += ["--volume", f"{volume}:/shared"] if volume else []
        return ["run", "--name", name, "--runtime", "tested", "--network", "none", *flags, IMAGE,
                *command]

    def argv_to_exec(self, name, *command, detach=False, terminal=False, user=None, cwd=None):
        flags = ["--detach"] * detach + ["--tty"] * terminal
        flags += ["--user", user] if user else []
        flags += ["--workdir", cwd] if cwd else []
        return ["exec", *flags, name, *command]

    def inspect(self, name, what):
        return self.ok("inspect", "--format", "{{" + what + "}}", name).strip()

    def state(self, name):
        return self.inspect(name, ".State.Status")

    def pid(self, name):
        return int(self.inspect(name, ".State.Pid"))

    def processes(self, name):
        return {int(pid) for pid in self.ok("top", name, "-o", "pid").split()[1:]}

    def names(self):
        return self.ok("ps", "--all", "--quiet").split()

    def signal(self, name, number):
        self.ok("kill", "--signal", number, name)

    def pause(self, name):
        self.ok("pause", name)

    def resume(self, name):
        self.ok("unpause", name)

    def limit_memory(self, name, size):
        self.ok("update", "--memory", size, "--memory-swap", size, name)

    def ran_out_of_memory(self, name):
        return self.inspect(name, ".State.OOMKilled") == "true"

    def commit(self, name, image):
        self.ok("commit", name, image)

    def remove(self, name):
        self.ok("rm", "--force", name)


# podman 5's warning about a machine with cgroup v1 is not part of a program's output.
os.environ["PODMAN_IGNORE_CGROUPSV1_WARNING"] = "1"


class Podman(Docker):
    missing_command = {"run": (127, 127, 126, 126), "exec": (127, 127, 126, 126)}
    storage = "overlay"
    cgroups = ("--cgroup-parent", f"/{CGROUP}")

    @contextlib.contextmanager
    def running(self):
        self.client = [
            "podman", "--root", self.directory / "data", "--runroot", self.directory / "run",
            "--tmpdir", self.directory / "tmp", "--storage-driver", self.storage,
            "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", self.runtime]
        self.ok("import", busybox_tar(self.directory), IMAGE)
        yield self

    def states(self):
        """The runtime's default: a podman that cleans up for another one passes no --root on."""
        return {"runc": "/run/runc"}.get(self.runtime.name, "/run/berth/runtime")

    def argv_to_run(self, name, *command, init=False, memory=0, **wanted):
        # Without CAP_SYS_RESOURCE hard limits cannot be raised, so name the current ones.
        more = [*self.cgroups, "--ulimit", "nofile=1024:1024", "--ulimit",
                "nproc=10000:10000", "--init-path", "/usr/bin/docker-init"]
        argv = super().argv_to_run(name, *command, init=init, memory=memory, **wanted)
        argv[argv.index("--runtime"):argv.index("--network")] = more
        return argv

    def limit_memory(self, name, size):
        """podman 4.3 has no 'update', so this makes the call of later versions."""
        resources = {"memory": {"limit": size, "swap": size}}
        subprocess.run([*self.inside, self.runtime, "update", "--resources", "-",
                        self.inspect(name, ".Id")], check=True, text=True, capture_output=True,
                       input=json.dumps(resources))

    def processes(self, name):
        return {int(pid) for pid in self.ok("top", name, "hpid").split()[1:]}

    def ran_out_of_memory(self, name):
        """conmon 2.1 does not notice it with hybrid cgroups, with any runtime."""
        return None

    def commit(self, name, image):
        # podman 5 does not wait until conmon has cleaned up its container.
        self.ok("container", "cleanup", name)
        super().commit(name, image)

    def remove(self, name):
        """Tries twice if podman 4.3 collides with its own cleanup after an exec: also with crun and runc, one
        rm in six fails on a busy machine because /dev/shm is still mounted."""
        argv = ("rm", "--force", "--time", "0", name)
        done = self.call(*argv)
        if done.returncode:
            assert "userdata/shm: device or resource busy" in done.stderr, done
            self.ok(*argv)


class RootlessPodman(Podman):
    """podman of an ordinary user with subordinate ids, without a private view."""
    storage = "vfs"
    cgroups = ()

    def __init__(self, runtime, account):
        directory = account.own(account.home / "podman")
        environment = [f"{key}={value}" for key, value in account.environment().items()]
        inside = account.command(["env", "--ignore-environment", f"--chdir={directory}", *environment])
        super().__init__(runtime, directory, inside)
        self.runtime_directory = account.runtime_dir

    @contextlib.contextmanager
    def running(self):
        try:
            with super().running():
                yield self
        finally:
            self.call("system", "migrate")  # ends the process that holds the user namespace

    def states(self):
        return self.runtime_directory / "berth/runtime"


def protobuf(*fields):
    """A message of strings and bytes, with fields numbered from 1."""
    out = b""
    for number, field in enumerate(fields, 1):
        data = field if isinstance(field, bytes) else field.encode()
        low, high = len(data) % 128, len(data) // 128
        assert high < 128
        size = bytes([low | 128, high]) if high else bytes([low])
        out += bytes([number << 3 | 2]) + size + data
    return out


class Containerd(Caller):
    missing_command = {"run": (1, 1, 1, 1), "exec": (1, 1, 1, 1)}

    @contextlib.contextmanager
    def running(self):
        self.socket = self.directory / "s"
        self.execs = iter(range(1000))
        config = self.directory / "config.toml"
        config.write_text(f'version = 2\nroot = "{self.directory}/root"\n'
                          f'state = "{self.directory}/state"\n'
                          'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
                          f'[grpc]\naddress = "{self.socket}"\n')
        self.client = ["ctr", "--address", self.socket, "--namespace", CGROUP]
        with server([*self.inside, "containerd", "--config", config], self.directory) \
                as (process, log):
            until(lambda: process.poll() is not None or self.socket.exists(), "containerd listens")
            assert process.poll() is None, log.read_text()
            self.ok("images", "import", busybox_layout(self.directory))
            yield self

    def states(self):
        return self.directory / "states" / CGROUP

    def argv_to_run(self, name, *command, detach=False, terminal=False, stdin=False, init=False,
                    memory=0, volume=None):
        del stdin  # always passed on
        flags = ["--detach" if detach else "--rm"] + ["--tty"] * terminal
        flags += ["--memory-limit", memory] if memory else []
        if volume:
            flags += ["--mount", f"type=bind,src={volume},dst=/shared,options=rbind:rw"]
        if init:  # as dockerd does
            flags += ["--mount",
                      "type=bind,src=/usr/bin/docker-init,dst=/sbin/docker-init,options=bind:ro"]
            command = ("/sbin/docker-init", "--", *command)
        return ["run", "--runc-binary", self.runtime, "--runc-root", self.states().parent, *flags,
                IMAGE, name, *command]

    def argv_to_exec(self, name, *command, detach=False, terminal=False, user=None, cwd=None):
        flags = ["--detach"] * detach + ["--tty"] * terminal
        flags += ["--user", user] if user else []
        flags += ["--cwd", cwd] if cwd else []
        return ["tasks", "exec", *flags, "--exec-id", f"e{next(self.execs)}", name, *command]

    def task(self, name):
        rows = [line.split() for line in self.ok("tasks", "list").splitlines()[1:]]
        return next((row for row in rows if row[0] == name), None)

    def state(self, name):
        words = {"RUNNING": "running", "PAUSED": "paused", "STOPPED": "exited"}
        return words[self.task(name)[2]]

    def pid(self, name):
        return int(self.task(name)[1])

    def processes(self, name):
        return {int(line.split()[0])
                for line in self.ok("tasks", "ps", name).splitlines()[1:]}

    def names(self):
        return self.ok("containers", "list", "--quiet").split()

    def signal(self, name, number):
        self.ok("tasks", "kill", "--signal", number, name)

    def pause(self, name):
        self.ok("tasks", "pause", name)

    def resume(self, name):
        self.ok("tasks", "resume", name)

    def limit_memory(self, name, size):
        """The call Tasks.Update, for which ctr has no verb: gRPC is HTTP/2 with a frame in it."""
        resources = json.dumps({"memory": {"limit": size, "swap": size}})
        kind = "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources"
        message = protobuf(name, protobuf(kind, resources))
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--http2-prior-knowledge", "--include",
             "--unix-socket", self.socket, "--header", "content-type: application/grpc",
             "--header", f"containerd-namespace: {CGROUP}",
             "--data-binary", "@-", "http://containerd/containerd.services.tasks.v1.Tasks/Update"],
            input=b"\0" + struct.pack(">I", len(message)) + message, capture_output=True,
            check=True, timeout=PATIENCE)
        assert b"grpc-status: 0" in done.stdout, done.stdout

    def ran_out_of_memory(self, name):
        return None  # only an event

    def remove(self, name):
        if self.task(name):
            self.ok("tasks", "rm", "--force", name)
        self.ok("containers", "rm", name)


class Slurm(Caller):
    """Jobs as containers of one bundle. Without exec and pause; options are variables after the first word:
    env GREETING=hello srun …"""

    # As in Slurm's documentation for runc, with two changes. Without 'exec' Slurm forgets the runtime once
    # the pattern's shell has ended. Slurm 22.05 reads the output of 'create' to its end, but the container
    # inherits that pipe, with any runtime, so Slurm would wait for ever.
    patterns = {"run": {"Run": "exec {runtime} run {id} -b %b"},
                "create": {"Create": "{runtime} create {id} -b %b >/dev/null 2>&1",
                           "Start": "{runtime} start {id}"}}
    every_pattern = {"Query": "{runtime} state {id}", "Kill": "{runtime} kill -a {id}",
                     "Delete": "{runtime} delete --force {id}"}

    @contextlib.contextmanager
    def running(self):
        self.bundle = Bundle(self.directory / "bundle")
        self.bundle.write()
        self.cluster = Cluster(self.directory, inside=self.inside)
        self.client = ["env", "--ignore-environment",
                       *(f"{name}={value}" for name, value in self.cluster.environment.items())]
        self.starts_by("run")
        with self.cluster.running():
            yield self

    def starts_by(self, pattern):
        words = {"runtime": f"{self.runtime} --root={self.states()}", "id": "%n.%u.%j.%s.%t"}
        self.cluster.write("oci.conf", *(
            f'RunTime{verb}="{line.format(**words)}"'
            for verb, line in {**self.patterns[pattern], **self.every_pattern}.items()))

    def states(self):
        return self.directory / "states"

    def argv_to_run(self, name, *command, detach=False):
        background = ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh"] if detach else []
        # Newer versions search for a program without a directory on the node, which is another Debian.
        program, *words = command
        return ["env", *background, "srun", "--job-name", name, "--container", self.bundle.directory,
                program if "/" in program else f"/bin/{program}", *words]

    def names(self):
        return self.ok("squeue", "--noheader", "--format", "%j").split()

    def remove(self, name):
        self.ok("scancel", "--name", name)
        until(self.cluster.is_idle, f"the job {name} has ended")


CALLERS = {"docker": Docker, "containerd": Containerd, "podman": Podman}


# ---- what the kernel says about a container -----------------------------------------------------

def is_of_a_container(path):
    """podman puts conmon into a cgroup that remains, and in which a container starts."""
    return f"/{CGROUP}/" in path and not path.endswith("/conmon")


def cgroup_of(pid, controller):
    """The directory of that v1 controller, or of v2, that the container's process is in."""
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for one in controllers.split(","):
            found[one] = path
    top = Path("/sys/fs/cgroup")
    if controller and is_of_a_container(found.get(controller, "")):
        return top / controller / found[controller].lstrip("/")
    return (top / "unified" if (top / "unified").exists() else top) / found[""].lstrip("/")


def is_frozen(pid):
    """By v2's freezer if there is one, else by v1's."""
    directory = cgroup_of(pid, "")
    if (directory / "cgroup.events").exists():
        return "frozen 1" in (directory / "cgroup.events").read_text()
    return (cgroup_of(pid, "freezer") / "freezer.state").read_text() == "FROZEN\n"


def memory_limit(pid):
    directory = cgroup_of(pid, "memory")
    for name in ("memory.limit_in_bytes", "memory.max"):
        if (directory / name).exists():
            return int((directory / name).read_text())
    return None


def _parents(name=CGROUP):
    """In the v1 hierarchies, or in v2's."""
    top = Path("/sys/fs/cgroup")
    return [*top.glob(f"*/{name}"), *top.glob(name)]


def cgroups():
    return [str(path) for parent in _parents() for path in parent.iterdir()
            if path.is_dir() and is_of_a_container(str(path))]


def remove_cgroups(name=CGROUP):
    for parent in _parents(name):
        for directory, _, _ in os.walk(parent, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
