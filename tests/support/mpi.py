# SPDX-License-Identifier: Apache-2.0
"""Images with an MPI program that was built with the library in them: Debian's Open MPI and MPICH,
which lie side by side on this machine. mpi_ranks.c says what the program does.

    reference = push(mpi.image("openmpi"))
    srun --mpi=pmix --container-image=REFERENCE /ranks
"""

import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile

from support import images, loader_images

SOURCE = pathlib.Path(__file__).with_name("mpi_ranks.c")
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
BROUGHT = "/usr/local/berth/mpi/lib"  # those of the host, in a container


@dataclasses.dataclass(frozen=True)
class Kind:
    library: str  # what it says of itself
    slurm: str    # srun's --mpi for it
    plugins: tuple  # directories of what it opens by name
    texts: tuple = ()


KINDS = {
    "openmpi": Kind("Open MPI v4.1", "pmix",
                    (LIBRARIES / "openmpi/lib/openmpi3", LIBRARIES / "pmix2/lib/pmix", LIBRARIES / "ucx"),
                    (pathlib.Path("/etc/openmpi"), pathlib.Path("/usr/share/openmpi"),
                     LIBRARIES / "pmix2/share")),
    "mpich": Kind("MPICH Version: 4.0", "pmi2", (LIBRARIES / "ucx",)),
}


@functools.cache
def program(kind):
    """The bytes of the ranks' program."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory, "ranks")
        subprocess.run([f"mpicc.{kind}", "-O2", "-o", out, SOURCE, "-ldl"], check=True)
        return out.read_bytes()


def _loaded(file):
    """What the loader opens for it."""
    out = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def _in_usr(path):
    """Where `path` is without links of a merged /usr."""
    path = str(path)
    return path.lstrip("/") if path.startswith("/usr/") else f"usr{path}"


def _directories(paths):
    """Entries of all that is above them, the upper ones first."""
    above = {parent for path in paths for parent in pathlib.PurePath(path).parents}
    return [images.directory(str(parent)) for parent in sorted(above) if str(parent) != "."]


@functools.cache
def layer(kind):
    """/ranks and all that it needs, as a Debian has it, with its loader's cache."""
    plugins = [path for place in KINDS[kind].plugins for path in sorted(place.glob("*.so*"))]
    texts = [path for place in KINDS[kind].texts for path in sorted(place.rglob("*")) if path.is_file()]
    with tempfile.NamedTemporaryFile() as ranks:
        pathlib.Path(ranks.name).write_bytes(program(kind))
        found = set().union(*(_loaded(path) for path in (ranks.name, *plugins)))
    files = {_in_usr(path): os.path.realpath(path) for path in (*sorted(found), *plugins)}
    files |= {str(path).lstrip("/"): path for path in texts}
    entries = [images.file(where, pathlib.Path(path).read_bytes(), mode=0o755 if ".so" in where else 0o644)
               for where, path in sorted(files.items())]
    entries = [*_directories(files), images.symlink("lib", "usr/lib"), images.symlink("lib64", "usr/lib64"),
               *entries, images.file("ranks", program(kind), mode=0o755)]
    cache = loader_images.loader_cache(entries, f"{LIBRARIES}\n")
    return images.layer([*entries, images.file("etc/debian_version", "12.5\n"),
                         images.file("etc/ld.so.cache", cache)])


@functools.cache
def image(kind):
    return images.build([images.busybox_layer(), layer(kind)], {"Cmd": ["/ranks"]})


def push_all(registry):
    """{kind: reference}"""
    for kind in KINDS:
        image(kind).push(registry, f"test/{kind}")
    return {kind: f"{registry.address}/test/{kind}:latest" for kind in KINDS}


def works(ranks, nodes):
    """What a world says of itself in which all is as it should be, beside its library."""
    return {"ranks": ranks, "nodes": nodes, "ring": ranks * (ranks + 1) // 2, "large": True,
            "allreduce": True, "shared_memory": True, "cma": True}


def worlds(text):
    """What each world of ranks has printed: more than one where ranks found no launcher."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def the_world(kind, text, whose="image"):
    """What the only world has printed, but for its library, which is the image's or the host's."""
    (world,) = worlds(text)
    assert world.pop("library").startswith(KINDS[kind].library)
    place = {"image": LIBRARIES, "host": BROUGHT}[whose]
    assert world.pop("file").startswith(f"{place}/libmpi")
    return world
