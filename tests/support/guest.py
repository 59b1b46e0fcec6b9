# SPDX-License-Identifier: Apache-2.0
"""A QEMU guest: Debian with Debian's own kernel (6.1 of bookworm, 6.12 of trixie, sid's newest; only cgroup
v2, AppArmor, systemd if requested), for machines with another kernel and other cgroups. BERTH_GUEST selects
the Debian; the default is this machine's own, since programs do not start with older libraries than those
that they were built with.

    machine = Machine(prepare())
    machine.add("bin/berth-runtime", PROGRAMS / "berth-runtime")
    script = "/payload/bin/berth-runtime --version >/dev/ttyS1" + POWER_OFF
    ended = machine.run(without_init(script, machine))
    assert ended.report.startswith("berth-runtime ")

The kernel and the root file system are made once per machine, as root (about two minutes, from Debian's
mirror), and kept; a guest writes to a throw-away layer above. It has no network and no acceleration: programs
are five to ten times slower than outside.
"""

import contextlib
import dataclasses
import hashlib
import io
import os
import pathlib
import struct
import subprocess
import tarfile
import tempfile
import time

from support import debian, kept
from support.registry import die_with_parent

PACKAGES = ("systemd", "systemd-sysv", "libpam-systemd", "dbus", "dbus-user-session", "apparmor", "criu",
            "python3", "python3-pytest", "busybox-static", "e2fsprogs", "erofs-utils", "iproute2", "kmod",
            "passwd", "procps", "strace", "uidmap", "util-linux")

# The guest's first program; the test's own is /payload/init. The disks appear once they are detected.
FIRST = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mountpoint -q /dev || mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t securityfs securityfs /sys/kernel/security
# The other disk is the one without a partition: newer kernels name disks in the order in which they answer.
payload=
while [ -z "$payload" ]; do
  for disk in /dev/nvme[01]n1; do
    [ ! -b $disk ] || [ -b ${disk}p1 ] || payload=$disk
  done
  sleep 0.05
done
tar -xf $payload -C /payload
stty raw -F /dev/ttyS1
exec /payload/init
"""

POWER_OFF = "\necho o >/proc/sysrq-trigger; sleep 60\n"

# The mounts of an init system, udev's permissions, and only cgroup v2.
MOUNTS = """
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
modprobe --all overlay loop fuse
chmod 666 /dev/fuse
"""

# The script as a service; without units that a guest without disk and network would wait for.
SERVICE = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=HOME=/root TERM=dumb
ExecStart=/payload/service
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
"""
UNDER_SYSTEMD = """
modprobe --all overlay loop
mkdir -p /etc/systemd/system/default.target.wants
for unit in serial-getty@.service getty@.service systemd-logind-varlink.socket \\
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \\
    e2scrub_reap.service fstrim.timer systemd-timesyncd.service systemd-udev-settle.service; do
  ln -sf /dev/null /etc/systemd/system/$unit
done
cp /payload/service.unit /etc/systemd/system/payload.service
ln -sf multi-user.target /etc/systemd/system/default.target
ln -sf ../payload.service /etc/systemd/system/multi-user.target.wants/
exec /lib/systemd/systemd --show-status=false --log-target=console --log-level=warning
"""

SUITE = os.environ.get("BERTH_GUEST") or debian.own_suite()
MEMORY_MIB = 1024
DISK_MIB = 1700
PARTITION = bytes.fromhex("68747265")  # the disk's own id, by which the kernel finds its root


class GuestError(Exception):
    """A guest that could not be made or did not end by itself; has the end of its console output."""


@dataclasses.dataclass(frozen=True)
class Image:
    kernel: pathlib.Path
    disk: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Ended:
    console: str
    report: str  # the output to /dev/ttyS1


# ---- the image ----------------------------------------------------------------------------------

