# SPDX-License-Identifier: Apache-2.0
"""CUDA forward compatibility where nobody has looked into the image before its container starts:
CDI devices, and berth-runtime under another engine. And the other hooks of NVIDIA's CDI files."""

import io
import json
import os
import pathlib
import tarfile
import tempfile

import pytest

from integration.test_gpu_driver_modes import compat_layer, compat_note, libcuda
from integration.test_gpu_injection import LIBRARIES, VERSION, glibc_layer
from integration.test_runtime_gpus import asks, site  # noqa: F401
from support import images
from support.oci_fixtures import bundle, kind, place, runtime  # noqa: F401
from support.synthetic_elf import elf

COMPAT = "/usr/local/cuda/compat"
HOST = "/usr/lib64"
NATIVE = 0x0303
ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)


@pytest.fixture(scope="session")
def glibc(tmp_path_factory):
    return glibc_layer(tmp_path_factory.mktemp("glibc"))


def hook(name, *words):
    return {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook",
            "args": ["nvidia-cdi-hook", name, *words]}


def cdi_file(work, tree, *hooks, gpu=0):
    """A file as nvidia-ctk makes it: a GPU of `tree`, its libcuda, and hooks. Gives its directory."""
    directory = work / "cdi"
    directory.mkdir(exist_ok=True)
    library = tree / f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
    (directory / "nvidia.json").write_text(json.dumps({
        "cdiVersion": "0.6.0", "kind": "vendor.com/gpu",
        "devices": [{"name": "0", "containerEdits": {"deviceNodes": [
            {"path": f"/dev/nvidia{gpu}", "hostPath": str(tree / f"dev/nvidia{gpu}")}]}}],
        "containerEdits": {
            "mounts": [{"hostPath": str(library), "containerPath": f"{HOST}/libcuda.so.{VERSION}",
                        "options": ["ro", "nosuid", "nodev", "bind"]}],
            "hooks": [hook("create-symlinks", "--link", f"libcuda.so.{VERSION}::{HOST}/libcuda.so.1"), *hooks,
                      hook("update-ldcache", "--folder", HOST)]}}))
    return directory


def with_cdi(berth, tree, directory, image, *words):
    return berth.ok("--driver-root", tree, "--cdi-spec-dir", directory, "run", "--rm", "--device", "vendor.com/gpu=0",
                    image, *words)


def found(path):
    return f"libcuda.so.1 => {path}/libcuda.so.1\n"


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("drivers,host,where", [
    ((550, 570), VERSION, COMPAT), ((550,), VERSION, HOST), ((570, 580), "580.65.06", HOST), ((550, 570), None, HOST)])
def test_a_cdi_device_takes_the_images_compat_libraries_where_they_fit(berth, push, glibc, driver_tree, work, drivers,
                                                                       host, where):
    image = push(images.build([images.busybox_layer(), glibc, compat_layer(drivers)]))
    compat = [hook("enable-cuda-compat", f"--host-driver-version={host}")] if host else []
    directory = cdi_file(work, driver_tree("one"), *compat)
    assert with_cdi(berth, driver_tree("one"), directory, image, "/probe", "libcuda.so.1") == found(where)


@pytest.mark.profiles("root")
def test_a_cdi_file_names_the_gpus_of_egl(berth, busybox, driver_tree, work):
    tree = driver_tree("eight")
    directory = cdi_file(work, tree, hook("disable-device-node-modification"), hook("update-application-profile"), gpu=3)
    script = "grep -o 'EGL[^]]*' /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf || echo none"
    assert with_cdi(berth, tree, directory, busybox, "sh", "-c", script) == 'EGLVisibleDGPUDevices", 8\n'
    assert with_cdi(berth, tree, cdi_file(work, tree, gpu=3), busybox, "sh", "-c", script + " 2>&1").endswith("none\n")


def test_graphics_name_the_gpus_that_egl_may_see(berth, busybox, driver_tree):
    out = berth.ok("--driver-root", driver_tree("eight"), "run", "--rm", "--gpus", '"device=1,3",capabilities=graphics',
                   busybox, "sh", "-c", "cat /etc/nvidia/nvidia-application-profiles-rc.d/*")
    profile = json.loads(out)
    assert profile["profiles"] == [{"name": "_container_", "settings": ["EGLVisibleDGPUDevices", 1 << 5 | 1 << 7]}]


@pytest.mark.parametrize("path", ["/usr/local/nvidia/lib:/usr/local/nvidia/lib64", ""])
def test_compat_libraries_come_before_the_drivers_for_nvidias_images(berth, push, glibc, driver_tree, path):
    """They name our directory in LD_LIBRARY_PATH, which the loader looks at before its cache."""
    image = push(images.build([images.busybox_layer(), glibc, compat_layer()]))
    run = ["--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", "-e", f"LD_LIBRARY_PATH={path}", image]
    out = berth.ok(*run, "sh", "-c", "/probe libcuda.so.1 | sed 's/.*=> //' | xargs readlink -f")
    assert out == f"{COMPAT}/libcuda.so.575.57.08\n"


# ---- berth-runtime ------------------------------------------------------------------------------

def unpack(bundle, *layers):
    for data in layers:
        with tarfile.open(fileobj=io.BytesIO(getattr(data, "data", data))) as archive:
            archive.extractall(bundle.rootfs)
    return bundle


