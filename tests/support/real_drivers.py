# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's user-space drivers as Debian distributes them, each installed once in a minimal Debian and kept.
No GPU and no kernel module is needed.

usage: real_drivers.py [BRANCH…] [SUITE…]                           makes what is missing and prints a table;
                                                                    SUITE: the user space of AMD and Intel
       real_drivers.py --tree DIR [--layout LAYOUT] [--gpus COUNT] BRANCH…
                                                                    a root for `berth --driver-root` from these files

The packages are of Debian's component non-free and under NVIDIA's licence, which is in each of them as
/usr/share/doc/PACKAGE/copyright. They stay in the tests' cache.

    driver = real_drivers.get("550")       # the first time: downloads and installs
    driver.root                            # a whole root, with the links of apt and of update-alternatives
    driver.version                         # "550.163.01"
"""

import argparse
import concurrent.futures
import contextlib
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
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, kept

RECIPE = "1"  # change it with the recipe below
COMPONENTS = "contrib non-free non-free-firmware"
# Debian's sources of a branch: (suite, source package), the first that the mirror has with libcuda of this branch.
BRANCHES = {
    "340": [("sid", "nvidia-graphics-drivers-legacy-340xx")],
    "390": [("bullseye", "nvidia-graphics-drivers-legacy-390xx"), ("sid", "nvidia-graphics-drivers-legacy-390xx")],
    "418": [("bullseye", "nvidia-graphics-drivers-tesla-418"), ("sid", "nvidia-graphics-drivers-tesla-418")],
    "450": [("bullseye", "nvidia-graphics-drivers-tesla-450"), ("sid", "nvidia-graphics-drivers-tesla-450")],
    "470": [("bullseye", "nvidia-graphics-drivers"), ("bookworm", "nvidia-graphics-drivers-tesla-470"),
            ("sid", "nvidia-graphics-drivers-tesla-470")],
    "535": [("bookworm", "nvidia-graphics-drivers"), ("trixie", "nvidia-graphics-drivers-tesla-535")],
    "550": [("trixie", "nvidia-graphics-drivers"), ("sid", "nvidia-graphics-drivers")],
}
WITH_32_BIT = ("550",)

# Not the driver's files, or other packages' names.
_IGNORED = re.compile(r"-kernel-|(?<!-vdpau)-driver(-full)?$|-driver-libs|-(detect|legacy-check|suspend-common)$")
# libGL itself, which conflicts with NVIDIA's part of GLVND. 340 has nothing else.
_WITHOUT_GLVND = re.compile(r"^libgl1-nvidia-.*(?<!glvnd)-glx$|^libegl1-nvidia|nonglvnd")
# These need an X server, or a bus: their files alone.
_UNPACKED = re.compile(r"^xserver-xorg-video-|^nvidia-powerd$")
# Configuration files that all branches of a suite share.
_COMMON = re.compile(r"^nvidia-.*-common$")
# Of other sources, with versions of their own.
_BESIDE = ("nvidia-persistenced", "nvidia-modprobe", "nvidia-xconfig", "libnvidia-egl-gbm1", "libnvidia-egl-xcb1",
           "libnvidia-egl-xlib1")
_OF_MAIN = ("libnvidia-egl-wayland1",)

# What a driver may have: its name in tables, and a pattern of its files.
PARTS = {
    "CUDA": r"/libcuda\.so\.\d", "NVML": r"/libnvidia-ml\.so\.\d", "nvidia-smi": r"/nvidia-smi$",
    "OpenCL": r"/libnvidia-opencl\.so\.\d", "PTX JIT": r"/libnvidia-ptxjitcompiler\.so\.\d",
    "fat binary loader": r"/libnvidia-fatbinaryloader\.so\.\d", "NVVM": r"/libnvidia-nvvm\.so\.\d",
    "compiler": r"/libnvidia-compiler\.so\.\d", "debugger": r"/libcudadebugger\.so\.\d",
    "MPS": r"/nvidia-cuda-mps-server$", "NVENC": r"/libnvidia-encode\.so\.\d", "NVCUVID": r"/libnvcuvid\.so\.\d",
    "optical flow": r"/libnvidia-opticalflow\.so\.\d", "VDPAU": r"/libvdpau_nvidia\.so\.\d",
    "OptiX": r"/libnvoptix\.so\.\d", "ray tracing": r"/libnvidia-rtcore\.so\.\d",
    "EGL": r"/libEGL(_nvidia)?\.so\.\d+\.\d", "GLX": r"/lib(GLX_nvidia|GL)\.so\.\d+\.\d",
    "GLES": r"/libGLESv2(_nvidia)?\.so\.\d+\.\d",
    "Vulkan": r"/nvidia_icd\.json$", "FBC": r"/libnvidia-fbc\.so\.\d", "CFG": r"/libnvidia-cfg\.so\.\d",
    "NGX": r"/libnvidia-ngx\.so\.\d", "GSP firmware": r"/gsp.*\.bin$", "persistenced": r"/nvidia-persistenced$",
    "X driver": r"/nvidia_drv\.so$",
}


# Branches that are asked for, if not all: BERTH_TEST_DRIVERS="550 390".
ASKED = os.environ.get("BERTH_TEST_DRIVERS", "").split()


class Unavailable(Exception):
    """The mirror does not have a branch, and the text names the missing package; or it is not asked for."""


def check_all_asked():
    """For what is no driver of NVIDIA. Errors: Unavailable."""
    if ASKED:
        raise Unavailable("BERTH_TEST_DRIVERS is set, and asks for drivers of NVIDIA alone")


def is_asked(branch):
    return not ASKED or branch in ASKED


@dataclasses.dataclass(frozen=True)
class Driver:
    """A kept branch."""
    place: pathlib.Path
    branch: str
    version: str
    suite: str
    packages: list  # [[name, version]]
    files: list     # of the packages, below the root: no directories
    missing: list   # of PARTS
    left_out: list  # packages of the same source that are not installed

    @property
    def root(self):
        return self.place / "root"

    @functools.cached_property
    def libraries(self):
        """Shared libraries of the driver, without the links to them."""
        return [file for file in self.files if re.search(r"\.so(\.|$)", pathlib.PurePath(file).name)
                and not (self.root / file).is_symlink()]

    @functools.cached_property
    def versioned(self):
        """Libraries with the driver's version as their suffix."""
        return [file for file in self.libraries if file.endswith(f".so.{self.version}")]

    def bytes(self):
        return sum((self.root / file).lstat().st_size for file in self.files)

    def licences(self):
        return sorted(file for file in self.files if re.fullmatch(r"usr/share/doc/[^/]*/copyright", file))


