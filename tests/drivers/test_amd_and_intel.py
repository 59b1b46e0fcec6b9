# SPDX-License-Identifier: Apache-2.0
"""What real programs of AMD's ROCm and of Intel's runtimes look up, open and say in a container, and in a bare root of
the same files: with all cards it is the same, and with one card nothing of the others is opened.

The programs and libraries are Debian's (support/vendor_roots.py). There is no card: sysfs and the device nodes are
synthetic, and support/card_stand_in.c opens a node that the kernel lets the program open."""

import re
import shutil
import subprocess

import pytest

from support import vendor_programs, vendor_roots
from support.berth import Berth

pytestmark = pytest.mark.profiles("root")

# Kind of synthetic tree: the name of the kernel's driver, programs that have to open something of it.
KINDS = {"amd": ("amdgpu", ("rocminfo", "rocm-smi", "HIP 5", "HIP 6")),
         "intel": ("i915", ("clinfo", "Level Zero", "vulkaninfo"))}
# Not in every suite: Debian 13 has neither of Intel's runtimes, so that Mesa's Vulkan alone asks for its cards.
CASES = [(suite, kind) for suite in vendor_roots.SUITES for kind in KINDS]
NODES = {"amd": 8, "intel": 2}


def nodes_of(kind, numbers):
    """The paths in /dev that a container with these cards has."""
    found = {f"/dev/dri/{name}" for one in numbers for name in (f"card{one}", f"renderD{128 + one}")}
    return found | ({"/dev/kfd"} if kind == "amd" else set())


@pytest.fixture(scope="module")
def worlds(session_directory, driver_tree):
    """worlds(suite, kind) → its World and what the programs do in the bare root; one at a time."""
    made = {}

    def get(suite, kind):
        if (suite, kind) not in made:
            try:
                there = vendor_roots.get(suite)
            except vendor_roots.Unavailable as error:
                pytest.skip(f"no user space of {suite}: {error}")
            close()
            world = vendor_programs.World(there, driver_tree(kind), session_directory / f"vendor-{suite}-{kind}")
            made[suite, kind] = world, None
            made[suite, kind] = world, world.bare(KINDS[kind][0])
        return made[suite, kind]

    def close():
        while made:
            made.popitem()[1][0].close()

    yield get
    close()


@pytest.fixture
def world(request, worlds):
    """(suite, kind, its World, what the programs do in the bare root)"""
    return (*request.param, *worlds(*request.param))


@pytest.fixture
def store(programs, accounts, work):
    return Berth(programs, accounts["root"], work / "vendor-store")


def devices(paths):
    """Nodes alone: links of /dev/dri/by-path and directories are the same in another form."""
    return {path for path in paths if re.fullmatch(r"/dev/(kfd|dri/(card|renderD)\d+)", path)}


def by_path(paths):
    return {path for path in paths if path.startswith("/dev/dri/by-path/")}


def differences(bare, inside):
    """[what is wrong]"""
    out = []
    for program, seen in bare.items():
        here = inside[program]
        for name in ("opened", "lacking", "files"):
            lost, more = getattr(seen, name) - getattr(here, name), getattr(here, name) - getattr(seen, name)
            if lost or more:
                out.append(f"{program}: {name}: only bare {sorted(lost)}, only in the container {sorted(more)}")
        if normal(seen.said) != normal(here.said):
            out.append(f"{program}: bare {seen.said!r}, here {here.said!r}")
    return out


def normal(text):
    """Without process ids and addresses."""
    return re.sub(r"0x[0-9a-f]+|\b\d{3,}\b", "N", text)


@pytest.mark.parametrize("world", CASES, indirect=True, ids="-".join)
def test_with_all_cards_programs_do_what_they_do_in_the_bare_root(world, store, leaves_nothing):
    suite, kind, world, bare = world
    driver, expected = KINDS[kind]
    opening = [name for name, seen in bare.items() if devices(seen.opened) or by_path(seen.opened)
               or any("/class/drm" in path for path in seen.opened)]
    assert set(opening) & set(expected) or (suite, kind) == ("trixie", "intel"), bare
    assert differences(bare, world.inside(store, driver, "--gpus", "all")) == []


@pytest.mark.parametrize("world", CASES, indirect=True, ids="-".join)
def test_with_one_card_no_other_is_opened(world, store, leaves_nothing):
    _, kind, world, bare = world
    inside = world.inside(store, KINDS[kind][0], "--gpus", "device=1")
    for program, seen in inside.items():
        assert devices(seen.opened) == devices(bare[program].opened) & nodes_of(kind, [1]), program
        assert not by_path(seen.opened) - {path for path in by_path(bare[program].opened)
                                           if path in one_by_path(world.tree, 1)}, program
        # What it does not find is the others' nodes.
        lost = {path for path, _ in seen.lacking} - {path for path, _ in bare[program].lacking}
        assert devices(lost) <= nodes_of(kind, range(NODES[kind])) - nodes_of(kind, [1]), program
        assert {error for path, error in seen.lacking if path in devices(lost)} <= {"ENOENT"}


def one_by_path(tree, number):
    return {f"/dev/dri/by-path/{link.name}" for link in (tree / "dev/dri/by-path").iterdir()
            if link.readlink().name in (f"card{number}", f"renderD{128 + number}")}


def test_nothing_of_the_hosts_user_space_is_given(store, driver_tree, busybox_root, leaves_nothing):
    """ROCm's libraries, and Intel's, are the image's."""
    for kind in KINDS:
        listed = {}
        for flags in ((), ("--gpus", "all")):
            listed[flags] = store.ok("--driver-root", driver_tree(kind), "run", "--rm", "--rootfs", *flags,
                                     busybox_root, "sh", "-c",
                                     "find / -xdev -type f; cut -d' ' -f5 /proc/self/mountinfo").splitlines()
        more = set(listed["--gpus", "all"]) - set(listed[()])
        assert {path for path in more if not path.startswith("/dev/")} == set()


@pytest.fixture
def busybox_root(work):
    root = work / "busybox-root"
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    for name in subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True).stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    return root
