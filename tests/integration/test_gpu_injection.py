# SPDX-License-Identifier: Apache-2.0
"""GPUs and driver files in containers, with synthetic driver trees: nodes, libraries as the real
loader finds them, and the lines that say why not."""

import functools
import json
import os
import re
import subprocess

import pytest

from support import images, loader_images

VERSION = "570.133.20"
LIBRARIES = "/usr/local/nvidia/lib64"
SYNTHETIC = "the driver tree is synthetic: these are not real GPUs"


@functools.cache
def glibc_layer(tmp):
    """A program that prints where dlopen() finds its arguments, with the host's glibc, a library in
    a directory that only the image's own loader cache names, and that cache."""
    library = f"{tmp}/libharbour.so.1"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libharbour.so.1", "-o", library, "-xc",
                    "/dev/null"], check=True)
    root = f"{tmp}/root"
    os.makedirs(f"{root}/opt/harbour")
    os.makedirs(f"{root}/etc")
    subprocess.run(["cp", library, f"{root}/opt/harbour/"], check=True)
    with open(f"{root}/etc/ld.so.conf", "w", encoding="ascii") as file:
        file.write("/opt/harbour\n")
    subprocess.run(["/sbin/ldconfig", "-X", "-r", root], check=True)
    entries = [images.directory(path) for path in ("opt", "opt/harbour", "lib64")]
    program, loaded = loader_images.probe()
    entries.append(images.file("probe", program, mode=0o755))
    for path, real in loaded:
        with open(real, "rb") as file:
            entries.append(images.file(path.lstrip("/"), file.read(), mode=0o755))
    for path in ("opt/harbour/libharbour.so.1", "etc/ld.so.cache"):
        with open(f"{root}/{path}", "rb") as file:
            entries.append(images.file(path, file.read()))
    return images.layer(entries)


@pytest.fixture(scope="session")
def glibc_image(registry, tmp_path_factory):
    layer = glibc_layer(tmp_path_factory.mktemp("glibc"))
    images.build([images.busybox_layer(), layer]).push(registry, "test/glibc")
    return f"{registry.address}/test/glibc:latest"


def devices(listing):
    """{name: (type, major, minor)} of `stat -c '%n %F %t %T'` lines."""
    out = {}
    for line in listing.splitlines():
        name, kind, major, minor = re.fullmatch(r"(\S+) (.+) (\w+) (\w+)", line).groups()
        out[name] = (kind, int(major, 16), int(minor, 16))
    return out


def nvidia_nodes(berth, root, gpus, image):
    script = "for f in /dev/nvidia*; do [ -c $f ] && stat -c '%n %F %t %T' $f; done; true"
    return devices(berth.ok("--driver-root", root, "run", "--rm", "--gpus", gpus, image, "sh", "-c", script))


def test_a_container_gets_the_nodes_that_were_granted_and_no_other(berth, busybox, driver_tree):
    root = driver_tree("eight")
    table = {line.split()[0]: tuple(int(n) for n in line.split()[1:3])
             for line in open(root / "dev/nodes", encoding="ascii")}
    nodes = nvidia_nodes(berth, root, "device=1,3", busybox)
    # The second GPU has minor 5, the fourth 7.
    assert set(nodes) == {"/dev/nvidia5", "/dev/nvidia7", "/dev/nvidiactl", "/dev/nvidia-uvm",
                          "/dev/nvidia-uvm-tools"}
    for path, (kind, major, minor) in nodes.items():
        assert (kind, major, minor) == ("character special file", *table[path]), path


def test_all_gives_eight_gpus_in_one_line(berth, busybox, driver_tree):
    nodes = nvidia_nodes(berth, driver_tree("eight"), "all", busybox)
    assert {f"/dev/nvidia{n}" for n in range(8)} <= set(nodes)


def test_without_the_flag_an_image_gets_no_gpu_whatever_its_variables_say(berth, push, driver_tree):
    greedy = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all"]}))
    out = berth.ok("--driver-root", driver_tree("eight"), "run", "--rm", greedy, "sh", "-c",
                   "ls -d /dev/nvidia* /usr/local/nvidia 2>&1; true")
    assert out.splitlines() == ["ls: /dev/nvidia*: No such file or directory",
                                "ls: /usr/local/nvidia: No such file or directory"]