# ---- what the mirror has ------------------------------------------------------------------------

def _of_source(suite, source):
    """{package: its fields} of those that are built from `source`."""
    return {one["Package"]: one for one in debian.index(suite, COMPONENTS)
            if one.get("Source", one["Package"]).split()[0] == source and one.get("Section", "") != "non-free/oldlibs"}


@functools.cache
def _unreachable(suite):
    """Why the index of a suite cannot be had, or ""."""
    try:
        debian.index(suite, COMPONENTS)
    except subprocess.CalledProcessError as error:
        return f"the index of {suite} cannot be fetched: {error.output.strip().splitlines()[-1]}"
    return ""


def _origin(branch):
    """(suite, source package), or Unavailable."""
    tried = []
    for suite, source in BRANCHES[branch]:
        if reason := _unreachable(suite):
            tried.append(reason)
            continue
        found = _of_source(suite, source)
        of = source.removeprefix("nvidia-graphics-drivers").removeprefix("-")
        cuda = f"libnvidia-{of}-cuda1" if of else "libcuda1"
        if found.get(cuda, {}).get("Version", "").startswith(f"{branch}."):
            return suite, source
        tried.append(f"the mirror has no {cuda} {branch} in {suite}")
    raise Unavailable("; ".join(tried))


def _kept_name(branch):
    return f"driver-root-{branch}-{RECIPE}"


