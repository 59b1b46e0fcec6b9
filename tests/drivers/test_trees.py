# SPDX-License-Identifier: Apache-2.0
"""What Berth finds of NVIDIA's real drivers: those that Debian distributes, of seven branches, in the layouts of
distributions (support/real_drivers.py, support/driver_layouts.py). No GPU is needed: proc, sys and dev are synthetic.

A line of NOT_YET whose library is found fails."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from support import driver_layouts, real_drivers

pytestmark = pytest.mark.profiles("root")

# Libraries that no container gets, and why.
LEFT_OUT = {
    "libOpenCL": "the image's own finds NVIDIA's implementation by nvidia.icd",
}

# What Berth does not find yet: layout, branch, names, reason.
NOT_YET = ()
PLACES = [pytest.param((branch, layout), id=f"{branch}-{layout}")
          for branch in real_drivers.BRANCHES for layout in driver_layouts.LAYOUTS]


def not_yet(branch, layout):
    """Names of libraries and modules that Berth does not find."""
    return {name for at, of, names, _ in NOT_YET if at in ("*", layout) and of in ("*", branch) for name in names}


def driver(branch):
    try:
        return real_drivers.get(branch)
    except real_drivers.Unavailable as error:
        pytest.skip(f"no driver {branch}: {error}")


@pytest.fixture(scope="module")
def trees():
    """trees(branch, layout) → the tree."""
    made = {}
    with driver_layouts.room() as room:
        def make(branch, layout):
            if (branch, layout) not in made:
                made[branch, layout] = driver_layouts.make(layout, driver(branch), room / f"{branch}-{layout}")
            return made[branch, layout]
        yield make


def inventory(berth, tree):
    return json.loads(berth.ok("--driver-root", tree.root, "gpu", "list", "--format", "json"))


def given(listed):
    """{path on the host: the row} of the files that some capability asks for."""
    return {row["path"]: row for row in listed["files"] if row["capabilities"]}


def base(file):
    return pathlib.PurePath(file).name.partition(".so")[0]


def is_module(file):
    """Of the X server, which finds it by its configuration, not by the loader's."""
    return base(file) in ("libglxserver_nvidia", "libglx", "nvidia_drv", "libnvidia-wfb")


@pytest.mark.parametrize("place", PLACES)
def test_the_version_and_the_gpus_are_those_of_the_tree(berth, trees, place):
    tree = trees(*place)
    listed = inventory(berth, tree)
    told = listed["driver"]
    assert (told["module_version"], told["library_version"]) == (tree.version, tree.version)
    assert (listed["synthetic"], len(listed["gpus"]), listed["problems"]) == (True, 2, [])


VERSION_OF_CUDA = """
import ctypes, sys
version = ctypes.c_int()
assert ctypes.CDLL(sys.argv[1]).cuDriverGetVersion(ctypes.byref(version)) == 0
print(f"{version.value // 1000}.{version.value % 1000 // 10}")
"""


