# SPDX-License-Identifier: Apache-2.0
"""GPUs that somebody uses without Berth: what NVML and KFD tell of processes counts when GPUs are
given out. NVML is a stand-in that answers from a file, as what KFD tells is files; the processes
that they tell of are real."""

import json
import os
import re

import pytest

from support.gpu_machine import (MINORS, SHOW, STUB, a_machine, a_stranger, amd_told_anew,
                                 compute_on_amd, pid_of, tell, tell_amd, told_anew)
from support.waiting import wait_until

MIB = 1 << 20


@pytest.fixture
def machine(berth, driver_tree, busybox):
    yield from told_anew(a_machine(berth, driver_tree("eight", *STUB), busybox))


@pytest.fixture
def sliced(berth, driver_tree, busybox):
    yield from told_anew(a_machine(berth, driver_tree("mig", *STUB), busybox))


@pytest.fixture
def amd(berth, driver_tree, busybox):
    yield from amd_told_anew(a_machine(berth, driver_tree("amd"), busybox))


@pytest.fixture
def amd_cut(berth, driver_tree, busybox):
    yield from amd_told_anew(a_machine(berth, driver_tree("amd", "--partitions", "2"), busybox))


@pytest.fixture
def stranger():
    yield from a_stranger()


def test_a_count_takes_gpus_on_which_nobody_computes(machine, stranger):
    tell(machine, 0, f"process={stranger.pid}:{MIB}")
    assert machine.start("seven", "--gpus", "7") == list(range(1, 8))
    machine.remove("seven")
    assert machine.start("one", "--gpus", "1") == [1]
    assert machine.start("all", "--gpus", "all") == list(range(8))  # it is shared all the same
    assert machine.start("named", "--gpus", "device=0") == [0]


def test_a_gpu_on_which_somebody_computes_is_nobodys_own(machine, stranger):
    tell(machine, 3, f"process={stranger.pid}:{MIB},{stranger.pid}:{MIB}")
    line = machine.refused("--gpus", "device=3", "--gpus-exclusive")
    assert re.fullmatch(
        rf"berth: (error: )?--gpus device=3: 0 of 1 GPU free: GPU 3 is held by process {stranger.pid} "
        r"'sleep' of (root|another user), which has no lease; "
        r"try: --wait-gpus, or berth gpu top", line), line
    assert len(machine.runs("--gpus", "7", "--gpus-exclusive")) == 7


def test_who_draws_does_not_compute(machine, stranger):
    tell(machine, 0, f"draws={stranger.pid}:{MIB}")
    assert machine.start("screen", "--gpus", "device=0", "--gpus-exclusive") == [0]


def test_a_container_is_not_an_outsider_where_it_has_a_lease(machine):
    machine.start("mine", "--gpus", "device=0")
    machine.start("others", "--gpus", "device=1,2,3,4,5,6,7")
    machine.start("also", "--gpus", "device=1,2,3,4,5,6,7")
    tell(machine, 0, f"process={pid_of(machine, 'mine')}:{MIB}")
    assert machine.start("least", "--gpus", "1") == [0]


def test_a_container_is_an_outsider_where_it_has_none(machine):
    machine.start("mine", "--gpus", "device=0")
    tell(machine, 1, f"process={pid_of(machine, 'mine')}:{MIB}")
    machine.start("others", "--gpus", "device=2,3,4,5,6,7")
    assert machine.start("least", "--gpus", "1") != [1]
    line = machine.refused("--gpus", "device=1", "--gpus-exclusive")
    assert "which has no lease" in line


def test_who_has_ended_holds_nothing(machine, stranger):
    tell(machine, 0, f"process={stranger.pid}:{MIB}")
    machine.refused("--gpus", "device=0", "--gpus-exclusive")
    stranger.kill()
    stranger.wait()
    assert machine.runs("--gpus", "device=0", "--gpus-exclusive") == [f"nvidia{MINORS[0]}"]


