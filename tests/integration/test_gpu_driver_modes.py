# SPDX-License-Identifier: Apache-2.0
"""The ways in which a driver's files come into a container, and images that bring their own."""

import json
import os
import subprocess

import pytest

from integration.test_gpu_injection import LIBRARIES, VERSION, glibc_layer
from support import images
from support.synthetic_elf import elf, note

MODES = ("bind", "volume", "copy")
OTHER_NODE = ("--libdir", "usr/lib64", "--version", "550.54.15")

# Every path of the root with its type, mode and content, but for what is the kernel's or the engine's.
DIGEST = r"""
find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o -print | sort | while read -r f; do
  case $f in /etc/hosts|/etc/hostname|/etc/resolv.conf) continue;; esac
  stat -c '%n %f' "$f"
  if [ -L "$f" ]; then readlink "$f"; elif [ -f "$f" ]; then sha256sum "$f"; fi
done
"""


@pytest.fixture(scope="session")
def glibc_image(registry, tmp_path_factory):
    layer = glibc_layer(tmp_path_factory.mktemp("glibc"))
    images.build([images.busybox_layer(), layer]).push(registry, "test/glibc-modes")
    return f"{registry.address}/test/glibc-modes:latest"


def compat_note(version, drivers):
    return note("NVIDIA Corporation", 1, json.dumps(
        {"Format": 1, "CUDA Version": version, "Driver": drivers, "Device": [1]}).encode())


def libcuda(section=None, content=b""):
    return elf(62, 64, "libcuda.so.1", [], section, content)


def compat_layer(drivers=(535, 550, 570)):
    base = "usr/local/cuda/compat"
    library = libcuda(".note.cuda.fwd_compatibility", compat_note("12.9", list(drivers)))
    return images.layer([
        *[images.directory(path) for path in ("usr", "usr/local", "usr/local/cuda", base)],
        images.file(f"{base}/libcuda.so.575.57.08", library),
        images.symlink(f"{base}/libcuda.so.1", "libcuda.so.575.57.08")])


def gpu_run(berth, tree, image, *words, flags=()):
    return berth.ok("--driver-root", tree, "run", "--rm", "--gpus", "all", *flags, image, *words)


def refused(berth, tree, image, *flags):
    """The error line of a run that must not start."""
    berth.ok("run", "--rm", image, "true")  # pulls
    berth.run("--driver-root", tree, "gpu", "list")  # warns
    return berth.fail("--driver-root", tree, "run", "--rm", "--gpus", "all", *flags, image, "true")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_the_loader_finds_the_driver_in_every_mode(berth, glibc_image, driver_tree, mode, read_only):
    out = gpu_run(berth, driver_tree("one"), glibc_image, "/probe", "libcuda.so.1", "libnvidia-ml.so.1",
                  "libharbour.so.1", flags=("--gpu-driver", mode, *read_only))
    assert out.splitlines() == [f"libcuda.so.1 => {LIBRARIES}/libcuda.so.1",
                                f"libnvidia-ml.so.1 => {LIBRARIES}/libnvidia-ml.so.1",
                                "libharbour.so.1 => /opt/harbour/libharbour.so.1"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["/usr/local", "/usr/local/nvidia", "/usr/local/nvidia/lib64"])
@pytest.mark.parametrize("access", ["ro", "rw"])
def test_a_mount_of_the_users_in_the_drivers_place_moves_the_driver(berth, glibc_image, driver_tree, work, mode,
                                                                    where, access):
    mine = berth.account.own(work / "mine")
    (mine / "file").write_text("mine")
    out = gpu_run(berth, driver_tree("one"), glibc_image, "sh", "-c",
                  f"cat {where}/file; echo; /probe libcuda.so.1 libcuda.so libharbour.so.1; nvidia-smi",
                  flags=("--gpu-driver", mode, "-v", f"{mine}:{where}:{access}"))
    lines = out.splitlines()
    assert lines[0] == "mine" and lines[1] == "libcuda.so.1 => /.berth/nvidia/lib64/libcuda.so.1", out
    assert " => /.berth/nvidia/lib64/libcuda.so" in lines[2]
    assert lines[3:] == ["libharbour.so.1 => /opt/harbour/libharbour.so.1", f"synthetic nvidia-smi {VERSION}"]
    assert os.listdir(mine) == ["file"]


