# SPDX-License-Identifier: Apache-2.0
"""The images of mpi.py made in Debian's suites, with their compilers, libraries and MPIs. They are made once
per machine and kept.

usage: suite_mpi.py      makes what is missing; it needs root, and Debian's mirror
"""

import functools
import json
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from support import debian, images, kept

SUITES = ("bookworm", "trixie", "sid")
PACKAGES = ("ca-certificates", "python3", "gcc", "libc6-dev", "libopenmpi-dev", "openmpi-bin", "libmpich-dev", "mpich",
            "busybox-static")
RECIPE = "1"  # change it with the recipe below, or with program_images.py

# Runs in the other Debian: the layer of each kind, and the version of its MPI.
COLLECT = """
import json, pathlib, re, subprocess
from support import mpi, program_images
made = pathlib.Path("/made")
made.mkdir()
versions = {}
for kind in mpi.KINDS:
    made.joinpath(kind).write_bytes(mpi.ranks_layer(kind))
    versions[kind] = mpi.version(kind)
made.joinpath("versions").write_text(json.dumps(versions))
"""


def _build(suite, path):
    root = path.with_name(f"{path.name}-root")
    debian.make_root(suite, root, PACKAGES)
    try:
        shutil.copytree(TESTS / "support", root / "support")
        subprocess.run(["chroot", root, "env", "PYTHONPATH=/", "python3", "-c", COLLECT], check=True,
                       stdin=subprocess.DEVNULL, stdout=sys.stderr)
        shutil.move(root / "made", path)
    finally:
        shutil.rmtree(root)


@functools.cache
def _made(suite):
    return kept.directory(f"mpi-{suite}-{RECIPE}", functools.partial(_build, suite))


def version(suite, kind):
    """"4.1.4"."""
    return json.loads((_made(suite) / "versions").read_text())[kind]


def push(registry, suite, kind):
    """The reference of the image that has this program as /ranks."""
    name = f"test/{suite}-{kind}"
    layers = [images.busybox_layer(), (_made(suite) / kind).read_bytes()]
    images.build(layers, {"Cmd": ["/ranks"]}).push(registry, name)
    return f"{registry.address}/{name}:latest"


if __name__ == "__main__":
    for one in SUITES:
        print(_made(one))
