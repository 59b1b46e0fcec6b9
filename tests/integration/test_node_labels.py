# SPDX-License-Identifier: Apache-2.0
"""`berth node labels`, `manifest`, `setup` and `status`, without Kubernetes."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

TESTS = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
ROOT = pytest.mark.profiles("root")  # the files of a node are root's
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
CRI = 'plugins."io.containerd.grpc.v1.cri"'
SECTION = f'[{CRI}.cni]\nbin_dir = "/usr/lib/cni"\n'
IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'


@pytest.fixture
def tree(work):
    path = work / "driver"
    subprocess.run([sys.executable, TESTS / "support/driver_tree.py", "boards", path], check=True, capture_output=True)
    return path


@pytest.fixture
def node(work):
    """The root directory of a node with containerd's configuration."""
    root = work / "node"
    (root / "etc/containerd").mkdir(parents=True)

    def make(config=None):
        if config is not None:
            (root / "etc/containerd/config.toml").write_text(config)
        return root
    return make


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_labels_are_the_same_as_text_and_as_json(berth, tree):
    text = berth.ok("--driver-root", tree, "node", "labels")
    labels = dict(line.split("=") for line in text.splitlines())
    assert labels == json.loads(berth.ok("--driver-root", tree, "node", "labels", "--format", "json"))["labels"]
    assert labels["nvidia.com/gpu.product"] == "Tesla-K80" and labels["nvidia.com/gpu.count"] == "4"
    for name, value in labels.items():
        assert NAME.fullmatch(name) and VALUE.fullmatch(value), (name, value)


def test_a_feature_file_has_what_nfd_does_not_find_itself(berth, tree):
    assert berth.ok("--driver-root", tree, "node", "labels", "--nfd", berth.directory / "berth") == ""
    lines = (berth.directory / "berth").read_text().splitlines()
    assert "nvidia.com/gpu.count=4" in lines and not [line for line in lines if line.startswith("feature.")]


def test_labels_of_a_saved_profile_are_that_nodes(berth, work):
    profile = work / "old.toml"
    profile.write_text('architecture = "amd64"\n[cpu]\nmicroarchitecture = "broadwell"\n'
                       '[[gpus]]\ncompute_capability = "3.7"\n')
    labels = berth.ok("node", "labels", "--node", profile).splitlines()
    assert "berth.dev/cpu.microarchitecture=broadwell" in labels and "nvidia.com/gpu.family=kepler" in labels


def test_a_manifest_is_the_same_as_yaml_and_as_json(berth):
    words = ("node", "manifest", "--image", "example.org/berth-node:1", "--namespace", "gpus")
    objects = list(yaml.safe_load_all(berth.ok(*words)))
    assert objects == json.loads(berth.ok(*words, "--format", "json"))["items"]
    daemon = next(one for one in objects if one["kind"] == "DaemonSet")
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    assert (daemon["metadata"]["namespace"], container["image"]) == ("gpus", "example.org/berth-node:1")
    mounts = {one["name"] for one in container["volumeMounts"]}
    assert mounts == {one["name"] for one in daemon["spec"]["template"]["spec"]["volumes"]}


def test_a_manifest_has_a_class_for_each_resource_of_a_file(berth, work):
    (work / "node.toml").write_text('[[resource]]\nname = "org.qnib.gpu.nv/k80"\nmodel = "k80"\n')
    objects = list(yaml.safe_load_all(berth.ok("node", "manifest", "--config", work / "node.toml")))
    names = {one["spec"]["extendedResourceName"] for one in objects if one["kind"] == "DeviceClass"}
    assert {"org.qnib.gpu.nv/k80", "berth.dev/gpu", "berth.dev/gpu.nvidia"} <= names


@pytest.mark.parametrize("flags, error", [
    (("--namespace", "Berth"), "expected the name of a namespace, such as berth-system, got 'Berth'"),
    (("--driver-root", "opt"), "expected an absolute path, got 'opt'"),
    (("--config", "/nowhere/node.toml"), "'/nowhere/node.toml': no such file")])
def test_a_manifest_of_wrong_words_is_refused(berth, flags, error):
    assert berth.fail("node", "manifest", *flags, status=1) == f"berth: {error}"


@ROOT
def test_a_drop_in_is_written_once_and_removed(berth, node):
    root = node("version = 3\n" + IMPORTS)
    words = ("node", "setup", "--containerd", "--root", root)
    assert "would write /etc/containerd/conf.d/50-berth.toml\n" in berth.ok(*words, "--dry-run")
    assert files(root) == {"etc/containerd/config.toml"}
    assert berth.ok(*words) == ("wrote /etc/containerd/conf.d/50-berth.toml\n"
                                "to take effect: systemctl restart containerd\n")
    assert berth.ok(*words) == "nothing to change\n"
    assert "removed /etc/containerd/conf.d/50-berth.toml\n" in berth.ok(*words, "--remove")
    assert files(root) == {"etc/containerd/config.toml"}
    assert berth.ok(*words, "--remove") == "nothing to change\n"