@pytest.mark.parametrize("mode", MODES)
def test_a_mount_over_the_place_of_programs_is_told_and_nothing_is_made_in_it(berth, glibc_image, driver_tree, work,
                                                                            mode):
    mine = berth.account.own(work / "mine")
    done = berth.run("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", "--gpu-driver", mode,
                     "-v", f"{mine}:/usr", glibc_image, "/bin/sh", "-c",
                     "/probe libcuda.so.1; /.berth/nvidia/bin/nvidia-smi")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-2:] == ["libcuda.so.1 => /.berth/nvidia/lib64/libcuda.so.1",
                                             f"synthetic nvidia-smi {VERSION}"]
    assert "the driver's programs are in '/.berth/nvidia/bin'" in done.stderr
    assert os.listdir(mine) == []


def test_a_mount_in_every_place_of_the_driver_is_one_line(berth, glibc_image, driver_tree, work):
    mine = berth.account.own(work / "mine")
    line = refused(berth, driver_tree("one"), glibc_image, "-v", f"{mine}:/usr/local", "-v", f"{mine}:/.berth")
    assert "no directory for the driver: '/usr/local/nvidia' and '/.berth/nvidia' are mounted" in line


def test_a_volume_is_one_mount_with_programs_and_libraries(berth, busybox, driver_tree):
    out = gpu_run(berth, driver_tree("one"), busybox, "sh", "-c",
                  "ls /usr/local/nvidia; /usr/local/nvidia/bin/nvidia-smi; grep -c ' /usr/local/nvidia' /proc/mounts;"
                  "touch /usr/local/nvidia/x 2>/dev/null || echo read-only", flags=("--gpu-driver", "volume"))
    assert out.splitlines() == ["bin", "lib64", f"synthetic nvidia-smi {VERSION}", "1", "read-only"]
    assert os.listdir(berth.root / "driver-volumes") == [f"nvidia_driver_{VERSION}"]


