#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in this project's tree on a machine with another Debian: a root file system of that suite
with /proc, /sys, /dev, cgroups, the network and the loopback of this machine. Its packages come from this
machine's apt sources.

usage: elsewhere.py SUITE [COMMAND [ARGUMENT…]]          a shell unless told
       elsewhere.py --bare [--suite SUITE] COMMAND [ARGUMENT…]

Without --bare the root file system is kept in the tests' cache, with all installed packages, and made again
after a week; the tree is a copy of this one (tracked files, and those that git does not ignore) in
/srv/berth, which keeps earlier build results. Prints the versions of the installed peers at the end.

With --bare it is a fresh clone of the commit, on a machine with only Debian's base and git, with an empty
compiler cache; nothing is kept. The default SUITE is bookworm.
"""

import argparse
import contextlib
import fcntl
import filecmp
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

from support import debian, kept  # noqa: E402

BASE = ("ca-certificates", "git")
DAYS = 7
TREE = "srv/berth"  # not below /root, which ordinary users may not enter
# Programs with versions that matter to the tests: name, packages (the first installed one counts).
PEERS = (
    ("g++", "g++"), ("clang", "clang"), ("CMake", "cmake"), ("fmt", "libfmt-dev"), ("Boost", "libboost-dev"),
    ("curl", "libcurl4-openssl-dev"), ("glibc", "libc6"), ("Python", "python3"),
    ("docker", "docker.io"), ("containerd", "containerd"), ("podman", "podman"), ("buildah", "buildah"),
    ("crun", "crun"), ("runc", "runc"), ("bubblewrap", "bubblewrap"), ("passt", "passt"),
    ("slirp4netns", "slirp4netns"), ("nftables", "nftables"), ("Slurm", "slurmctld"),
    ("Open MPI", "openmpi-bin"), ("PMIx", "libpmix2t64 libpmix2"), ("MPICH", "mpich"),
)
# A mount namespace, which ends with the command and its processes. A chroot would not do: containers first
# make '/' private, which requires a mount point.
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
home=$2 tree=$3
cd "$1"; shift 3
mount --rbind /sys sys
mount --rbind /dev dev
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
[ -z "$home" ] || mount --bind "$home" root
pivot_root . .
umount --lazy .
cd "/$tree"
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
  LANG=C.UTF-8 "$@"
"""


def run(*argv, **options):
    return subprocess.run(argv, check=True, **options)


def enter(root, home, tree, command):
    """Returns the command's exit status. `home`: a directory for /root, or None; `tree`: the working
    directory."""
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc",
                           "sh", "-c", ENTER, "sh", root, home or "", tree, *command]).returncode


def told(kind, suite, command, start, status):
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"== {kind} {suite}: '{' '.join(command)}' ended with {status} after {minutes} min {seconds} s", flush=True)


def bare(suite, command):
    base = kept.directory(f"bare-{suite}-1", lambda path: debian.make_root(suite, path, BASE))
    with tempfile.TemporaryDirectory(prefix="bare-machine-", dir=kept.cache()) as place:
        root = pathlib.Path(place, "root")
        run("cp", "--archive", base, root)
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, root / TREE)
        print(f"== a bare {suite}: {' '.join(command)}", flush=True)
        start = time.monotonic()
        status = enter(root, None, TREE, command)
    told("a bare", suite, command, start, status)
    return status


# ---- the kept ones ------------------------------------------------------------------------------

def renew_root(place, suite):
    """Makes place/root, again if it is too old. Keeps build results, in place/home."""
    root, made = place / "root", place / "made"
    if made.exists() and time.time() - made.stat().st_mtime < DAYS * 86400:
        return
    print(f"== making a root file system of {suite}", flush=True)
    made.unlink(missing_ok=True)
    if root.exists():
        shutil.rmtree(root)
    debian.make_root(suite, root, BASE)
    (place / "home").mkdir(mode=0o700, exist_ok=True)
    made.touch()


def git(*argv, cwd=ROOT):
    return run("git", "-c", "safe.directory=*", "-C", cwd, *argv, capture_output=True, text=True).stdout


def files_of(tree):
    """The files that git tracks, or would track."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", cwd=tree)
    return {name for name in listed.split("\0") if name and os.path.lexists(tree / name)}


def copy_tree(to):
    """Makes `to` a checkout of this commit with the files of this tree. Leaves equal files untouched, so that
    their build results stay valid."""
    if not (to / ".git").exists():
        run("git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "--no-checkout", ROOT, to)
    git("fetch", "--quiet", str(ROOT), "HEAD", cwd=to)
    git("update-ref", "--no-deref", "HEAD", "FETCH_HEAD", cwd=to)
    git("read-tree", "HEAD", cwd=to)
    ours = files_of(ROOT)
    for name in files_of(to) - ours:
        (to / name).unlink()
    for name in ours:
        source, target = ROOT / name, to / name
        if source.is_symlink() or not target.is_file() or target.is_symlink():
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
        elif filecmp.cmp(source, target, shallow=False):
            shutil.copymode(source, target)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target, follow_symlinks=False)
        shutil.copymode(source, target, follow_symlinks=False)


def print_peers(root):
    seen = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W",
                           "-f=${db:Status-Status} ${Package} ${Version}\n"], capture_output=True, text=True).stdout
    versions = {package: version for state, package, version in map(str.split, seen.splitlines())
                if state == "installed"}
    found = [(name, next((versions[one] for one in packages.split() if one in versions), None))
             for name, packages in PEERS]
    print("== " + ", ".join(f"{name} {version}" for name, version in found if version), flush=True)


def elsewhere(suite, command):
    place = kept.cache() / f"elsewhere-{suite}"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"elsewhere: another command runs on {suite}; try again when it has ended")
        renew_root(place, suite)
        copy_tree(place / "root" / TREE)
        print(f"== {suite}: {' '.join(command)}", flush=True)
        start = time.monotonic()
        status = enter(place / "root", place / "home", TREE, command)
        print_peers(place / "root")
        told("on", suite, command, start, status)
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command" if options.bare else "no suite; try: trixie or sid")
    if os.geteuid() != 0:
        sys.exit("elsewhere: root is needed here, to make a root file system and to enter it")
    if options.bare:
        return bare(options.suite, options.command)
    suite, *command = options.command
    if not re.fullmatch(r"[a-z]+", suite):
        sys.exit(f"elsewhere: '{suite}' is no suite of Debian; try: trixie or sid")
    return elsewhere(suite, command or ["bash"])


if __name__ == "__main__":
    sys.exit(main())
