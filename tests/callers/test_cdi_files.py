# SPDX-License-Identifier: Apache-2.0
"""What `berth cdi generate` writes gives a container of Debian's podman the same as
`berth run --gpus` gives one of ours: the nodes, and libcuda.so.1 as the image's own loader finds it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import callers, images, loader_images
from support.bundle import PROGRAMS
from support.callers import CGROUP

TESTS = Path(__file__).resolve().parent.parent
LIBRARIES = "/usr/local/nvidia/lib64"
CONTROL = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}
GPU_ONE_AND_THREE = {"/dev/nvidia5", "/dev/nvidia7"}
ALL_CAPABILITIES = "compute,compat32,graphics,utility,video,display,ngx"
RUNTIMES = {"crun": "/usr/bin/crun", "runc": "/usr/sbin/runc", "berth": None}


@pytest.fixture(scope="module")
def berth(session_directory):
    """berth(word…) → its standard output, with a store of its own; programs where they stay."""
    programs = session_directory / "berth-bin"
    shutil.copytree(PROGRAMS, programs)

    def call(*words):
        argv = [programs / "berth", "--root", session_directory / "berth-root", "--state",
                session_directory / "berth-state", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done
        return done.stdout
    return call


@pytest.fixture(scope="module")
def trees(session_directory):
    def make(kind):
        path = session_directory / f"driver-{kind}"
        if not path.exists():
            subprocess.run([sys.executable, TESTS / "support/driver_tree.py", kind, path], check=True,
                           capture_output=True)
        return path
    return make


@pytest.fixture(params=RUNTIMES)
def podman(request, session_directory, tested, view):
    """Debian's podman over each runtime, with the images that a loader is tried in."""
    runtime = Path(RUNTIMES[request.param] or tested)
    directory = session_directory / request.param  # podman allows a short path only
    directory.mkdir(exist_ok=True)
    with callers.Podman(runtime, directory, view).running() as made:
        for name, layers in loader_images.LAYOUTS.items():
            (layer,) = layers()
            (directory / "layer.tar").write_bytes(layer)
            made.ok("import", directory / "layer.tar", f"localhost/{name}:latest")
        yield made
        made.remove_all()
        subprocess.run([*view, "rm", "-rf", "/etc/cdi"], check=True)


def give(podman, text, name="nvidia.yaml"):
    """Puts a CDI file where this podman looks for it."""
    script = f"mkdir -p /etc/cdi && cat >/etc/cdi/{name}"
    subprocess.run([*podman.inside, "sh", "-c", script], input=text, text=True, check=True)


def run(podman, image, *command, devices=(), flags=()):
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=10000:10000"]
    asked = [f"--device={device}" for device in devices]
    return podman.call("run", "--rm", "--network", "none", "--cgroup-parent", f"/{CGROUP}", *limits,
                       *asked, *flags, f"localhost/{image}:latest", *command)


def probed(done):
    """What /probe printed: the files of libraries, and the nodes."""
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    found = dict(line.split(" => ") for line in lines if " => " in line)
    return found, dict(line.split() for line in lines if line.startswith("/dev/"))


@pytest.mark.parametrize("image", loader_images.LAYOUTS)
def test_a_generated_file_gives_podman_what_gpus_gives_berth(podman, berth, trees, image):
    give(podman, berth("--driver-root", trees("eight"), "cdi", "generate"))
    ours = podman.directory.parent / f"layer-{image}.tar"
    ours.write_bytes(loader_images.LAYOUTS[image]()[0])
    berth("import", ours, f"localhost/{image}:latest")
    probe = ["/probe", "libcuda.so.1", "libnvidia-ml.so.1", "libGLX_nvidia.so.0", "--nodes"]
    got = run(podman, image, *probe, devices=["nvidia.com/gpu=1", "nvidia.com/gpu=3"])
    files, nodes = probed(got)
    assert files == {name: f"{LIBRARIES}/{name}"
                     for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libGLX_nvidia.so.0")}
    assert GPU_ONE_AND_THREE <= nodes.keys()
    argv = ["--driver-root", trees("eight"), "run", "--rm", "--gpus",
            "device=1,3,capabilities=" + ALL_CAPABILITIES, f"localhost/{image}:latest", *probe]
    assert sorted(got.stdout.splitlines()) == sorted(berth(*argv).splitlines())


def test_every_name_of_a_slice_and_all_are_known_to_podman(podman, berth, trees):
    give(podman, berth("--driver-root", trees("mig"), "cdi", "generate", "--format", "json",
                       "--device-name-strategy", "index", "--device-name-strategy", "type-index"),
         "nvidia.json")
    one = probed(run(podman, "debian", "/probe", "--nodes", devices=["nvidia.com/gpu=0:1"]))[1]
    same = probed(run(podman, "debian", "/probe", "--nodes", devices=["nvidia.com/gpu=mig0:1"]))[1]
    assert one == same
    assert set(one) - CONTROL == {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap75",
                                  "/dev/nvidia-caps/nvidia-cap76"}
    every = probed(run(podman, "debian", "/probe", "--nodes", devices=["nvidia.com/gpu=all"]))[1]
    assert len([path for path in every if "nvidia-caps" in path]) == 14
    refused = run(podman, "debian", "/probe", devices=["nvidia.com/gpu=0"])
    assert refused.returncode != 0  # a GPU in MIG mode is not given whole


def test_links_and_the_cache_reach_a_read_only_container(podman, berth, trees):
    give(podman, berth("--driver-root", trees("one"), "cdi", "generate"))
    done = run(podman, "debian", "/probe", "libcuda.so.1", f"{LIBRARIES}/libcuda.so",
               devices=["nvidia.com/gpu=all"], flags=["--read-only"])
    # Two names of one file, which the loader has once.
    assert probed(done)[0] == {name: f"{LIBRARIES}/libcuda.so.1"
                               for name in ("libcuda.so.1", f"{LIBRARIES}/libcuda.so")}


@pytest.mark.parametrize("cache", ["link", "broken", "fifo", "directory-above"])
def test_a_hostile_image_leads_the_hook_nowhere(podman, berth, trees, cache):
    give(podman, berth("--driver-root", trees("one"), "cdi", "generate"))
    victims = podman.directory / "victims"  # of this machine: what the image leads to
    victims.mkdir()
    target = victims / "ld.so.cache"
    entries = [entry for entry in loader_images.glibc_layout(
        loader_images.LIBRARY_DIRECTORY["debian"], {"lib": "usr/lib", "lib64": "usr/lib64"})
        if cache != "directory-above" or entry[0].name not in ("etc", "etc/passwd")]
    entries += {"link": [images.symlink("etc/ld.so.cache", f"../../../..{target}")],
                "broken": [images.file("etc/ld.so.cache", b"glibc-ld.so.cache1.1" + b"\xff" * 4000)],
                "fifo": [images.fifo("etc/ld.so.cache")],
                "directory-above": [images.symlink("etc", f"../../../../..{victims}")]}[cache]
    (podman.directory / "layer.tar").write_bytes(images.layer(entries))
    podman.ok("import", podman.directory / "layer.tar", "localhost/hostile:latest")
    done = run(podman, "hostile", "/probe", "libcuda.so.1", devices=["nvidia.com/gpu=all"])
    assert os.listdir(victims) == []
    victims.rmdir()
    if cache != "directory-above":
        assert probed(done)[0] == {"libcuda.so.1": f"{LIBRARIES}/libcuda.so.1"}
