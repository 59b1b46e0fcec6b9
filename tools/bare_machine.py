#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a fresh clone of this repository on a machine that has Debian's base and git, no more:
a root file system with /proc, /sys, /dev, cgroups and the network of this machine, and an empty compiler cache.

usage: bare_machine.py [--suite SUITE] COMMAND [ARGUMENT…]

The clone is of what is committed. SUITE is Debian's, bookworm unless told; its packages come by this
machine's apt sources. Says at the end what the command took, and leaves nothing but the root file system
in the tests' cache.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import kept  # noqa: E402

PACKAGES = "ca-certificates,git"
REACH = re.compile(r"Acquire::(Check|https?|ForceIPv)")  # how a mirror is reached
# In a mount namespace that ends with the command, as do the processes. A chroot would not do: containers
# begin by making '/' private, which is a mount on every machine.
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"; shift
mount --rbind /sys sys
mount --rbind /dev dev
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
pivot_root . .
umount --lazy .
cd /root/berth
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
  LANG=C.UTF-8 "$@"
"""


def mirror():
    """Where this machine's apt gets Debian from."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"],
                          check=True, capture_output=True, text=True).stdout
    if not told:
        sys.exit("bare_machine: apt knows no mirror of Debian; try: apt-get update")
    return told.splitlines()[0]


def make_root(suite):
    """make(path): Debian's base and git, with this machine's apt settings."""
    def make(path):
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, path, mirror()],
                       check=True, stdout=subprocess.DEVNULL)
        for archive in (path / "var/cache/apt/archives").glob("*.deb"):
            archive.unlink()
        for config in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
            if REACH.search(config.read_text()):
                shutil.copy(config, path / "etc/apt/apt.conf.d" / config.name)
        (path / "etc/apt/sources.list").write_text(f"deb {mirror()} {suite} main\n")
    return make


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command")
    if os.geteuid() != 0:
        sys.exit("bare_machine: root is needed here, to make a root file system and to enter it")
    base = kept.directory(f"bare-{options.suite}-1", make_root(options.suite))
    with tempfile.TemporaryDirectory(prefix="bare-machine-", dir=kept.cache()) as place:
        root = pathlib.Path(place, "root")
        subprocess.run(["cp", "--archive", base, root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        shutil.copy("/etc/hosts", root / "etc/hosts")
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, root / "root/berth"], check=True)
        print(f"== a bare {options.suite}: {' '.join(options.command)}", flush=True)
        start = time.monotonic()
        status = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc",
                                 "sh", "-c", ENTER, "sh", root, *options.command]).returncode
        minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"== a bare {options.suite}: '{' '.join(options.command)}' ended with {status} after {minutes} min {seconds} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
