# SPDX-License-Identifier: Apache-2.0
"""What is found is what compilers wrote: nvcc's fat binaries, gcc's levels of x86-64. Whether a
refusal is true, qemu shows on processors of that kind."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from support import images
from support.fat_binaries import carrier

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
KERNEL = """
__global__ void scale(float* values, float by) { values[threadIdx.x] *= by; }
void run(float* values) { scale<<<1, 32>>>(values, 2.0f); }
"""
# Name: options of nvcc and what is to be found.
SETS = {
    "old": (["-gencode", "arch=compute_75,code=sm_75"], "sass 75"),
    "ptx": (["-gencode", "arch=compute_80,code=[sm_80,compute_80]"], "sass 80, ptx 80 9.0"),
    "exact": (["-gencode", "arch=compute_90a,code=sm_90a"], "sass 90a"),
    "exact-ptx": (["-gencode", "arch=compute_90a,code=compute_90a"], "ptx 90a 9.0"),
    "plain": (["-gencode", "arch=compute_100,code=sm_100"], "sass 100"),
    "family": (["-gencode", "arch=compute_100f,code=sm_100f"], "sass 100f"),
    "family-ptx": (["-gencode", "arch=compute_100f,code=compute_100f"], "ptx 100f 9.0"),
    "exact-100": (["-gencode", "arch=compute_100a,code=sm_100a"], "sass 100a"),
    "many": (["-gencode", "arch=compute_75,code=sm_75", "-gencode", "arch=compute_120,code=sm_120",
              "-gencode", "arch=compute_120,code=compute_120"],
             "sass 120, sass 75, ptx 120 9.0"),
    "lto": (["-gencode", "arch=compute_90,code=lto_90", "-dc"], "ir 90"),
}
PACKING = {"none": False, "speed": False, "balance": True, "size": True}  # of nvcc, whether zstd


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    """cuda(name, *options) → the bytes that nvcc makes of KERNEL."""
    if not os.access(NVCC, os.X_OK):
        pytest.skip("nvcc is not here")
    place = tmp_path_factory.mktemp("cuda")
    (place / "kernel.cu").write_text(KERNEL)

    def compile_kernel(name, *options):
        out = place / name
        subprocess.run([NVCC, *options, "-o", out, place / "kernel.cu"], check=True, timeout=120)
        return out.read_bytes()
    return compile_kernel


def scanned(berth, push, files):
    """The facts of each file by its name."""
    layer = images.layer([images.file(name, data, mode=0o755) for name, data in files.items()])
    reference = push(images.build([layer], {"Cmd": ["/program"]}))
    berth.ok("pull", "--quiet", reference)
    (path,) = berth.root.glob("layers/*/facts.json")
    found = json.loads(path.read_text())
    assert found.get("unread", []) == []
    return {facts["path"]: facts for facts in found["files"]}, reference


def code_text(facts):
    return ", ".join(" ".join(part for part in (code["kind"], code["arch"], code.get("isa")) if part)
                     for code in facts["gpu_code"])


@pytest.mark.profiles("root")
def test_nvcc_writes_what_is_found(berth, push, cuda):
    files = {name: carrier({".nv_fatbin": cuda(name, "-fatbin", *options)})
             for name, (options, _) in SETS.items()}
    found, _ = scanned(berth, push, files)
    assert {name: code_text(facts) for name, facts in found.items()} == \
        {name: expected for name, (_, expected) in SETS.items()}


@pytest.mark.profiles("root")
def test_the_packing_of_nvcc_is_found(berth, push, cuda):
    target = ["-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]"]
    files = {mode: carrier({".nv_fatbin": cuda(mode, "-fatbin", f"--compress-mode={mode}", *target)})
             for mode in PACKING}
    found, _ = scanned(berth, push, files)
    assert {code_text(facts) for facts in found.values()} == {"sass 90a, ptx 90a 9.0"}
    assert {name: facts.get("zstd_code", False) for name, facts in found.items()} == PACKING


@pytest.mark.profiles("root")
def test_code_objects_and_libraries_of_nvcc_are_found(berth, push, cuda):
    target = ["-gencode", "arch=compute_80,code=[sm_80,compute_80]"]
    shared = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none"]
    found, _ = scanned(berth, push, {
        "a.cubin": cuda("a.cubin", "-cubin", "-arch=sm_90"),
        "b.cubin": cuda("b.cubin", "-cubin", "-arch=sm_90a"),
        "c.cubin": cuda("c.cubin", "-cubin", "-arch=sm_100f"),
        "lib.so": cuda("lib.so", *shared, *target),
        "separate.so": cuda("separate.so", "-rdc=true", "-cudadevrt", "none", *shared, *target),
    })
    assert {name: code_text(facts) for name, facts in found.items()} == {
        "a.cubin": "sass 90", "b.cubin": "sass 90a", "c.cubin": "sass 100f",
        "lib.so": "sass 80, ptx 80 9.0",
        "separate.so": "sass 80, ptx 80 9.0"}


# ---- levels of x86-64 ---------------------------------------------------------------------------

# A sum that compilers make vectors of.
PROGRAM = """
#include <stdio.h>
int main(int argc, char** argv) {
  float values[1024], sum = 0;
  (void)argv;
  for (int i = 0; i < 1024; ++i) values[i] = (float)(i * argc);
  for (int i = 0; i < 1024; ++i) sum += values[i] * values[i] + 1.0f;
  printf("%.0f\\n", sum);
  return 0;
}
"""


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    """{name: program}: of each level, with and without the linker's mark."""
    place = tmp_path_factory.mktemp("levels")
    (place / "program.c").write_text(PROGRAM)
    made = {}
    for level in (1, 2, 3, 4):
        march = "x86-64" if level == 1 else f"x86-64-v{level}"
        for name, options in {"marked": [f"-Wl,-z,x86-64-v{level}"], "plain": [],
                              "static": ["-static"]}.items():
            if (name, level) == ("marked", 1):
                continue
            out = place / f"{name}-{level}"
            subprocess.run(["gcc", "-O3", "-ffast-math", f"-march={march}", *options,
                            "-o", out, place / "program.c"], check=True, timeout=60)
            made[f"{name}-{level}"] = out
    return made