def image_with_its_own(push, program, *entries):
    """An image with its own nvidia-smi: a file, a link to one, or a link to nothing."""
    made = {"file": [images.file("usr/bin/nvidia-smi", "#!/bin/sh\necho the image\n", mode=0o755)],
            "link": [images.file("opt/smi", "#!/bin/sh\necho the image\n", mode=0o755),
                     images.symlink("usr/bin/nvidia-smi", "/opt/smi")],
            "dangling": [images.symlink("usr/bin/nvidia-smi", "/opt/none/smi")], "": []}[program]
    return push(images.build([images.busybox_layer(), images.layer([
        images.directory("opt"), images.directory("usr"), images.directory("usr/bin"), *made, *entries])]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("own", ["file", "link", "dangling"])
def test_the_images_own_program_does_not_win(berth, push, driver_tree, mode, own):
    image = image_with_its_own(push, own)
    for path in ("/usr/bin:/bin", "/usr/local/nvidia/bin:/bin"):
        assert gpu_run(berth, driver_tree("one"), image, "nvidia-smi",
                       flags=("--gpu-driver", mode, "-e", f"PATH={path}")) == f"synthetic nvidia-smi {VERSION}\n"


GBM = "nvidia-drm_gbm.so"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_libgbm_finds_the_drivers_backend_and_the_images_own(berth, push, driver_tree, mode, read_only):
    """In the directory of each distribution; links of the image between them stay links."""
    image = image_with_its_own(push, "", images.directory("usr/lib"), images.directory("usr/lib/gbm"),
                               images.file("usr/lib/gbm/dri_gbm.so", "the image's"),
                               images.symlink(f"usr/lib/gbm/{GBM}", "../libnvidia-allocator.so.1"),
                               images.symlink("usr/lib64", "lib"))
    tree = driver_tree("one")
    size = os.path.getsize(tree / f"usr/lib/x86_64-linux-gnu/libnvidia-allocator.so.{VERSION}")
    out = berth.ok("--driver-root", tree, "run", "--rm", "--gpus", 'all,"capabilities=graphics"', "--gpu-driver", mode,
                   *read_only, image, "sh", "-c", f"cd /usr; for d in lib lib64 lib/x86_64-linux-gnu; do "
                   f"cat $d/gbm/{GBM} | wc -c; done; readlink lib64; cat lib64/gbm/dri_gbm.so")
    assert out.split() == [str(size)] * 3 + ["lib", "the", "image's"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_every_name_of_a_library_is_found(berth, glibc_image, driver_tree, mode, read_only):
    """Those of the files and of the links in the driver's directory."""
    script = f"cd {LIBRARIES}; for name in *.so*; do /probe $name; done"
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", 'all,"capabilities=all"',
                   "--gpu-driver", mode, *read_only, glibc_image, "sh", "-c", script)
    found = dict(line.split(" => ") for line in out.splitlines())
    assert {"libGLX_indirect.so.0", "libcuda.so", "libcuda.so.1", f"libcuda.so.{VERSION}"} <= set(found)
    assert {name: path for name, path in found.items() if not path.startswith(LIBRARIES)} == {}


def test_a_container_that_has_ended_keeps_its_volume_until_it_is_removed(berth, busybox, driver_tree):
    def start(tree, *flags):
        berth.ok("--driver-root", tree, "run", *flags, "--gpus", "all", "--gpu-driver", "volume", busybox, "true")
    versions = [driver_tree("one"), driver_tree("one", *OTHER_NODE), driver_tree("one", "--version", "560.35.03")]
    start(versions[0], "--name", "old")
    start(versions[1], "--rm")
    volumes = set(os.listdir(berth.root / "driver-volumes"))
    assert volumes == {f"nvidia_driver_{VERSION}", "nvidia_driver_550.54.15"}
    berth.ok("rm", "old")
    start(versions[2], "--rm")
    assert os.listdir(berth.root / "driver-volumes") == ["nvidia_driver_560.35.03"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_a_path_leads_to_the_drivers_programs_in_every_mode(berth, busybox, driver_tree, mode, read_only):
    out = gpu_run(berth, driver_tree("one"), busybox, "nvidia-smi",
                  flags=("--gpu-driver", mode, "-e", "PATH=/usr/bin:/bin", *read_only))
    assert out == f"synthetic nvidia-smi {VERSION}\n"


def test_copies_are_the_containers_own_files(berth, busybox, driver_tree):
    out = gpu_run(berth, driver_tree("one"), busybox, "sh", "-c",
                  f"nvidia-smi; grep -c nvidia/lib64 /proc/mounts; cat {LIBRARIES}/libcuda.so.1 | wc -c",
                  flags=("--gpu-driver", "copy"))
    size = os.path.getsize(driver_tree("one") / f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}")
    assert out.splitlines() == [f"synthetic nvidia-smi {VERSION}", "0", str(size)]


def test_a_container_with_copies_starts_again_with_those_of_now(berth, busybox, driver_tree):
    """A driver of another version has other names, and what the container did to the copies is undone."""
    tree, other = driver_tree("one"), driver_tree("one", *OTHER_NODE)
    program = f"ls {LIBRARIES} | grep libcuda.so.[1-9]..; nvidia-smi; rm /usr/bin/nvidia-smi; rm -r {LIBRARIES}"
    flags = ("--name", "held", "--gpus", "all", "--gpu-driver", "copy")
    assert berth.ok("--driver-root", tree, "run", *flags, busybox, "sh", "-c", program).splitlines() == [
        f"libcuda.so.{VERSION}", f"synthetic nvidia-smi {VERSION}"]
    for root, version in ((tree, VERSION), (other, "550.54.15")):
        assert berth.ok("--driver-root", root, "start", "-a", "held").splitlines() == [
            f"libcuda.so.{version}", f"synthetic nvidia-smi {version}"]
    berth.ok("rm", "held")


def test_copies_bring_nothing_back_of_what_the_container_has_removed(berth, push, driver_tree):
    image = push(images.build([images.busybox_layer(), images.layer([
        *[images.directory(path) for path in ("usr", "usr/local", "usr/local/share")],
        images.file("usr/local/share/tea", b"green\n")])]))
    at = ("--driver-root", driver_tree("one"))
    berth.ok(*at, "run", "--name", "held", "--gpus", "all", "--gpu-driver", "copy", image, "sh", "-c",
             "if [ -e /usr/local/share ]; then rm -r /usr/local; else find /usr/local -maxdepth 1 | sort; fi")
    for _ in range(2):
        assert berth.ok(*at, "start", "-a", "held").splitlines() == ["/usr/local", "/usr/local/nvidia"]
    assert "D /usr/local/share" in berth.ok("diff", "held").splitlines()
    berth.ok("rm", "held")


def test_copies_follow_no_link_that_the_container_made(berth, busybox, driver_tree, work):
    berth.account.own(work)
    outside = work / "outside"
    outside.mkdir()
    berth.account.own(outside)
    links = f"rm -r /usr/local/nvidia; ln -s {outside} /usr/local/nvidia"
    berth.ok("--driver-root", driver_tree("one"), "run", "--name", "held", "--gpus", "all", "--gpu-driver", "copy",
             busybox, "sh", "-c", links)
    done = berth.run("--driver-root", driver_tree("one"), "start", "-a", "held")
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        "berth: cannot copy the driver's files into the container: open 'nvidia': Not a directory; try: a new "
        "container: a program in this one has replaced /usr/local/nvidia")
    assert list(outside.iterdir()) == []
    berth.ok("rm", "held")


def test_with_none_there_are_nodes_and_no_files(berth, busybox, driver_tree):
    out = gpu_run(berth, driver_tree("one"), busybox, "sh", "-c", "ls /dev/nvidia0 /dev/nvidiactl; find / -xdev -name '*nvidia*' -o -xdev -name 'ld.so*'",
                  flags=("--gpu-driver", "none"))
    assert out.split() == ["/dev/nvidia0", "/dev/nvidiactl"]


def test_an_immutable_container_sees_the_same_on_every_node(berth, push, driver_tree):
    """Two distributions' layouts, two driver versions: the root is the same, byte for byte."""
    image = push(images.build([images.busybox_layer(), compat_layer()],
                              {"Env": ["PATH=/bin", "LD_LIBRARY_PATH=/usr/local/cuda/compat"]}))
    nodes = (driver_tree("one"), driver_tree("one", *OTHER_NODE))

    def seen(node, *flags):
        return gpu_run(berth, node, image, "sh", "-c", DIGEST, flags=flags)
    first, second = (seen(node, "--immutable") for node in nodes)
    assert "/usr/local/cuda/compat/libcuda.so.575.57.08" in first
    assert first == second
    assert first == berth.ok("run", "--rm", "--read-only", image, "sh", "-c", DIGEST)
    assert "/dev/nvidia0" in gpu_run(berth, nodes[0], image, "ls", "/dev/nvidia0", flags=("--immutable",))
    # The control: with the host's files they differ.
    assert seen(nodes[0]) != seen(nodes[1])


def test_an_image_whose_driver_does_not_fit_is_refused(berth, busybox, push, driver_tree):
    line = refused(berth, driver_tree("one"), busybox, "--immutable")
    assert line == ("berth: the image has no libcuda.so.1 of its own that its loader finds; "
                    "try: --gpu-driver bind")
    own = push(images.build([images.busybox_layer(), images.layer([
        images.directory("usr"), images.directory("usr/lib64"),
        images.file("usr/lib64/libcuda.so.535.1", libcuda()),
        images.symlink("usr/lib64/libcuda.so.1", "libcuda.so.535.1")])]))
    line = refused(berth, driver_tree("one"), own, "--gpu-driver", "image")
    assert line == ("berth: the image's '/usr/lib64/libcuda.so.1' (by a default directory) is 535.1 but the kernel "
                    f"module is {VERSION}; try: --gpu-driver bind, or an image with that driver")


def test_immutable_and_another_mode_contradict_each_other(berth, busybox):
    line = berth.fail("run", "--immutable", "--gpu-driver", "copy", busybox, "true")
    assert line == "berth: '--immutable' and '--gpu-driver' cannot be used together"


@pytest.mark.parametrize("mode", MODES)
def test_an_images_own_libcuda_is_not_loaded(berth, push, driver_tree, tmp_path_factory, mode):
    """By LD_LIBRARY_PATH, in a default directory, and in its loader cache's directory."""
    layer = glibc_layer(tmp_path_factory.mktemp("own"))
    own = images.layer([
        *[images.directory(path) for path in ("opt/own", "usr", "usr/lib", "usr/lib/x86_64-linux-gnu")],
        images.file("opt/own/libcuda.so.1", libcuda()),
        images.file("usr/lib/x86_64-linux-gnu/libcuda.so.1", libcuda())])
    image = push(images.build([images.busybox_layer(), layer, own]))
    assert gpu_run(berth, driver_tree("one"), image, "/probe", "libcuda.so.1", flags=("--gpu-driver", mode)) == \
        f"libcuda.so.1 => {LIBRARIES}/libcuda.so.1\n"
    host = driver_tree("one") / f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
    expected = subprocess.run(["sha256sum", host], check=True, capture_output=True, text=True).stdout.split()[0]
    out = gpu_run(berth, driver_tree("one"), image, "sh", "-c", "/probe libcuda.so.1; sha256sum /opt/own/libcuda.so.1",
                  flags=("-e", "LD_LIBRARY_PATH=/opt/own", "--gpu-driver", mode))
    assert out.splitlines() == ["libcuda.so.1 => /opt/own/libcuda.so.1", f"{expected}  /opt/own/libcuda.so.1"]


def test_a_libcuda_in_a_volume_that_would_be_loaded_is_refused(berth, busybox, driver_tree, work):
    (work / "libs").mkdir()
    (work / "libs/libcuda.so.1").write_bytes(libcuda())
    line = refused(berth, driver_tree("one"), busybox, "-v", f"{work}/libs:/libs", "-e", "LD_LIBRARY_PATH=/libs")
    assert line == ("berth: '/libs/libcuda.so.1' (by LD_LIBRARY_PATH) would be loaded in place of the driver's libcuda, "
                    "and lies in a volume; try: --gpu-driver image, or another volume")


@pytest.mark.parametrize("drivers,found", [((550, 570), "/usr/local/cuda/compat"), ((550,), LIBRARIES)])
def test_compat_libraries_are_used_where_their_note_says_so(berth, push, driver_tree, tmp_path_factory, drivers, found):
    layer = glibc_layer(tmp_path_factory.mktemp("compat"))
    image = push(images.build([images.busybox_layer(), layer, compat_layer(drivers)]))
    assert gpu_run(berth, driver_tree("one"), image, "/probe", "libcuda.so.1") == \
        f"libcuda.so.1 => {found}/libcuda.so.1\n"


def test_of_proc_driver_only_what_was_granted_is_seen(berth, busybox, driver_tree):
    out = berth.ok("--driver-root", driver_tree("eight"), "run", "--rm", "--gpus", "device=1,3", busybox, "sh", "-c",
                   "cd /proc/driver; ls nvidia/gpus; grep Modify nvidia/params; head -1 nvidia/version;"
                   "echo x 2>/dev/null >nvidia/params || echo refused; ls /proc/driver")
    lines = out.splitlines()
    assert lines[:3] == ["0000:43:00.0", "0000:61:00.0", "ModifyDeviceFiles: 0"]
    assert VERSION in lines[3] and lines[4] == "refused"
    assert "nvidia" in lines[5:] and "rtc" not in lines[5:]


def test_a_slice_shows_its_own_capabilities_alone(berth, busybox, driver_tree):
    out = berth.ok("--driver-root", driver_tree("mig"), "run", "--rm", "--gpus", "device=0:1", busybox, "sh", "-c",
                   "cd /proc/driver/nvidia/capabilities; find . -name access; ls")
    assert len([line for line in out.splitlines() if line.endswith("/access")]) == 2
    assert "config" not in out and "monitor" not in out
