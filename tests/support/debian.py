# SPDX-License-Identifier: Apache-2.0
"""Root file systems of Debian's suites, from where this machine's apt gets its packages."""

import pathlib
import re
import shutil
import subprocess
import sys

REACH = re.compile(r"Acquire::(Check|https?|ForceIPv)")  # how a mirror is reached


def mirror():
    """Where this machine's apt gets Debian from. Exits where it knows no such place."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"],
                          check=True, capture_output=True, text=True).stdout
    if not told:
        sys.exit("apt knows no mirror of Debian; try: apt-get update")
    return told.splitlines()[0]


def own_suite():
    """The Debian suite of this machine; bookworm where it is not Debian."""
    told = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    if told.get("ID") != "debian":
        return "bookworm"
    return "sid" if told["PRETTY_NAME"].strip('"').endswith("/sid") else told["VERSION_CODENAME"]


def make_root(suite, path, packages):
    """Debian's base of `suite` at `path` with these packages beside it, and this machine's apt settings.
    Errors: CalledProcessError, with the last words of debootstrap or apt in `output`."""
    _run_in_mounts("debootstrap", "--variant=minbase", suite, path, mirror())
    for config in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
        if REACH.search(config.read_text()):
            shutil.copy(config, path / "etc/apt/apt.conf.d" / config.name)
    (path / "etc/apt/sources.list").write_text(f"deb {mirror()} {suite} main\n")
    # By apt: debootstrap takes the first of alternatives, and can then not configure what needs another.
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    inside = ["sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', path]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        _run_in_mounts(*inside, *apt, *words)
    for archive in (path / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()


def _run_in_mounts(*command):
    """A command whose mounts nobody else sees: a second whole /proc lets a test beside it mount what would be
    refused."""
    subprocess.run(["unshare", "--mount", *command], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
