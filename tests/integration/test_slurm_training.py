# SPDX-License-Identifier: Apache-2.0
"""A training over two nodes without MPI: ranks find each other at rank 0 of which variables tell
them, as torchrun's do, and sum gradients by Debian's gloo over TCP."""

import json
import pathlib

import pytest

from support import images, program_images
from support.slurm_containers import Submitter, with_plugin
from support.waiting import wait_until

SOURCE = pathlib.Path(__file__).parent.parent / "support/gloo_ranks.cpp"
# What torchrun does on each node.
AGENT = ("export WORLD_SIZE=4 MASTER_ADDR=n1 MASTER_PORT=29500; "
         "RANK=$((SLURM_NODEID * 2)) LOCAL_RANK=0 /train & "
         "RANK=$((SLURM_NODEID * 2 + 1)) LOCAL_RANK=1 /train; status=$?; wait $! && exit $status")


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-training"
    directory.mkdir()
    with with_plugin(directory, programs, nodes=2, apart=True).running() as running:
        yield running


@pytest.fixture(scope="module")
def reference(registry):
    program = program_images.compiled(["g++", "-std=c++17", "-O1"], SOURCE, "-lgloo", "-lpthread")
    # By this variable spank_berth.so knows images of PyTorch, and tells ranks who they are.
    variables = {"Env": ["PATH=/bin", "PYTORCH_VERSION=2.9"]}
    image = images.build([images.busybox_layer(), program_images.layer("train", program)], variables)
    image.push(registry, "test/train")
    return f"{registry.address}/test/train:latest"


@pytest.fixture
def train(cluster, berth, reference):
    """train(word…) → what rank 0 says."""
    slurm = Submitter(cluster, berth)
    berth.ok("pull", "--quiet", reference)
    yield lambda *words: json.loads(slurm.srun("--nodes=2", f"--container-image={reference}", *words))
    wait_until(cluster.is_idle)


TRAINED = {"ranks": 4, "nodes": 2, "same": 4, "slope": 3.0, "height": -1.0}


def test_tasks_are_ranks(train):
    assert train("--ntasks=4", "/train") == TRAINED


def test_an_agent_of_each_node_starts_its_ranks(train):
    assert train("--ntasks=2", "sh", "-c", AGENT) == TRAINED
