# SPDX-License-Identifier: Apache-2.0
"""Binaries with code for AMD's GPUs by the clangs of Debian's suites, each made once and kept with what LLVM's own
programs list in it. Nothing of ROCm is in them: the kernel is one line, and the runtime's functions stay undefined.

usage: amd_corpus.py [SUITE…]         makes what is missing

    amd_corpus.get("trixie")          # [Binary]; the first time: a minute, after the suite's root
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import amd_rules, kept, vendor_roots

RECIPE = "1"  # change it with the recipe below
PROGRAM = """
typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; };
typedef void* hipStream_t;
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, size_t, hipStream_t);
extern "C" int __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*);
#ifdef SEPARATE
extern __attribute__((device)) float by_two(float value);
#else
static __attribute__((device)) float by_two(float value) { return value * 2; }
#endif
extern "C" __attribute__((global)) void SCALE(float* values) { values[0] = by_two(values[0]); }
"""
SEPARATE = "__attribute__((device)) float by_two(float value) { return value * 2; }\n"
# With the three functions of LLVM's runtime on the device that it calls, which Debian does not have for AMD's GPUs.
OPENMP = """
#pragma omp begin declare target device_type(nohost)
extern "C" int __kmpc_target_init(void*, void*) { return -1; }
extern "C" void __kmpc_target_deinit() {}
extern "C" unsigned __kmpc_get_hardware_thread_id_in_block() { return 0; }
#pragma omp end declare target
extern "C" void scale(float* values) {
#pragma omp target map(tofrom : values[:8])
  for (int i = 0; i < 8; ++i) values[i] *= 2;
}
"""
WORDS = ("-O1", "-fPIC", "-nogpulib", "-L.", "-Wno-unused-command-line-argument")
LINKED_WITH = ("amdhip64", "omp", "omptarget")  # empty ones are enough
HIP = ("-x", "hip", "-nogpuinc", "-DSCALE=scale")
FEATURES = (("gfx906:sramecc+:xnack-",), ("gfx906:xnack-",), ("gfx908:xnack+",), ("gfx90a:xnack+", "gfx90a:xnack-"),
            ("gfx90a:sramecc-:xnack+",), ("gfx90a:sramecc+",), ("gfx1010:xnack+",))
SEVERAL = ("gfx906", "gfx90a:xnack-", "gfx1030", "gfx1100")
TWO = ("gfx90a", "gfx1030")
GENERIC = ("gfx9-generic", "gfx10-1-generic", "gfx10-3-generic", "gfx11-generic", "gfx12-generic")
# The processors that a compiler knows, of those that people have.
SINGLE = {"15": ("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1030", "gfx1100"),
          "17": ("gfx90a", "gfx942", "gfx1102"),
          "19": ("gfx701", "gfx90c", "gfx942", "gfx1012", "gfx1031", "gfx1101", "gfx1151", "gfx1200", "gfx1201"),
          "21": ("gfx950", "gfx1035", "gfx1103", "gfx1150", "gfx1201")}


@dataclasses.dataclass(frozen=True)
class Binary:
    name: str
    form: str
    path: pathlib.Path
    asked: list   # target IDs that the compiler was told
    listed: list  # those that LLVM's programs find in the file


@dataclasses.dataclass(frozen=True)
class Recipe:
    form: str
    targets: tuple
    ending: str = ".so"
    words: tuple = ("-shared",)
    steps: tuple = ()  # of several sources: words of the compiler for each

    def name(self, clang):
        return f"{self.form}-{clang}-{'+'.join(self.targets).replace(':', '.')}"


def _recipes(clang):
    number = int(clang)
    rows = [Recipe("shared", (one,)) for one in SINGLE[clang]]
    rows += [Recipe("shared", targets) for targets in (SEVERAL, *(FEATURES if number != 17 else ()))]
    rows += [Recipe("two-units", TWO, steps=(("-DSCALE=one",), ("-DSCALE=two",))),
             Recipe("separate", TWO, words=("-shared", "-fgpu-rdc")),
             Recipe("object", TWO, ".o", ("-c",)),
             Recipe("code-object", ("gfx90a:xnack+",), ".hsaco", ("--cuda-device-only", "--no-gpu-bundle-output")),
             Recipe("code-object", ("gfx1030",), ".hsaco", ("--cuda-device-only", "--no-gpu-bundle-output")),
             Recipe("bundle", TWO, ".co", ("--cuda-device-only", "--gpu-bundle-output")),
             Recipe("version-4", ("gfx906:xnack-", "gfx90a"), words=("-shared", "-mcode-object-version=4"))]
    if number == 15:
        rows += [Recipe("version-3", ("gfx906:xnack+", "gfx1030"), words=("-shared", "-mcode-object-version=3")),
                 Recipe("code-object-3", ("gfx906:xnack+",), ".hsaco",
                        ("--cuda-device-only", "--no-gpu-bundle-output", "-mcode-object-version=3"))]
    if number >= 17:
        rows += [Recipe("version-5", ("gfx942",), words=("-shared", "-mcode-object-version=5")),
                 Recipe("openmp", TWO, words=("-shared", "-fopenmp"))]
    if number >= 18:
        rows += [Recipe("compressed", SEVERAL, words=("-shared", "--offload-compress")),
                 Recipe("compressed-two-units", TWO, words=("-shared", "--offload-compress"),
                        steps=(("-DSCALE=one",), ("-DSCALE=two",))),
                 Recipe("compressed-bundle", TWO, ".co",
                        ("--cuda-device-only", "--gpu-bundle-output", "--offload-compress"))]
    if number >= 19:
        generic = (*GENERIC, *(("gfx9-4-generic",) if number >= 20 else ()))
        version = ("-mcode-object-version=6",)
        rows += [Recipe("generic", (one,), words=("-shared", *version)) for one in (*generic, "gfx9-generic:xnack-")]
        rows += [Recipe("generic", generic, words=("-shared", *version)),
                 Recipe("generic-code-object", ("gfx11-generic",), ".hsaco",
                        ("--cuda-device-only", "--no-gpu-bundle-output", *version)),
                 Recipe("new-driver", TWO, words=("-shared", "--offload-new-driver")),
                 Recipe("new-driver-separate", TWO, words=("-shared", "--offload-new-driver", "-fgpu-rdc"))]
    return rows


# ---- what LLVM's programs list ------------------------------------------------------------------

MAGICS = (b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")


def _bundles(data):
    """The bundles of a section or file: each begins on a page of its own, and a compressed one has its length (since
    version 2)."""
    starts = [at for at in range(0, len(data), 4096) if data[at:at + 24].startswith(MAGICS)]
    for start, end in zip(starts, [*starts[1:], len(data)]):
        one = data[start:end]
        version, = struct.unpack_from("<H", one, 4)
        if one.startswith(b"CCOB") and version > 1:
            one = one[:struct.unpack_from("<I" if version == 2 else "<Q", one, 8)[0]]
        yield one


def _listed_in(there, clang, place, data):
    """Target IDs in bundles, by clang-offload-bundler."""
    found = set()
    for one in _bundles(data):
        (place / "bundle").write_bytes(one)
        told = there.run(place, f"clang-offload-bundler-{clang}", "--list", "--type=o", "--input=bundle")
        (place / "bundle").unlink()
        found |= {amd_rules.canonical(re.search(r"(gfx.*)$", entry)[1]) for entry in told.split() if "-gfx" in entry}
    return found


def _target_of_code_object(text):
    """Of the flags that llvm-readobj prints. V2 and V3 have a feature's flag where it is on or any."""
    name = re.search(r"EF_AMDGPU_MACH_AMDGCN_(GFX\w+)", text)[1].lower().replace("_", "-")
    set_on = re.findall(r"EF_AMDGPU_FEATURE_(\w+?)_(ON|OFF)_V4", text)
    features = [f"{one.lower()}{'+' if how == 'ON' else '-'}" for one, how in set_on]
    features += [f"{one.lower()}+" for one in re.findall(r"EF_AMDGPU_FEATURE_(\w+?)_V3", text)]
    return ":".join([name, *sorted(features)])


