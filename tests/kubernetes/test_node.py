# SPDX-License-Identifier: Apache-2.0
"""Static pods: the real kubelet and containerd with berth-runtime, without an API server."""

import subprocess

import pytest

from support import kube_node
from support.waiting import wait_until

GPU = "test.dev/gpu"


@pytest.fixture(autouse=True)
def pods_are_removed(node):
    yield
    for path in node.manifests.iterdir():
        path.unlink()
    wait_until(lambda: not node.pods(), 60)


def test_a_static_pod_runs_and_ends_with_its_status(node, runtime):
    node.put(kube_node.pod("p", "echo hello; exec sleep 1000"))
    found = node.wait_running("p")
    assert node.log("p") == "hello\n"
    # Its two containers are the runtime's.
    told = subprocess.run([runtime, "--root", kube_node.STATES, "list", "--quiet"], check=True, capture_output=True,
                          text=True).stdout
    assert set(node.containers_of(found["metadata"]["uid"])) <= set(told.split())
    node.put(kube_node.pod("q", "echo out; echo err >&2; exit 3"))
    found = node.wait_ended("q")
    assert kube_node.exit_codes(found) == {"main": 3}
    assert sorted(node.log("q").splitlines()) == ["err", "out"]


def test_a_pod_is_given_the_device_that_its_plugin_allocates(node, gpus):
    plugin = gpus(2)
    node.wait_devices(GPU, 2)
    node.put(kube_node.pod("p", "echo $GPU; cd /dev; ls -d gpu*; head -c 3 $GPU | od -An -tx1", limits={GPU: 1}))
    node.wait_ended("p")
    (given,) = plugin.allocated
    assert node.log("p") == f"{given[0]}\n{given[0]}\n 00 00 00\n"


def test_containers_outlive_the_kubelet_and_plugins_register_again(node, gpus):
    first = gpus(1)
    node.wait_devices(GPU, 1)
    node.put(kube_node.pod("p", "echo $GPU; exec sleep 1000", limits={GPU: 1}))
    uid = node.wait_running("p")["metadata"]["uid"]
    before = node.tasks(uid)
    node.restart_kubelet()
    assert not first.socket.exists()  # the kubelet removes them all
    again = gpus(1)
    wait_until(lambda: "ListAndWatch" in again.calls)
    assert node.wait_running("p")["metadata"]["uid"] == uid
    assert len(before) == 2 and node.tasks(uid) == before
    assert again.allocated == []  # it remembers
    node.put(kube_node.pod("q", "true", limits={GPU: 1}))
    refused = node.wait_ended("q")
    assert refused["status"]["reason"] == "UnexpectedAdmissionError" or "Insufficient" in refused["status"]["reason"]


def test_a_removed_pod_leaves_nothing(node):
    memory = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    mounted = kube_node.container("exec sleep 1000", volumeMounts=[{"name": "memory", "mountPath": "/memory"}])
    node.put(kube_node.pod("p", containers=[mounted], volumes=[memory]))
    uid = node.wait_running("p")["metadata"]["uid"]
    assert {line.split()[0] for line in node.left_of(uid)} == {"mount", "cgroup", "process", "directory", "container"}
    node.remove("p")
    # The kubelet looks after what is left once a minute.
    wait_until(lambda: not node.left_of(uid), 100, 0.5, lambda: "\n".join(node.left_of(uid)))
