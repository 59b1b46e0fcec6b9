# SPDX-License-Identifier: Apache-2.0
"""berth-node as the device plugin of the real kubelet, with berth-runtime: one GPU under several names. The driver
tree is synthetic."""

import shutil
import subprocess
import time

import pytest

from support import callers, images, kube_gpus, kube_node
from support.waiting import wait_until

ANY, VENDOR, MODEL = "berth.dev/gpu", "berth.dev/gpu.nvidia", "berth.dev/gpu.nvidia.k80"


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


def healthy(node, resource):
    return len(node.devices().get(resource, {}))


def cards(node, name):
    """The GPUs that the container 'main' of an ended pod saw, and whether it has the driver's program."""
    lines = [line for line in node.log(name).splitlines() if not line.startswith("berth-runtime: warning")]
    return [line for line in lines if line.startswith("nvidia")], "/usr/bin/nvidia-smi" in lines


LOOK = "ls /dev | grep '^nvidia[0-9]'; which nvidia-smi"


def all_free(node):
    wait_until(lambda: healthy(node, ANY) == healthy(node, VENDOR) == healthy(node, MODEL) == 4, 30)


def test_a_pod_has_the_gpu_that_the_kubelet_chose(node, agent):
    node.put(kube_node.pod("p0", LOOK, limits={ANY: 1}))
    node.wait_ended("p0")
    gpus, program = cards(node, "p0")
    assert len(gpus) == 1 and program


def test_a_pod_without_a_gpu_sees_none(node, agent):
    node.put(kube_node.pod("p1", LOOK))
    node.wait_ended("p1")
    assert cards(node, "p1") == ([], False)


def test_a_gpu_that_is_taken_under_one_name_is_unhealthy_under_the_others_within_a_second(node, agent):
    all_free(node)
    node.put(kube_node.pod("p2", "exec sleep 1000", limits={ANY: 2}))
    node.wait(  # from the moment when the kubelet has chosen
        "p2", lambda _: sum(uid is not None for uid in node.devices()[ANY].values()) == 2)
    began = time.monotonic()
    wait_until(lambda: healthy(node, VENDOR) == healthy(node, MODEL) == 2, 5, 0.02)
    assert time.monotonic() - began < 1
    assert healthy(node, ANY) == 4
    node.wait_running("p2")
    node.remove("p2")
    all_free(node)


def test_two_containers_of_a_pod_each_have_a_gpu_and_names_may_be_mixed(node, agent):
    """NVIDIA/k8s-device-plugin 404: names for different GPUs."""
    all_free(node)
    containers = [kube_node.container(LOOK, "a", limits={ANY: 1}), kube_node.container(LOOK, "b", limits={MODEL: 2})]
    node.put(kube_node.pod("p3", containers=containers))
    node.wait_ended("p3")
    seen = [line for of in ("a", "b") for line in node.log("p3", of).splitlines() if line.startswith("nvidia")]
    assert len(seen) == len(set(seen)) == 3


def test_what_berth_run_has_no_pod_gets_and_the_other_way_round(node, agent, programs, directories):
    all_free(node)

    def berth(*words):
        return subprocess.run([programs / "berth", "--root", directories / "berth", *words], check=False,
                              capture_output=True, text=True, timeout=60)
    archive = directories / "busybox.tar"
    archive.write_bytes(callers.layout_archive(images.busybox(), name="localhost/busybox:1"))
    assert berth("load", "--input", archive).returncode == 0
    started = berth("run", "-d", "--name", "web", "--gpus", "device=0", "localhost/busybox:1", "sleep", "1000")
    assert started.returncode == 0, started.stderr
    try:
        wait_until(lambda: healthy(node, ANY) == 3, 20)
        node.put(kube_node.pod("p5", LOOK + "; exec sleep 1000", limits={ANY: 3}))
        node.wait_running("p5")
        assert "nvidia0" not in cards(node, "p5")[0]
        time.sleep(1)  # until the agent knows the pod's name
        refused = berth("run", "--rm", "--gpus", "device=1", "localhost/busybox:1", "true")
        assert refused.returncode == 125 and "default/p5-node1" in refused.stderr
    finally:
        berth("rm", "-f", "web")
        shutil.rmtree(directories / "berth")


def test_a_killed_agent_finds_everything_again(node, agent):
    """dra-driver 951, kubernetes 141433: no checkpoint that disagrees after a restart."""
    all_free(node)
    node.put(kube_node.pod("p6", "exec sleep 1000", limits={ANY: 1}))
    node.wait_running("p6")
    agent.daemon.kill()
    before = agent.registrations()
    agent.daemon.start()
    wait_until(lambda: agent.registrations() > before, 20)
    wait_until(lambda: healthy(node, VENDOR) == 3 and healthy(node, ANY) == 4, 30)
    node.put(kube_node.pod("q6", LOOK, limits={VENDOR: 3}))
    node.wait_ended("q6")
    assert len(cards(node, "q6")[0]) == 3


def test_the_kubelet_comes_back_and_the_names_with_it(node, agent):
    all_free(node)
    node.put(kube_node.pod("p7", "exec sleep 1000", limits={ANY: 1}))
    node.wait_running("p7")
    before = agent.registrations()
    node.restart_kubelet()
    wait_until(lambda: agent.registrations() > before, 20)
    node.wait_devices(ANY, 4)
    node.wait_devices(MODEL, 3)
    node.put(kube_node.pod("q7", LOOK, limits={MODEL: 1}))
    node.wait_ended("q7")
    assert len(cards(node, "q7")[0]) == 1


def test_a_pod_that_wants_more_than_is_free_is_refused(node, agent):
    all_free(node)
    node.put(kube_node.pod("p8", LOOK, limits={ANY: 5}))
    node.wait_ended("p8")
    status = node.get("p8")["status"]
    assert status["phase"] == "Failed" and ANY in status["message"], status
