# SPDX-License-Identifier: Apache-2.0
"""Root file systems of Debian's suites, from the package source of this machine's apt."""

import pathlib
import re
import shutil
import subprocess
import sys

REACH = re.compile(r"Acquire::(Check|https?|ForceIPv)")  # how a mirror is reached


def mirror():
    """The mirror of this machine's apt. Exits if there is none."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"],
                          check=True, capture_output=True, text=True).stdout
    if not told:
        sys.exit("apt knows no mirror of Debian; try: apt-get update")
    return told.splitlines()[0]


def own_suite():
    """The Debian suite of this machine; bookworm if it is not Debian."""
    told = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    if told.get("ID") != "debian":
        return "bookworm"
    return "sid" if told["PRETTY_NAME"].strip('"').endswith("/sid") else told["VERSION_CODENAME"]


def make_root(suite, path, packages):
    """Debian's base of `suite` at `path` with these packages, and this machine's apt settings.
    Errors: CalledProcessError, with the last output of debootstrap or apt in `output`."""
    _run_in_mounts("debootstrap", "--variant=minbase", suite, path, mirror())
    for config in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
        if REACH.search(config.read_text()):
            shutil.copy(config, path / "etc/apt/apt.conf.d" / config.name)
    (path / "etc/apt/sources.list").write_text(f"deb {mirror()} {suite} main\n")
    # With apt: debootstrap chooses the first of alternatives, and then fails to configure packages that need
    # another.
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    inside = ["sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', path]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        _run_in_mounts(*inside, *apt, *words)
    for archive in (path / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()


def _run_in_mounts(*command):
    """Runs a command in a private mount namespace: a second unmasked /proc would permit other tests mounts
    that must be refused."""
    subprocess.run(["unshare", "--mount", *command], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