def test_the_loader_finds_the_driver_and_the_images_own_libraries(berth, glibc_image, driver_tree):
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", glibc_image, "/probe",
                   "libcuda.so.1", "libnvidia-ml.so.1", "libharbour.so.1", "libGLX_nvidia.so.0")
    assert out.splitlines()[:3] == [f"libcuda.so.1 => {LIBRARIES}/libcuda.so.1",
                                    f"libnvidia-ml.so.1 => {LIBRARIES}/libnvidia-ml.so.1",
                                    "libharbour.so.1 => /opt/harbour/libharbour.so.1"]
    assert "libGLX_nvidia.so.0: cannot open shared object file" in out  # graphics was not asked for


def test_graphics_brings_its_libraries_and_files(berth, glibc_image, driver_tree):
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus",
                   "all,capabilities=graphics", glibc_image, "sh", "-c",
                   "/probe libGLX_nvidia.so.0 libcuda.so.1; cat /etc/vulkan/icd.d/nvidia_icd.json")
    assert f"libGLX_nvidia.so.0 => {LIBRARIES}/libGLX_nvidia.so.0" in out
    assert "libcuda.so.1: cannot open shared object file" in out
    assert '{"synthetic": "etc/vulkan/icd.d/nvidia_icd.json"}' in out


def test_glibcs_own_tool_reads_the_cache_that_is_bound(berth, glibc_image, driver_tree, work):
    out = work / "out"
    out.mkdir()
    out.chmod(0o777)
    berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", "-v", f"{out}:/out", glibc_image,
             "cp", "/etc/ld.so.cache", "/out/cache")
    shown = subprocess.run(["/sbin/ldconfig", "-p", "-C", out / "cache"], check=True, capture_output=True,
                           text=True).stdout
    assert f"libcuda.so.1 (libc6,x86-64) => {LIBRARIES}/libcuda.so.1" in shown
    assert "libharbour.so.1 (libc6,x86-64) => /opt/harbour/libharbour.so.1" in shown


def test_the_bound_library_is_the_hosts_and_cannot_be_changed(berth, busybox, driver_tree):
    root = driver_tree("one")
    library = f"{LIBRARIES}/libcuda.so.{VERSION}"
    out = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "all", busybox, "sh", "-c",
                   f"sha256sum {library}; echo x 2>/dev/null >{library} || echo refused;"
                   f" rm {library} 2>/dev/null || echo kept; touch {LIBRARIES}/new 2>/dev/null || echo read-only;"
                   "nvidia-smi; readlink /usr/local/nvidia/bin/nvidia-smi")
    host = subprocess.run(["sha256sum", root / f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"], check=True,
                          capture_output=True, text=True).stdout.split()[0]
    assert out.splitlines() == [f"{host}  {library}", "refused", "kept", "read-only",
                                f"synthetic nvidia-smi {VERSION}", "/usr/bin/nvidia-smi"]


def test_a_read_only_container_gets_its_gpu(berth, glibc_image, driver_tree):
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--read-only", "--gpus", "all", glibc_image,
                   "/probe", "libcuda.so.1")
    assert out == f"libcuda.so.1 => {LIBRARIES}/libcuda.so.1\n"


def test_an_image_without_a_loader_cache_gets_one(berth, registry, push, glibc_image, driver_tree, tmp_path_factory):
    layer = glibc_layer(tmp_path_factory.mktemp("bare"))
    bare = push(images.build([layer, images.layer([images.whiteout("etc/ld.so.cache")])]))
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", bare, "/probe",
                   "libcuda.so.1", "libharbour.so.1")
    assert out.splitlines()[0] == f"libcuda.so.1 => {LIBRARIES}/libcuda.so.1"
    assert "libharbour.so.1: cannot open shared object file" in out  # its cache was deleted by the image


def test_a_slice_gets_its_parents_node_and_its_own_capabilities(berth, busybox, driver_tree):
    out = berth.ok("--driver-root", driver_tree("mig"), "run", "--rm", "--gpus", "device=0:1", busybox, "sh", "-c",
                   "ls /dev/nvidia-caps; ls /dev/nvidia0; echo $NVIDIA_VISIBLE_DEVICES")
    assert out.splitlines() == ["nvidia-cap75", "nvidia-cap76", "/dev/nvidia0", "0:1"]


