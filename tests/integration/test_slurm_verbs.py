# SPDX-License-Identifier: Apache-2.0
"""`berth slurm features` and `berth slurm preflight`, of this machine with synthetic drivers and of
saved profiles. What Slurm makes of the lines is in tests/callers/test_slurm_features.py."""

import json

import pytest
from support import images

# The minors of the eight GPUs in the order of their PCI addresses.
MINORS = [2, 5, 0, 7, 1, 4, 3, 6]


@pytest.fixture
def saved(work, profile):
    """saved(GPU's member=value…) → the file of a node's profile."""
    def save(name="n7.example", driver="570.133.20", **gpu):
        path = work / f"{name}.json"
        gpus = [{"vendor": "nvidia", "model": "NVIDIA H200", "compute_capability": "9.0", **gpu}] * 8
        path.write_text(json.dumps({
            "version": 1, "name": name, "architecture": "amd64",
            "cpu": {"microarchitecture": "sapphirerapids"}, "fabric": ["infiniband"],
            "driver": {"module_version": driver} if driver else {}, "gpus": gpus if driver else []}))
        path.chmod(0o644)
        return path
    return save


def cuda_image(push):
    """For GPUs of 2018 alone."""
    return push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin"], "Labels": {"dev.berth.variant.gpu": "sm_70"}}))


def test_features_of_a_saved_profile(berth, saved):
    line = berth.ok("slurm", "features", "--profile", saved(), "--node", "n[7-8]").splitlines()
    assert len(line) == 1
    name, gres, features = line[0].split(" ")
    assert (name, gres) == ("NodeName=n[7-8]", "Gres=gpu:h200:8")
    words = features.removeprefix("Feature=").split(",")
    assert {"x86-64-v3", "sapphirerapids", "nvidia-570", "nvidia-570.133.20", "cuda-12", "sm_90", "h200",
            "infiniband"} <= set(words)


def test_the_lines_of_gres_conf_are_in_the_order_of_pci_addresses(berth, driver_tree):
    out = berth.ok("--driver-root", driver_tree("eight"), "slurm", "features", "--gres-conf", "--node", "n1")
    note, *lines = out.splitlines()
    assert note == "# GPUs of a tree made for tests"
    assert lines == [f"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia{minor}" for minor in MINORS]


def test_the_cores_beside_a_gpu_are_numbered_as_slurm_does(berth, driver_tree):
    tree = driver_tree("eight", "--node", "0=0,2", "--node", "1=1,3")
    for cpu in range(4):
        place = tree / f"sys/devices/system/cpu/cpu{cpu}/topology"
        place.mkdir(parents=True, exist_ok=True)
        (place / "thread_siblings_list").write_text(f"{cpu}\n")
        (place / "core_siblings_list").write_text("0,2\n" if cpu % 2 == 0 else "1,3\n")
    told = json.loads(berth.ok("--driver-root", tree, "slurm", "features", "--gres-conf", "--format", "json"))
    assert [one["cores"] for one in told["gres_conf"]] == ["0-1"] * 4 + ["2-3"] * 4


def test_what_cannot_be_said_is_refused(berth, saved):
    line = berth.fail("slurm", "features", "--profile", saved(), "--gres-conf", status=1)
    assert line == ("berth: print the lines of gres.conf: a saved profile does not contain the device nodes; "
                    "try: berth slurm features --gres-conf on the node itself")
    line = berth.fail("slurm", "features", "--profile", saved(), "--node", "a b", status=1)
    assert line == ("berth: --node: expected a name of slurm.conf, got 'a b'; try: --node n1, or --node "
                    "'n[1-8]' for identical nodes")


def preflight(berth, *words, on=()):
    done = berth.run(*on, "slurm", "preflight", "--format", "json", *words)
    assert done.stdout, done.stderr
    return done.returncode, {one["id"]: one for one in json.loads(done.stdout)["checks"]}


def test_an_image_for_gpus_on_a_node_without_any_is_a_warning(berth, push, saved):
    status, checks = preflight(berth, "--profile", saved(driver=None), cuda_image(push))
    assert (status, checks["image.fit"]["status"]) == (0, "warning")
    assert checks["image.fit"]["cause"] == "its code for GPUs stays unused: this node has none"
    assert set(checks) == {"image.fit"}  # of another machine nothing else is known


def test_unfit_gpus_are_a_refusal(berth, push, saved):
    status, checks = preflight(berth, "--profile", saved(), cuda_image(push))
    assert (status, checks["image.fit"]["status"]) == (12, "problem")
    assert "the GPU stays unused: sm_70" in checks["image.fit"]["cause"]
    fitting = saved(name="old", model="Tesla V100-SXM2-32GB", compute_capability="7.0")
    status, checks = preflight(berth, "--profile", fitting, cuda_image(push))
    assert (status, checks["image.fit"]["status"]) == (0, "ok")


def test_fewer_gpus_than_the_job_asks_for_are_a_refusal(berth, saved):
    status, checks = preflight(berth, "--profile", saved(), "--gpus", "9")
    assert (status, checks["image.gpus"]["cause"]) == (12, "the job asks for 9, this node has 8 GPUs")
    assert preflight(berth, "--profile", saved(), "--gpus", "8")[0] == 0
    assert preflight(berth, "--profile", saved(driver=None), "--gpus", "all")[0] == 12
    assert preflight(berth, "--profile", saved(driver=None), "--gpus", "none")[0] == 0


def test_of_this_node_what_training_needs_is_told(berth, driver_tree):
    tree = driver_tree("one", "--group", "mofed", "--group", "gdrcopy")
    status, checks = preflight(berth, on=("--driver-root", tree))
    assert status == 0
    assert checks["node.rdma-devices"]["cause"] == "2 devices"
    assert checks["node.gdrcopy"]["status"] == "ok"
    assert checks["node.memlock"]["status"] in ("ok", "warning")
    assert checks["node.shared-memory"]["status"] in ("ok", "warning")
