# SPDX-License-Identifier: Apache-2.0
"""What `berth node manifest` prints, applied to a real API server, and the pods of docs/kubernetes.md. berth-node runs
in its DaemonSet. The driver tree is synthetic."""

import json
import pathlib
import subprocess

import pytest
import yaml

from support import images, kube_dra, kube_gpus, kube_node
from support.kube_node import NAME
from support.waiting import wait_until

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/kubernetes"
IMAGE = "localhost/berth-node:tests"
NAMESPACE = "berth-system"
ANY, HALF = "berth.dev/gpu", "berth.dev/gpu-half"
RESOURCES = {ANY: {}, "berth.dev/gpu.nvidia": {"vendor": "nvidia"}, "berth.dev/gpu.nvidia.k80": {"model": "k80"},
             HALF: {"shares": 2}}
# Kubernetes 1.20 does not know them, and kube_dra.py does not serve them.
LATER = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def libraries(program):
    """The paths of the libraries of a program, and of its loader."""
    told = subprocess.run(["ldd", program], check=False, capture_output=True, text=True).stdout
    return {word for word in told.split() if word.startswith("/")}


def image_of(programs):
    """An image with what berth-node executes, and nothing else."""
    made = [programs / name for name in ("berth", "berth-node", "berth-gpu-probe")]
    found = {path for program in made for path in libraries(program)}
    files = [images.file(f"usr/bin/{path.name}", path.read_bytes(), 0o755) for path in made]
    files += [images.file(path.lstrip("/"), pathlib.Path(path).read_bytes(), 0o755) for path in sorted(found)]
    return images.build([images.layer(files)], {"Cmd": None, "Entrypoint": None})


@pytest.fixture(scope="module")
def tree(driver_tree):
    return driver_tree("boards")


@pytest.fixture(scope="module")
def site(cluster, tree):
    with kube_gpus.site(tree):
        lines = []
        for name, more in RESOURCES.items():
            lines += ["[[resource]]", f'name = "{name}"'] + [f"{key} = {json.dumps(one)}" for key, one in more.items()]
        pathlib.Path("/etc/berth/node.toml").write_text("\n".join(lines) + "\n")
        yield


@pytest.fixture(scope="module")
def manifest(programs, tree):
    def make(*flags):
        return subprocess.run([programs / "berth", "node", "manifest", "--image", IMAGE, "--driver-root", tree, *flags],
                              check=True, capture_output=True, text=True).stdout
    return make


@pytest.fixture(scope="module")
def daemon(cluster, site, manifest, programs):
    cluster.node.add_image(IMAGE, image_of(programs))
    # As systemd does it: the pod wants to see what is mounted later.
    subprocess.run(["mount", "--make-shared", "/"], check=True)
    path = cluster.directory / "manifest.yaml"
    path.write_text(manifest("--plugin-only"))
    told = cluster.kubectl("apply", "-f", str(path))
    assert "daemonset.apps/berth-node created" in told and "runtimeclass.node.k8s.io/berth created" in told
    try:
        wait_until(lambda: cluster.api.list("Pod", NAMESPACE), 30)
        (found,) = cluster.api.list("Pod", NAMESPACE)
        name = found["metadata"]["name"]
        cluster.api.wait("Pod", name, kube_node.is_running, 60, NAMESPACE)
        wait_until(lambda: ANY in cluster.api.get("Node", NAME)["status"]["allocatable"], 30, 0.2,
                   lambda: cluster.api.log(name, "berth-node", NAMESPACE))
        yield name
    finally:
        cluster.api.delete("apps/v1 DaemonSet", "berth-node", NAMESPACE)
        wait_until(lambda: not cluster.api.list("Pod", NAMESPACE), 60)
        subprocess.run(["mount", "--make-private", "/"], check=True)


@pytest.fixture(autouse=True)
def pods_are_removed(cluster):
    yield
    cluster.remove_pods()


def pods_of(name):
    """The objects of a file of the documentation, with an image that this node has."""
    text = (DOCS / name).read_text().replace("docker.io/library/busybox:1.36", kube_node.IMAGE)
    objects = list(yaml.safe_load_all(text))
    for one in objects:
        for container in one["spec"].get("containers", []):
            container["imagePullPolicy"] = "Never"
    return objects


def gpus_seen(cluster, name, *containers):
    """The GPUs that each container of an ended pod saw."""
    found = cluster.wait_ended(name)
    assert found["status"]["phase"] == "Succeeded", found["status"]
    return [[line for line in cluster.api.log(name, one).splitlines() if line.startswith("nvidia")]
            for one in containers]


def test_the_daemon_set_offers_the_gpus_of_its_node(cluster, daemon):
    for name, more in RESOURCES.items():
        cluster.wait_capacity(name, 4 * more.get("shares", 1))


def test_a_gpu_has_three_names(cluster, daemon):
    cluster.wait_capacity(ANY, 4, 90)
    (made,) = pods_of("names.yaml")
    cluster.api.create(made)
    seen = gpus_seen(cluster, "names", "any", "vendor", "model")
    assert [len(one) for one in seen] == [1, 1, 1] and len({gpu for one in seen for gpu in one}) == 3


def test_containers_have_halves(cluster, daemon):
    cluster.wait_capacity(HALF, 8, 90)
    (made,) = pods_of("halves.yaml")
    cluster.api.create(made)
    assert [len(one) for one in gpus_seen(cluster, "halves", "a", "b")] == [1, 1]


def test_status_on_the_node_names_the_pod(cluster, daemon, programs):
    cluster.wait_capacity(ANY, 4, 90)
    cluster.api.create(kube_node.pod("p", "exec sleep 1000", limits={ANY: 1}, runtimeClassName="berth"))
    cluster.wait_running("p")

    def held():
        told = subprocess.run([programs / "berth", "node", "status", "--format", "json"], check=True,
                              capture_output=True, text=True).stdout
        status = json.loads(told)
        assert status["running"]
        return [one for one in status["gpus"] if one["held_by"] == [f"pod default/p ({ANY})"]]
    wait_until(held, 20, 0.5)
    names = {one["name"]: one["health"] for one in held()[0]["names"]}
    assert names.pop(ANY) == "Healthy" and set(names.values()) == {"Unhealthy"}


def test_labels_are_accepted_by_the_api_server(cluster, site, programs):
    told = subprocess.run([programs / "berth", "node", "labels"], check=True, capture_output=True, text=True).stdout
    cluster.kubectl("label", "--overwrite", "node", NAME, *told.split())
    labels = cluster.api.get("Node", NAME)["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "Tesla-K80" and labels["berth.dev/gpu.count"] == "4"


def test_the_api_server_takes_the_objects_of_claims(cluster, site, manifest):
    kube_dra.serve(cluster.api)
    objects = list(yaml.safe_load_all(manifest()))
    for one in objects:
        if one["kind"] not in LATER | {"DaemonSet"}:
            cluster.api.apply(one)
    found = cluster.api.get("resource.k8s.io/v1 DeviceClass", "gpu.nvidia.berth.dev")
    assert found["spec"]["extendedResourceName"] == "berth.dev/gpu.nvidia"


def test_the_pod_that_shares_a_gpu_is_one_that_the_api_server_takes(cluster):
    """Containers of claims need a newer kubelet; see test_dra.py for what berth-node does."""
    kube_dra.serve(cluster.api)
    template, made = pods_of("shared-in-a-pod.yaml")
    cluster.api.apply(template)
    del made["spec"]["resourceClaims"], made["spec"]["runtimeClassName"]  # 1.20 drops what it does not know
    cluster.api.create(made)
