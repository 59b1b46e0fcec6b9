# SPDX-License-Identifier: Apache-2.0
"""Images with an MPI program that was built against the library in them: Debian's Open MPI and MPICH, both
installed on this machine. The program is mpi_ranks.c.

    reference = push(mpi.image("openmpi"))
    srun --mpi=pmix --container-image=REFERENCE /ranks
"""

import dataclasses
import functools
import json
import pathlib
import re
import subprocess

from support import images, program_images
from support.program_images import LIBRARIES

SOURCE = pathlib.Path(__file__).with_name("mpi_ranks.c")
BROUGHT = "/usr/local/berth/mpi/lib"  # the host's libraries, in a container


@dataclasses.dataclass(frozen=True)
class Kind:
    library: str  # as it names itself
    slurm: str    # the value of srun's --mpi
    plugins: tuple  # directories of libraries that it opens by name
    texts: tuple = ()


KINDS = {
    "openmpi": Kind("Open MPI v", "pmix",
                    (LIBRARIES / "openmpi/lib/openmpi3", LIBRARIES / "openmpi/lib/openmpi40", LIBRARIES / "pmix2/lib/pmix",
                     LIBRARIES / "ucx"),
                    (pathlib.Path("/etc/openmpi"), pathlib.Path("/usr/share/openmpi"),
                     LIBRARIES / "pmix2/share")),
    "mpich": Kind("MPICH Version:", "pmi2", (LIBRARIES / "ucx",)),
}


@functools.cache
def program(kind):
    """The bytes of the program that ranks run."""
    return program_images.compiled([f"mpicc.{kind}", "-O2"], SOURCE, "-ldl")


@functools.cache
def version(kind):
    """This machine's version: "4.1.4"."""
    said = subprocess.run([f"mpirun.{kind}", "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"\d+(\.\d+)+\w*", said)[0]


def major(kind):
    return int(version(kind).split(".")[0])


def ranks_layer(kind):
    """The program as /ranks, with everything that the loader loads for it."""
    return program_images.layer("ranks", program(kind), KINDS[kind].plugins, KINDS[kind].texts)


@functools.cache
def image(kind):
    return images.build([images.busybox_layer(), ranks_layer(kind)], {"Cmd": ["/ranks"]})


def push_all(registry):
    """{kind: reference}"""
    for kind in KINDS:
        image(kind).push(registry, f"test/{kind}")
    return {kind: f"{registry.address}/test/{kind}:latest" for kind in KINDS}


def works(ranks, nodes):
    """The output of a correct world, except its library."""
    return {"ranks": ranks, "nodes": nodes, "ring": ranks * (ranks + 1) // 2, "large": True,
            "allreduce": True, "shared_memory": True, "cma": True}


def works_here(kind, ranks, nodes):
    """The same for this machine's MPI. Debian's MPICH 5 counts each rank as a separate node, without a
    container too."""
    return works(ranks, ranks if kind == "mpich" and major(kind) >= 5 else nodes)


def worlds(text):
    """The output of each world of ranks: several if ranks found no launcher."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def the_world(kind, text, whose="image"):
    """The output of the only world, without its library, which must be the image's or the host's."""
    (world,) = worlds(text)
    assert world.pop("library").startswith(KINDS[kind].library)
    place = {"image": LIBRARIES, "host": BROUGHT}[whose]
    assert world.pop("file").startswith(f"{place}/libmpi")
    return world