def branches():
    """{branch: why it cannot be had, or ""}."""
    def reason(branch):
        if (kept.cache() / _kept_name(branch) / "driver.json").exists():
            return ""
        try:
            _origin(branch)
        except Unavailable as error:
            return str(error)
        return ""
    return {branch: reason(branch) for branch in BRANCHES}


# ---- how a root is made -------------------------------------------------------------------------

def _say(text):
    print(f"== {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def timed(what):
    started = time.monotonic()
    yield
    _say(f"{what} ({time.monotonic() - started:.0f} s)")


def make_base(suite, path):
    with timed(f"Debian {suite} is at hand"):
        debian.make_root(suite, path, ("ca-certificates",), f"main {COMPONENTS}")
        policy = path / "usr/sbin/policy-rc.d"  # no package starts its daemon
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        drop_lists(path)


def drop_lists(root):
    for directory in ("var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(root / directory, ignore_errors=True)
        (root / directory).mkdir(parents=True)


def _chosen(branch, suite, source):
    """(packages to install, packages of which only the files are taken, packages left out)."""
    found = _of_source(suite, source)
    has_glvnd = any("glvnd" in name for name in found)
    install, unpack, left_out = [], [], []
    for name in sorted(found):
        if _IGNORED.search(name) or has_glvnd and _WITHOUT_GLVND.search(name):
            left_out.append(name)
        elif _UNPACKED.search(name):
            unpack.append(name)
        else:
            install.append(name)
    names = {one["Package"] for one in debian.index(suite, COMPONENTS)}
    install += [name for name in _BESIDE if name in names]
    return [*install, *_OF_MAIN], unpack, left_out


def _strangers(suite, source, packages):
    """Packages of other branches that `packages` depend on: the last packages of a branch that has ended draw in
    its successor."""
    sources = {one["Package"]: one.get("Source", "").split(" ")[0] for one in debian.index(suite, COMPONENTS)}
    wanted = (one for name in packages if name in sources
              for one in _of_source(suite, source).get(name, {}).get("Depends", "").split(", "))
    names = {re.split(r"[ :]", one)[0] for one in wanted if "|" not in one}
    return sorted(name for name in names if not _COMMON.search(name)
                  and sources.get(name, "").startswith("nvidia-graphics-drivers") and sources[name] != source)


def _install_empty(root, names):
    """Installs packages of these names without a file."""
    for name in names:
        place = root / "var/tmp/empty"
        (place / "DEBIAN").mkdir(parents=True)
        (place / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: 9999\nArchitecture: amd64\nMulti-Arch: same\n"
            "Maintainer: Nobody <nobody@localhost>\nDescription: no files, in place of another driver's\n")
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", place, root / "var/tmp/empty.deb"], check=True,
                       capture_output=True)
        _chroot(root, "dpkg", "--install", "/var/tmp/empty.deb")
        shutil.rmtree(place)
        (root / "var/tmp/empty.deb").unlink()


def _chroot(root, *words):
    return subprocess.run(["chroot", root, *words], check=True, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True).stdout


def _enable_alternative(root):
    """Lets a branch that Debian has ended be selected, as before its end: its last packages have the same files, and
    remove themselves from update-alternatives."""
    for script in (root / "var/lib/dpkg/info").glob("nvidia-*-alternative.postinst"):
        text = script.read_text()
        if 'echo "DISABLED"' in text:
            script.write_text(text.replace('echo "DISABLED"', 'echo "$slaves"'))
            package = script.name.removesuffix(".postinst")
            _chroot(root, "env", f"DPKG_MAINTSCRIPT_PACKAGE={package}", "DPKG_MAINTSCRIPT_NAME=postinst",
                    f"/var/lib/dpkg/info/{script.name}", "triggered", f"register-{package}")
            _chroot(root, "dpkg", "--configure", "--pending")


def _unpack(root, packages):
    """Puts the packages' files there; returns {package: its files}."""
    place = root / "var/tmp/unpacked"
    place.mkdir()
    place.chmod(0o777)
    found = {}
    for name in packages:
        inside = f"cd /var/tmp/unpacked && apt-get -q -o APT::Sandbox::User=root download {name}"
        _chroot(root, "sh", "-c", inside)
        (archive,) = place.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as process:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
                found[name] = [one.name.removeprefix("./") for one in tar if not one.isdir()]
        archive.unlink()
    place.rmdir()
    return found


def _add_32_bit(root, packages):
    """Installs the 32-bit twins of those packages that have one."""
    _chroot(root, "dpkg", "--add-architecture", "i386")
    debian.apt(root, "update")
    told = _chroot(root, "apt-cache", "madison", *(f"{name}:i386" for name in packages))
    twins = sorted({line.split("|")[0].strip() for line in told.splitlines()})
    twins = [name if name.endswith(":i386") else f"{name}:i386" for name in twins]
    debian.install(root, [name for name in twins if name.startswith(("lib", "nvidia-vdpau"))])


def _installed(root):
    """[(package, version, source)] of the packages of NVIDIA's drivers."""
    told = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W",
                           "-f=${binary:Package}\t${Version}\t${source:Package}\n"], check=True, capture_output=True,
                          text=True).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    return [row for row in rows if "nvidia-graphics-drivers" in row[2] or row[0].split(":")[0] in (*_BESIDE, *_OF_MAIN)]


