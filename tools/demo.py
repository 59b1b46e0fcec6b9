#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The main use from end to end: an image built from Debian's packages, a registry on loopback, push, pull,
and a container with GPUs, as root and as an ordinary user.

usage: ./dev demo

Uses the NVIDIA driver of this machine; without one a synthetic driver tree of 8 GPUs, which the first line
then reports. Removes everything that it created.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support import leftovers, registry, scratch, users  # noqa: E402

# For 'bash', 'ls', 'grep' and 'ldconfig -p', and the user names.
PACKAGES = ["base-files", "base-passwd", "bash", "coreutils", "grep", "libc-bin"]
IMAGE = "demo/debian-small:latest"
LOOK = "set -e; id; ls -d /dev/nvidia*; ldconfig -p | grep libcuda.so"


class Steps:
    """Prints each step, its output and its duration."""

    def __init__(self):
        self.taken = []

    @contextlib.contextmanager
    def step(self, title):
        print(f"\n== {title}", flush=True)
        started = time.monotonic()
        yield
        self.taken.append((title, time.monotonic() - started))

    def table(self):
        print("\nWhat each step took:")
        width = max(len(title) for title, _ in self.taken)
        for title, seconds in self.taken:
            print(f"  {title.ljust(width)}  {seconds:7.2f} s")


def run(argv, show=True, **options):
    """Runs a command to its end and shows its output; a failure ends the demo with that output."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if show:
        print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode != 0:
        sys.exit(f"demo: {' '.join(argv)} ended with {done.returncode}"
                 + ("" if show else f": {done.stdout}"))
    return done.stdout


def with_dependencies(names):
    """`names` and their installed dependencies: library packages have different names in each release."""
    found, pending = set(), list(names)
    while pending:
        name = pending.pop()
        said = subprocess.run(["dpkg-query", "--show", "--showformat", "${db:Status-Abbrev},${Pre-Depends},${Depends}",
                               name], capture_output=True, text=True, check=False).stdout
        if name not in found and said.startswith("ii"):
            found.add(name)
            pending += re.findall(r"[,|] *([a-z0-9][a-z0-9.+-]+)", said)
    return sorted(found)


def download(work):
    """Downloads the .deb files of PACKAGES and their dependencies with apt, without installing them."""
    packages = work / "packages"
    packages.mkdir()
    options = ["-o", "APT::Sandbox::User=root"]
    fetch = ["apt-get", *options, "-q", "download", *with_dependencies(PACKAGES)]
    if subprocess.run(fetch, capture_output=True, check=False, cwd=packages).returncode != 0:
        run(["apt-get", "-q", "update"], show=False)  # the package lists are missing or too old
        run(fetch, show=False, cwd=packages)
    return sorted(packages.glob("*.deb"))


def make_root(work):
    """Makes a small Debian root: unpacked packages, with the users that base-passwd lists."""
    root = work / "rootfs"
    root.mkdir()
    for package in download(work):
        run(["dpkg-deb", "--extract", package, root], show=False)
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "bin/sh").symlink_to("bash")
    run(["ldconfig", "-r", root], show=False)
    return root


def push_image(root, work, address):
    """Packs the root with umoci and copies it to the registry with skopeo."""
    layout = work / "layout"
    bundle = work / "bundle"
    run(["umoci", "init", "--layout", layout], show=False)
    run(["umoci", "new", "--image", f"{layout}:latest"], show=False)
    run(["umoci", "unpack", "--image", f"{layout}:latest", bundle], show=False)
    shutil.rmtree(bundle / "rootfs")
    root.rename(bundle / "rootfs")
    run(["umoci", "repack", "--image", f"{layout}:latest", bundle], show=False)
    run(["umoci", "config", "--image", f"{layout}:latest", "--config.cmd", "/bin/bash",
         "--config.env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"], show=False)
    run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{layout}:latest",
         f"docker://{address}/{IMAGE}"])


def driver(work, programs):
    """(a description, global flags of berth): for the machine's driver, or for a synthetic tree, with the
    stub NVML that reads a file if it was built."""
    version = pathlib.Path("/proc/driver/nvidia/version")
    if version.exists():
        return f"NVIDIA driver of this machine: {version.read_text().splitlines()[0]}", []
    root = work / "driver"
    stub = programs.parent / "lib/libnvml_stub.so"
    nvml = ["--nvml-stub", stub] if stub.exists() else []
    run([sys.executable, TESTS / "support/driver_tree.py", "eight", root, *nvml], show=False)
    return ("SYNTHETIC driver tree: this machine has no NVIDIA driver; the 8 GPUs below are made "
            "up"), ["--driver-root", root]


def show(steps, account, programs, flags, image):
    """Pull, gpu list and run, as this user, with a separate store."""
    berth = [programs / "berth", "--root", account.home / "store", "--state",
             account.home / "state", *flags]
    who = "root" if account.kind == "root" else f"an ordinary user ({account.name})"

    def as_user(*args):
        print("  $ berth " + shlex.join(args), flush=True)
        run(account.command([*berth, *args]), env=account.environment(), cwd=account.home)

    with steps.step(f"berth pull, as {who}"):
        as_user("pull", image)
    with steps.step(f"berth gpu list, as {who}"):
        as_user("gpu", "list")
    with steps.step(f"berth run --gpus all, as {who}"):
        as_user("run", "--rm", "--network", "none", "--gpus", "all", image, "bash", "-c", LOOK)


def demo(said, flags, programs, work, stack):
    print(said, flush=True)
    steps = Steps()
    made = stack.enter_context(users.accounts(work, kinds=("root", "user")))
    with steps.step("unpack Debian packages into a root file system"):
        root = make_root(work)
    with steps.step("start docker-registry on loopback"):
        server = stack.enter_context(registry.running(work / "registry"))
    with steps.step("umoci, skopeo: build and push the image"):
        push_image(root, work, server.address)
    for account in made.values():
        show(steps, account, programs, flags, f"{server.address}/{IMAGE}")
    steps.table()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    programs = parser.parse_args().programs
    if os.geteuid() != 0:
        sys.exit("demo: it runs berth as root too, and makes a user: start it as root or with sudo")
    for name in ("berth", "berth-transfer", "berth-runtime"):
        if not (programs / name).exists():
            sys.exit(f"demo: no {programs / name}; try: ./dev demo")

    with scratch.directory("berth-demo") as work:
        before = leftovers.snapshot(work, set())
        try:
            # In a place that every user can reach: the checkout may be in a home directory.
            copied = work / "bin"
            shutil.copytree(programs, copied, ignore=lambda _, names: [
                name for name in names if not name.startswith("berth")])
            with contextlib.ExitStack() as stack:
                demo(*driver(work, programs), copied, work, stack)
        finally:
            leftovers.clear(before, work, set())
    print(f"\ncleaned up: {work} and the user made for this are gone", flush=True)


if __name__ == "__main__":
    main()
