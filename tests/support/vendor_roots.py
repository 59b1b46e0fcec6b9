# SPDX-License-Identifier: Apache-2.0
"""AMD's and Intel's user space as Debian distributes it, each suite's once in a minimal Debian and kept, with the
clang that makes code for AMD's GPUs. No GPU and no kernel module is needed.

usage: vendor_roots.py [SUITE…]       makes what is missing and prints what each has

    there = vendor_roots.get("trixie")      # the first time: downloads and installs
    there.root, there.versions["rocminfo"], there.has("clinfo")

Everything is of Debian's component main.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, kept, real_drivers

RECIPE = "1"  # change it with the lists below
Unavailable = real_drivers.Unavailable

# The runtimes and programs, of those that a suite has; the newest HIP.
HIP = ("libamdhip64-7", "libamdhip64-6", "libamdhip64-5")
USER_SPACE = ("libhsa-runtime64-1", "rocminfo", "rocm-smi", "rocm-opencl-icd", "clinfo", "intel-opencl-icd", "libze1",
              "libze-intel-gpu1", "vulkan-tools", "pciutils")
# Mesa is large: one suite's.
OF_ONE = {"trixie": ("mesa-vulkan-drivers",)}
# The clang of the suite, its linker, and the programs that list code objects.
COMPILERS = {"bookworm": ("15",), "trixie": ("17", "19"), "sid": ("21",)}
SUITES = tuple(COMPILERS)
# A third of them, which nothing here runs.
_UNUSED = ("usr/lib/llvm-*/bin/llvm-exegesis", "usr/lib/llvm-*/bin/c-index-test", "usr/lib/llvm-*/lib/*.a",
           "usr/lib/*/libclang-[0-9]*.so*")
_REPORTED = ("libhsa-runtime64-1", *HIP, "rocminfo", "rocm-smi", "rocm-opencl-icd", "clinfo", "intel-opencl-icd",
             "libze1", "libze-intel-gpu1", "mesa-vulkan-drivers",
             *(f"clang-{one}" for row in COMPILERS.values() for one in row))


@dataclasses.dataclass(frozen=True)
class Root:
    """A suite's."""
    place: pathlib.Path
    suite: str
    versions: dict  # {package: version} of those that are installed for their own sake

    @property
    def root(self):
        return self.place / "root"

    @property
    def compilers(self):
        """The major versions of clang."""
        return COMPILERS[self.suite]

    def has(self, package):
        return package in self.versions

    def run(self, place, *words):
        """The standard output of a program of the root, run in the directory `place` of this machine.
        Errors: CalledProcessError, with its words in `stderr`."""
        inside = ('mount -t proc proc "$0/proc" && mount --bind "$1" "$0/mnt" && mount -t tmpfs tmpfs "$0/tmp" '
                  '&& root=$0 && shift && exec chroot "$root" sh -c \'cd /mnt && exec "$@"\' sh "$@"')
        return subprocess.run(["unshare", "--mount", "sh", "-c", inside, self.root, place, *words], check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}).stdout


def _packages(suite):
    """Names of the packages, or Unavailable."""
    try:
        there = {one["Package"] for one in debian.index(suite, "main")}
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"the index of {suite} cannot be fetched: {error.output.strip().splitlines()[-1]}") from error
    names = [name for name in (*USER_SPACE, *OF_ONE.get(suite, ())) if name in there]
    names += [name for name in HIP if name in there][:1]
    for version in COMPILERS[suite]:
        names += [f"{name}-{version}" for name in ("clang", "clang-tools", "lld", "llvm")]
    if lacks := [name for name in ("rocminfo", "libhsa-runtime64-1", *names) if name not in there]:
        raise Unavailable(f"the mirror has no {lacks[0]} in {suite}")
    return names


def _make(suite, path):
    names = _packages(suite)
    base = kept.directory(f"driver-base-{suite}-{real_drivers.RECIPE}",
                          functools.partial(real_drivers.make_base, suite))
    path.mkdir()
    root = path / "root"
    with real_drivers.timed(f"the user space of AMD and Intel is installed, from Debian {suite}"):
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        debian.install(root, names)
        real_drivers.drop_lists(root)
        for directory in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
            subprocess.run(["find", root / directory, "-type", "f", "!", "-name", "copyright", "-delete"], check=True)
        for pattern in _UNUSED:
            for path_of_one in root.glob(pattern):
                path_of_one.unlink()
    told = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Package}\t${Version}\n"],
                          check=True, capture_output=True, text=True).stdout
    versions = dict(line.split("\t") for line in told.splitlines())
    (path / "root.json").write_text(json.dumps({
        "suite": suite, "versions": {name: versions[name] for name in (*names, *_REPORTED) if name in versions}},
        indent=1))


@functools.cache
def get(suite):
    """The Root of a suite; makes it the first time (two minutes). Errors: Unavailable."""
    real_drivers.check_all_asked()
    name = f"vendor-root-{suite}-{RECIPE}"
    if not (kept.cache() / name).exists():
        _packages(suite)
    place = kept.directory(name, functools.partial(_make, suite))
    return Root(place, **json.loads((place / "root.json").read_text()))


def show(suites):
    """Makes roots and prints what each has; returns the exit status."""
    status = 0
    for suite in suites:
        try:
            one = get(suite)
        except Unavailable as error:
            print(f"{suite}: skipped: {error}")
            continue
        except subprocess.CalledProcessError as error:
            print(f"{suite}: {error}: {(error.stderr or error.output or '')[-2000:]}")
            status = 1
            continue
        told = [f"{name} {one.versions[name]}" for name in _REPORTED if one.has(name)]
        print(f"{suite}: {one.root}: {', '.join(told)}")
    return status


def _main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(SUITES)}; all unless told")
    return show(parser.parse_args().suite or SUITES)


if __name__ == "__main__":
    sys.exit(_main())
