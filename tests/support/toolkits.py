# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's CUDA toolkits as Debian distributes them, each unpacked once into a minimal Debian and kept: nvcc, ptxas,
nvlink, fatbinary, cuobjdump, nvdisasm, the headers, and the static libcudart. No GPU is needed.

usage: toolkits.py [VERSION…]         makes what is missing and prints a table

The packages are of Debian's component non-free and under NVIDIA's licence, which is in each root as
/usr/share/doc/PACKAGE/copyright. They stay in the tests' cache.

    toolkit = toolkits.get("12.4")    # the first time: downloads 0.6 to 1.0 GB, of which 0.2 GB stay
    toolkit.run(place, "nvcc", "-arch=sm_80", "-o", "k", "k.cu")
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, kept, real_drivers

RECIPE = "1"  # change it with the recipe below
# Debian's suite, and the host compiler that nvcc accepts.
VERSIONS = {"11.2": ("bullseye", "g++-10"), "11.8": ("bookworm", "g++-11"), "12.4": ("trixie", "g++-13")}
Unavailable = real_drivers.Unavailable

# Of these packages, and only these files: the rest is 3 GB of libraries.
_UNPACKED = {
    "nvidia-cuda-toolkit": re.compile(r""),
    "nvidia-cuda-dev": re.compile(r"^usr/include/|lib(cudart_static|cudadevrt|culibos)\.a$|/stubs/libcuda\.so$"
                                  r"|^usr/share/doc/|libdevice"),
    "libcudart": re.compile(r""),
    "libnvvm": re.compile(r""),
}


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """A kept toolkit."""
    root: pathlib.Path
    version: str
    packages: list  # [[name, version]]

    # Its own gcc first, which is the host compiler that nvcc accepts.
    PATH = "/usr/lib/nvidia-cuda-toolkit/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def command(self, place, *words):
        """The words that run a program of the toolkit in the directory `place` of this machine. A private mount
        namespace: nothing of it stays."""
        inside = ('mount -t proc proc "$0/proc" && mount --bind "$1" "$0/mnt" && mount -t tmpfs tmpfs "$0/tmp" '
                  '&& root=$0 && shift && exec chroot "$root" sh -c \'cd /mnt && exec "$@"\' sh "$@"')
        return ["unshare", "--mount", "sh", "-c", inside, self.root, place, *words]

    def run(self, place, *words):
        """The standard output of a program. Errors: CalledProcessError, with its words in `stderr`."""
        return subprocess.run(self.command(place, *words), check=True, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, env={"PATH": self.PATH, "LC_ALL": "C"}).stdout


def _of_suite(suite):
    """{package: its fields}, the newest of each."""
    return {one["Package"]: one for one in debian.index(suite, real_drivers.COMPONENTS)}


def _packages(version):
    """Names of the packages to unpack, or Unavailable."""
    suite, _ = VERSIONS[version]
    try:
        there = _of_suite(suite)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"the index of {suite} cannot be fetched: {error.output.strip().splitlines()[-1]}") from error
    if not there.get("nvidia-cuda-toolkit", {}).get("Version", "").startswith(f"{version}."):
        raise Unavailable(f"the mirror has no nvidia-cuda-toolkit {version} in {suite}")
    return sorted(name for name in there if re.fullmatch(r"nvidia-cuda-(toolkit|dev)|(libcudart|libnvvm)[\d.]+", name))


def _unpack(root, name, wanted):
    """Downloads a package in the root and takes the wanted files of it."""
    place = root / "var/tmp/unpacked"
    place.mkdir()
    place.chmod(0o777)
    inside = f"cd /var/tmp/unpacked && apt-get -q -o APT::Sandbox::User=root download {name}"
    subprocess.run(["chroot", root, "sh", "-c", inside], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    (archive,) = place.glob("*.deb")
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            for one in tar:
                one.name = one.name.removeprefix("./")
                if not one.isdir() and wanted.search(one.name):
                    tar.extract(one, root)
    shutil.rmtree(place)


def _make(version, path):
    suite, compiler = VERSIONS[version]
    names = _packages(version)
    base = kept.directory(f"driver-base-{suite}-{real_drivers.RECIPE}",
                          functools.partial(real_drivers.make_base, suite))
    path.mkdir()
    root = path / "root"
    with real_drivers.timed(f"NVIDIA's toolkit {version} is unpacked, from Debian {suite}"):
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        debian.install(root, [compiler])
        for name in names:
            wanted = next(pattern for prefix, pattern in _UNPACKED.items() if name.startswith(prefix))
            _unpack(root, name, wanted)
        real_drivers.drop_lists(root)
    there = _of_suite(suite)
    (path / "toolkit.json").write_text(json.dumps({
        "version": version, "packages": [[name, there[name]["Version"]] for name in names]}, indent=1))


@functools.cache
def get(version):
    """The Toolkit of a version. Errors: Unavailable."""
    real_drivers.check_all_asked()
    name = f"cuda-toolkit-{version}-{RECIPE}"
    if not (kept.cache() / name).exists():
        _packages(version)
    place = kept.directory(name, functools.partial(_make, version))
    return Toolkit(place / "root", **json.loads((place / "toolkit.json").read_text()))


def _main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("version", nargs="*", help=f"of {', '.join(VERSIONS)}; all unless told")
    os.nice(5)
    status = 0
    for version in parser.parse_args().version or VERSIONS:
        try:
            one = get(version)
        except Unavailable as error:
            print(f"{version}: skipped: {error}")
            continue
        except subprocess.CalledProcessError as error:
            print(f"{version}: {error}: {(error.stderr or error.output or '')[-2000:]}")
            status = 1
            continue
        print(version, one.root, *(f"{name}={at}" for name, at in one.packages))
    return status


if __name__ == "__main__":
    sys.exit(_main())
