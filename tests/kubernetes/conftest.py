# SPDX-License-Identifier: Apache-2.0
"""The real Kubernetes with berth-runtime. When a test fails, the ends of the daemons' logs are shown with it."""

import contextlib
import os
import pathlib
import shutil

import pytest

from support import device_plugin, kube_cluster, kube_node, kube_parts, leftovers

RUNNING = []  # the nodes and clusters of this session


@pytest.fixture(scope="session")
def parts():
    try:
        return kube_parts.get()
    except kube_parts.Unavailable as error:
        pytest.skip(f"no Kubernetes: {str(error).splitlines()[0]}")


@pytest.fixture(scope="session")
def directories(session_directory):
    """Where the daemons' files are. Nothing is left afterwards: no mount, cgroup or process."""
    before = leftovers.snapshot(session_directory, set())
    with kube_node.own_directories():
        yield session_directory
    left = leftovers.since(before, session_directory, set())
    if left:
        leftovers.clear(before, session_directory, set())
        pytest.fail("left behind:\n" + "\n".join(left), pytrace=False)


@contextlib.contextmanager
def _kept(made):
    RUNNING.append(made)
    with made.running():
        yield made
    RUNNING.remove(made)


@pytest.fixture(scope="session")
def runtime(programs):
    """berth-runtime, or the OCI runtime that RUNTIME=PROGRAM names: of pods that name none, and of the handler
    'berth'."""
    return pathlib.Path(os.environ.get("RUNTIME") or programs / "berth-runtime")


@pytest.fixture(scope="module")
def node(parts, directories, runtime):
    """containerd and a kubelet without an API server, for static pods."""
    place = directories / "node"
    place.mkdir()
    with _kept(kube_node.Node(place, parts, {"berth": runtime})) as started:
        yield started
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def cluster(parts, directories, runtime):
    place = directories / "cluster"
    with _kept(kube_cluster.Cluster(place, parts, {"berth": runtime})) as started:
        yield started
    shutil.rmtree(place)


@pytest.fixture
def gpus(directories):
    """gpus(count) → a running device plugin of the resource test.dev/gpu, whose devices are /dev/zero under their
    names, and the variable GPU."""
    with contextlib.ExitStack() as stack:
        def start(count, resource="test.dev/gpu"):
            def answer(ids):
                return {"envs": {"GPU": ",".join(ids)},
                        "devices": [{"container_path": f"/dev/{one}", "host_path": "/dev/zero", "permissions": "rw"}
                                    for one in ids]}
            plugin = device_plugin.DevicePlugin(resource, [f"gpu{number}" for number in range(count)], answer)
            stack.enter_context(plugin.serving())
            return plugin
        yield start


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        for one in RUNNING:
            report.sections += [(f"log of {daemon.name}", daemon.tail(30)) for daemon in one.daemons]
