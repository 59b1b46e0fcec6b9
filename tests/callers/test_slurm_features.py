# SPDX-License-Identifier: Apache-2.0
"""What docs/slurm.md says: features and GRES of a node that `berth slurm features` prints, read by
Slurm, and a partition that takes only jobs that ask for GPUs."""

import json
import pathlib
import subprocess

import pytest

from support.bundle import PROGRAMS
from support.slurm import Cluster

GUIDE = pathlib.Path(__file__).parents[2] / "docs/slurm.md"
# Character devices that every machine has stand for the tree's.
DEVICES = [f"/dev/tty{number}" for number in range(1, 9)]


class Features(Cluster):
    """Node n1 as berth has it, n2 without GPUs; each in a partition of its own too."""

    def __init__(self, directory, line, devices):
        super().__init__(directory, nodes=2, lines=["JobSubmitPlugins=lua", "PartitionName=gpu Nodes=n1",
                                                    "PartitionName=cpu Nodes=n2"])
        self.line, self.devices = line, devices

    def _configure(self, controller, places):
        super()._configure(controller, places)
        conf = self.directory / "slurm.conf"
        words = self.line.split(" ", 1)[1].strip()
        lines = [line + f" {words}" if line.startswith("NodeName=n1 ") else line
                 for line in conf.read_text().splitlines()]
        self.write("slurm.conf", *lines)
        self.write("gres.conf", *self.devices)
        self.write("job_submit.lua", GUIDE.read_text().split("```lua\n")[1].split("```")[0])

    def is_idle(self):
        # Nodes are in two partitions.
        states = self.call("sinfo", "--noheader", "--Node", "--partition", "all", "--format", "%T")
        return states.stdout.split() == ["idle"] * 2


@pytest.fixture(scope="module")
def node(session_directory, driver_tree):
    """berth slurm features WORD… of the tree with eight GPUs."""
    def features(*words):
        place = session_directory / "features-of"
        return subprocess.run([PROGRAMS / "berth", "--root", place / "store", "--state", place / "state",
                               "--driver-root", driver_tree("eight"), "slurm", "features", *words],
                              check=True, text=True, capture_output=True).stdout
    return features


@pytest.fixture(scope="module")
def slurm(session_directory, node):
    directory = session_directory / "features"
    directory.mkdir()
    told = json.loads(node("--node", "n1", "--gres-conf", "--format", "json"))
    devices = [f"NodeName=n1 Name=gpu Type={one['type']} File={device}"
               for one, device in zip(told["gres_conf"], DEVICES, strict=True)]
    line = node("--node", "n1").splitlines()[-1]
    with Features(directory, line, devices).running() as running:
        yield running


def test_the_lines_are_those_of_the_machine(node):
    assert node("--node", "n1").splitlines()[0] == "# GPUs of a tree made for tests"
    line = node("--node", "n1").splitlines()[-1]
    assert line.startswith("NodeName=n1 Gres=gpu:h100:8 Feature=")
    assert {"nvidia-570", "nvidia-570.133.20", "cuda-12", "h100"} <= set(line.split("Feature=")[1].split(","))
    files = [line.split("File=")[1].split()[0] for line in node("--gres-conf").splitlines()[1:]]
    assert files == [f"/dev/nvidia{minor}" for minor in (2, 5, 0, 7, 1, 4, 3, 6)]


def test_a_job_asks_for_what_the_node_is_said_to_have(slurm):
    ask = ("srun", "--partition", "gpu", "--gres", "gpu:h100:2", "--constraint")
    out = slurm.ok(*ask, "nvidia-570&nvidia-570.133.20&cuda-12&h100", "sh", "-c",
                   "echo $CUDA_VISIBLE_DEVICES")
    assert out == "0,1\n"
    refused = slurm.call(*ask, "nvidia-999", "true")
    assert refused.returncode == 1 and "Invalid feature specification" in refused.stderr


def test_a_node_with_gpus_takes_only_jobs_that_ask_for_them(slurm):
    for words in ((), ("--gpus=0",)):
        refused = slurm.call("srun", "--partition", "gpu", *words, "true")
        assert refused.returncode == 1, words
        assert "partition 'gpu' is for jobs that ask for GPUs; try: --gpus=1" in refused.stderr
    for words in ("--gpus=1", "--gpus=h100:1", "--gpus-per-task=1", "--gres=gpu:1"):
        assert slurm.ok("srun", "--partition", "gpu", "--ntasks", "1", words, "echo", "tea") == "tea\n"
    assert slurm.ok("srun", "--partition", "cpu", "echo", "tea") == "tea\n"
