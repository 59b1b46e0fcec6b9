# SPDX-License-Identifier: Apache-2.0
"""What is granted besides NVIDIA's GPUs: devices that variables ask for, and GPUs of other vendors."""

import json
import os

import pytest

GROUPS = ("gds", "gdrcopy", "mofed", "nvswitch", "imex")
ALL_GROUPS = [word for group in GROUPS for word in ("--group", group)]
CHANNELS = "/dev/nvidia-caps-imex-channels"
NODES = "find /dev -type c | while read -r f; do stat -c '%n %t %T' $f; done"


def table(root):
    """{path: (major, minor)} of all that the tree has."""
    with open(root / "dev/nodes", encoding="ascii") as file:
        return {words[0]: (int(words[1]), int(words[2])) for words in map(str.split, file)}


def granted(berth, root, image, *flags, script=NODES):
    """The nodes of the tree that the container has; each must have its numbers."""
    out = berth.ok("--driver-root", root, "run", "--rm", *flags, image, "sh", "-c", script)
    known, nodes = table(root), set()
    for name, major, minor in map(str.split, out.splitlines()):
        if name in known:
            assert (int(major, 16), int(minor, 16)) == known[name], name
        if name in known or name.startswith(("/dev/nvidia", "/dev/dri")):
            nodes.add(name)
    return nodes


def refused(berth, root, image, *flags):
    """The error line of a run that must not start."""
    berth.ok("run", "--rm", image, "true")  # pulls
    berth.run("--driver-root", root, "gpu", "list")  # warns
    return berth.fail("--driver-root", root, "run", "--rm", *flags, image, "true")


# ---- groups -------------------------------------------------------------------------------------

@pytest.mark.parametrize("variable,nodes", [
    ("NVIDIA_GDS=enabled", {f"/dev/nvidia-fs{n}" for n in range(3)}),
    ("NVIDIA_MOFED=enabled", {f"/dev/infiniband/{name}" for name in ("uverbs0", "uverbs1", "rdma_cm")}),
    ("NVIDIA_GDRCOPY=enabled", {"/dev/gdrdrv"}),
    ("NVIDIA_NVSWITCH=enabled", {"/dev/nvidia-nvswitchctl", "/dev/nvidia-nvswitch0"}),
    ("NVIDIA_IMEX_CHANNELS=1", {f"{CHANNELS}/channel1"}),
])
def test_a_variable_brings_its_devices_beside_the_gpu_and_no_other(berth, busybox, driver_tree, variable, nodes):
    root = driver_tree("one", *ALL_GROUPS)
    gpu = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
    assert granted(berth, root, busybox, "--gpus", "all", "-e", variable) == gpu | nodes


def test_without_a_variable_there_is_none_of_them(berth, busybox, driver_tree):
    root = driver_tree("one", *ALL_GROUPS)
    gpu = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
    assert granted(berth, root, busybox, "--gpus", "all") == gpu


def test_a_group_brings_its_files(berth, busybox, driver_tree):
    root = driver_tree("one", *ALL_GROUPS)
    out = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", "-e", "NVIDIA_GDS=enabled",
                   "-e", "NVIDIA_IMEX_CHANNELS=0", busybox, "sh", "-c",
                   "cat /etc/cufile.json /run/udev/data/b259:0 /run/nvidia-imex/README;"
                   "touch /run/udev/new 2>/dev/null || echo read-only")
    assert out.splitlines() == ["{}", "E:synthetic", "synthetic", "read-only"]


@pytest.mark.profiles("root")
def test_root_gets_a_channel_that_has_no_node_yet(berth, busybox, driver_tree):
    root = driver_tree("one", *ALL_GROUPS)
    major = table(root)[f"{CHANNELS}/channel0"][0]
    out = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", "-e", "NVIDIA_IMEX_CHANNELS=7",
                   busybox, "sh", "-c", f"cd {CHANNELS}; stat -c '%n %t %T %a' *")
    assert out == f"channel7 {major:x} 7 666\n"


@pytest.mark.profiles("user", "single_id")
def test_others_are_told_that_only_root_can_make_it(berth, busybox, driver_tree):
    root = driver_tree("one", *ALL_GROUPS)
    major = table(root)[f"{CHANNELS}/channel0"][0]
    done = berth.run("--driver-root", root, "run", "--rm", "--gpus", "all", "-e", "NVIDIA_IMEX_CHANNELS=7",
                     busybox, "true")
    assert done.returncode == 125
    line = done.stderr.splitlines()[-1]
    assert line == (f"berth: '{CHANNELS}/channel7' does not exist on this machine, and only root can make it; "
                    f"try: as root: mknod -m 666 {CHANNELS}/channel7 c {major} 7")


def test_what_the_machine_does_not_have_is_one_line(berth, busybox, driver_tree):
    line = refused(berth, driver_tree("one"), busybox, "--gpus", "all", "-e", "NVIDIA_GDRCOPY=enabled")
    assert line == ("berth: NVIDIA_GDRCOPY: this machine has no GDRCopy ('/dev/gdrdrv'); try: modprobe gdrdrv")


# ---- directories of services ----------------------------------------------------------------------

