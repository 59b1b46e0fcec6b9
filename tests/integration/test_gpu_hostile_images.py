# SPDX-License-Identifier: Apache-2.0
"""Images that lay traps where driver files are placed. After each nothing of the host was made or
changed, and the container runs with its own driver files or is refused in one line."""

import os
import subprocess

import pytest

from integration.test_gpu_injection import SYNTHETIC
from support import images

PRELOAD = r"""
#include <fcntl.h>
__attribute__((constructor)) static void pwn(void) { open("%s/pwned", O_CREAT | O_WRONLY, 0666); }
"""


def link(path, target):
    return lambda outside: [*parents(path), images.symlink(path, target.format(outside=outside))]


def parents(path):
    parts = path.split("/")[:-1]
    return [images.directory("/".join(parts[:i + 1])) for i in range(len(parts))]


def entry(path, make):
    return lambda outside: [*parents(path), make(path)]


# Name: the entries of a layer, made of the path of a directory of the host.
TRAPS = {
    **{f"{path} leads to the host": link(path, "{outside}") for path in (
        "usr", "usr/lib", "usr/local", "usr/local/nvidia", "usr/bin", "etc", "dev", "proc", "dev/nvidia0",
        "proc/driver", "etc/OpenCL")},
    **{f"{path} leads to a file of the host": link(path, "{outside}/made") for path in (
        "etc/ld.so.cache", "usr/bin/nvidia-smi", "usr/local/nvidia")},
    **{f"{path} climbs out": link(path, "../../../../../../../..{outside}") for path in ("usr", "usr/local", "etc")},
    **{f"{path} is a loop": link(path, path.rsplit("/", maxsplit=1)[-1]) for path in (
        "usr", "usr/local", "usr/local/nvidia", "etc/ld.so.cache", "usr/bin/nvidia-smi")},
    **{f"{path} is a fifo": entry(path, images.fifo) for path in (
        "usr/local", "etc/ld.so.cache", "usr/bin/nvidia-smi", "lib/ld-musl-x86_64.so.1", "etc/ld-musl-x86_64.path")},
    **{f"{path} is a directory": entry(path, images.directory) for path in (
        "etc/ld.so.cache", "usr/bin/nvidia-smi", "dev/nvidia0")},
    **{f"{path} is a file": entry(path, images.file) for path in ("usr", "usr/local", "usr/local/nvidia", "etc/vulkan")},
    "the cache leads to procfs": link("etc/ld.so.cache", "/proc/self/mem"),
    "nvidia-smi leads to procfs": link("usr/bin/nvidia-smi", "/proc/sysrq-trigger"),
    "a lying loader cache": lambda outside: [images.file("etc/ld.so.cache", b"glibc-ld.so.cache1.1" + b"\xff" * 300)],
    "a lying ELF file": lambda outside: [*parents("usr/lib64/x"), images.file(
        "usr/lib64/libcuda.so.1", b"\x7fELF\2\1\1" + b"\xff" * 400)],
    "a lying compat note": lambda outside: [*parents("usr/local/cuda/compat/x"), images.file(
        "usr/local/cuda/compat/libcuda.so.999.1", b"\x7fELF\2\1\1" + b"\0" * 9 + b"\3\0\x3e\0" + b"\xff" * 400)],
    "compat leads to the host": link("usr/local/cuda", "{outside}"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_in_an_image_catches_nothing(berth, push, driver_tree, work, trap):
    outside = work / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    image = push(images.build([images.busybox_layer(), images.layer(TRAPS[trap](outside))],
                              {"Env": ["PATH=/bin"]}))
    tree = driver_tree("one")
    berth.run("--driver-root", tree, "gpu", "list")  # warns
    berth.ok("pull", "-q", image)
    before = subprocess.run(["find", tree, "-printf", "%p %s %T@ %m\n"], check=True, capture_output=True).stdout
    done = berth.run("--driver-root", tree, "run", "--rm", "--gpus", "all,capabilities=all", image, "sh", "-c",
                     "echo inside; ls /dev/nvidia0")
    assert os.listdir(outside) == []
    after = subprocess.run(["find", tree, "-printf", "%p %s %T@ %m\n"], check=True, capture_output=True).stdout
    assert before == after
    lines = [line for line in done.stderr.splitlines() if SYNTHETIC not in line]
    if done.returncode == 0:
        assert done.stdout.splitlines() == ["inside", "/dev/nvidia0"] and lines == []
    else:
        assert done.returncode == 125 and len(lines) == 1 and lines[0].startswith("berth: "), done


def test_a_library_that_the_image_preloads_is_loaded_by_no_process_of_the_host(berth, push, driver_tree, work):
    """The shape of CVE-2025-23266: LD_PRELOAD of the image, relative to the root that a hook has."""
    outside = work / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    source = work / "evil.c"
    source.write_text(PRELOAD % outside)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", work / "evil.so", source], check=True)
    layer = images.layer([images.file("evil.so", (work / "evil.so").read_bytes(), mode=0o755)])
    image = push(images.build([images.busybox_layer(), layer],
                              {"Env": ["PATH=/bin", "LD_PRELOAD=/proc/self/cwd/evil.so", "LD_LIBRARY_PATH=/"]}))
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all", image, "echo", "fine")
    assert out == "fine\n" and os.listdir(outside) == []