@ROOT
def test_a_mirror_needs_no_restart_where_containerd_has_the_directory(berth, node):
    root = node('version = 3\n[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/etc/containerd/certs.d"'
                '\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.berth]\nruntime_type = "x"\n')
    words = ("node", "setup", "--containerd", "--root", root, "--hub", "http://hub:5050")
    assert berth.ok(*words) == "wrote /etc/containerd/certs.d/_default/hosts.toml\n"
    assert berth.ok(*words, "--remove") == "removed /etc/containerd/certs.d/_default/hosts.toml\n"


@ROOT
def test_a_file_of_somebody_else_stays(berth, node):
    root = node("version = 3\n" + IMPORTS)
    place = root / "etc/containerd/conf.d/50-berth.toml"
    place.parent.mkdir()
    place.write_text("version = 3\n")
    words = ("node", "setup", "--containerd", "--root", root)
    assert "not written by 'berth node setup'" in berth.fail(*words, status=1)
    assert berth.ok(*words, "--remove") == "nothing to change\n"
    assert place.read_text() == "version = 3\n"


@ROOT
def test_crio_has_its_own_files(berth, node):
    root = node()
    berth.ok("node", "setup", "--crio", "--root", root, "--hub", "https://hub", "--registry", "registry.example.org")
    assert files(root) == {"etc/crio/crio.conf.d/50-berth.conf", "etc/containers/registries.conf.d/50-berth-hub.conf"}


def test_setup_needs_one_runtime(berth):
    assert berth.fail("node", "setup", status=1) == "berth: expected one of --containerd and --crio"


def dumped(root):
    """What the real containerd makes of the files. Its paths are those of the node: a copy has them changed."""
    copy = root.parent / "dumped"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root / "etc/containerd", copy)
    for path in copy.rglob("*.toml"):
        path.write_text(path.read_text().replace("/etc/containerd", str(copy)))
    return subprocess.run(["containerd", "--config", copy / "config.toml", "config", "dump"], check=True,
                          capture_output=True, text=True).stdout


@ROOT
@pytest.mark.skipif(not shutil.which("containerd"), reason="no containerd")
@pytest.mark.parametrize("section", ["", SECTION])
def test_containerd_1_keeps_the_rest_of_its_configuration(berth, node, section):
    """containerd 5837: a section of a drop-in takes the place of the node's."""
    root = node("version = 2\n" + IMPORTS + section)
    words = ("node", "setup", "--containerd", "--root", root, "--runtime", "/usr/bin/berth-runtime")
    if section:
        error = berth.fail(*words, status=1)
        assert "containerd before 2.0 would lose the section" in error
        assert files(root) == {"etc/containerd/config.toml"}
        lines = berth.run(*words).stdout
        with open(root / "etc/containerd/config.toml", "a") as config:
            config.write(lines)
        assert berth.ok(*words) == "nothing to change\n"
    else:
        berth.ok(*words)
    text = dumped(root)
    assert f"[{CRI}.containerd.runtimes.berth]" in text and 'BinaryName = "/usr/bin/berth-runtime"' in text
    assert 'container_annotations = ["cdi.k8s.io/*", "berth.dev/*"]' in text
    assert ('bin_dir = "/usr/lib/cni"' in text) == bool(section)


def test_status_names_the_container_that_has_a_gpu(berth, tree, busybox):
    def status():
        return json.loads(berth.ok("--driver-root", tree, "node", "status", "--format", "json"))
    found = status()
    assert not found["running"] and found["synthetic"] and len(found["gpus"]) == 4
    assert {name["health"] for gpu in found["gpus"] for name in gpu["names"]} == {"Healthy"}
    berth.ok("--driver-root", tree, "run", "--detach", "--name", "web", "--gpus", "device=1", busybox, "sleep", "1000")
    try:
        held = status()["gpus"][1]
        assert "container 'web'" in held["held_by"][0]
        assert {(name["health"], name["reason"]) for name in held["names"]} == {
            ("Unhealthy", "held by " + held["held_by"][0])}
        table = berth.ok("--driver-root", tree, "node", "status")
        assert table.splitlines()[0].split() == ["GPU", "ID", "MODEL", "HEALTH", "HELD", "BY", "NAMES"]
        assert "Unhealthy" in table.splitlines()[2]
    finally:
        berth.ok("rm", "--force", "web")