def probes(bundle, *env):
    bundle.process["env"] = ["PATH=/bin", *env]
    return bundle.args("/probe", "libcuda.so.1")


@ROOT
@pytest.mark.parametrize("path", [(), ("LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",)])
@pytest.mark.parametrize("drivers,fits", [((550, 570), True), ((550,), False)])
def test_under_another_engine_compat_libraries_are_taken_where_they_fit(runtime, bundle, site, glibc, drivers, fits,
                                                                       path):
    unpack(bundle, glibc, compat_layer(drivers))
    out = runtime.run(probes(bundle, "NVIDIA_VISIBLE_DEVICES=1", *path)).stdout
    assert out == (found(COMPAT) if fits else f"libcuda.so.1 => {LIBRARIES}/libcuda.so.{VERSION}\n")
    site.write(environment="grant", **{"forward-compatibility": False})
    assert COMPAT not in runtime.run(bundle).stdout


@ROOT
def test_a_cdi_annotation_takes_compat_libraries_too(runtime, bundle, site, glibc, work):
    unpack(bundle, glibc, compat_layer())
    directory = cdi_file(work, site.tree, hook("enable-cuda-compat", f"--host-driver-version={VERSION}"), gpu=1)
    site.write(**{"cdi-directories": [str(directory)]})
    probes(bundle).config["annotations"] = {"cdi.k8s.io/test": "vendor.com/gpu=0"}
    done = runtime.run(bundle)
    assert (done.returncode, done.stdout) == (0, found(COMPAT)), done


def asked(bundle, driver=VERSION, cuda="12.8", brands=""):
    bundle.config["annotations"] = {
        "dev.berth.loader-cache": f"libcuda.so.1\t/opt/host/libcuda.so.1\t{NATIVE}\n",
        "dev.berth.cuda-compat": "\t".join([COMPAT, driver, cuda, brands])}
    (bundle.rootfs / "opt/host").mkdir(parents=True, exist_ok=True)
    (bundle.rootfs / "opt/host/libcuda.so.1").write_bytes(libcuda())
    return probes(bundle)


@pytest.mark.parametrize("driver,brands,where", [
    (VERSION, "", COMPAT), (VERSION, "tesla", COMPAT), (VERSION, "tesla,geforce", "/opt/host"),
    ("580.65.06", "", "/opt/host"), ("575.57.08", "", "/opt/host"), ("", "", "/opt/host")])
def test_the_first_process_decides_by_note_driver_and_brand(runtime, bundle, glibc, driver, brands, where):
    unpack(bundle, glibc, compat_layer((550, 570, 575, 580)))
    assert runtime.out(asked(bundle, driver, "" if not driver else "12.8", brands)) == found(where)


GOOD = libcuda(".note.cuda.fwd_compatibility", compat_note("12.9", [550, 570]))
LIBRARY = "libcuda.so.575.57.08"


def with_library(directory, make):
    make(directory / LIBRARY)
    (directory / "libcuda.so.1").symlink_to(LIBRARY)


def to_host(directory):
    outside = directory.parents[4] / "outside.so"
    outside.write_bytes(GOOD)
    with_library(directory, lambda path: path.symlink_to(outside))


HOSTILE = {
    "truncated": lambda d: with_library(d, lambda path: path.write_bytes(GOOD[:-90])),
    "only a head": lambda d: with_library(d, lambda path: path.write_bytes(GOOD[:64])),
    "a fifo": lambda d: with_library(d, os.mkfifo),
    "a directory": lambda d: with_library(d, os.mkdir),
    "another machine": lambda d: with_library(d, lambda path: path.write_bytes(elf(183, 64, "libcuda.so.1"))),
    "two of them": lambda d: [(d / name).write_bytes(GOOD) for name in (LIBRARY, "libcuda.so.999.1")],
    "a link to the host": to_host,
    "a circle": lambda d: with_library(d, lambda path: path.symlink_to(LIBRARY)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_compat_package_changes_nothing(runtime, bundle, glibc, what):
    unpack(bundle, glibc)
    directory = bundle.rootfs / COMPAT[1:]
    directory.mkdir(parents=True)
    HOSTILE[what](directory)
    assert runtime.out(asked(bundle)) == found("/opt/host")


def test_a_package_of_too_many_names_changes_nothing(runtime, bundle, glibc):
    unpack(bundle, glibc)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        os.chmod(directory, 0o755)
        with_library(pathlib.Path(directory), lambda path: path.write_bytes(GOOD))
        bundle.mount(COMPAT, directory, "rbind")
        assert runtime.out(asked(bundle)) == found(COMPAT)
        for number in range(10000):
            pathlib.Path(directory, f"libx{number}.so.1").touch()
        assert runtime.out(asked(bundle)) == found("/opt/host")


@pytest.mark.parametrize("text", ["", "x", "\t\t\t", "relative\t570.1\t12.8\t", f"{COMPAT}\t570.1", f"/proc/self/fd\t{VERSION}\t\t",
                                  f"/dev\t{VERSION}\t\t", f"/{'x' * 5000}\t{VERSION}\t\t"])
def test_whoever_writes_the_annotation_it_does_no_harm(runtime, bundle, glibc, text):
    unpack(bundle, glibc)
    asked(bundle).config["annotations"]["dev.berth.cuda-compat"] = text
    assert runtime.out(bundle) == found("/opt/host")
