# SPDX-License-Identifier: Apache-2.0
"""Images whose first program asks what the start scripts of NVIDIA's images ask before the real program, in our own
words, and prints a line for each answer:

    listed=yes           whether `ldconfig -p` has libcuda.so.1; in an image of musl, whether the directories of its
                         loader do
    found=yes            whether there is a libcuda.so.1 below /usr, but for CUDA's compatibility package
    module=550.163.01    the kernel module's version, from /proc/driver/nvidia/version
    needs=nothing        of CUDA_DRIVER_VERSION: nothing, a newer driver, or unknown
    compat=no            whether /usr/local/cuda/compat would be put in front
    cpu_only=no          whether NVIDIA_CPU_ONLY=1 would be set
    smi=/usr/bin/nvidia-smi
    smi_says=…           its last line and its status

and for /ask, which the loader of this image or root runs:

    cuInit=100 cuDriverGetVersion=0,12040 nvmlInit_v2=9,Driver Not Loaded
"""

import functools
import pathlib
import re
import subprocess
import tempfile

from support import images, loader_images, program_images

COMPAT = "usr/local/cuda/compat"

START = r"""#!/bin/sh
listed=no
if [ -e /lib/ld-musl-x86_64.so.1 ]; then
  path=$(cat /etc/ld-musl-x86_64.path 2>/dev/null || echo /lib:/usr/local/lib:/usr/lib)
  for directory in $(echo "$path" | tr ':' ' '); do [ ! -e "$directory/libcuda.so.1" ] || listed=yes; done
elif ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 (libc6,x86-64)'; then
  listed=yes
fi
found=no
[ -z "$(find /usr -name libcuda.so.1 ! -path '*/compat/*' 2>/dev/null)" ] || found=yes
module=$(sed -n 's/^NVRM version:.*  \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null)
if [ -z "$module" ] || [ -z "$CUDA_DRIVER_VERSION" ]; then
  needs=unknown
elif [ "${module%%.*}" -ge "${CUDA_DRIVER_VERSION%%.*}" ]; then
  needs=nothing
else
  needs=newer
fi
compat=no
if [ "$needs" = newer ] && [ -e /usr/local/cuda/compat/libcuda.so.1 ]; then compat=yes; fi
cpu_only=no
if [ "$listed" = no ] || [ ! -c /dev/nvidiactl ]; then cpu_only=yes; fi
echo "listed=$listed"
echo "found=$found"
echo "module=$module"
echo "needs=$needs"
echo "compat=$compat"
echo "cpu_only=$cpu_only"
smi=$(command -v nvidia-smi)
echo "smi=$smi"
[ -e /ask ] || exit 0
if [ -n "$smi" ]; then
  said=$(nvidia-smi 2>&1)
  status=$?
  echo "smi_says=$(echo "$said" | sed '/^$/d' | tail -n 1), $status"
fi
/ask
"""

# Runs in any glibc since 2.2.5, so that one file asks in roots of several releases: without the compiler's start files,
# and with the old version of dlopen.
ASK = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");

static void* load(const char* name) {
  void* library = dlopen(name, RTLD_NOW);
  if (library == NULL) printf("%s: %s\n", name, dlerror());
  return library;
}

__attribute__((force_align_arg_pointer)) void _start(void) {
  void* cuda = load("libcuda.so.1");
  if (cuda != NULL) {
    int version = 0, status = ((int (*)(int*))dlsym(cuda, "cuDriverGetVersion"))(&version);
    printf("cuInit=%d\n", ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0));
    printf("cuDriverGetVersion=%d,%d\n", status, version);
  }
  void* nvml = load("libnvidia-ml.so.1");
  if (nvml != NULL) {
    int status = ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))();
    printf("nvmlInit_v2=%d,%s\n", status, ((const char* (*)(int))dlsym(nvml, "nvmlErrorString"))(status));
  }
  fflush(stdout);
  exit(0);
}
"""


@functools.cache
def ask():
    """The bytes of /ask. Its libraries are all those that NVIDIA's need of the system."""
    with tempfile.TemporaryDirectory() as directory:
        source, program = pathlib.Path(directory, "ask.c"), pathlib.Path(directory, "ask")
        source.write_text(ASK)
        subprocess.run(["gcc", "-O1", "-nostartfiles", "-Wl,--no-as-needed", "-o", program, source, "-l:libdl.so.2",
                        "-l:libm.so.6", "-l:libpthread.so.0", "-l:librt.so.1"], check=True)
        return program.read_bytes()


