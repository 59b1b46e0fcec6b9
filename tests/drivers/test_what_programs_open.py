# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's libraries and programs look up, open and load, in containers and in a bare root of the same driver:
nothing that the bare root has is missing in a container, and nothing of the image is taken instead.

The drivers are real (support/real_drivers.py). There is no GPU: proc/driver and the device nodes are synthetic, sysfs
is this machine's, and all that a driver opens only after it has found its kernel module is not seen here.

A line of LEFT_OUT, NOT_YET or IMAGE_WINS that is no longer true fails."""

import contextlib
import dataclasses
import filecmp
import json
import os
import re
import shutil
import subprocess
from unittest import mock

import pytest

from support import driver_images, driver_layouts, gpu_files_page, opened_files, real_drivers
from support.berth import Berth

pytestmark = pytest.mark.profiles()

# Files of the driver that no container gets: pattern, reason.
LEFT_OUT = (
    (r"nvidia-modprobe$", "it is setuid root, and loads kernel modules and makes device nodes: that is done before"),
    (r"/proc/driver/nvidia/capabilities/mig/(config|monitor)$",
     "the right to configure, or to watch, the MIG slices of all GPUs"),
)
# What Berth should give and does not: branch, program, pattern, reason.
NOT_YET = ()
# Where a program of the image is taken: mode, reason.
IMAGE_WINS = ()
# Programs that say something else in a container, beside those of NOT_YET.
SAY_OTHERWISE = {
    "libcuda.so": "found by a name without a number", "libnvidia-ml.so": "found by a name without a number",
    "VDPAU": "not found in libvdpau's directory, but by its name",
}
# The capabilities that a program needs; with fewer it is not looked at.
NEEDS = {
    "utility": ("NVML", "libnvidia-ml.so", "CFG", "nvidia-smi", "nvidia-smi -q", "nvidia-debugdump",
                "nvidia-persistenced --version", "nvidia-persistenced"),
    "compute": ("libcuda", "libcuda.so", "OpenCL library", "OpenCL", "PTX JIT", "NVVM", "debugger",
                "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"),
    "video": ("NVENC", "NVCUVID", "VDPAU", "optical flow"),
    "graphics": ("OptiX", "Vulkan library", "Vulkan", "EGL library", "EGL", "GLX", "GLX indirect", "GLES 2", "GLES 1",
                 "FBC", "GBM", "allocator", "libGL"),
    "ngx": ("NGX",),
    "graphics,utility": ("nvidia-xconfig",),
}
# A library that needs nothing that musl lacks.
MUSL_LOADS = ("allocator",)
ALL = "all"
FIRST = ("550", "535", "470", "390")
# Of which branch a stale image has files.
STALE = {"550": "390", "535": "470", "470": "535", "390": "550"}


@dataclasses.dataclass(frozen=True)
class Case:
    mode: str = "bind"
    capabilities: str = ALL
    user: str = "root"
    image: str = "plain"
    flags: tuple = ()

    def __str__(self):
        named = [self.mode, self.capabilities.replace(",", "+"), self.user, self.image, *self.flags]
        return "-".join(word.strip("-").replace(":", "_") for word in named if word not in ("root", "plain"))


FEW = (Case(), Case("volume"), Case("copy"), Case(capabilities="compute,utility"))
MORE = (Case("volume", "compute,utility"), Case("copy", "compute,utility"), Case(capabilities="graphics"),
        Case(capabilities="video"), Case(capabilities="display"), Case(flags=("--user=1000:1000",)),
        *(Case(mode, flags=("--read-only",)) for mode in ("bind", "volume", "copy")), Case("image", image="driver"),
        Case(image="split"), *(Case(mode, image="stale") for mode in ("bind", "volume", "copy")),
        Case(user="user"), Case("volume", user="user"), Case("copy", user="user"), Case(user="single_id"),
        Case(user="user", flags=("--read-only",)))
CASES = [pytest.param(branch, case, id=f"{branch}-{case}")
         for branch in (*FIRST, *(one for one in real_drivers.BRANCHES if one not in FIRST))
         for case in (*FEW, *(MORE if branch in FIRST else ()))]


def driver(branch):
    try:
        return real_drivers.get(branch)
    except real_drivers.Unavailable as error:
        pytest.skip(f"no driver {branch}: {error}")


class World:
    """A branch: its tree, its bare root, and images beside it in a store of each user."""

    def __init__(self, branch, place, room, view, programs, accounts):
        """`view`: `room` where users can reach it. Hard links cannot be made through it."""
        self.driver, self.place, self.room, self.view = driver(branch), place, room, view
        self.programs, self.accounts = programs, accounts
        place.mkdir()
        self.tree = dataclasses.replace(driver_layouts.make("debian", self.driver, room / "tree"), root=view / "tree")
        self.tools = opened_files.make_tools(self.driver, place / "tools")
        self.bare = opened_files.in_bare_root(self.driver, self.tree, self.tools, place / "mounts")
        self.reference = opened_files.Reference.of(self.bare, self.driver)
        self.stores = {}
        listed = self.store("root", "plain").ok("--driver-root", self.tree.root, "gpu", "list", "--format", "json")
        self.facts = gpu_files_page.facts_of(self.driver, json.loads(listed), self.bare, self.reference)

    def store(self, user, image):
        if (user, image) not in self.stores:
            other = driver(STALE.get(self.driver.branch, "470")) if image == "stale" else None
            if not (self.room / image).exists():
                driver_images.make(image, self.driver, self.room / image, other)
            for one in list(self.stores):  # they are in memory
                shutil.rmtree(self.stores.pop(one).directory)
            berth = Berth(self.programs, self.accounts[user], self.place / f"{user}-{image}")
            berth.ok("import", self.view / image, image)
            self.stores[user, image] = berth
        return self.stores[user, image]

    def run(self, case, tools, *words):
        """A container of this case; returns the finished command."""
        berth = self.store(case.user, case.image)
        owner = next((flag for flag in case.flags if flag.startswith("--user=")), "")
        account = self.accounts[case.user]
        ids = tuple(map(int, owner[7:].split(":"))) if owner else (account.uid, account.gid)
        opened_files.empty(tools, ids)
        return berth.run("--driver-root", self.tree.root, "run", "--rm", "--gpu-driver", case.mode, "--gpus",
                         f'all,"capabilities={case.capabilities}"', "-v", f"{tools.path}:/tools:ro",
                         "-v", f"{tools.out}:/out", *case.flags, case.image, *words, timeout=300)

    def seen(self, case, tools=None):
        tools = tools or self.tools
        done = self.run(case, tools, *opened_files.command())
        assert done.returncode == 0, done.stderr
        return opened_files.read(tools.out)

    def remove(self):
        shutil.rmtree(self.room)
        shutil.rmtree(self.place)


@pytest.fixture(scope="module")
def worlds(session_directory, programs, accounts):
    """worlds(branch) → its World; one at a time."""
    made, places = {}, session_directory / "opened"
    facts = {}
    with driver_layouts.room() as room, contextlib.ExitStack() as stack:
        room.chmod(0o755)
        places.mkdir()
        view = session_directory / "driver-trees"
        view.mkdir()
        subprocess.run(["mount", "--bind", room, view], check=True)
        stack.callback(subprocess.run, ["umount", "--lazy", view], check=True)

        def get(branch):
            if branch not in made:
                for one in list(made):
                    made.pop(one).remove()
                made[branch] = World(branch, places / branch, room / branch, view / branch, programs, accounts)
                facts[branch] = made[branch].facts
            return made[branch]
        get.facts = lambda branch: facts[branch] if branch in facts else get(branch).facts
        yield get


@pytest.fixture
def world(request, worlds):
    return worlds(request.param)


def wanted(case):
    """Programs that work with the capabilities of a case."""
    given = set(case.capabilities.split(","))
    given |= {"graphics"} if "display" in given else set()
    # The daemon first makes a directory in /var/run.
    left_out = ["nvidia-persistenced"] if case.flags else []
    return [name for needs, names in NEEDS.items() for name in names
            if (case.capabilities == ALL or set(needs.split(",")) <= given) and name not in left_out]


def expected(branch, case, program, names):
    """Those of `names` that a container lacks."""
    patterns = [pattern for pattern, _ in LEFT_OUT]
    patterns += [pattern for at, of, pattern, _ in NOT_YET if at in ("*", branch) and of in ("*", program)]
    if case.image == "driver":  # which has all files
        patterns = [pattern for pattern in patterns if pattern.startswith("/proc/")]
    return {name for name in names if any(re.search(pattern, name) for pattern in patterns)}


def image_has(world, program):
    """The path of a program of another driver in the stale image; ""."""
    name = program.split()[0]
    ours = [path for path in world.bare.found[program] if os.path.basename(path) == name]
    path = f"/usr/bin/{name}"
    if not ours or not (world.room / f"stale{path}").exists():
        return ""
    file = world.driver.root / world.bare.looks[ours[0]].target.lstrip("/")
    return "" if filecmp.cmp(file, world.room / f"stale{path}", shallow=False) else path


def differences(world, case, inside):
    """[what is wrong]"""
    out = []
    for program in wanted(case):
        found = opened_files.nvidias(world.bare, program, world.reference)
        seen = opened_files.compare(world.bare, inside, program, world.reference)
        if case.image == "stale" and not found:
            continue  # the driver does not have it, so that the image's is used
        if case.image == "stale" and case.mode in dict(IMAGE_WINS) and (path := image_has(world, program)):
            out += [f"{program}: it is not the image's any more"] if path not in seen.foreign else []
            continue
        lacks = expected(world.driver.branch, case, program, found)
        out += [f"{program}: {name} is missing" for name in sorted(seen.missing - lacks)]
        out += [f"{program}: {name} is not missing any more" for name in sorted(lacks - seen.missing)]
        out += [f"{program}: {name} is the image's" for name in sorted(seen.foreign)]
        not_yet = any(at in ("*", world.driver.branch) and of == program for at, of, _, _ in NOT_YET)
        if seen.said and not not_yet and program not in SAY_OTHERWISE:
            out.append(f"{program}: bare {seen.said[0]!r}, here {seen.said[1]!r}")
    return out


# ---- images with musl ---------------------------------------------------------------------------

@pytest.mark.parametrize("world", [FIRST[0]], indirect=True)
def test_in_an_image_with_musl_the_files_are_found_and_lack_glibc(world, leaves_nothing):
    """NVIDIA's libraries and programs are for glibc. What can be shown: they are there and are found by their
    names, and what the loader then says is about glibc."""
    case = Case(image="musl")
    inside = world.seen(case, opened_files.make_tools(world.driver, world.place / "musl-tools", musl=True))
    for name, library in opened_files.PROBES.items():
        if "/" in library or name in ("OpenCL", "Vulkan", "EGL", "libGL"):
            continue  # by a path that only Debian has, or by a loader that is not in the image
        opened = {os.path.basename(path): inside.looks[path] for path, was in inside.found[name].items() if was}
        assert opened[library].digest in world.reference.digests, name
        assert "Error" in inside.said[name] or name in MUSL_LOADS, inside.said[name]
        assert opened_files.foreign(inside, name, world.reference) == frozenset()
    for name, line in opened_files.PROGRAMS.items():
        assert opened_files.nvidias(inside, name, world.reference) == {line.split()[-1 if "|" in line else 0]: mock.ANY}
        assert "not found\nstatus 127\n" in inside.said[name]


# ---- images with glibc --------------------------------------------------------------------------

@pytest.mark.parametrize("world, case", CASES, indirect=["world"])
def test_programs_find_what_they_find_in_the_bare_root(world, leaves_nothing, case):
    assert differences(world, case, world.seen(case)) == []


# ---- the page -----------------------------------------------------------------------------------

@pytest.fixture
def facts(worlds):
    return [worlds.facts(branch) for branch in reversed(real_drivers.BRANCHES)]


def test_the_page_says_which_files_containers_get_and_why(facts):
    written = gpu_files_page.page(facts, LEFT_OUT, NOT_YET, IMAGE_WINS)
    assert "**no reason**" not in written
    assert set(gpu_files_page.DIFFERENCES) == set(gpu_files_page.known())
    was = gpu_files_page.TABLE.read_text(encoding="utf-8")
    table = gpu_files_page.with_table(was, facts)
    if os.environ.get("BERTH_ACCEPT"):
        gpu_files_page.PAGE.write_text(written, encoding="utf-8")
        gpu_files_page.TABLE.write_text(table, encoding="utf-8")
    else:
        assert table == was, "BERTH_ACCEPT=1 writes it"
    assert gpu_files_page.PAGE.read_text(encoding="utf-8") == written, "BERTH_ACCEPT=1 writes it"
