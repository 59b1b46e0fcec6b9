# SPDX-License-Identifier: Apache-2.0
"""Binaries with GPU code by NVIDIA's own compilers, each made once and kept with what NVIDIA's cuobjdump lists in it.

usage: gpu_corpus.py [VERSION… | others]       makes what is missing

    corpus = gpu_corpus.get("12.4")   # the first time: some minutes
    corpus.binaries[0].path, .asked, .listed

`asked` is what the compiler was told to make (of other projects' binaries: what most of their modules have), `listed`
what cuobjdump finds in the file.
"""

import argparse
import collections
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, kept, toolkits
from support.cuda_rules import CUDA_OF_PTX, Code

RECIPE = "1"  # change it with the recipe below
PTX_OF_CUDA = {cuda: isa for isa, cuda in CUDA_OF_PTX.items()}
PROGRAM = """
#include <stdio.h>
#ifdef SEPARATE
extern __device__ float by_two(float value);
#else
__device__ float by_two(float value) { return value * 2; }
#endif
__global__ void scale(float* values) { values[threadIdx.x] = by_two(values[threadIdx.x]); }
extern "C" int run(void) {
  float* values;
  if (cudaMalloc(&values, 128) != cudaSuccess) return 1;
  scale<<<1, 32>>>(values);
  return cudaDeviceSynchronize();
}
extern "C" void* PyInit_kernel(void) { return run() ? nullptr : (void*)run; }
int main(void) { return run(); }
"""
SEPARATE = "__device__ float by_two(float value) { return value * 2; }\n"
ARCHITECTURES = {"11.2": (35, 37, 50, 52, 60, 61, 62, 70, 72, 75, 80, 86),
                 "11.8": (35, 37, 50, 52, 60, 61, 70, 75, 80, 86, 87, 89, 90),
                 "12.4": (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)}
# Pieces of several architectures; "p80" is PTX.
SEVERAL = (("60", "70", "80"), ("52", "61", "75", "86", "p86"), ("70", "p75"), ("80", "p70"), ("p52", "p80"),
           ("50", "60", "p60", "70", "80"), ("86", "p75", "p86"))