@functools.cache
def debian_layers():
    """A shell, glibc, ldconfig, /start and /ask."""
    applets = ("sh", "cat", "find", "grep", "ls", "sed", "sleep", "tail", "tr", "true")
    return [program_images.layer("ask", ask()), images.layer([
        images.directory("usr/bin"), images.directory("usr/sbin"), images.directory("tmp", mode=0o1777),
        images.symlink("bin", "usr/bin"), images.symlink("sbin", "usr/sbin"),
        images.file("usr/bin/busybox", pathlib.Path("/bin/busybox").read_bytes(), mode=0o755),
        *[images.symlink(f"usr/bin/{name}", "busybox") for name in applets],
        images.file("usr/sbin/ldconfig", pathlib.Path("/sbin/ldconfig").read_bytes(), mode=0o755),
        images.file("etc/ld.so.conf", f"{program_images.LIBRARIES}\n"),
        images.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), images.file("start", START, mode=0o755)])]


def musl_layers():
    """A shell and musl's loader, without /ask: NVIDIA's libraries need glibc."""
    return [images.busybox_layer(), *loader_images.alpine(),
            images.layer([images.file("start", START, mode=0o755)])]


def driver_layer(driver, names=("libcuda", "libnvidia-ml", "libnvidia-fatbinaryloader", "libnvidia-ptxjitcompiler"),
                 programs=("nvidia-smi",), directory=str(program_images.LIBRARIES)[1:]):
    """Files of a real driver as an image carries them that was built on a machine with this driver, with a cache of
    the loader. Not for publication: tests/support/real_drivers.py."""
    entries, cached = [], [entry for entry in _glibc_entries()]
    for file in driver.versioned:
        name = pathlib.PurePath(file).name
        if "x86_64" not in file or name.partition(".so")[0] not in names or "/tls/" in file:
            continue
        soname = f"{name.partition('.so')[0]}.so.1"
        one = [images.file(f"{directory}/{name}", (driver.root / file).read_bytes())]
        one += [images.symlink(f"{directory}/{soname}", name)] if "fatbinary" not in name else []
        entries += one
    cache = loader_images.loader_cache([*cached, *entries], f"{program_images.LIBRARIES}\n/{directory}\n")
    for file in driver.files:
        if pathlib.PurePath(file).name in programs and re.match("usr/(s?bin|lib/nvidia)/", file) \
                and not (driver.root / file).is_symlink():
            entries.append(images.file(f"usr/bin/{pathlib.PurePath(file).name}", (driver.root / file).read_bytes(),
                                       mode=0o755))
    return images.layer([*entries, images.file("etc/ld.so.conf", f"{program_images.LIBRARIES}\n/{directory}\n"),
                         images.file("etc/ld.so.cache", cache)])


def _glibc_entries():
    """What the loader's cache of debian_layers() has."""
    with tempfile.NamedTemporaryFile() as file:
        pathlib.Path(file.name).write_bytes(ask())
        loaded = loader_images.loaded_files(file.name)
    return [images.file(f"{program_images.LIBRARIES}/{pathlib.PurePath(path).name}"[1:],
                        pathlib.Path(real).read_bytes()) for path, real in loaded if "ld-linux" not in path]


def answers(text):
    """{question: answer}"""
    return dict(line.partition("=")[::2] for line in text.splitlines())


# The kernel's own proc, but for the driver's part of it.
BARE = """
set -e
mount --bind "$1/proc/driver" "$1/mnt"
mount -t proc proc "$1/proc"
mount --bind "$1/mnt" "$1/proc/driver"
umount --lazy "$1/mnt"
exec chroot "$1" /start
"""


def add_questions(root):
    for name, data in (("start", START.encode()), ("ask", ask())):
        (root / name).write_bytes(data)
        (root / name).chmod(0o755)


def bare(root, env):
    """The answers of a root itself, which gets /start and /ask."""
    add_questions(root)
    (root / "mnt").mkdir(exist_ok=True)
    words = ["env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
             *(f"{name}={value}" for name, value in env.items()),
             "unshare", "--mount", "--pid", "--fork", "sh", "-c", BARE, "sh", root]
    return answers(subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout)
