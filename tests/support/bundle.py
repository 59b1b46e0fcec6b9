# SPDX-License-Identifier: Apache-2.0
"""OCI bundles around a busybox root file system, and berth-runtime to run them with."""

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = Path(os.environ.get("BERTH_TEST_PROGRAMS",
                               Path(__file__).resolve().parents[2] / "build/release/bin")).resolve()

BUSYBOX = shutil.which("busybox") or "/bin/busybox"
APPLETS = ("sh", "ls", "cat", "id", "mount", "echo", "true", "false", "sleep", "stat", "test",
           "hostname", "readlink", "touch", "mkdir", "pwd", "kill", "env", "ps", "wc", "grep",
           "dd", "tty", "stty", "printf", "head", "umount", "chmod", "mknod", "ip", "sort",
           "ionice", "uname", "cut", "tr", "tail", "mv", "rm", "ln", "mkfifo", "truncate")

CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD",
                "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP",
                "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"]

MASKED = ["/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
          "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
          "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"]
READONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]

DEFAULT = {
    "ociVersion": "1.2.0",
    "root": {"path": "rootfs", "readonly": False},
    "hostname": "berth-test",
    "process": {
        "terminal": False,
        "user": {"uid": 0, "gid": 0},
        "args": ["/bin/true"],
        "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"],
        "cwd": "/",
        "noNewPrivileges": True,
        "capabilities": {name: CAPABILITIES for name in ("bounding", "effective", "permitted")},
        "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 1024}],
    },
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc",
         "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
         "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
         "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
         "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs",
         "options": ["nosuid", "noexec", "nodev", "ro"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
         "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]},
    ],
    "linux": {
        "namespaces": [{"type": name} for name in
                       ("pid", "network", "ipc", "uts", "mount", "cgroup")],
        "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        "maskedPaths": MASKED,
        "readonlyPaths": READONLY,
    },
}


def make_root(directory: Path) -> Path:
    """A root file system with only busybox, without /proc, /dev etc."""
    for name in ("bin", "etc", "tmp", "root"):
        (directory / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, directory / "bin/busybox")
    for applet in APPLETS:
        (directory / "bin" / applet).symlink_to("busybox")
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    return directory


class Bundle:
    """A directory with config.json and rootfs/; `config` is written by each run."""

    def __init__(self, directory: Path):
        self.directory = directory
        directory.mkdir(parents=True)
        self.rootfs = make_root(directory / "rootfs")
        self.config = copy.deepcopy(DEFAULT)

    @property
    def process(self) -> dict:
        return self.config["process"]

    @property
    def linux(self) -> dict:
        return self.config["linux"]

    def args(self, *words: str) -> "Bundle":
        self.process["args"] = list(words)
        return self

    def shell(self, script: str) -> "Bundle":
        return self.args("/bin/sh", "-c", script)

    def mount(self, destination: str, source: str, *options: str, kind: str = "bind") -> "Bundle":
        self.config["mounts"].append({"destination": destination, "type": kind,
                                      "source": str(source), "options": list(options)})
        return self

    def write(self) -> None:
        (self.directory / "config.json").write_text(json.dumps(self.config))


class Runtime:
    """berth-runtime with a separate --root. `prefix` comes before it: ("unshare", "-r")."""

    def __init__(self, root: Path, prefix: tuple = ()):
        self.root = root
        self.prefix = list(prefix)
        self.program = str(PROGRAMS / "berth-runtime")
        self.owner = None  # the owner of the state directory and everything beside it, if not this user

    def command(self, *words: str) -> list:
        if self.owner is not None:
            subprocess.run(["chown", "-hR", f"{self.owner}:{self.owner}", str(self.root.parent)],
                           check=True)
        return [*self.prefix, self.program, "--root", str(self.root), *words]

    def call(self, *words: str, **options) -> subprocess.CompletedProcess:
        options.setdefault("timeout", 60)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("capture_output", True)
        return subprocess.run(self.command(*words), text=True, check=False, **options)

    def run(self, bundle: Bundle, name: str = "c1", *flags: str, **options):
        bundle.write()
        return self.call("run", "--bundle", str(bundle.directory), *flags, name, **options)

    def out(self, bundle: Bundle, name: str = "c1", *flags: str, **options) -> str:
        """The output of a run that succeeds."""
        done = self.run(bundle, name, *flags, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def error(self, bundle: Bundle, name: str = "c1") -> str:
        """The single error line of a run that fails, without the program's name."""
        done = self.run(bundle, name)
        assert done.returncode == 1 and done.stdout == "", done
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("berth-runtime: "), lines
        return lines[0].removeprefix("berth-runtime: ")

    def state(self, name: str = "c1") -> dict:
        done = self.call("state", name)
        assert done.returncode == 0, done
        return json.loads(done.stdout)