def test_who_waits_gets_what_somebody_outside_gives_back(machine, stranger):
    tell(machine, 0, f"process={stranger.pid}:{MIB}")
    waiting = machine.berth.spawn(*machine.words("--rm", "--wait-gpus=60s", "--gpus", "device=0",
                                                 "--gpus-exclusive", SHOW))
    wait_until(lambda: json.loads(machine.berth.ok(
        *machine.flags, "gpu", "list", "--format", "json"))["queue"])
    stranger.kill()
    stranger.wait()
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (0, f"nvidia{MINORS[0]}\n"), err
    assert f"waiting: --gpus device=0: 0 of 1 GPU free: GPU 0 is held by process {stranger.pid}" in err


def test_of_a_slice_counts_who_computes_on_it(sliced, stranger):
    shown = sliced.berth.ok(*sliced.flags, "gpu", "list", "--format", "json")
    slices = [slice for gpu in json.loads(shown)["gpus"] for slice in gpu.get("mig", [])]
    first = slices[0]
    tell(sliced, 0, f"process={stranger.pid}:{MIB}:{first['gpu_instance']}:{first['compute_instance']}")
    line = sliced.refused("--gpus", "all", "--gpus-exclusive")
    assert line.count("which has no lease") == 1


def test_policy_leaves_it_to_the_leases(berth, machine, stranger, work):
    site = berth.account.own(work / "site")
    (site / "policy.toml").write_text("[gpu]\noutside-processes = false\n")
    os.chown(site / "policy.toml", berth.account.uid, berth.account.gid)
    berth.ok("--config-dir", site, "policy", "apply")
    tell(machine, 0, f"process={stranger.pid}:{MIB}")
    machine.flags = (*machine.flags, "--config-dir", site)
    assert machine.start("own", "--gpus", "device=0", "--gpus-exclusive") == [0]


def test_a_driver_that_says_nothing_is_a_warning(machine):
    tree = machine.flags[1]
    facts = tree / "nvml.facts"
    facts.write_text("mode init-fail\n" + facts.read_text())
    done = machine.berth.run(*machine.flags, "run", "--rm", "--gpus", "1", machine.image, *SHOW)
    assert done.returncode == 0 and "cannot find out which other processes use GPUs: " in done.stderr
    assert done.stderr.count("cannot find out which other") == 1


# ---- AMD -----------------------------------------------------------------------------------------

def test_a_queue_on_amds_gpu_is_somebody_who_computes(amd, stranger):
    compute_on_amd(amd, 1, stranger.pid)
    amd.start("seven", "--gpus", "7")
    assert amd.holders() == {"seven": list(range(1, 8))}
    assert amd.refused("--gpus", "device=0", "--gpus-exclusive").count(
        f"GPU 0 is held by process {stranger.pid} 'sleep' of ") == 1
    stranger.kill()
    stranger.wait()
    amd.start("own", "--gpus", "device=0", "--gpus-exclusive")


def test_memory_alone_on_amds_gpu_is_nobody_who_computes(amd, stranger):
    tell_amd(amd, 0, {}, {stranger.pid: MIB})
    amd.start("own", "--gpus", "device=0", "--gpus-exclusive")


def test_a_container_is_not_an_outsider_on_its_own_amd_gpu(amd):
    amd.start("mine", "--gpus", "device=0")
    for name in ("others", "also"):
        amd.start(name, "--gpus", "device=1,2,3,4,5,6,7")
    compute_on_amd(amd, 1, pid_of(amd, "mine"))
    amd.start("least", "--gpus", "1")
    assert amd.holders()["least"] == [0]


def test_of_a_partition_counts_who_computes_on_it(amd_cut, stranger):
    compute_on_amd(amd_cut, 2, stranger.pid)
    line = amd_cut.refused("--gpus", "all", "--gpus-exclusive")
    assert f"GPU 0:1 is held by process {stranger.pid} " in line
    assert line.count("which has no lease") == 1