def _files_of(root, package):
    told = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-L", package], check=True,
                          capture_output=True, text=True).stdout
    names = {os.path.realpath(root / line[1:].rpartition("/")[0]) + "/" + line.rpartition("/")[2]
             for line in told.splitlines() if line.startswith("/") and line != "/."}
    return [str(pathlib.Path(name).relative_to(root)) for name in names
            if os.path.lexists(name) and (os.path.islink(name) or not os.path.isdir(name))]


def _make(branch, path):
    suite, source = _origin(branch)
    base = kept.directory(f"driver-base-{suite}-{RECIPE}", functools.partial(make_base, suite))
    install, unpack, left_out = _chosen(branch, suite, source)
    path.mkdir()
    root = path / "root"
    with timed(f"NVIDIA's driver {branch} is installed, from Debian {suite}"):
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        debian.apt(root, "update")
        unpacked = _unpack(root, unpack)  # first: update-alternatives looks at what is there
        _install_empty(root, _strangers(suite, source, install))
        debian.install(root, install)
        _enable_alternative(root)
        if branch in WITH_32_BIT:
            _add_32_bit(root, install)
        drop_lists(root)
    rows = _installed(root)
    files = {file for name, _, _ in rows for file in _files_of(root, name)}
    files |= {file for names in unpacked.values() for file in names}
    fields = _of_source(suite, source)
    packages = [row[:2] for row in rows] + [[name, fields[name]["Version"]] for name in unpack]
    versions = {version.rpartition("-")[0] for name, version, of in rows if of == source and not _COMMON.search(name)}
    strangers = [name for name, _, of in rows
                 if "nvidia-graphics-drivers" in of and of != source and not _COMMON.search(name)]
    if len(versions) != 1 or strangers:
        raise RuntimeError(f"the packages of {branch} are of {sorted(versions)}, and there are {strangers}")
    missing = [name for name, pattern in PARTS.items() if not any(re.search(pattern, f"/{file}") for file in files)]
    (path / "driver.json").write_text(json.dumps({
        "branch": branch, "version": versions.pop(), "suite": suite, "packages": sorted(packages),
        "files": sorted(files), "missing": missing, "left_out": left_out}, indent=1))


@functools.cache
def get(branch):
    """The Driver of a branch; makes it the first time (half a minute, and as long for each suite's base).
    Errors: Unavailable."""
    if not is_asked(branch):
        raise Unavailable(f"BERTH_TEST_DRIVERS is '{' '.join(ASKED)}'")
    if not (kept.cache() / _kept_name(branch)).exists():
        _origin(branch)
    place = kept.directory(_kept_name(branch), functools.partial(_make, branch))
    return Driver(place, **json.loads((place / "driver.json").read_text()))


