# SPDX-License-Identifier: Apache-2.0
"""`berth explain` and `berth run --explain`: every file, node and variable of a GPU request with
its reason, and why a container has none."""

import json

import pytest

from integration.test_gpu_driver_modes import libcuda
from integration.test_gpu_injection import LIBRARIES, glibc_layer
from support import images

VERSION = "570.133.20"


def explained(berth, root, verb, *words):
    return json.loads(berth.ok("--driver-root", root, verb, "--format", "json", *words))


def items(told):
    return {item["object"]: item for item in told["items"]}


def test_every_node_of_the_container_has_its_reason(berth, busybox, driver_tree):
    root = driver_tree("eight")
    nodes = berth.ok("--driver-root", root, "run", "--name", "c1", "--gpus", "device=1,3", busybox, "sh", "-c",
                     "ls -d /dev/nvidia*; find /usr/local/nvidia -name '*.so*' -o -name 'nv*'; env | grep NVIDIA_")
    told = explained(berth, root, "explain", "c1")
    known = items(told)
    assert told["granted"] is True
    assert told["name"] == "c1"
    for line in nodes.splitlines():
        assert known[line]["given"] is True, line
        assert known[line]["why"], line
    assert known["/dev/nvidia5"]["why"] == "GPU 1"
    assert known["/dev/nvidia2"] == {"kind": "node", "object": "/dev/nvidia2", "given": False,
                                     "why": "GPU 0 was not granted", "host_path": None}
    library = f"{root}/usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.{VERSION}"
    assert known[library]["why"] == "capability graphics or display was not asked for"
    assert told["sources"][0] == {"source": "--gpus", "text": "device=1,3", "counts": True, "why": "a flag wins"}


def loads(told):
    (line,) = [item for item in told["items"] if item["kind"] == "loads"]
    return line


@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_it_names_the_libcuda_that_the_program_loads(berth, push, driver_tree, tmp_path_factory, mode):
    """What the loader of the container says itself is the control."""
    root = driver_tree("one")
    host = f"{root}/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
    own = images.layer([images.directory("opt"), images.directory("opt/own"),
                        images.file("opt/own/libcuda.so.1", libcuda())])
    image = push(images.build([images.busybox_layer(), glibc_layer(tmp_path_factory.mktemp("own")), own]))
    for variable, why in (
            ("NONE=1", f"the loader's cache leads to {LIBRARIES}/libcuda.so.1, the driver's ({VERSION})"),
            (f"LD_LIBRARY_PATH=/opt/none:{LIBRARIES}", f"LD_LIBRARY_PATH leads to {LIBRARIES}/libcuda.so.1, the driver's ({VERSION})"),
            ("LD_LIBRARY_PATH=/opt/own", f"LD_LIBRARY_PATH leads to /opt/own/libcuda.so.1, over which the driver's ({VERSION}) is laid")):
        flags = ("--gpus", "all", "--gpu-driver", mode, "-e", variable, image, "/probe", "libcuda.so.1")
        told = explained(berth, root, "run", "--explain", *flags)
        assert loads(told) == {"kind": "loads", "object": "libcuda.so.1", "given": True, "why": why, "host_path": host}
        said = berth.ok("--driver-root", root, "run", "--rm", *flags)
        assert f"leads to {said.split(' => ')[1].strip()}," in why
        (driver_mode,) = [item for item in told["items"] if item["kind"] == "driver-mode"]
        assert (driver_mode["object"], driver_mode["given"]) == (mode, True)
        assert driver_mode["why"].endswith("; a flag says so")


def test_with_none_it_says_that_no_libcuda_is_loaded(berth, busybox, driver_tree):
    told = explained(berth, driver_tree("one"), "run", "--explain", "--gpus", "all", "--gpu-driver", "none", busybox)
    assert loads(told)["given"] is False
    assert loads(told)["why"] == "no file of that name was given, and the image has none that its loader finds"


def test_the_text_names_the_driver_mode_first(berth, busybox, driver_tree):
    text = berth.ok("--driver-root", driver_tree("one"), "run", "--explain", "--gpus", "all", busybox)
    lines = text.splitlines()
    assert lines[lines.index("given") + 1].split() == \
        "driver-mode bind the driver's files are the host's, each bound in its place; the default".split()