def test_the_directory_of_mps_is_a_directory_in_every_mode_with_mounts(berth, busybox, driver_tree, profile):
    root = driver_tree("one", "--numa", "1")
    service = root / "tmp/nvidia-mps"
    service.mkdir(parents=True, exist_ok=True)
    (service / "log").write_text("serving\n")
    os.chown(service, profile.uid, profile.gid)  # another user's is not believed
    for mode in ("bind", "volume", "copy"):
        out = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", "--gpu-driver", mode, busybox,
                       "sh", "-c", "cat /tmp/nvidia-mps/log 2>/dev/null || echo none")
        assert out == ("none\n" if mode == "copy" else "serving\n"), mode


@pytest.mark.parametrize("owner,seen", [("caller", True), ("root", True), ("stranger", False)])
def test_a_service_of_root_is_every_users_and_a_strangers_is_nobodys(berth, busybox, driver_tree, profile, owner, seen):
    """Root's id is hidden in an ordinary user's namespace, and a stranger's looks the same there."""
    root = driver_tree("one", "--numa", {"caller": "2", "root": "3", "stranger": "4"}[owner])
    service = root / "tmp/nvidia-mps"
    service.mkdir(parents=True, exist_ok=True)
    (service / "log").write_text("serving\n")
    os.chown(service, {"caller": profile.uid, "root": 0, "stranger": 12345}[owner], -1)
    out = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", busybox,
                   "sh", "-c", "cat /tmp/nvidia-mps/log 2>/dev/null || echo none")
    assert out == ("serving\n" if seen else "none\n")


# ---- other vendors --------------------------------------------------------------------------------

def test_each_gpu_of_a_board_is_granted_alone(berth, busybox, driver_tree):
    nodes = granted(berth, driver_tree("boards"), busybox, "--gpus", "device=1")
    assert nodes == {"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
    nodes = granted(berth, driver_tree("amd"), busybox, "--gpus", "device=3")
    assert nodes == {"/dev/kfd", "/dev/dri/card3", "/dev/dri/renderD131"}


@pytest.mark.parametrize("flag,count", [("all", 8), ("driver=amd,count=1", 1), ("2", 2)])
def test_amd_gpus_are_their_nodes_and_kfd(berth, busybox, driver_tree, flag, count):
    expected = {"/dev/kfd"}
    for n in range(count):
        expected |= {f"/dev/dri/card{n}", f"/dev/dri/renderD{128 + n}"}
    assert granted(berth, driver_tree("amd"), busybox, "--gpus", flag) == expected


def test_intel_gpus_are_their_nodes(berth, busybox, driver_tree):
    assert granted(berth, driver_tree("intel"), busybox, "--gpus", "device=1") == {
        "/dev/dri/card1", "/dev/dri/renderD129"}


def test_nothing_of_nvidia_comes_with_them(berth, busybox, driver_tree):
    out = berth.ok("--driver-root", driver_tree("amd"), "run", "--rm", "--gpus", "all", "-e",
                   "NVIDIA_REQUIRE_CUDA=cuda>=99", busybox, "sh", "-c",
                   "env | grep ^NVIDIA_; ls -d /usr/local/nvidia /dev/nvidia* 2>/dev/null; readlink"
                   " /dev/dri/by-path/pci-0000:29:00.0-render")
    assert out.splitlines() == ["NVIDIA_REQUIRE_CUDA=cuda>=99", "../renderD128"]


def test_a_partition_is_granted_without_its_siblings(berth, busybox, driver_tree):
    root = driver_tree("amd", "--partitions", "2")
    assert granted(berth, root, busybox, "--gpus", "device=1:1") == {
        "/dev/kfd", "/dev/dri/card3", "/dev/dri/renderD131"}
    line = refused(berth, root, busybox, "--gpus", "device=1")
    assert line == ("berth: --gpus device=1: the GPU is in mode CPX, its 2 partitions are granted one by one; "
                    "try: --gpus device=1:0")


@pytest.mark.profiles("root")
def test_a_node_for_a_group_brings_the_group(berth, busybox, driver_tree):
    root = driver_tree("amd", "--numa", "1")
    os.chown(root / "dev/dri/card0", 0, 44)
    run = ["--driver-root", root, "run", "--rm", "--gpus"]
    assert "44" in berth.ok(*run, "device=0", busybox, "id", "-G").split()
    assert "44" not in berth.ok(*run, "device=1", busybox, "id", "-G").split()


# ---- immutable containers ---------------------------------------------------------------------------

def test_an_immutable_container_takes_the_nodes_of_a_cdi_device_alone(berth, busybox, work):
    (work / "cargo").write_text("tea\n")
    (work / "cdi").mkdir()
    (work / "cdi/vendor.json").write_text(json.dumps({
        "cdiVersion": "0.5.0", "kind": "vendor.com/crane", "devices": [{"name": "0", "containerEdits": {
            "deviceNodes": [{"path": "/dev/crane", "hostPath": "/dev/zero"}], "env": ["CRANE=0"],
            "mounts": [{"hostPath": str(work / "cargo"), "containerPath": "/opt/cargo"}]}}]}))
    script = "stat -c '%t:%T' /dev/crane; echo $CRANE; ls /opt/cargo 2>/dev/null"
    run = ["--cdi-spec-dir", work / "cdi", "run", "--rm", "--device", "vendor.com/crane=0"]
    assert berth.ok(*run, busybox, "sh", "-c", script).splitlines() == ["1:5", "0", "/opt/cargo"]
    done = berth.run(*run, "--immutable", busybox, "sh", "-c", script)
    assert done.stdout.splitlines() == ["1:5", "0"]
    assert done.stderr.splitlines()[-1].endswith(
        "driver mode 'image': CDI devices give only nodes and variables, ignoring their mounts, links and hooks")
