# SPDX-License-Identifier: Apache-2.0
"""Minimal MPIs that only print their origin, for a host and for images, built with the real loader and
linker.

    host = mpi_images.openmpi(directory, "host")             # the files lie in `directory`
    image = mpi_images.image(mpi_images.openmpi(work / "own", "image"))

A program of an image, /app, prints "WHO WHO": the origin of its MPI, and of the library below that.
"""

import pathlib
import subprocess

from support import images, loader_images

APP = r"""
#include <stdio.h>
const char* MPI_Who(void);
const char* MPI_Below(void);
#ifdef SESSIONS
void MPI_Session_init(void);
#endif
int main(void) {
#ifdef SESSIONS
  MPI_Session_init();
#endif
  printf("%s %s\n", MPI_Who(), MPI_Below());
  return 0;
}
"""
CORE = r"""
#ifdef OPENMPI
int ompi_mpi_comm_world;
#endif
const char* below(void);
void future(void);
void MPI_Init(void) {}
const char* MPI_Who(void) { return WHO; }
const char* MPI_Below(void) { return below(); }
#ifdef SESSIONS
void MPI_Session_init(void) {}
#endif
#ifdef FUTURE
void MPI_Future(void) { future(); }
#endif
"""
BELOW = "const char* below(void) { return WHO; }\n"
FUTURE = "GLIBC_9.99"


def compile_library(path, soname, source, *words):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", "-o", path, "-xc", "-",
                    "-xnone", *map(str, words)], input=source, text=True, check=True)
    link = path.parent / soname
    if link != path:
        link.symlink_to(path.name)
    return path


def libc_of_the_future(directory):
    """A stand-in for a later glibc to link a library against."""
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "versions"
    script.write_text(f"{FUTURE} {{ future; }};\n")
    path = directory / "libc.so.6"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-fPIC", "-Wl,-soname,libc.so.6",
                    f"-Wl,--version-script={script}", "-o", path, "-xc", "-"],
                   input="void future(void) {}\n", text=True, check=True)
    return path


def make(directory, who, core, below, defines=()):
    """Builds the files of one MPI: `core` and `below` are (file, SONAME). Returns the directory."""
    directory = pathlib.Path(directory)
    words = [f"-DWHO=\"{who}\"", *[f"-D{name}" for name in defines]]
    lower = compile_library(directory / below[0], below[1], BELOW, *words)
    if "FUTURE" in defines:
        words.append(libc_of_the_future(directory.parent / f"{directory.name}-future"))
    compile_library(directory / core[0], core[1], CORE, *words, lower)
    return directory


def openmpi(directory, who, numbers="40.20.1", defines=()):
    return make(directory, who, (f"libmpi.so.{numbers}", "libmpi.so." + numbers.split(".")[0]),
                ("libopen-pal.so.40.20.1", "libopen-pal.so.40"), ("OPENMPI", *defines))


def mpich(directory, who, name="libmpi", numbers="12.1.1", defines=()):
    return make(directory, who, (f"{name}.so.{numbers}", f"{name}.so.12"),
                (f"lib{who}-below.so.1", f"lib{who}-below.so.1"), defines)


def program(mpi, directory, rpath="", defines=()):
    """/app, linked against the MPI in the directory `mpi`."""
    path = pathlib.Path(directory, "app")
    (core,) = [file for file in mpi.iterdir() if file.name.startswith(("libmpi.so.", "libmpich.so."))
               and not file.is_symlink()]
    # The older kind (DT_RPATH), which also applies to the MPI's own dependencies.
    words = [f"-Wl,--disable-new-dtags,-rpath,{rpath}"] if rpath else []
    subprocess.run(["gcc", "-O1", *[f"-D{name}" for name in defines], *words, "-o", path, "-xc", "-",
                    "-xnone", core, f"-Wl,-rpath-link,{mpi}"], input=APP, text=True, check=True)
    return path.read_bytes()


def layer(mpi, app, where="usr/lib/x86_64-linux-gnu", cached=True):
    """The MPI at `where`, the program, glibc, and the loader's cache, which contains the MPI if `cached`."""
    _, loaded = loader_images.probe()
    parents = [str(parent) for parent in reversed(pathlib.PurePath(where).parents)][1:]
    paths = dict.fromkeys(["etc", "lib64", "lib", "lib/x86_64-linux-gnu", *parents, where])
    entries = [images.directory(path) for path in paths]
    entries.append(images.file("app", app, mode=0o755))
    for path, real in loaded:
        entries.append(images.file(path.lstrip("/"), pathlib.Path(real).read_bytes(), mode=0o755))
    for file in sorted(mpi.iterdir()):
        if file.is_symlink():
            entries.append(images.symlink(f"{where}/{file.name}", file.readlink().name))
        else:
            entries.append(images.file(f"{where}/{file.name}", file.read_bytes(), mode=0o755))
    conf = "/lib/x86_64-linux-gnu\n" + (f"/{where}\n" if cached else "")
    cache = loader_images.loader_cache(entries, conf)
    return images.layer([*entries, images.file("etc/ld.so.cache", cache)])


def image(mpi, directory, config=None, rpath="", defines=(), **place):
    app = program(mpi, directory, rpath, defines)
    return images.build([images.busybox_layer(), layer(mpi, app, **place)],
                        {"Cmd": ["/app"], "Env": ["PATH=/bin"], **(config or {})})