@pytest.mark.profiles("root")
def test_a_level_is_found_where_a_program_says_so(berth, push, levels):
    found, _ = scanned(berth, push, {name: path.read_bytes() for name, path in levels.items()})
    for level in (2, 3, 4):
        assert found[f"marked-{level}"]["isa"] == {"level": level, "source": "note"}
        # gcc 12 says "baseline" of all others, and what they do shows in the beginning of main().
        for name in (f"plain-{level}", f"static-{level}"):
            assert found[name]["isa"] == {"level": level, "source": "instructions"}
    # The C library's better variants, which an IFUNC chooses from, are in every static program.
    for name in ("plain-1", "static-1"):
        assert found[name]["isa"]["level"] <= 1


def run_on(processor, program):
    return subprocess.run(["qemu-x86_64", "-cpu", processor, program], capture_output=True,
                          text=True, timeout=60, check=False)


@pytest.mark.profiles("root")
def test_a_program_that_is_found_to_need_more_does_not_run(berth, push, levels):
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("qemu-x86_64 is not here")
    found, _ = scanned(berth, push, {name: path.read_bytes() for name, path in levels.items()})
    ability = {"Nehalem": 2, "Haswell": 3}
    for processor, level in ability.items():
        for name, path in levels.items():
            if found[name]["isa"]["level"] <= level:
                continue
            done = run_on(processor, path)
            if found[name]["isa"]["source"] == "note":
                assert done.returncode == 127, (processor, name, done)
                assert "CPU ISA level is lower than required" in done.stderr
            else:  # without a mark it is the instruction itself that ends it
                assert done.returncode == -signal.SIGILL, (processor, name, done)
        for name, path in levels.items():
            if found[name]["isa"]["level"] <= level:
                done = run_on(processor, path)
                assert done.returncode == 0, (processor, name, done)