@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_the_version_of_cuda_is_what_libcuda_says(berth, trees, branch):
    tree = trees(branch, "nixos")
    (library,) = (path for path in given(inventory(berth, tree)) if f"/libcuda.so.{tree.version}" in path
                  and "lib32" not in path)
    # In NixOS all other libraries there are the driver's too.
    said = subprocess.run([sys.executable, "-c", VERSION_OF_CUDA, library], check=True, capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": os.path.dirname(library)}).stdout.strip()
    assert inventory(berth, tree)["driver"]["cuda_version"] == said


@pytest.mark.parametrize("place", PLACES)
def test_every_library_is_given_or_left_out_for_a_reason(berth, trees, place):
    branch, _ = place
    tree = trees(*place)
    found = given(inventory(berth, tree))
    libraries = [file for file in driver(branch).libraries if file in tree.files and not is_module(file)]
    taken = {base(file) for file in libraries if str(tree.path(file)) in found}
    forgotten = {base(file) for file in libraries if str(tree.path(file)) not in found} - set(LEFT_OUT)
    there = {base(file) for file in libraries}
    assert forgotten == not_yet(*place) & there
    assert not taken & set(LEFT_OUT), "LEFT_OUT has names that are given"


@pytest.mark.parametrize("place", PLACES)
def test_modules_of_the_x_server_are_given(berth, trees, place):
    branch, _ = place
    tree = trees(*place)
    found = given(inventory(berth, tree))
    modules = [file for file in driver(branch).libraries if file in tree.files and is_module(file)]
    forgotten = {base(file) for file in modules if str(tree.path(file)) not in found}
    assert forgotten == not_yet(*place) & {base(file) for file in modules}


@pytest.mark.parametrize("place", PLACES)
def test_sonames_are_those_of_the_files(berth, trees, place):
    tree = trees(*place)
    for path, row in given(inventory(berth, tree)).items():
        if row["soname"]:
            assert row["soname"] == driver_layouts.soname(pathlib.Path(path)), path


@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_what_a_library_needs_comes_with_the_same_capabilities(berth, trees, branch):
    rows = [row for row in given(inventory(berth, trees(branch, "debian"))).values()
            if row["soname"] and "i386" not in row["path"]]
    capabilities = {row["soname"]: set(row["capabilities"]) for row in rows}
    drivers = {driver_layouts.soname(driver(branch).root / file) for file in driver(branch).versioned}
    lacks = {row["soname"]: (name, missing) for row in rows
             for name in driver_layouts.dynamic(row["path"])["NEEDED"] if name in drivers
             if (missing := set(row["capabilities"]) - capabilities.get(name, set()))}
    assert lacks == {}


@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_the_links_of_debian_lead_to_the_libraries(trees, branch):
    """Of the tree itself: what a program finds there by SONAME is the driver's file."""
    tree = trees(branch, "debian")
    for file in driver(branch).versioned:
        path = tree.path(file)
        soname = driver_layouts.soname(path)
        if "/nvidia/" not in file or "x86_64" not in file or not re.search(r"\.so\.\d+$", soname):
            continue
        link = path.with_name(soname)
        assert link.is_symlink() and os.path.realpath(link) == str(path), link


@pytest.mark.parametrize("place", PLACES)
def test_programs_are_given(berth, trees, place):
    branch, _ = place
    tree = trees(*place)
    found = given(inventory(berth, tree))
    wanted = ("nvidia-smi", "nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control",
              "nvidia-cuda-mps-server", "nvidia-xconfig")
    there = {name: str(tree.path(file)) for file in driver(branch).files if file in tree.files
             for name in wanted if file.endswith(f"/{name}") and os.access(tree.path(file), os.X_OK)
             and not tree.path(file).is_dir()}
    assert {name: path for name, path in there.items() if path not in found} == {}


@pytest.mark.parametrize("place", PLACES)
def test_firmware_and_configuration_are_given(berth, trees, place):
    branch, _ = place
    tree = trees(*place)
    found = given(inventory(berth, tree))
    wanted = (r"/gsp[^/]*\.bin$", r"/nvidia\.icd$", r"/nvidia_icd\.json$", r"/nvidia_layers\.json$",
              r"/10_nvidia\.json$", r"/1[05]_nvidia_(wayland|gbm)\.json$", r"/nvoptix\.bin$")
    there = [str(tree.path(file)) for file in driver(branch).files if file in tree.files
             and any(re.search(pattern, f"/{file}") for pattern in wanted)]
    assert [path for path in there if path not in found] == []


# Layout, and the branches of the kernel module and of the links.
TWO = [("two-ubuntu", ("535", "550")), ("two-ubuntu", ("550", "535")), ("two-ubuntu", ("470", "535")),
       ("two-debian", ("470", "450")), ("two-debian", ("450", "470")), ("two-debian", ("390", "470"))]


# Programs that come with the driver alone, and have its version in their text.
NAMING = ("nvidia-smi", "nvidia-cuda-mps-control")


def of_the_other(found, tree, other):
    """Lines about programs of `other`, which are given where there are no others."""
    programs = [path for name in NAMING for path in found if path.endswith(f"/{name}")]
    texts = {path: pathlib.Path(path).read_bytes() for path in programs}
    return [f"'{path}' is of driver {other}, the libraries are of {tree.version}" for path, text in texts.items()
            if other.encode() in text and tree.version.encode() not in text]


@pytest.mark.parametrize("layout, branches", TWO)
def test_of_two_drivers_that_of_the_kernel_is_found(berth, layout, branches):
    with driver_layouts.room() as room:
        tree = driver_layouts.make_pair(layout, *map(driver, branches), room / layout)
        listed = inventory(berth, tree)
        other = driver(branches[1]).version
        lines = of_the_other(given(listed), tree, other)
        assert (listed["driver"]["library_version"], listed["problems"]) == (tree.version, lines)
        assert [path for path in given(listed) if other in path] == []
        # Ubuntu has the programs of all drivers at the same places.
        assert any("/nvidia-smi'" in line for line in lines) == (layout == "two-ubuntu")


def test_of_two_drivers_the_programs_are_those_of_the_libraries(berth):
    with driver_layouts.room() as room:
        tree = driver_layouts.make_pair("two-debian", driver("470"), driver("450"), room / "two")
        (smi,) = (path for path in given(inventory(berth, tree)) if path.endswith("/nvidia-smi"))
        assert tree.version.encode() in pathlib.Path(smi).read_bytes()
