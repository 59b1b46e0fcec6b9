# SPDX-License-Identifier: Apache-2.0
"""As test_what_programs_open.py, in containers that Docker and podman start: with berth-runtime, which gives the GPUs
that a variable asks for, and with crun and the CDI file that `berth cdi generate` writes."""

import os
import subprocess
from pathlib import Path

import pytest

from callers.conftest import nothing_left, started, tested, view  # noqa: F401
from callers.test_gpu import Site
from drivers.test_what_programs_open import Case, differences, worlds  # noqa: F401
from support import callers, driver_images, opened_files

pytestmark = [pytest.mark.profiles(), pytest.mark.skipif("RUNTIME" in os.environ, reason="of berth-runtime alone")]

BRANCHES = ("550", "390")
IMAGE = "localhost/opened:latest"
VARIABLES = ("--env", "NVIDIA_VISIBLE_DEVICES=all", "--env", "NVIDIA_DRIVER_CAPABILITIES=all")


@pytest.fixture(params=BRANCHES)
def world(request, worlds):  # noqa: F811
    return worlds(request.param)


def import_image(engine, world):
    root, archive = world.room / "plain", world.room / "plain.tar"
    if not root.exists():
        driver_images.make("plain", world.driver, root)
    if not archive.exists():
        done = subprocess.run(["tar", "--numeric-owner", "-C", root, "-cf", archive, "."], check=False)
        assert done.returncode in (0, 1)  # 1: another test has made a hard link to a file meanwhile
    engine.ok("import", archive, IMAGE)


def seen(engine, world, *flags):
    opened_files.empty(world.tools)
    argv = engine.argv_to_run("opened", *opened_files.command())
    argv[argv.index(callers.IMAGE)] = IMAGE
    mounts = ("--volume", f"{world.tools.path}:/tools:ro", "--volume", f"{world.tools.out}:/out")
    argv[1:1] = (*mounts, *flags)
    done = engine.call(*argv)
    assert done.returncode == 0, done
    return opened_files.read(world.tools.out)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_with_berth_runtime_programs_find_what_they_find_in_the_bare_root(world, started, view, name):  # noqa: F811
    engine = started(name)
    site = Site(view, world.room / "tree")
    site.write(environment="grant")
    try:
        import_image(engine, world)
        assert differences(world, Case(), seen(engine, world, *VARIABLES)) == []
    finally:
        engine.remove_all()
        engine.call("rmi", IMAGE)
        site.shell("rm -rf /etc/berth /run/berth/gpu")


def test_with_a_cdi_file_programs_find_what_they_find_in_the_bare_root(world, session_directory, view):  # noqa: F811
    directory = session_directory / "crun"  # podman allows a short path only
    directory.mkdir(exist_ok=True)
    store = world.store("root", "plain")
    text = store.ok("--driver-root", world.room / "tree", "cdi", "generate")
    subprocess.run([*view, "sh", "-c", "mkdir -p /etc/cdi && cat >/etc/cdi/nvidia.yaml"], input=text, text=True,
                   check=True)
    with callers.Podman(Path("/usr/bin/crun"), directory, view).running() as engine:
        try:
            import_image(engine, world)
            assert differences(world, Case(), seen(engine, world, "--device", "nvidia.com/gpu=all")) == []
        finally:
            engine.remove_all()
            engine.call("rmi", IMAGE)
            subprocess.run([*view, "rm", "-rf", "/etc/cdi"], check=True)
