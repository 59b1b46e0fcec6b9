# SPDX-License-Identifier: Apache-2.0
"""The engines that the benches start, each with its files in a directory of the bench."""

import contextlib
import os
import pathlib
import time

from support.side_by_side import reap_orphans, version


def podman_cgroups():
    return set(pathlib.Path("/sys/fs/cgroup").glob("*/libpod_parent"))


def remove_podman_cgroups(before):
    """podman leaves its parent cgroups; restores the machine's state."""
    time.sleep(0.2)
    reap_orphans()
    for path in podman_cgroups() - before:
        for directory, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


class Berth:
    def __init__(self, programs, work, image):
        self.programs, self.image = programs, image
        self.state = work / "run/berth"
        self.argv = [str(programs / "berth"), "--root", str(work / "berth"),
                     "--state", str(self.state)]
        self.version = version(self.argv[0], "--version")

    def run_argv(self, *flags, driver_root=None):
        place = ["--driver-root", driver_root] if driver_root else []
        return [*self.argv, *place, "run", "--rm", "--network", "none", *flags, self.image,
                "/bin/true"]


class Podman:
    # Without CAP_SYS_RESOURCE hard limits cannot be raised, so name the current ones.
    LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]

    def __init__(self, work):
        self.argv = ["podman", "--root", str(work / "podman"), "--runroot",
                     str(work / "run/podman"), "--tmpdir", str(work / "run/libpod"),
                     "--cgroup-manager", "cgroupfs", "--events-backend", "none"]

    def run_argv(self, image, *flags):
        return [*self.argv, "run", "--rm", "--network", "none", *self.LIMITS, *flags, image,
                "/bin/true"]
