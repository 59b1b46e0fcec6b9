# SPDX-License-Identifier: Apache-2.0
"""Root file systems of Debian's suites, from the package source of this machine's apt."""

import contextlib
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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


def make_root(suite, path, packages, components="main"):
    """Debian's base of `suite` at `path` with these packages, and this machine's apt settings.
    Errors: CalledProcessError, with the last output of debootstrap or apt in `output`."""
    _run_in_mounts("debootstrap", "--variant=minbase", suite, path, mirror())
    for config in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
        if REACH.search(config.read_text()):
            shutil.copy(config, path / "etc/apt/apt.conf.d" / config.name)
    (path / "etc/apt/sources.list").write_text(f"deb {mirror()} {suite} {components}\n")
    install(path, packages)


def install(root, packages):
    """Installs packages in a root of make_root().
    Errors: CalledProcessError, with the output of apt in `output`."""
    # With apt: debootstrap chooses the first of alternatives, and then fails to configure packages that need
    # another.
    apt(root, "update")
    apt(root, "install", "--yes", "--no-install-recommends", *packages)
    for archive in (root / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()


def apt(root, *words):
    """apt-get in a root of make_root()."""
    inside = ["sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root]
    _run_in_mounts(*inside, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "APT::Sandbox::User=root",
                   *words)


@contextlib.contextmanager
def _apt_of(suite, components):
    """Words that give apt a place of its own, which knows this suite alone."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        for name in ("lists/partial", "cache", "parts"):
            (place / name).mkdir(parents=True)
        (place / "status").touch()
        (place / "sources.list").write_text(f"deb {mirror()} {suite} {components}\n")
        options = {"Dir::Etc::SourceList": place / "sources.list", "Dir::Etc::SourceParts": place / "parts",
                   "Dir::Cache": place / "cache", "Dir::State::Lists": place / "lists",
                   "Dir::State::Status": place / "status"}
        options |= {"Acquire::Retries": 0, "APT::Sandbox::User": "root"}
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        _run("apt-get", "-q", *flags, "--error-on=any", "update")
        yield flags


@functools.cache
def index(suite, components):
    """[{field: value}] of the packages of these components of `suite`, for this machine's architecture. Only their
    first lines, which have all that a package needs.
    Errors: CalledProcessError, with the output of apt in `output`."""
    with _apt_of(suite, components) as flags:
        told = _run("apt-cache", *flags, "dumpavail").stdout
    return [dict(re.findall(r"^(\S+): (.*)$", one, re.M)) for one in told.split("\n\n") if one.strip()]


def download(suite, components, package, place):
    """Puts the files of a package below the directory `place`; installs nothing.
    Errors: CalledProcessError, with the output of apt in `output`."""
    with _apt_of(suite, components) as flags, tempfile.TemporaryDirectory() as directory:
        _run("sh", "-c", 'cd "$0" && apt-get -q "$@"', directory, *flags, "download", package)
        (archive,) = pathlib.Path(directory).glob("*.deb")
        _run("dpkg-deb", "-x", archive, place)


def _run(*command):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def _run_in_mounts(*command):
    """Runs a command in a private mount namespace: a second unmasked /proc would permit other tests mounts
    that must be refused."""
    _run("unshare", "--mount", *command)