SEVERAL_12 = (("90a",), ("p90a",), ("90a", "p90a"), ("90", "90a"), ("80", "90a", "p80"), ("90a", "p90"))
# How a kernel is packed: name of the form, the file's ending, options of nvcc, sources.
FORMS = {
    "shared": (".so", ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-Xlinker", "-l:{cudart}"]),
    "extension": (".cpython-313-x86_64-linux-gnu.so", ["-shared", "-Xcompiler", "-fPIC"]),
    "dynamic": ("", ["-cudart", "none", "-Xlinker", "-l:{cudart}"]),
    "static": ("", ["-Xcompiler", "-static"]),
    "stripped": ("", []),
    "separate": ("", ["-rdc=true"]),
    "separate-shared": (".so", ["-rdc=true", "-shared", "-Xcompiler", "-fPIC"]),
    "compressed": ("", ["-Xfatbin", "-compress-all"]),
    "uncompressed": ("", ["-Xfatbin", "--compress=false"]),
    "compressed-shared": (".so", ["-Xfatbin", "-compress-all", "-shared", "-Xcompiler", "-fPIC"]),
    "archive": (".a", ["-lib"]),
    "object": (".o", ["-c"]),
    "fatbin": (".fatbin", ["-fatbin"]),
}
OF_FORMS = (("70", "p70"), ("80", "p80"), ("p75",), ("60", "75", "86", "p86"))
# Debian's nvlink does not find its libnvvm; that of 11.8 and 12.4 does not accept it either.
NVVM = ["-Xnvlink", "-nvvmpath=/mnt/nvvm"]
LINKED = ("program", "shared", "extension", "dynamic", "static", "stripped", "separate", "separate-shared",
          "compressed", "uncompressed", "compressed-shared", "dlto", "clang")


@dataclasses.dataclass(frozen=True)
class Binary:
    name: str
    toolkit: str
    form: str
    path: pathlib.Path
    asked: list   # [Code]
    listed: list  # [Code], also of the linker's empty code objects and of libcudadevrt

    @property
    def is_linked(self):
        return self.form in LINKED


@dataclasses.dataclass(frozen=True)
class Corpus:
    binaries: list
    left_out: dict  # {name: why it could not be made}


def _code(piece, toolkit):
    return Code("ptx", f"sm_{piece[1:]}", PTX_OF_CUDA[toolkit]) if piece[0] == "p" else Code("cubin", f"sm_{piece}")


def gencode(pieces):
    """nvcc's options. PTX and code of the same architecture come from one compilation."""
    words = []
    for arch, group in itertools.groupby(sorted(pieces, key=lambda one: one.strip("p")), lambda one: one.strip("p")):
        kinds = ",".join(f"compute_{arch}" if one[0] == "p" else f"sm_{arch}" for one in group)
        words += ["-gencode", f"arch=compute_{arch},code=[{kinds}]"]
    return words


def _recipes(toolkit):
    """[(name, form, ending, [words of nvcc], pieces)]."""
    rows = []
    for number in map(str, ARCHITECTURES[toolkit]):
        for pieces in ((number,), (f"p{number}",), (number, f"p{number}")):
            rows.append(("-".join(pieces), "program", "", gencode(pieces), pieces))
    several = (*SEVERAL, *(SEVERAL_12 if toolkit == "12.4" else ()))
    rows += [("-".join(pieces), "program", "", gencode(pieces), pieces) for pieces in several if len(pieces) > 1
             or "90a" in pieces[0]]
    cudart = "libcudart.so.12" if toolkit == "12.4" else "libcudart.so.11.0"
    for form, (ending, words) in FORMS.items():
        words = [word.format(cudart=cudart) for word in words]
        rows += [("-".join((form, *pieces)), form, ending, [*words, *gencode(pieces)], pieces) for pieces in OF_FORMS]
    for arch in ("70", "80", "86", *(("90", "90a") if toolkit == "12.4" else ())):
        rows.append((f"cubin-{arch}", "cubin", ".cubin", ["-cubin", f"-arch=sm_{arch}"], (arch,)))
    for arch in ("70", "80"):
        rows.append((f"ptx-{arch}", "ptx", ".ptx", ["-ptx", f"-arch=compute_{arch}"], (f"p{arch}",)))
        rows.append((f"dlto-{arch}", "dlto", "", ["-dlto", f"-arch=sm_{arch}", *NVVM], (arch, f"p{arch}")))
        lto = ["-dc", "-gencode", f"arch=compute_{arch},code=lto_{arch}"]
        rows.append((f"lto-object-{arch}", "lto-object", ".o", lto, ()))
    if toolkit == "11.2":
        rows += [(name, "clang", "", [], tuple(pieces)) for name, pieces in CLANG.items()]
    else:
        rows += [(f"all-major-{form}", form, ending, ["-arch=all-major", *words], ("all-major",))
                 for form, ending, words in (("program", "", []), ("extension", *FORMS["extension"]))]
    return rows


# Pieces of clang's programs, which it can make with toolkit 11.2.
CLANG = {"clang-70": ["70"], "clang-70-80": ["70", "80"], "clang-60-p60": ["60", "p60"], "clang-75-p75": ["75", "p75"],
         "clang-80-p80": ["80", "p80"], "clang-60-70-80-p60-p70-p80": ["60", "70", "80", "p60", "p70", "p80"]}


def _make_by_clang(root, path, name, pieces):
    """A program of this machine's clang with the toolkit in `root`."""
    with tempfile.TemporaryDirectory() as directory:
        cuda = pathlib.Path(directory)
        (cuda / "bin").mkdir()
        (cuda / "version.txt").write_text("CUDA Version 11.2.152\n")
        for link, target in {"include": "include", "lib64": "lib/x86_64-linux-gnu", "bin/ptxas": "bin/ptxas",
                             "bin/fatbinary": "bin/fatbinary", "nvvm": "lib/cuda/nvvm"}.items():
            (cuda / link).symlink_to(root / "usr" / target)
        words = [f"--cuda-gpu-arch=sm_{one}" for one in pieces if one[0] != "p"]
        words += ["--no-cuda-include-ptx=all", *(f"--cuda-include-ptx=sm_{one[1:]}" for one in pieces if one[0] == "p")]
        subprocess.run(["clang++", "-x", "cuda", f"--cuda-path={cuda}", *words, "-O1", "-o", path / name,
                        path / "program.cu", "-x", "none", root / "usr/lib/x86_64-linux-gnu/libcudart_static.a", "-ldl",
                        "-lrt", "-pthread"], check=True, capture_output=True, text=True)


def _asked(pieces, toolkit):
    if pieces == ("all-major",):
        majors = {number // 10 * 10 if number >= 40 else 35 for number in ARCHITECTURES[toolkit]}
        pieces = (*map(str, sorted(majors)), f"p{max(majors)}")
    return [_code(piece, toolkit) for piece in pieces]


def parse_dump(text):
    """{Code: how many pieces} of the headers that cuobjdump prints."""
    found = collections.Counter()
    for kind, target, version in re.findall(r"^Fatbin (elf|ptx|nvvm) code:\n=+\narch = (\S+)\ncode version = \[(\S+)\]",
                                            text, re.M):
        kind = {"elf": "cubin", "ptx": "ptx", "nvvm": "lto"}[kind]
        found[Code(kind, target, version.replace(",", ".") if kind == "ptx" else "")] += 1
    return found


def listed_by(toolkit, place, name):
    """{Code: how many pieces}: what cuobjdump says of a file below `place`, relocatable code too."""
    if name.endswith(".ptx"):
        text = (place / name).read_text()
        return {Code("ptx", re.search(r"^\.target (sm_\w+)", text, re.M)[1],
                     re.search(r"^\.version (\S+)", text, re.M)[1]): 1}
    if name.endswith(".cubin"):
        told = toolkit.run(place, "cuobjdump", "--list-elf", name)
        return {Code("cubin", re.search(r"\.(sm_\w+)\.cubin", told)[1]): 1}
    return parse_dump(toolkit.run(place, "cuobjdump", "-all", name))


def _make(version, path):
    toolkit = toolkits.get(version)
    path.mkdir()
    (path / "program.cu").write_text(PROGRAM)
    (path / "separate.cu").write_text(SEPARATE)
    (path / "nvvm/lib64").mkdir(parents=True)
    (path / "nvvm/lib64/libnvvm.so").symlink_to("/usr/lib/x86_64-linux-gnu/libnvvm.so.4")
    rows, left_out, recipes = [], {}, _recipes(version)
    for number, (name, form, ending, words, pieces) in enumerate(recipes, 1):
        file = f"{name}{ending}"
        is_separate = form.startswith("separate")
        sources = ["-DSEPARATE", "program.cu", "separate.cu"] if is_separate else ["program.cu"]
        try:
            if form == "clang":
                _make_by_clang(toolkit.root, path, file, pieces)
            else:
                toolkit.run(path, "nvcc", *words, "-o", file, *sources)
            if form == "stripped":
                toolkit.run(path, "strip", file)
        except subprocess.CalledProcessError as error:
            left_out[name] = error.stderr.strip().splitlines()[-1]
            continue
        except FileNotFoundError as error:
            left_out[name] = str(error)
            continue
        finally:
            print(f"== CUDA {version}: {number} of {len(recipes)}: {name}", left_out.get(name, ""), file=sys.stderr,
                  flush=True)
        asked, listed = _asked(pieces, version), sorted(listed_by(toolkit, path, file))
        if form == "clang":  # which chooses a PTX version of its own
            isa = next((one.isa for one in listed if one.isa), "")
            asked = [dataclasses.replace(one, isa=isa) if one.isa else one for one in asked]
        rows.append({"name": name, "form": form, "file": file, "asked": [dataclasses.astuple(one) for one in asked],
                     "listed": [dataclasses.astuple(one) for one in listed]})
    if len(left_out) > len(recipes) // 10:
        raise RuntimeError(f"nvcc {version} makes {len(rows)} of {len(recipes)} binaries; {left_out}")
    (path / "corpus.json").write_text(json.dumps({"binaries": rows, "left_out": left_out}, indent=1))


def kept_name(version):
    return f"gpu-corpus-{version}-{RECIPE}"


@functools.cache
def get(version):
    """The Corpus of a toolkit. Errors: toolkits.Unavailable."""
    toolkits.real_drivers.check_all_asked()
    if not (kept.cache() / kept_name(version)).exists():
        toolkits.get(version)
    place = kept.directory(kept_name(version), functools.partial(_make, version))
    told = json.loads((place / "corpus.json").read_text())
    return Corpus([Binary(f"{version}/{row['name']}", version, row["form"], place / row["file"],
                          [Code(*one) for one in row["asked"]], [Code(*one) for one in row["listed"]])
                   for row in told["binaries"]], told["left_out"])


# ---- binaries of others -------------------------------------------------------------------------

# Name: where it comes from, its file, and the toolkit that it was made with, as it says in its text (NCCL), or as the
# version of its PTX says (npm's, which have libcudart.so.12 among the libraries that they need).
OF_OTHERS = {
    "whisper.cpp": ("npm", "@fugood/node-whisper-linux-x64-cuda@1.1.3", "index.node", "12"),
    "llama.cpp": ("npm", "@fugood/node-llama-linux-x64-cuda@1.7.15", "index.node", "12"),
    "nccl-2.22": ("trixie", "libnccl2", "libnccl.so.2.22.3", "12.1"),
    "nccl-2.29": ("sid", "libnccl2", "libnccl.so.2.29.7", "12.4"),
    "rocrand-5.3": ("bookworm", "librocrand1", "librocrand.so.1.1", ""),
    "rocrand-5.7": ("trixie", "librocrand1", "librocrand.so.1.1", ""),
    "rocfft-6.1": ("trixie", "librocfft0", "librocfft.so.0.1", ""),
}


def _listed_of_amd(place, name):
    """{Code: how many bundles} of a library, as clang's bundler lists them."""
    section, one = place / "section", place / "bundle"
    subprocess.run(["objcopy", "--dump-section", f".hip_fatbin={section}", place / name, place / "none"], check=True)
    data, found = section.read_bytes(), collections.Counter()
    starts = [match.start() for match in re.finditer(b"__CLANG_OFFLOAD_BUNDLE__", data)]
    for start, end in zip(starts, [*starts[1:], len(data)]):
        one.write_bytes(data[start:end])
        told = subprocess.run(["clang-offload-bundler-14", "--list", "--type=o", f"--inputs={one}"], check=True,
                              capture_output=True, text=True).stdout
        found.update(Code("amd", entry.rpartition("--")[2]) for entry in told.split() if "amdgcn" in entry)
    for file in (section, one, place / "none"):
        file.unlink()
    return found


def _fetch(source, package, file, place):
    """Puts the file of a package of npm or Debian into `place`."""
    with tempfile.TemporaryDirectory() as directory:
        if source == "npm":
            subprocess.run(["npm", "pack", "--silent", package], cwd=directory, check=True, capture_output=True)
            subprocess.run("tar -xzf *.tgz", shell=True, cwd=directory, check=True)
        else:
            debian.download(source, "main contrib non-free", package, directory)
        (found,) = (path for path in pathlib.Path(directory).rglob(file) if not path.is_symlink())
        shutil.copy(found, place)


def _make_others(path):
    path.mkdir()
    rows = []
    for name, (source, package, file, cuda) in OF_OTHERS.items():
        target = f"{name}.so"
        _fetch(source, package, file, path / target)
        listed = listed_by(toolkits.get("12.4"), path, target) if cuda else _listed_of_amd(path, target)
        print(f"== {name}", *(f"{one.target} {one.isa}".strip() for one in listed), file=sys.stderr, flush=True)
        # The pieces of a few modules are no code for what the others do.
        most = [one for one in sorted(listed) if listed[one] * 2 > max(listed.values())]
        rows.append({"name": name, "file": target, "cuda": cuda, "asked": [dataclasses.astuple(one) for one in most],
                     "listed": [dataclasses.astuple(one) for one in sorted(listed)]})
    (path / "corpus.json").write_text(json.dumps({"binaries": rows}, indent=1))


@functools.cache
def others():
    """[Binary] of other projects; `toolkit` is "" of AMD's code. Errors: toolkits.Unavailable."""
    toolkits.real_drivers.check_all_asked()
    try:
        place = kept.directory(f"gpu-corpus-others-{RECIPE}", _make_others)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        raise toolkits.Unavailable(f"binaries of others cannot be had: {error}") from error
    rows = json.loads((place / "corpus.json").read_text())["binaries"]
    made = []
    for row in rows:
        asked, listed = ([Code(*one) for one in row[key]] for key in ("asked", "listed"))
        cuda = row["cuda"]
        if cuda == "12":
            cuda = CUDA_OF_PTX[next(one.isa for one in listed if one.isa)]
        made.append(Binary(f"others/{row['name']}", cuda, "others", place / row["file"], asked, listed))
    return made


# ---- the command --------------------------------------------------------------------------------

def _main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("version", nargs="*", help=f"of {', '.join(toolkits.VERSIONS)}; all unless told")
    os.nice(5)
    for version in parser.parse_args().version or [*toolkits.VERSIONS, "others"]:
        try:
            if version == "others":
                print("others:", *(one.name for one in others()))
                continue
            corpus = get(version)
        except toolkits.Unavailable as error:
            print(f"{version}: skipped: {error}")
            continue
        print(f"{version}: {len(corpus.binaries)} binaries", *(f"; not made: {name}: {why}"
                                                               for name, why in corpus.left_out.items()))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