def test_run_explain_starts_nothing(berth, listing, busybox, driver_tree):
    berth.ok("run", "--rm", busybox, "true")
    berth.run("--driver-root", driver_tree("one"), "gpu", "list")
    before = listing()
    told = explained(berth, driver_tree("one"), "run", "--explain", "--gpus", "all", busybox, "sh", "-c", "exit 3")
    assert told["id"] is None
    assert told["granted"] is True
    assert listing() == before


def test_run_explain_and_explain_tell_the_same(berth, busybox, driver_tree):
    root = driver_tree("mig")
    before = explained(berth, root, "run", "--explain", "--gpus", "device=0:1", busybox, "true")
    berth.ok("--driver-root", root, "run", "--name", "c1", "--gpus", "device=0:1", busybox, "true")
    after = explained(berth, root, "explain", "c1")
    assert before["items"] == after["items"]
    assert before["sources"] == after["sources"]
    assert items(after)["/dev/nvidia-caps/nvidia-cap75"]["why"] == "the right to use slice 0:1"


def test_an_image_that_asks_in_vain_is_told(berth, push, driver_tree):
    greedy = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"]}))
    berth.ok("--driver-root", driver_tree("one"), "run", "--name", "c1", greedy, "true")
    told = explained(berth, driver_tree("one"), "explain", "c1")
    assert told["granted"] is False
    assert told["items"] == []
    (source,) = [s for s in told["sources"] if s["source"].startswith("NVIDIA_VISIBLE_DEVICES")]
    assert (source["text"], source["counts"]) == ("all", False)
    assert source["why"]


def test_a_container_that_nothing_asked_for_gpus_says_so(berth, busybox):
    berth.ok("run", "--name", "c1", busybox, "true")
    text = berth.ok("explain", "c1")
    assert text.splitlines()[0].endswith("has no GPU:")
    assert text.splitlines()[1].startswith("nothing requests one: no --gpus or --device")


def test_what_is_kept_goes_with_the_container(berth, busybox, driver_tree):
    root = driver_tree("one")
    berth.ok("--driver-root", root, "run", "--name", "c1", "--gpus", "all", busybox, "true")
    assert list(berth.root.rglob("explain"))
    berth.ok("rm", "c1")
    assert not list(berth.root.rglob("explain"))
    berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", busybox, "true")
    assert not list(berth.root.rglob("explain")) + list(berth.state.rglob("explain"))
    assert berth.fail("explain", "c1", status=1) == "berth: no such container: c1; try: berth ps --all"


def test_a_detached_container_is_explained_while_it_runs(berth, busybox, driver_tree):
    root = driver_tree("one")
    berth.ok("--driver-root", root, "run", "-d", "--rm", "--name", "c1", "--gpus", "all", busybox,
             "sleep", "100")
    assert explained(berth, root, "explain", "c1")["granted"] is True
    berth.ok("rm", "-f", "c1")


def test_a_cdi_device_is_explained(berth, busybox, work):
    directory = work / "cdi"
    directory.mkdir()
    (directory / "vendor.json").write_text(json.dumps({
        "cdiVersion": "0.5.0", "kind": "vendor.com/thing",
        "devices": [{"name": "a", "containerEdits": {
            "env": ["THING=1"], "deviceNodes": [{"path": "/dev/thing", "hostPath": "/dev/null"}]}}]}))
    told = json.loads(berth.ok("--cdi-spec-dir", directory, "run", "--explain", "--format", "json",
                               "--device", "vendor.com/thing=a", busybox))
    assert items(told)["/dev/thing"]["why"] == "CDI device vendor.com/thing=a"
    assert items(told)["/dev/thing"]["host_path"] == "/dev/null"
    assert items(told)["THING=1"]["kind"] == "variable"


@pytest.mark.profiles("root")
def test_damaged_reasons_are_one_error_line(berth, busybox, driver_tree):
    berth.ok("--driver-root", driver_tree("one"), "run", "--name", "c1", "--gpus", "all", busybox, "true")
    (file,) = berth.root.rglob("explain")
    file.write_text("nonsense\n")
    assert berth.fail("explain", "c1", status=1) == "berth: explain: line 1: no such line"
