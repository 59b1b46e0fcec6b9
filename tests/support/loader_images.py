# SPDX-License-Identifier: Apache-2.0
"""Small images with distributions' layouts: a real dynamic loader and one program, /probe.

    /probe NAME…     dlopen()s each and prints "NAME => FILE" or "NAME: why not"
    /probe --nodes   prints every character device below /dev that a GPU could be: "PATH MAJOR:MINOR"
"""

import functools
import os
import pathlib
import re
import subprocess
import tempfile

from support import images

PROGRAM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void list(const char* directory, const char* prefix) {
  DIR* open = opendir(directory);
  for (struct dirent* entry; open != NULL && (entry = readdir(open)) != NULL;) {
    char path[600];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    if (strncmp(entry->d_name, prefix, strlen(prefix)) || stat(path, &info)) continue;
    if (S_ISCHR(info.st_mode)) printf("%s %u:%u\n", path, major(info.st_rdev), minor(info.st_rdev));
  }
  if (open != NULL) closedir(open);
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--nodes")) {
      list("/dev", "nvidia");
      list("/dev", "kfd");
      list("/dev/nvidia-caps", "nvidia-cap");
      list("/dev/nvidia-caps-imex-channels", "channel");
      list("/dev/dri", "");
      continue;
    }
    void* library = dlopen(argv[i], RTLD_NOW);
    struct link_map* map = NULL;
    if (library == NULL) {
      printf("%s: %s\n", argv[i], dlerror());
      continue;
    }
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    printf("%s => %s\n", argv[i], map->l_name);
  }
  return 0;
}
"""

MUSL_LOADER = "/lib/ld-musl-x86_64.so.1"
LIBRARY_DIRECTORY = {"debian": "usr/lib/x86_64-linux-gnu", "rhel": "usr/lib64",
                     "distroless": "usr/lib/x86_64-linux-gnu"}


def loaded_files(program):
    """The host's files that the loader opens for `program`: (path in the image, real path)."""
    out = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [(path, os.path.realpath(path)) for path in re.findall(r"(/\S+) \(0x", out)]


@functools.cache
def probe(compiler="gcc"):
    """The bytes of /probe."""
    with tempfile.TemporaryDirectory() as directory:
        source, program = pathlib.Path(directory, "probe.c"), pathlib.Path(directory, "probe")
        source.write_text(PROGRAM)
        subprocess.run([compiler, "-O1", "-o", program, source], check=True)
        return program.read_bytes(), tuple(loaded_files(program) if compiler == "gcc" else ())


def loader_cache(entries, configuration):
    """The cache that ldconfig writes for an image of these entries."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for info, content in entries:
            path = root / info.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if info.issym():
                path.symlink_to(info.linkname)
            elif content is None:
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(content)
                path.chmod(info.mode)
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc/ld.so.conf").write_text(configuration)
        subprocess.run(["/sbin/ldconfig", "-X", "-r", root], check=True)
        return (root / "etc/ld.so.cache").read_bytes()


def glibc_layout(libdir, links):
    """The probe and its libraries in `libdir`; `links`: those of a merged /usr."""
    program, loaded = probe()
    entries = [images.directory(path) for path in ("usr", "usr/lib", "usr/bin", "etc", "tmp")]
    entries += [images.directory("usr/lib64"), images.directory("usr/lib/x86_64-linux-gnu")]
    entries += [images.symlink(path, target) for path, target in links.items()]
    entries.append(images.file("probe", program, mode=0o755))
    for path, real in loaded:
        where = f"usr/lib64/{os.path.basename(path)}" if "ld-linux" in path else \
            f"{libdir}/{os.path.basename(path)}"
        entries.append(images.file(where, pathlib.Path(real).read_bytes(), mode=0o755))
    entries.append(images.file("etc/passwd", "root:x:0:0:root:/root:/probe\n"))
    return entries


def debian():
    entries = glibc_layout(LIBRARY_DIRECTORY["debian"], {"lib": "usr/lib", "lib64": "usr/lib64", "bin": "usr/bin"})
    cache = loader_cache(entries, "/usr/lib/x86_64-linux-gnu\n")
    return [images.layer(entries + [images.file("etc/debian_version", "12.5\n"),
                                    images.file("etc/ld.so.cache", cache)])]


def rhel():
    # Debian's loader has no built-in /usr/lib64: the cache names it, as RHEL's does.
    entries = glibc_layout(LIBRARY_DIRECTORY["rhel"], {"lib": "usr/lib", "lib64": "usr/lib64", "bin": "usr/bin"})
    cache = loader_cache(entries, "/usr/lib64\n")
    return [images.layer(entries + [images.file("etc/redhat-release", "a release\n"),
                                    images.file("etc/ld.so.cache", cache)])]


def distroless():
    """No shell, no loader cache, no passwd."""
    entries = glibc_layout(LIBRARY_DIRECTORY["distroless"], {"lib": "usr/lib", "lib64": "usr/lib64"})
    return [images.layer([entry for entry in entries if entry[0].name != "etc/passwd"])]


def alpine():
    program, _ = probe("musl-gcc")
    return [images.layer([
        *[images.directory(path) for path in ("lib", "usr", "usr/lib", "etc", "tmp", "bin")],
        images.file("etc/alpine-release", "3.20.0\n"),
        images.file(MUSL_LOADER.lstrip("/"), pathlib.Path(MUSL_LOADER).read_bytes(), mode=0o755),
        images.file("probe", program, mode=0o755)])]


LAYOUTS = {"debian": debian, "rhel": rhel, "alpine": alpine, "distroless": distroless}


def push_all(registry):
    """{layout: reference}"""
    pushed = {}
    for name, layers in LAYOUTS.items():
        images.build(layers(), {"Cmd": ["/probe", "--nodes"]}).push(registry, f"test/layout-{name}")
        pushed[name] = f"{registry.address}/test/layout-{name}:latest"
    return pushed
