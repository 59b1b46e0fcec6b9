# SPDX-License-Identifier: Apache-2.0
"""berth-node as the device plugin of the real kubelet, with berth-runtime: one GPU under several names. The driver
tree is synthetic."""

import os
import time

import pytest

from support import kube_gpus, kube_node
from support.waiting import wait_until

ANY, VENDOR, MODEL = "berth.dev/gpu", "berth.dev/gpu.nvidia", "berth.dev/gpu.nvidia.h100"


@pytest.fixture(scope="module")
def agent(node, programs, driver_tree):
    with kube_gpus.site(driver_tree("boards")), kube_gpus.Agent(programs, node.directory).running() as started:
        node.daemons.append(started.daemon)
        node.wait_devices(ANY, 4)
        yield started


@pytest.fixture(autouse=True)
def pods_are_removed(node):
    yield
    for path in node.manifests.iterdir():
        path.unlink()
    wait_until(lambda: not node.pods(), 60)


def test_a_pod_has_the_gpu_that_the_kubelet_chose(node, agent):
    script = "ls /dev | grep ^nvidia[0-9]; nvidia-smi -L >/dev/null 2>&1; which nvidia-smi"
    node.put(kube_node.pod("p", script, limits={ANY: 1}))
    node.wait_ended("p")
    lines = node.log("p").splitlines()
    assert len(lines) == 2 and lines[0].startswith("nvidia") and lines[1] == "/usr/bin/nvidia-smi", lines


def test_a_gpu_that_is_taken_under_one_name_is_unhealthy_under_the_others_within_a_second(node, agent):
    assert len(node.healthy(VENDOR)) == 4
    node.put(kube_node.pod("p", "exec sleep 1000", limits={ANY: 2}))
    node.wait_running("p")
    began = time.monotonic()
    wait_until(lambda: len(node.healthy(VENDOR)) == 2, 5)
    assert time.monotonic() - began < 1.5
    assert len(node.healthy(ANY)) == 4
    node.remove("p")
    wait_until(lambda: len(node.healthy(VENDOR)) == 4, 30)