def listed_by(there, clang, place, name):
    """Sorted target IDs in a file below `place`."""
    path = place / name
    data = path.read_bytes()
    if data.startswith(MAGICS):
        return sorted(_listed_in(there, clang, place, data))
    header = there.run(place, f"llvm-readobj-{clang}", "-h", name)
    if "EM_AMDGPU" in header:
        return [_target_of_code_object(header)]
    found = set()
    sections = there.run(place, f"llvm-readelf-{clang}", "-SW", name)
    if " .hip_fatbin " in sections:
        there.run(place, f"llvm-objcopy-{clang}", "--dump-section", ".hip_fatbin=section", name, "none")
        found |= _listed_in(there, clang, place, (place / "section").read_bytes())
        for one in ("section", "none"):
            (place / one).unlink()
    if " .llvm.offloading " in sections:
        told = there.run(place, f"llvm-objdump-{clang}", "--offloading", name)
        found |= {amd_rules.canonical(one) for one in re.findall(r"^arch +(gfx\S+)", told, re.M)}
    return sorted(found)


# ---- how they are made --------------------------------------------------------------------------

def _compile(there, clang, place, recipe, file):
    compiler = f"clang++-{clang}"
    targets = [f"--offload-arch={one}" for one in recipe.targets]
    if recipe.form == "openmp":
        there.run(place, compiler, *WORDS, *recipe.words, *targets, "-o", file, "openmp.cpp")
    elif recipe.steps:
        compress = [word for word in recipe.words if "compress" in word]
        names = []
        for number, words in enumerate(recipe.steps):
            names.append(f"unit{number}.o")
            there.run(place, compiler, "-x", "hip", "-nogpuinc", *WORDS, *compress, *targets, *words, "-c", "-o",
                      names[-1], "program.hip")
        there.run(place, compiler, "-shared", "-L.", "-o", file, *names)
        for one in names:
            (place / one).unlink()
    else:
        sources = ["-DSEPARATE", "program.hip", "separate.hip"] if "-fgpu-rdc" in recipe.words else ["program.hip"]
        there.run(place, compiler, *HIP, *WORDS, *recipe.words, *targets, "-o", file, *sources)


