# SPDX-License-Identifier: Apache-2.0
"""Images that lay traps where driver files are placed. After each nothing of the host was made or
changed, and the container runs with its own driver files or is refused in one line."""

import contextlib
import os
import re
import socket
import subprocess

import pytest

from integration.test_gpu_injection import SYNTHETIC
from support import images

PRELOAD = r"""
#include <fcntl.h>
__attribute__((constructor)) static void pwn(void) { open("%s/pwned", O_CREAT | O_WRONLY, 0666); }
"""

# What the container's first GPU is; major and minor.
WHICH = "echo inside; stat -c '%t %T' /dev/nvidia0 | { read -r major minor; echo $((0x$major)) $((0x$minor)); }"


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
    **{f"{path} is a device": entry(path, lambda name: images.character_device(name, 1, 5)) for path in (
        "usr/local", "etc/ld.so.cache", "usr/bin/nvidia-smi", "dev/nvidia0", "lib/ld-musl-x86_64.so.1",
        "etc/ld-musl-x86_64.path", "usr/local/cuda/compat/libcuda.so.1")},
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
                     WHICH)
    assert os.listdir(outside) == []
    after = subprocess.run(["find", tree, "-printf", "%p %s %T@ %m\n"], check=True, capture_output=True).stdout
    assert before == after
    assert_runs_or_is_refused(done)


def assert_runs_or_is_refused(done, told=None):
    """In one line, beside warnings that say `told`."""
    lines = [line for line in done.stderr.splitlines() if SYNTHETIC not in line]
    if told is not None:
        lines = [line for line in lines if not (line.startswith("berth: warning: ") and told in line)]
    if done.returncode == 0:
        assert done.stdout.splitlines() == ["inside", "195 0"] and lines == []
    else:
        assert done.returncode == 125 and len(lines) == 1 and lines[0].startswith("berth: "), done


@pytest.mark.parametrize("place", ["etc/ld.so.cache", "usr/bin/nvidia-smi", "usr/local/nvidia", "usr/local",
                                   "usr/local/nvidia/lib64", "etc/OpenCL", "lib/ld-musl-x86_64.so.1"])
def test_a_socket_in_the_place_of_a_file_is_neither_replaced_nor_connected_to(berth, busybox, driver_tree, work,
                                                                              place):
    """No layer can bring one; a volume can."""
    volume, name = work / "volume", os.path.basename(place)
    volume.mkdir()
    volume.chmod(0o777)
    with contextlib.chdir(volume), socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        server.setblocking(False)
        before = os.stat(name)
        berth.ok("pull", "-q", busybox)
        root = driver_tree("one")
        berth.run("--driver-root", root, "gpu", "list")  # warns
        done = berth.run("--driver-root", root, "run", "--rm", "--gpus", "all,capabilities=all",
                         "-v", f"{volume}:/{os.path.dirname(place)}", busybox, "/bin/sh", "-c", WHICH)
        assert_runs_or_is_refused(done, told="something is mounted over")
        after = os.stat(name)
        assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
        with pytest.raises(BlockingIOError):
            server.accept()


MINORS = {
    "is empty": lambda _: "",
    "ends in a row": lambda text: text[:text.index("gpu0/gi9/access") + 12],
    "ends in a number": lambda text: text[:text.index("gpu0/gi9/access 84") + 17],
    "has no ends of lines": lambda text: text.replace("\n", " "),
    "gives other slices its own numbers": lambda text: re.sub(r"access \d+", "access 84", text),
    "gives it the right to make slices": lambda text: re.sub(r"gi9/access \d+", "gi9/access 1", text),
    "has numbers without end": lambda text: re.sub(r"access ", "access 99999999999", text),
    "is no text": lambda _: "\xff\0gpu0/gi9" * 1000,
    "is long": lambda text: text * 20,
    "has its rows many times": lambda _: "gpu0/gi9/access 84\n" * 5000,
}


@pytest.mark.parametrize("table", MINORS)
def test_a_table_of_minors_that_lies_gives_a_slice_no_other_node_and_no_row_of_another(berth, busybox, driver_tree,
                                                                                      work, table):
    true, tree = driver_tree("mig"), work / "tree"
    subprocess.run(["cp", "-a", true, tree], check=True)
    file = tree / "proc/driver/nvidia-caps/mig-minors"
    file.write_text(MINORS[table](file.read_text()), encoding="latin-1")
    script = "find /dev -name 'nvidia*' -type c | sort; cat /proc/driver/nvidia-caps/mig-minors 2>/dev/null || :"

    def seen(root):
        lines = berth.ok("--driver-root", root, "run", "--rm", "--gpus", "device=0:2", busybox, "sh", "-c",
                         script).splitlines()
        return [line for line in lines if line.startswith("/dev/")], [line for line in lines if line[0] != "/"]

    nodes, rows = seen(true)
    assert {"/dev/nvidia-caps/nvidia-cap84", "/dev/nvidia-caps/nvidia-cap85"} < set(nodes)
    assert rows == ["config 1", "monitor 2", "gpu0/gi9/access 84", "gpu0/gi9/ci0/access 85"]
    lied = seen(tree)
    assert lied[0] == nodes
    assert {row.split()[0] for row in lied[1]} <= {row.split()[0] for row in rows}


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
