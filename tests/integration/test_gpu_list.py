# SPDX-License-Identifier: Apache-2.0
"""`berth gpu list` of every kind of machine, and what happens when a machine changes."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

DRIVER_TREE = pathlib.Path(__file__).resolve().parent.parent / "support/driver_tree.py"
LAYOUTS = ["multiarch", "lib64", "current", "prefix", "local", "nixos"]
VERSION = "570.133.20"


def listed(berth, root, *flags):
    return json.loads(berth.ok("--driver-root", root, "gpu", "list", "--format", "json", *flags))


def names(inventory):
    return {os.path.basename(file["path"]) for file in inventory["files"]}


@pytest.fixture
def own_tree(work):
    """own_tree(kind, option…) → a tree that the test may change."""
    made = []

    def make(kind, *options):
        root = work / f"driver-{len(made)}"
        made.append(root)
        subprocess.run([sys.executable, DRIVER_TREE, kind, root, *options],
                       check=True, capture_output=True)
        return root
    return make


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_whole_driver(berth, driver_tree, layout):
    found = listed(berth, driver_tree("one", "--layout", layout))
    assert found["driver"]["library_version"] == VERSION
    assert found["problems"] == []
    assert {f"libcuda.so.{VERSION}", f"libnvidia-ml.so.{VERSION}", "nvidia-smi", "nvidia.icd",
            "nvidia_drv.so", "gsp_ga10x.bin"} <= names(found)
    assert not {f"libEGL.so.{VERSION}", "nvidia-modprobe", "libcuda.so.390.157"} & names(found)


@pytest.mark.parametrize("kind, options, count", [
    ("one", [], 1), ("eight", [], 8), ("mig", [], 1), ("boards", [], 4), ("amd", [], 8),
    ("amd", ["--partitions", "4"], 8), ("intel", [], 2)])
def test_every_kind_of_machine_lists_its_gpus(berth, driver_tree, kind, options, count):
    root = driver_tree(kind, *options)
    found = listed(berth, root)
    assert [gpu["index"] for gpu in found["gpus"]] == list(range(count))
    vendor = kind if kind in ("amd", "intel") else "nvidia"
    assert {gpu["vendor"] for gpu in found["gpus"]} == {vendor}
    rows = count + sum(len(gpu["mig"]) + len(gpu["partitions"]) for gpu in found["gpus"])
    assert len(berth.ok("--driver-root", root, "gpu", "list").splitlines()) == rows + 2


def test_a_gpu_without_an_id_is_named_by_its_address(berth, driver_tree):
    out = berth.ok("--driver-root", driver_tree("intel"), "gpu", "list", "-q")
    assert out.split() == ["0000:3a:00.0", "0000:9a:00.0"]


def test_a_numa_node_that_nobody_knows_is_null_and_no_column(berth, driver_tree):
    root = driver_tree("eight", "--numa", "-1")
    assert {gpu["numa_node"] for gpu in listed(berth, root)["gpus"]} == {None}
    titles = berth.ok("--driver-root", root, "gpu", "list").splitlines()[0]
    assert "NUMA" not in titles and "NVLINK" not in titles and "BOARD" not in titles


def test_boards_and_links_have_columns_where_there_are_some(berth, driver_tree):
    table = berth.ok("--driver-root", driver_tree("amd"), "gpu", "list").splitlines()
    titles = table[0].split("   ")
    assert {"NUMA", "NVLINK", "BOARD"} <= {title.strip() for title in titles}
    board, link = table[0].index("BOARD"), table[0].index("NVLINK")
    assert [row[board:].split()[0] for row in table[1:9]] == list("11223344")
    assert table[1][link:].split()[0] == "1-2"


@pytest.mark.profiles("root")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("kind", ["eight", "mig", "boards", "amd", "intel"])
def test_the_table_fits_the_terminal(berth, driver_tree, kind, columns):
    root = driver_tree(kind)
    terminal = berth.terminal("--driver-root", root, "gpu", "list", columns=columns)
    terminal.wait()
    lines = [line for line in terminal.output.splitlines()
             if not line.startswith(("berth: ", "synthetic: "))]
    assert max(len(line) for line in lines) <= columns
    assert lines[0].split()[:2] == ["INDEX", "UUID"] and "MODEL" in lines[0]


def test_devices_beside_the_gpus_are_groups(berth, driver_tree):
    groups = ["gdrcopy", "gds", "imex", "mofed", "nvswitch"]
    options = [word for group in groups for word in ("--group", group)]
    found = listed(berth, driver_tree("eight", *options))["groups"]
    assert sorted(group["name"] for group in found) == groups
    assert all(group["nodes"] for group in found)


# ---- machines that change -----------------------------------------------------------------------

def test_an_upgrade_on_disk_is_noticed_and_said(berth, own_tree):
    root = own_tree("one")
    assert listed(berth, root)["problems"] == []
    libraries = root / "usr/lib/x86_64-linux-gnu"
    for path in list(libraries.glob(f"*.so.{VERSION}")):
        path.rename(path.with_name(path.name.replace(VERSION, "580.65.06")))
    found = listed(berth, root)
    assert found["driver"]["library_version"] == "580.65.06"
    first, *others = found["problems"]
    assert first == f"driver files are 580.65.06 but the kernel module is {VERSION}; try: reboot or reload the module"
    # The programs and the 32-bit libraries are still the old ones.
    assert others[:2] == [f"'{root}/usr/bin/{name}' is of driver {VERSION}, the libraries are of 580.65.06"
                          for name in ("nvidia-smi", "nvidia-cuda-mps-control")]
    others = others[2:]
    assert len(others) == 2 and all(f": of driver {VERSION}, and its other files are of 580.65.06, ignoring it; "
                                    "try: install the driver again" in line for line in others), others


def test_a_reloaded_module_and_a_new_slice_are_noticed(berth, own_tree):
    root = own_tree("mig", "--caps-major", "240", "--no-mknod")
    first = listed(berth, root)["gpus"][0]
    assert len(first["mig"]) == 7 and first["mig"][0]["nodes"][0]["major"] == 240
    devices = root / "proc/devices"
    devices.write_text(devices.read_text().replace("240 nvidia-caps\n", "238 nvidia-caps\n"))
    assert listed(berth, root)["gpus"][0]["mig"][0]["nodes"][0]["major"] == 238
    shutil.rmtree(root / "proc/driver/nvidia/capabilities/gpu0/mig/gi7")
    assert len(listed(berth, root)["gpus"][0]["mig"]) == 6


def test_a_driver_that_was_removed_since_is_one_line(berth, busybox, own_tree):
    root = own_tree("one")
    listed(berth, root)
    shutil.rmtree(root / "usr/lib")
    line = berth.fail("--driver-root", root, "run", "--rm", "--gpus", "all", busybox, "true")
    assert line.startswith(f"berth: the kernel module is {VERSION} but no driver files were found")


def test_a_module_that_was_removed_since_is_one_line(berth, busybox, own_tree):
    root = own_tree("one")
    listed(berth, root)
    shutil.rmtree(root / "proc/driver")
    shutil.rmtree(root / "sys/module/nvidia")
    (root / "proc/devices").write_text("Character devices:\n  1 mem\n\nBlock devices:\n")
    line = berth.fail("--driver-root", root, "run", "--rm", "--gpus", "all", busybox, "true")
    assert line == "berth: no NVIDIA driver is loaded on this machine; try: modprobe nvidia"


def test_a_cache_that_others_may_write_is_not_believed(berth, own_tree):
    root = own_tree("one")
    listed(berth, root)
    cache, = (path for path in (berth.state / "gpu").glob("inventory*.json")
              if str(root).rsplit("/", 1)[-1].replace("-", "_2d") in path.name)
    text = cache.read_text()
    assert "NVIDIA H100" in text
    cache.write_text(text.replace("NVIDIA H100", "Somebody's"))
    assert "Somebody's" in listed(berth, root)["gpus"][0]["model"]
    cache.chmod(0o666)
    assert "NVIDIA H100" in listed(berth, root)["gpus"][0]["model"]
    assert cache.stat().st_mode & 0o777 == 0o600


def test_loops_fifos_and_links_in_a_driver_root_are_survived(berth, own_tree):
    root = own_tree("one")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    opencl = libraries / f"libnvidia-opencl.so.{VERSION}"
    opencl.unlink()
    os.mkfifo(opencl)
    (root / "usr/lib64").mkdir()
    (root / f"usr/lib64/libcuda.so.{VERSION}").symlink_to(f"libcuda.so.{VERSION}")
    (root / "usr/lib64/vdpau").symlink_to("vdpau")
    smi = root / "usr/bin/nvidia-smi"
    smi.unlink()
    smi.symlink_to("../../../../../../../../../bin/sh")
    (root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf\ninclude ld.so.conf.d/*.conf\n")
    found = listed(berth, root)
    assert f"libcuda.so.{VERSION}" in names(found)
    assert str(opencl) not in {file["path"] for file in found["files"]}
    assert not {"nvidia-smi", "sh"} & names(found)


@pytest.mark.profiles("root")
def test_what_the_policy_adds_is_found_and_counts_for_the_cache(berth, own_tree, work):
    root = own_tree("one", "--libdir", "srv/driver", "--cache", "none")
    (root / "etc/ld.so.conf.d/nvidia.conf").unlink()
    (root / "etc/site.json").write_text("{}\n")
    config = work / "config"
    config.mkdir()
    flags = ["--config-dir", config, "--driver-root", root, "gpu", "list", "--format", "json"]
    assert json.loads(berth.ok(*flags))["driver"]["library_version"] != VERSION
    (config / "policy.toml").write_text(
        '[gpu]\nlibrary-directories = ["/srv/driver"]\nfiles = ["/etc/site.json"]\n')
    berth.ok("--config-dir", config, "policy", "apply")
    found = json.loads(berth.ok(*flags))
    assert found["driver"]["library_version"] == VERSION
    assert "site.json" in names(found)


@pytest.mark.profiles("user", "single_id")
def test_a_driver_root_that_may_not_be_entered_is_named(berth, driver_tree):
    root = driver_tree("one", "--numa", "6")
    os.chmod(root, 0o700)
    line = berth.fail("--driver-root", root, "gpu", "list", status=1)
    os.chmod(root, 0o755)
    assert line == f"berth: cannot read the driver root '{root}': look up 'SYNTHETIC': Permission denied"


def test_who_may_not_open_a_node_is_warned(berth, busybox, driver_tree, profile):
    root = driver_tree("one", "--numa", "7")
    berth.ok("run", "--rm", busybox, "true")  # pulls
    os.chmod(root / "dev/nvidia0", 0o600)
    done = berth.run("--driver-root", root, "run", "--rm", "--gpus", "all", busybox, "true")
    warnings = [line for line in done.stderr.splitlines() if "may not open" in line]
    assert done.returncode == 0
    assert warnings == ([] if profile.kind == "root" else [
        f"berth: warning: this user may not open '{root}/dev/nvidia0', but it is given to the container; see "
        "'berth doctor gpu'"])


@pytest.mark.profiles("root")
def test_a_template_takes_the_columns_one_by_one(berth, driver_tree):
    root = driver_tree("mig")
    gpus = listed(berth, root)["gpus"]
    wanted = [(str(gpu["index"]), gpu["uuid"]) for gpu in gpus]
    done = berth.run("--driver-root", root, "gpu", "list", "--format", "{{.Index}} {{.UUID}}")
    shown = [tuple(line.split()) for line in done.stdout.splitlines()]
    assert [row for row in shown if ":" not in row[0]] == wanted
    assert any(":" in row[0] for row in shown)  # a slice
    assert "synthetic" in done.stderr
    table = berth.ok("--driver-root", root, "gpu", "list", "--format", "table {{.Model}}\t{{.HeldBy}}")
    assert table.splitlines()[0].split("  ")[0] == "MODEL"
    line = berth.fail("--driver-root", root, "gpu", "list", "--format", "{{.Serial}}", status=1)
    assert "unknown field 'Serial'" in line