def _make(suite, path):
    there = vendor_roots.get(suite)
    path.mkdir()
    for name, text in (("program.hip", PROGRAM), ("separate.hip", SEPARATE), ("openmp.cpp", OPENMP), ("none.c", "")):
        (path / name).write_text(text)
    for name in LINKED_WITH:
        there.run(path, f"clang-{there.compilers[0]}", "-shared", "-o", f"lib{name}.so", "none.c")
    rows, left_out = [], {}
    for clang in there.compilers:
        for recipe in _recipes(clang):
            name = recipe.name(clang)
            file = f"{name}{recipe.ending}"
            try:
                _compile(there, clang, path, recipe, file)
                listed = listed_by(there, clang, path, file)
            except subprocess.CalledProcessError as error:
                words = error.stderr.strip().splitlines() or ["?"]
                left_out[name] = next((line for line in words if "error" in line), words[0])
                print(f"== {name}: {left_out[name]}", file=sys.stderr, flush=True)
                continue
            print(f"== {name}: {' '.join(listed)}", file=sys.stderr, flush=True)
            rows.append({"name": name, "form": recipe.form, "file": file, "listed": listed,
                         "asked": [amd_rules.canonical(one) for one in recipe.targets]})
    if len(left_out) > len(rows) // 5:
        raise RuntimeError(f"of {suite} {len(left_out)} binaries cannot be made: {left_out}")
    (path / "corpus.json").write_text(json.dumps({"binaries": rows, "left_out": left_out}, indent=1))


@functools.cache
def get(suite):
    """[Binary] of a suite. Errors: vendor_roots.Unavailable."""
    vendor_roots.real_drivers.check_all_asked()
    name = f"amd-corpus-{suite}-{RECIPE}"
    if not (kept.cache() / name).exists():
        vendor_roots.get(suite)
    place = kept.directory(name, functools.partial(_make, suite))
    told = json.loads((place / "corpus.json").read_text())
    return [Binary(f"{suite}/{row['name']}", row["form"], place / row["file"], row["asked"], row["listed"])
            for row in told["binaries"]]


def _main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(vendor_roots.SUITES)}; all unless told")
    os.nice(5)
    for suite in parser.parse_args().suite or vendor_roots.SUITES:
        try:
            print(f"{suite}: {len(get(suite))} binaries")
        except vendor_roots.Unavailable as error:
            print(f"{suite}: skipped: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
