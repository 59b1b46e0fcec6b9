# SPDX-License-Identifier: Apache-2.0
"""--gpu-memory: what is asked of the kernel's dmem controller. No kernel of the tests has regions of
a GPU: what it has is made up in the synthetic tree, whose driver has no MPS."""

import json
import pathlib
import re

import pytest

from support.gpu_machine import STUB, a_machine

GIB = 1 << 30


@pytest.fixture
def machine(berth, driver_tree, busybox):
    tree = driver_tree("eight", *STUB)
    (tree / "usr/bin/nvidia-cuda-mps-control").unlink(missing_ok=True)
    yield from a_machine(berth, tree, busybox)


@pytest.fixture
def regions(machine):
    """Makes the controller list all GPUs but the last one."""
    listed = json.loads(machine.berth.ok(*machine.flags, "gpu", "list", "--format", "json"))["gpus"]
    addresses = [gpu["pci_address"] for gpu in listed]
    capacity = pathlib.Path(machine.flags[1]) / "sys/fs/cgroup/dmem.capacity"
    capacity.parent.mkdir(parents=True, exist_ok=True)
    capacity.write_text("".join(f"nvidia/{address}/vidmem {80 * GIB}\n" for address in addresses[:-1]))
    yield addresses
    capacity.unlink()


def create(machine, *args):
    return machine.berth.run(*machine.flags, "create", "--name", "held", *args, machine.image, "true")


def unified(machine):
    [config] = machine.berth.root.rglob("config.json")
    return json.loads(config.read_text())["linux"]["resources"].get("unified", {})


def test_the_limit_is_written_for_each_gpu(machine, regions):
    assert create(machine, "--gpus", "device=0,2", "--gpu-memory", "10g,8g").returncode == 0
    assert unified(machine) == {
        "dmem.max": "".join(f"nvidia/{regions[gpu]}/vidmem {10 * GIB}\n" for gpu in (0, 2)),
        "dmem.min": "".join(f"nvidia/{regions[gpu]}/vidmem {8 * GIB}\n" for gpu in (0, 2))}


def test_a_limit_that_the_kernel_does_not_keep_starts_nothing(machine, regions):
    del regions
    done = machine.berth.run(*machine.flags, "run", "--rm", "--gpus", "1", "--gpu-memory", "10g",
                             machine.image, "true")
    assert done.returncode == 125 and "linux.resources.unified.dmem.max" in done.stderr
    assert machine.holders() == {}


@pytest.mark.parametrize("words, why", [
    (("--gpus", "device=7"), "nothing on this machine can limit the memory of GPU 7: the kernel's "
                             "dmem controller does not list it; try: a MIG slice, or leave it out"),
    (("--gpus", "none"), "no GPU was requested; try: --gpus 1"),
    ((), "no GPU was requested; try: --gpus 1")])
def test_what_cannot_be_limited_is_refused(machine, regions, words, why):
    del regions
    line = machine.refused(*words, "--gpu-memory", "10g")
    assert re.fullmatch(r"berth: (error: )?--gpu-memory: " + re.escape(why), line), line
    assert machine.holders() == {}


def test_a_machine_without_the_controller_and_without_mps_limits_nothing(machine):
    assert "nothing on this machine can limit the memory of GPU 0" in machine.refused(
        "--gpus", "1", "--gpu-memory", "10g")


@pytest.mark.parametrize("text", ["0", "10g,11g", "half", "-1", "10g,"])
def test_other_words_are_no_limit(machine, text):
    assert "expected a limit, such as 10g, or a limit and at most as much reserved: 10g,8g" in machine.refused(
        "--gpus", "1", "--gpu-memory", text)


def test_more_than_a_gpu_has_is_no_limit(machine, regions):
    del regions
    assert f"GPU 0 has {80 * GIB} bytes" in machine.refused("--gpus", "1", "--gpu-memory", "81g")
