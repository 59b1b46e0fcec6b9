# SPDX-License-Identifier: Apache-2.0
"""Every kind of machine with every kind of image, for every kind of user: the container has the
nodes that were granted, and libcuda.so.1 as its own loader finds it is the host's."""

import os
import stat

import pytest

from support import loader_images
from support.berth import Berth

VERSION, NEWER = "570.133.20", "580.65.06"
LIBCUDA = "libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1"
IMAGES = sorted(loader_images.LAYOUTS)

# What is asked for, and the nodes that it stands for.
CONTROL = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
MACHINES = {
    "one": ("all", {"/dev/nvidia0"}),
    "eight": ("device=1,3", {"/dev/nvidia5", "/dev/nvidia7"}),
    "mig": ("device=0:1", {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap75",
                           "/dev/nvidia-caps/nvidia-cap76"}),
}

# Where distributions and administrators put the driver's libraries.
DRIVERS = {
    "multiarch": [],
    "lib64": ["--libdir", "usr/lib64"],
    "own-prefix": ["--libdir", "opt/driver/lib"],
    "usr-local-nvidia": ["--libdir", "usr/local/nvidia/lib64", "--cache", "none"],
    "nixos": ["--libdir", "run/opengl-driver/lib", "--cache", "none"],
}


@pytest.fixture(scope="session")
def layout_images(registry):
    return loader_images.push_all(registry)


@pytest.fixture(scope="module")
def stores():
    made = {}
    yield made
    for command in made.values():
        command.close()


@pytest.fixture
def kept_berth(stores, programs, profile, session_directory, leaves_nothing):
    """One store per user for the whole file: the images are pulled once."""
    if profile.kind not in stores:
        stores[profile.kind] = Berth(programs, profile, session_directory / f"matrix-{profile.kind}")
    return stores[profile.kind]


def node_numbers(tree):
    """{path: "major:minor"} of what the tree declares."""
    numbers = {}
    for line in (tree / "dev/nodes").read_text().splitlines():
        if line and not line.startswith("#"):
            path, major, minor = line.split()[:3]
            numbers[path if path.startswith("/") else f"/dev/{path}"] = f"{major}:{minor}"
    return numbers


def granted(lines):
    return dict(line.split() for line in lines if line.startswith("/dev/"))


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_container_has_its_gpus_and_the_hosts_driver(kept_berth, layout_images, driver_tree, machine, image):
    tree = driver_tree(machine)
    wish, nodes = MACHINES[machine]
    lines = kept_berth.ok("--driver-root", tree, "run", "--rm", "--gpus", wish, layout_images[image],
                          "/probe", "libcuda.so.1", "libnvidia-ml.so.1", "--nodes").splitlines()
    assert lines[:2] == [LIBCUDA, LIBCUDA.replace("libcuda", "libnvidia-ml")]
    numbers = node_numbers(tree)
    assert granted(lines) == {path: numbers[path] for path in CONTROL | nodes}


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_driver_that_was_upgraded_on_disk_is_said_before_the_start(kept_berth, layout_images, driver_tree, machine,
                                                                     image):
    tree = driver_tree(machine, "--library-version", NEWER)
    line = kept_berth.fail("--driver-root", tree, "run", "--rm", "--gpus", MACHINES[machine][0],
                           layout_images[image], "/probe", "libcuda.so.1")
    assert line == (f"berth: driver files are {NEWER} but the kernel module is {VERSION}; "
                    "try: reboot or reload the module")


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_module_that_is_not_loaded_is_said_before_the_start(kept_berth, layout_images, driver_tree, machine, image):
    tree = driver_tree(machine, "--no-module")
    line = kept_berth.fail("--driver-root", tree, "run", "--rm", "--gpus", MACHINES[machine][0],
                           layout_images[image], "/probe", "libcuda.so.1")
    assert line == "berth: no NVIDIA driver is loaded on this machine; try: modprobe nvidia"


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_driver_is_found_wherever_it_lies(kept_berth, layout_images, driver_tree, driver, image):
    tree = driver_tree("one", *DRIVERS[driver])
    lines = kept_berth.ok("--driver-root", tree, "run", "--rm", "--gpus", "all", layout_images[image],
                          "/probe", "libcuda.so.1").splitlines()
    assert lines == [LIBCUDA]


@pytest.mark.parametrize("image", IMAGES)
def test_without_gpus_the_same_image_finds_no_driver(kept_berth, layout_images, driver_tree, image):
    """The control: what the tests above see comes from the grant."""
    lines = kept_berth.ok("--driver-root", driver_tree("eight"), "run", "--rm", layout_images[image],
                          "/probe", "libcuda.so.1", "--nodes").splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("libcuda.so.1: ")


@pytest.mark.profiles("root")
def test_the_trees_nodes_are_real_character_devices(driver_tree):
    for path in ("dev/nvidia0", "dev/nvidiactl"):
        assert stat.S_ISCHR(os.stat(driver_tree("one") / path).st_mode)
