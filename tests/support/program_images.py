# SPDX-License-Identifier: Apache-2.0
"""A program of this machine with everything that the loader loads for it, as a layer.

    layer = program_images.layer("ranks", data, plugins=[pathlib.Path("/usr/lib/…/openmpi3")])
"""

import os
import pathlib
import re
import subprocess
import tempfile

from support import images, loader_images

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


def compiled(command, source, *words):
    """The bytes of a program."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory, "program")
        subprocess.run([*command, "-o", out, source, *words], check=True)
        return out.read_bytes()


def _loaded(file):
    """The files that the loader opens for it."""
    out = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def _in_usr(path):
    """`path` without links of a merged /usr."""
    path = str(path)
    return path.lstrip("/") if path.startswith("/usr/") else f"usr{path}"


def _directories(paths):
    """Entries for all parent directories, the upper ones first."""
    above = {parent for path in paths for parent in pathlib.PurePath(path).parents}
    return [images.directory(str(parent)) for parent in sorted(above) if str(parent) != "."]


def layer(name, program, plugins=(), texts=()):
    """The program as /NAME with its libraries, a loader and its cache. `plugins`: directories of libraries
    that are opened by name; `texts`: directories of other files."""
    opened = [path for place in plugins for path in sorted(place.glob("*.so*"))]
    read = [path for place in texts for path in sorted(place.rglob("*")) if path.is_file()]
    with tempfile.NamedTemporaryFile() as file:
        pathlib.Path(file.name).write_bytes(program)
        found = set().union(*(_loaded(path) for path in (file.name, *opened)))
    files = {_in_usr(path): os.path.realpath(path) for path in (*sorted(found), *opened)}
    files |= {str(path).lstrip("/"): path for path in read}
    entries = [images.file(where, pathlib.Path(path).read_bytes(), mode=0o755 if ".so" in where else 0o644)
               for where, path in sorted(files.items())]
    entries = [*_directories([*files, "etc/x"]), images.symlink("lib", "usr/lib"),
               images.symlink("lib64", "usr/lib64"), *entries, images.file(name, program, mode=0o755)]
    cache = loader_images.loader_cache(entries, f"{LIBRARIES}\n")
    return images.layer([*entries, images.file("etc/debian_version", "12.5\n"),
                         images.file("etc/ld.so.cache", cache)])