def test_gpu_list_tells_every_gpu_and_that_it_is_synthetic(berth, driver_tree):
    root = driver_tree("eight")
    told = json.loads(berth.ok("--driver-root", root, "gpu", "list", "--format", "json"))
    assert told["synthetic"] is True
    assert [gpu["minor"] for gpu in told["gpus"]] == [2, 5, 0, 7, 1, 4, 3, 6]
    assert told["gpus"][0]["pci_address"] == "0000:1b:00.0"
    assert told["driver"]["module_version"] == VERSION
    table = berth.ok("--driver-root", root, "gpu", "list")
    assert len(table.splitlines()) == 10
    assert table.splitlines()[-1] == f"synthetic: read from '{root}', made for tests"


def test_a_run_with_a_synthetic_driver_says_so(berth, busybox, driver_tree):
    done = berth.run("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", busybox, "true")
    assert done.returncode == 0
    assert SYNTHETIC in done.stderr


def refused(berth, listing, reference, root, *flags):
    """The error line of a run that must not start, and must leave the store as it was."""
    berth.ok("run", "--rm", reference, "true")  # what a first run makes is there before
    berth.run("--driver-root", root, "gpu", "list")
    before = listing()
    line = berth.fail("--driver-root", root, "run", "--rm", *flags, reference, "true")
    assert listing() == before
    return line


def test_more_gpus_than_there_are_is_one_line(berth, listing, busybox, driver_tree):
    line = refused(berth, listing, busybox, driver_tree("eight"), "--gpus", "9")
    assert line == "berth: --gpus 9: this machine has 8 GPUs; try: berth gpu list"


def test_no_driver_is_one_line_and_an_empty_list(berth, listing, busybox, work):
    root = work / "no-driver"
    root.mkdir()
    (root / "SYNTHETIC").write_text("")
    line = refused(berth, listing, busybox, root, "--gpus", "all")
    assert line == "berth: no NVIDIA driver is loaded on this machine; try: berth doctor gpu"
    done = berth.run("--driver-root", root, "gpu", "list")
    assert done.returncode == 0
    assert "no NVIDIA driver was found on this machine" in done.stderr
    assert json.loads(berth.ok("--driver-root", root, "gpu", "list", "--format", "json"))["gpus"] == []


def test_driver_files_of_another_version_than_the_module_are_one_line(berth, listing, busybox, driver_tree):
    root = driver_tree("one", "--library-version", "535.54.03")
    line = refused(berth, listing, busybox, root, "--gpus", "all")
    assert line == ("berth: driver files are 535.54.03 but the kernel module is 570.133.20; "
                    "try: reboot or reload the module")


def test_a_requirement_that_fails_is_one_line(berth, listing, push, driver_tree):
    demanding = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=13.0"]}))
    line = refused(berth, listing, demanding, driver_tree("one"), "--gpus", "all")
    assert line == ("berth: the image requires 'cuda>=13.0' (NVIDIA_REQUIRE_CUDA), GPU 0 has driver 570.133.20 with "
                    "CUDA 12.8; try: another image, or -e NVIDIA_DISABLE_REQUIRE=1")


def test_the_users_variables_overrule_the_images(berth, push, driver_tree):
    demanding = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=13.0", "NVIDIA_DRIVER_CAPABILITIES=utility"]}))
    show = ("sh", "-c", "echo $NVIDIA_DRIVER_CAPABILITIES")
    given = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all",
                     "-e", "NVIDIA_DISABLE_REQUIRE=1", demanding, *show)
    assert given == "utility\n"
    given = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all",
                     "-e", "NVIDIA_DISABLE_REQUIRE=1", "-e", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                     demanding, *show)
    assert given == "compute,utility\n"
    none = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "-e", "NVIDIA_VISIBLE_DEVICES=all",
                    "-e", "NVIDIA_DISABLE_REQUIRE=1", demanding, "ls", "/dev")
    assert "nvidia" not in none


def test_an_image_cannot_lead_a_driver_file_to_the_host(berth, push, driver_tree, work):
    """Links in the places where driver files go must end inside of the container."""
    outside = work / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    trap = push(images.build([images.busybox_layer(), images.layer([
        images.symlink("usr/local", str(outside)), images.symlink("etc/ld.so.cache", str(outside / "cache")),
        images.symlink("usr/bin/nvidia-smi", str(outside / "smi"))])]))
    berth.run("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", trap, "true")
    assert os.listdir(outside) == []