def _run(*argv, **options):
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(argv)}: {done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout


def _unpack_kernel(root, to):
    """Extracts the kernel of the suite in `root`, and its modules, without installing them. In bookworm both
    are in one package (/boot, /lib), in sid in two (/usr/lib)."""
    archives = root / "var/cache/apt/archives"
    for command in (["update"], ["install", "--yes", "--download-only", "--no-install-recommends",
                                 "linux-image-cloud-amd64"]):
        _run("chroot", root, "apt-get", "-q", "-o", "APT::Sandbox::User=root", *command)
    for archive in archives.glob("linux-[ibm]*-cloud-amd64_*.deb"):
        _run("dpkg-deb", "--extract", archive, to)
    for archive in archives.glob("*.deb"):
        archive.unlink()
    found = [*to.glob("boot/vmlinuz-*"), *to.glob("usr/lib/modules/*/vmlinuz")]
    modules = [*to.glob("lib/modules/*"), *to.glob("usr/lib/modules/*")]
    if len(found) != 1 or len(modules) != 1:
        raise GuestError(f"the packages of the kernel have {found} and {modules}")
    return found[0], modules[0]


def _make_disk(root, disk):
    """A file with one partition of type Linux, from the second MiB on, with the files of `root`."""
    mib = 1 << 20
    _run("mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", "-E", f"offset={mib}", "-d", root, disk, f"{DISK_MIB}M")
    entry = struct.pack("<B3sB3sII", 0, b"", 0x83, b"", mib // 512, DISK_MIB * mib // 512)
    with open(disk, "r+b") as file:
        file.seek(440)
        file.write(PARTITION + bytes(2) + entry + bytes(48) + b"\x55\xaa")
        file.truncate((1 + DISK_MIB) * mib)


def _build(directory, suite, packages):
    root = directory / "root"
    try:
        debian.make_root(suite, root, packages)
    except subprocess.CalledProcessError as error:
        raise GuestError(f"debootstrap {suite}: {error.output[-2000:]}") from error
    kernel, modules = _unpack_kernel(root, directory / "unpacked")
    kernel.rename(directory / "kernel")
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    _run("cp", "--archive", modules, root / "usr/lib/modules")
    _run("chroot", root, "depmod", modules.name)
    (root / "payload").mkdir()
    (root / "sbin/guest-first").write_text(FIRST, encoding="utf-8")
    (root / "sbin/guest-first").chmod(0o755)
    _make_disk(root, directory / "disk")


def prepare(packages=PACKAGES, suite=SUITE):
    """The Image; builds it unless this recipe has been built already."""
    recipe = hashlib.sha256(repr((packages, FIRST, DISK_MIB, PARTITION)).encode()).hexdigest()[:12]

    def build(made):
        scratch = made.parent
        _build(scratch, suite, packages)
        made.mkdir()
        for name in ("kernel", "disk"):
            (scratch / name).rename(made / name)

    image = kept.directory(f"guest-{suite}-{recipe}", build)
    return Image(image / "kernel", image / "disk")


# ---- ways to bring it up ------------------------------------------------------------------------

def without_init(script, _machine):
    """The script as the first process, with only cgroup v2."""
    return MOUNTS + script


def with_systemd(script, machine):
    """systemd as the first process, and the script as one of its services."""
    machine.add("service", f"#!/bin/bash\n{script}".encode())
    machine.add("service.unit", SERVICE.encode(), 0o644)
    return UNDER_SYSTEMD


# ---- one guest ----------------------------------------------------------------------------------

def _stop(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def _goes_off(process, console, deadline):
    """Whether the guest ends within `deadline` seconds. A guest that has begun to power off has done its
    work; sometimes QEMU misses the power-off."""
    end, goes = time.monotonic() + deadline, False
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
            return True
        if not goes and b"sysrq: Power Off" in console.read_bytes():
            end, goes = time.monotonic() + 20, True
    return goes


class Machine:
    """A guest before its start, and the files for its /payload."""

    def __init__(self, image):
        self.image = image
        self.files = []  # (name, path or bytes, mode)

    def add(self, name, content, mode=0o755):
        """Adds a file with these bytes, or a copy of this file or directory."""
        self.files.append((name, content, mode))

    def _pack(self, path):
        with tarfile.open(path, "w") as archive:
            for name, content, mode in self.files:
                if isinstance(content, pathlib.Path):
                    archive.add(content, name)
                    continue
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))

    def run(self, script, deadline=240, kernel_arguments=""):
        """Boots with `script` as the guest's first process, and waits for the power-off. Errors: GuestError
        (the deadline passed, the kernel or its first process died)."""
        self.add("init", f"#!/bin/bash\n{script}".encode())
        with tempfile.TemporaryDirectory(prefix="berth-tests-guest-") as scratch:
            scratch = pathlib.Path(scratch)
            self._pack(scratch / "payload")
            for name in ("console", "report"):
                (scratch / name).touch()
            return self._boot(scratch, deadline, kernel_arguments)

    def _boot(self, scratch, deadline, kernel_arguments):
        arguments = f"console=ttyS0 quiet panic=-1 root=PARTUUID={PARTITION[::-1].hex()}-01 rw {kernel_arguments}"
        command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1",
                   "-m", str(MEMORY_MIB), "-nographic", "-no-reboot", "-nodefaults",
                   "-serial", f"file:{scratch}/console", "-serial", f"file:{scratch}/report",
                   "-kernel", str(self.image.kernel),
                   "-append", f"{arguments} init=/sbin/guest-first"]
        for name, path, options in (("disk", self.image.disk, "snapshot=on"),
                                    ("payload", scratch / "payload", "readonly=on")):
            command += ["-drive", f"if=none,id={name},format=raw,file={path},{options}",
                        "-device", f"nvme,drive={name},serial={name}"]
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open(scratch / "qemu", "wb"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       preexec_fn=die_with_parent)
            stack.callback(_stop, process)
            if _goes_off(process, scratch / "console", deadline):
                fault = f"qemu ended with {process.returncode}" if process.returncode else ""
            else:
                fault = f"the guest was not done after {deadline} s"
        console, report, log = ((scratch / name).read_text(encoding="utf-8", errors="replace")
                                if (scratch / name).exists() else ""
                                for name in ("console", "report", "qemu"))
        if "Kernel panic" in console:
            fault = "the guest panicked"
        if fault:
            raise GuestError(f"{fault}\n{log[-1000:]}{report[-1000:]}\n{console[-3000:]}")
        return Ended(console, report)
