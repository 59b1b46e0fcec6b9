# SPDX-License-Identifier: Apache-2.0
"""Trees of real drivers (driver_layouts.py) where every user of a test session can reach them: the tests' cache is
its owner's alone.

    with reachable_trees.trees(session_directory) as make:
        tree = make("550")                         # in the layout "debian", kept until the end
        tree = make("550", "ubuntu", private=True)  # files of its own: the test may change them
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from support import driver_layouts, real_drivers

SYNTHETIC = driver_layouts.HERE / "driver_tree.py"


def driver(branch):
    """Skips the test if the mirror does not have the branch."""
    try:
        return real_drivers.get(branch)
    except real_drivers.Unavailable as error:
        pytest.skip(f"no driver {branch}: {error}")


def replace(path, data):
    """Gives `path` new content by rename, as package managers do. Other links to the old file keep theirs."""
    staged = path.with_name(f".{path.name}.new")
    staged.write_bytes(data)
    shutil.copymode(path, staged) if path.exists() else staged.chmod(0o644)
    staged.rename(path)


def with_module(tree, version):
    """Makes the synthetic proc and sys of a tree say that the kernel module is of another version."""
    subprocess.run([sys.executable, SYNTHETIC, "boards", tree.root, "--machine-only", "--version", version,
                    "--gpus", "2", "--no-mknod"], check=True, capture_output=True)
    return tree


@contextlib.contextmanager
def trees(session_directory):
    with driver_layouts.room() as room:
        place = session_directory / f"driver-trees-{os.getpid()}"
        place.mkdir()
        subprocess.run(["mount", "--bind", room, place], check=True)
        place.chmod(0o755)
        made = {}

        def make(branch, layout="debian", private=False):
            key = (branch, layout, len(made) if private else "shared")
            if key not in made:
                name = "-".join(map(str, key))
                tree = driver_layouts.make(layout, driver(branch), room / name)
                made[key] = dataclasses.replace(tree, root=place / pathlib.Path(tree.root).relative_to(room))
            return made[key]
        try:
            yield make
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)
            place.rmdir()
