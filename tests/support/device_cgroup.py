# SPDX-License-Identifier: Apache-2.0
"""A batch job without access to some device nodes."""

import contextlib
import os
import pathlib

import pytest

DEVICES = pathlib.Path("/sys/fs/cgroup/devices")


@contextlib.contextmanager
def job_without(name, denied):
    """A v1 device cgroup that denies these (major, minor); yields the prefix of a command."""
    if not os.path.exists(DEVICES / "devices.deny"):
        pytest.skip("no device cgroup of version 1 is mounted")
    directory = DEVICES / name
    directory.mkdir()
    try:
        for major, minor in denied:
            (directory / "devices.deny").write_text(f"c {major}:{minor} rwm")
        yield ["sh", "-c", f'echo $$ > {directory}/cgroup.procs; exec "$@"', "sh"]
    finally:
        directory.rmdir()


def numbers_of(tree):
    """(major, minor) of the nodes of a synthetic driver, by path."""
    lines = (pathlib.Path(tree) / "dev/nodes").read_text().splitlines()
    return {line.split()[0]: tuple(line.split()[1:3]) for line in lines}
