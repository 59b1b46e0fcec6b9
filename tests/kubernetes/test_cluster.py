# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node: API server, scheduler, controller manager, kubelet, and containerd with berth-runtime."""

import pytest

from support import kube_api, kube_cluster, kube_dra, kube_node
from support.kube_node import NAME

GPU = "test.dev/gpu"
RUNTIME_CLASS = "node.k8s.io/v1 RuntimeClass"


@pytest.fixture(autouse=True)
def pods_are_removed(cluster):
    yield
    cluster.remove_pods()


def runtime_class(name, handler):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler}


def test_the_parts_start_in_time(cluster):
    print("\n".join(f"{name}: {took:.1f} s" for name, took in cluster.times.items()))
    assert sum(cluster.times.values()) < 90


def test_a_pod_is_scheduled_runs_and_ends_with_its_status(cluster):
    assert cluster.run(kube_node.pod("p", "echo hello; exit 3")) == (3, "hello\n")
    found = cluster.api.get("Pod", "p")
    assert (found["spec"]["nodeName"], found["status"]["phase"]) == (NAME, "Failed")
    assert "Scheduled: Successfully assigned default/p to node1" in cluster.api.events("p")


@pytest.mark.parametrize("handler", ["berth", "runc"])
def test_a_runtime_class_names_the_runtime(cluster, handler):
    cluster.api.apply(runtime_class(handler, handler))
    assert cluster.run(kube_node.pod("p", "hostname", runtimeClassName=handler)) == (0, "p\n")
    uid = cluster.api.get("Pod", "p")["metadata"]["uid"]
    used = {cluster.node.runtime_of(name) for name in cluster.node.containers_of(uid)}
    assert used == {cluster.node.runtimes[handler]}


def test_a_runtime_class_of_an_unknown_handler_is_an_event(cluster):
    cluster.api.apply(runtime_class("nobody", "nobody"))
    cluster.api.create(kube_node.pod("p", "true", runtimeClassName="nobody"))
    cluster.api.wait("Pod", "p", lambda _: any("no runtime for \"nobody\" is configured" in event
                                               for event in cluster.api.events("p")))


def test_a_device_is_given_to_one_pod_after_the_other(cluster, gpus):
    plugin = gpus(1)
    cluster.wait_capacity(GPU, 1)
    cluster.api.create(kube_node.pod("p", "echo $GPU; ls /dev/gpu0; exec sleep 1000", limits={GPU: 1}))
    cluster.wait_running("p")
    assert cluster.api.log("p") == "gpu0\n/dev/gpu0\n"
    cluster.api.create(kube_node.pod("q", "echo $GPU", limits={GPU: 1}))
    cluster.api.wait("Pod", "q", lambda one: any("Insufficient test.dev/gpu" in condition.get("message", "")
                                                 for condition in one["status"].get("conditions", [])))
    cluster.remove("p")
    cluster.wait_ended("q")
    assert cluster.api.log("q") == "gpu0\n"
    assert plugin.allocated == [["gpu0"], ["gpu0"]]
    plugin.set_health("gpu0", False)
    cluster.wait_capacity(GPU, 0)


def test_a_pod_is_told_who_it_is(cluster):
    status, log = cluster.run(kube_node.pod("p", "cd /var/run/secrets/kubernetes.io/serviceaccount; ls; cat namespace",
                                            automountServiceAccountToken=True))
    assert (status, log) == (0, "ca.crt\nnamespace\ntoken\ndefault")


def test_kubectl_enters_a_container(cluster):
    cluster.api.create(kube_node.pod("p", "exec sleep 1000"))
    cluster.wait_running("p")
    assert cluster.kubectl("exec", "p", "--", "sh", "-c", "echo $HOSTNAME") == "p\n"


def test_a_deleted_pod_leaves_nothing_that_runs(cluster):
    cluster.api.create(kube_node.pod("p", "exec sleep 1000"))
    uid = cluster.wait_running("p")["metadata"]["uid"]
    cluster.remove("p")
    # The sandbox itself and the logs stay for a minute, which test_node.py waits for.
    left = {line.split()[0] for line in cluster.node.left_of(uid)}
    assert not left & {"mount", "cgroup", "process"}


def test_the_api_of_claims_is_served(cluster):
    kube_dra.serve(cluster.api, ("v1", "v1beta2"))
    cluster.api.create(kube_dra.claim("c"))
    kube_dra.allocate(cluster.api, "c", "gpu.berth.dev", NAME, ["gpu0"])
    found = cluster.api.get("resource.k8s.io/v1beta2 ResourceClaim", "c")
    assert found["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu0"
    token = cluster.service_account("driver", {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
                                               "verbs": ["get", "list", "patch", "create"]})
    driver = kube_api.Api(kube_cluster.SERVER, cluster.ca, token=token)
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
            "spec": {"driver": "gpu.berth.dev", "nodeName": NAME}}
    assert driver.apply(made, "berth")["spec"]["nodeName"] == NAME
    with pytest.raises(kube_api.Refused, match="403: resourceslices.*cannot delete"):
        driver.delete(kube_dra.SLICE, "s")
    events = cluster.api.watch(kube_dra.SLICE)
    assert next(events)["type"] == "ADDED"
    cluster.api.delete(kube_dra.SLICE, "s")
    assert next(events)["type"] == "DELETED"
