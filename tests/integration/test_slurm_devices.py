# SPDX-License-Identifier: Apache-2.0
"""Containers of steps where Slurm lets each task open its own GPUs alone (ConstrainDevices), with
cgroups of version 1 here and of version 2 in a guest (tests/guest/test_slurm.py). The GPUs are a
synthetic driver's: a node that the task may open has no device behind it."""

import os

import pytest

from support.device_cgroup import DEVICES
from support.processes import kill_each, matching
from support.slurm import V2_ALONE
from support.slurm_containers import with_plugin
from support.waiting import wait_until

MINE = "No such device or address"  # the task may open it, and there is none
NOT_MINE = "Operation not permitted"
# Of every GPU in the container: its node, and what opening it says.
LOOK = """echo "visible $CUDA_VISIBLE_DEVICES"
for node in /dev/nvidia[0-9]*; do echo "$node $(dd if=$node of=/dev/null count=1 2>&1 | tail -n 1)"; done"""


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts, driver_tree):
    if not V2_ALONE.exists() and not os.path.exists(DEVICES / "devices.deny"):
        pytest.skip("no device cgroup of version 1 is mounted")
    directory = session_directory / "slurm-devices"
    directory.mkdir()
    tree = driver_tree("eight")
    # As `berth slurm features --gres-conf` has them: by PCI address, which is not by minor.
    gpus = [f"{tree}/dev/nvidia{minor}" for minor in (2, 5, 0, 7, 1, 4, 3, 6)]
    with with_plugin(directory, programs, gpus=gpus, constrained=True).running() as running:
        running.tree = tree
        yield running


def seen(slurm, image, *words):
    """Of each task what CUDA_VISIBLE_DEVICES says, which nodes it can open and which not."""
    out = slurm.srun("--label", *words, image, "sh", "-c", LOOK, env={"TEST_TREE": slurm.cluster.tree})
    tasks = {}
    for line in out.splitlines():
        number, text = line.split(": ", 1)
        task = tasks.setdefault(int(number), {"mine": set(), "others": set()})
        if text.startswith("visible"):
            task["visible"] = text.split(" ", 1)[1]
        else:
            assert MINE in text or NOT_MINE in text, out
            task["mine" if MINE in text else "others"].add(text.split()[0])
    return [tasks[number] for number in sorted(tasks)]


def test_a_container_has_the_gpus_of_all_tasks_and_each_task_opens_its_own(slurm, image):
    tasks = seen(slurm, image, "--ntasks=3", "--gpus-per-task=1")
    assert [task["visible"] for task in tasks] == ["0"] * 3, tasks
    assert [len(task["mine"]) for task in tasks] == [1] * 3, tasks
    everything = tasks[0]["mine"] | tasks[0]["others"]
    assert len(everything) == 3 and set.union(*(task["mine"] for task in tasks)) == everything, tasks


def test_gpus_that_are_not_bound_are_for_all_tasks(slurm, image):
    tasks = seen(slurm, image, "--ntasks=2", "--gpus=4")
    assert [(len(task["mine"]), len(task["others"])) for task in tasks] == [(4, 0)] * 2, tasks
    assert [task["visible"] for task in tasks] == ["0,1,2,3"] * 2


def test_steps_of_a_job_have_their_part_of_its_gpus(slurm, image):
    script = f"for i in 1 2; do srun --exact --ntasks=1 --gpus=2 {image} sh -c 'ls /dev; sleep 2' & done; wait"
    done = slurm.call("salloc", "--gpus=4", "--ntasks=2", "sh", "-c", script,
                      env={"TEST_TREE": slurm.cluster.tree})
    assert done.returncode == 0, done
    nodes = [line for line in done.stdout.splitlines() if line.startswith("nvidia") and line[6:].isdigit()]
    assert len(nodes) == 4 and len(set(nodes)) == 4, done


def test_what_holds_a_container_is_among_what_slurm_ends_with_the_step(slurm, image):
    which = "0::" if V2_ALONE.exists() else "freezer"
    look = f"for p in /proc/[0-9]*; do grep -q berth-hold $p/comm 2>/dev/null && grep {which} $p/cgroup; done;"
    out = slurm.srun("--gpus=1", image, "sh", "-c", look + f"grep {which} /proc/self/cgroup",
                     env={"TEST_TREE": slurm.cluster.tree})
    holds, task = out.splitlines()
    if not V2_ALONE.exists():
        assert holds == task, out
        return
    # Beside the task's, below what the step may have; root's container has its own below that.
    below = "../" if slurm.berth.account.uid == 0 else ""
    assert (holds, task) == ("0::/", f"0::/../{below}task_0"), out


def step_leaves_no_cgroup():
    cgroups = V2_ALONE.parent if V2_ALONE.exists() else DEVICES
    wait_until(lambda: not [name for name, _, _ in os.walk(cgroups) if "/step_0" in name])


def started(slurm, image, seconds=100):
    step = slurm.spawn("srun", "--gpus=1", image, "sh", "-c", f"echo up; exec sleep {seconds}",
                       env={"TEST_TREE": slurm.cluster.tree})
    assert step.stdout.readline() == "up\n"
    return step


def test_a_step_that_is_killed_leaves_no_cgroup(slurm, image):
    step = started(slurm, image)
    slurm.call("scancel", "--signal=KILL", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    step_leaves_no_cgroup()
    assert not slurm.containers()


def test_a_step_whose_berth_is_killed_leaves_no_cgroup(slurm, image):
    step = started(slurm, image, seconds=2)
    kill_each(matching(rb"^berth\0slurm\0step\0"))
    step.communicate(timeout=30)
    step_leaves_no_cgroup()