# ---- the command --------------------------------------------------------------------------------

LICENCE = ("The files are NVIDIA's, under its licence: usr/share/doc/PACKAGE/copyright in each root, {count} here. "
           "Debian distributes them in non-free.")


def _show(names):
    """Makes branches and prints the table; returns the exit status."""
    rows, reasons, lacks, licences, status = [], [], [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as workers:  # one downloads while the other unpacks
        waiting = {branch: workers.submit(get, branch) for branch in names}
    for branch, future in waiting.items():
        try:
            one = future.result()
        except Unavailable as error:
            reasons.append(f"{branch}: skipped: {error}")
            continue
        except subprocess.CalledProcessError as error:
            reasons.append(f"{branch}: {error}: {(error.stderr or error.output or '')[-2000:]}")
            status = 1
            continue
        cuda = next(file for file in one.versioned if "/libcuda.so." in file and "x86_64" in file)
        rows.append((branch, one.version, one.suite, str(len(one.packages)), str(len(one.libraries)),
                     f"{one.bytes() / 1e6:.0f} MB", os.path.dirname(cuda), str(one.root)))
        lacks.append(f"{branch} has in Debian no: {', '.join(one.missing)}")
        licences += len(one.licences())
    head = ("BRANCH", "VERSION", "SUITE", "PACKAGES", "LIBRARIES", "SIZE", "LAYOUT", "ROOT")
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows) if rows else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for line in (*lacks, *reasons):
        print(line)
    if rows:
        print(LICENCE.format(count=licences))
    return status


def _tree(options):
    from support import driver_layouts  # which needs this module's drivers
    drivers = [get(branch) for branch in options.branch]
    if options.layout in driver_layouts.PAIRS:
        made = driver_layouts.make_pair(options.layout, *drivers, options.tree, gpus=options.gpus)
    else:
        made = driver_layouts.make(options.layout, *drivers, options.tree, gpus=options.gpus)
    print(LICENCE.format(count=sum(len(one.licences()) for one in drivers)))
    _say(f"try: build/release/bin/berth --driver-root {made.root} gpu list")


def _main():
    from support import vendor_roots  # which needs this module's bases
    parser = argparse.ArgumentParser(prog="./dev drivers", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("branch", nargs="*", help=f"of {', '.join(BRANCHES)}, or a suite of Debian, with AMD's "
                                                  f"and Intel's: {', '.join(vendor_roots.SUITES)}; all unless told")
    parser.add_argument("--tree", type=pathlib.Path, metavar="DIR", help="write a root for `berth --driver-root`")
    parser.add_argument("--layout", default="debian",
                        help="debian, ubuntu, run, rhel, flatcar, operator, nixos; with two branches two-ubuntu, "
                             "two-debian")
    parser.add_argument("--gpus", type=int, default=2, help="of the tree")
    options = parser.parse_args()
    suites = [one for one in options.branch if one in vendor_roots.SUITES]
    unknown = [one for one in options.branch if one not in BRANCHES and (options.tree or one not in suites)]
    if unknown:
        parser.error(f"there is no branch {unknown[0]!r}; there are {', '.join(BRANCHES)}")
    if options.tree is None:
        everything = not options.branch
        branches_asked = ASKED or BRANCHES if everything else [one for one in options.branch if one in BRANCHES]
        status = _show(branches_asked) if branches_asked else 0
        return vendor_roots.show(vendor_roots.SUITES if everything and not ASKED else suites) or status
    if len(options.branch) != (2 if options.layout.startswith("two-") else 1):
        parser.error("--tree needs one branch, and two- layouts two")
    if options.tree.exists():
        parser.error(f"'{options.tree}' exists")
    try:
        _tree(options)
    except Unavailable as error:
        parser.exit(1, f"./dev drivers: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
