#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packs what a machine with an NVIDIA card needs to try Berth there: its static programs, a store with an image for
each of some programs with GPU code, and run.py, which runs them. No network, compiler or package is needed there.

usage: ./dev lent-card DIRECTORY [--programs DIRECTORY] [--few]

On that machine, in a copy of DIRECTORY, as root (or not: some steps then say that they cannot):

    python3 run.py OUT

writes OUT/evidence.json, OUT/summary.md and OUT/nvidia-smi.xml.
"""

import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support import gpu_corpus, images, kept, toolkits  # noqa: E402

RECIPE = "1"  # change it with what is compiled
LIMIT = 60 << 20  # of the whole directory
LARGEST_MANIFEST = 65536
SOURCE = HERE / "card.cu"
BENCH = HERE.parent.parent / "bench"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADED = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0")
APPLETS = ("sh", "cat", "ls", "true", "sleep", "tr", "sed", "env")
# berth-transfer has many libraries and is not needed: the store is ready.
PROGRAMS = ("berth", "berth-runtime", "berth-monitor", "berth-mps", "berth-cdi-hook", "berth-gpu-probe", "berth-init",
            "berth-hold", "berth-holder")
# The program of all steps but the verdicts: an old toolkit that knows the newest architectures.
MAIN = ("11.8", "card", ("52", "70", "80", "90", "p90"), ())
# Of which toolkit, what its name begins with, the pieces ("p80" is PTX), more options of nvcc.
JUDGED = (
    *(("12.4", "plain", (one,), ()) for one in ("50", "61", "70", "75", "80", "86", "89", "90", "90a")),
    *(("12.4", "plain", (one,), ()) for one in ("p50", "p70", "p80", "p89", "p90", "p90a")),
    *(("12.4", "plain", pieces, ()) for pieces in (("80", "p80"), ("60", "70", "80"), ("90", "p90"), ("86", "p75"))),
    ("12.4", "compressed", ("70", "p70"), ("-Xfatbin", "-compress-all")),
    ("12.4", "relocatable", ("80", "p80"), ("-rdc=true",)),
    *(("11.8", "plain", pieces, ()) for pieces in (("35",), ("80",), ("90",), ("p80",), ("p90",), ("70", "p75"))),
    *(("11.2", "plain", pieces, ()) for pieces in (("37",), ("80",), ("p35",), ("p80",), ("75", "86", "p86"))),
)


def name_of(toolkit, form, pieces):
    return f"{form}-{toolkit}-{'-'.join(pieces)}"


def _of(toolkit):
    """{name: its row} of a toolkit."""
    rows = {} if toolkit != MAIN[0] else {"card": MAIN}
    return {**rows, **{name_of(*one[:3]): one for one in JUDGED if one[0] == toolkit}}


# ---- compiled once ------------------------------------------------------------------------------

def _make_programs(toolkit, path):
    path.mkdir()
    shutil.copy(SOURCE, path)
    for name, (_, _, pieces, words) in _of(toolkit).items():
        toolkits.get(toolkit).run(path, "nvcc", "-std=c++14", *words, *gpu_corpus.gencode(pieces), "-o", name,
                                  SOURCE.name)
        print(f"== {name}", file=sys.stderr, flush=True)


def _compile_in_one(path, sources, *words):
    """These files of bench/ by this machine's compiler, as one: headers are parsed once."""
    common = sorted(f"common/{one.name}" for one in BENCH.glob("common/*.cpp"))
    (path / "all.cpp").write_text("".join(f'#include "bench/{one}"\n' for one in (*common, *sources)))
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{BENCH.parent / 'src'}", f"-I{BENCH.parent}", "all.cpp", *words],
                   cwd=path, check=True)
    (path / "all.cpp").unlink()


def _make_bench(base, path):
    """The program of pooling, and that of networks without the file that needs cuBLAS, as an object."""
    path.mkdir()
    shutil.copytree(BENCH, path / "bench")
    toolkit = toolkits.get(MAIN[0])
    toolkit.run(path, "nvcc", "-std=c++17", "-O3", "-arch=all-major", "-Xcompiler=-fPIE", "-I.", "-c",
                "bench/pooling/pooling_cuda.cu", "-o", "pooling_cuda.o")
    _compile_in_one(path, ("pooling/matrix.cpp", "pooling/main.cpp"), "pooling_cuda.o", base,
                    toolkit.root / LIBRARIES / "libcudart_static.a", "-static-libstdc++", "-static-libgcc", "-ldl",
                    "-lrt", "-pthread", "-o", "pooling")
    networks = sorted(one.name for one in BENCH.glob("networks/*.cpp") if one.name != "device_cpu.cpp")
    _compile_in_one(path, [f"networks/{name}" for name in networks], "-fPIE", "-c", "-o", "networks.o")
    shutil.copy2(base, path)
    shutil.rmtree(path / "bench")
    (path / "pooling_cuda.o").unlink()


def bench(berth_programs):
    make = functools.partial(_make_bench, berth_programs.parent / "src/base/libberth_base.a")
    return kept.directory(f"lent-card-bench-{RECIPE}", make)


def compiled(berth_programs, few):
    """{name: the program} that are kept. `berth_programs` is below its build directory."""
    found = {}
    for toolkit in (MAIN[0],) if few else toolkits.VERSIONS:
        place = kept.directory(f"lent-card-{toolkit}-{RECIPE}", functools.partial(_make_programs, toolkit))
        found.update((name, place / name) for name in _of(toolkit))
    if not few:
        found["pooling"] = bench(berth_programs) / "pooling"
    return found


# ---- images -------------------------------------------------------------------------------------

@functools.cache
def base_entries():
    """busybox, and what the programs load but for the driver."""
    root = toolkits.get("12.4").root
    loader = f"{LIBRARIES}/ld-linux-x86-64.so.2"
    busybox = pathlib.Path("/bin/busybox").read_bytes()
    return [*(images.directory(name) for name in ("usr", "usr/bin", "usr/lib", LIBRARIES, "usr/lib64", "opt", "etc",
                                                  "dev", "proc", "sys", "run", "tmp", "root")),
            images.symlink("lib", "usr/lib"), images.symlink("lib64", "usr/lib64"), images.symlink("bin", "usr/bin"),
            images.symlink("usr/lib64/ld-linux-x86-64.so.2", f"/{loader}"),
            images.file("usr/bin/busybox", busybox, mode=0o755),
            *(images.symlink(f"usr/bin/{name}", "busybox") for name in APPLETS),
            images.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            *(images.file(name, (root / name).resolve().read_bytes(), mode=0o755)
              for name in (loader, *(f"{LIBRARIES}/{one}" for one in LOADED)))]


def write_layout(programs, place):
    """An OCI layout with an image for each program, which is its command."""
    (place / "blobs/sha256").mkdir(parents=True)
    base, entries = images.layer(base_entries()), []
    for name, path in programs.items():
        layer = images.layer([images.file(f"opt/{name}", path.read_bytes(), mode=0o755)])
        image = images.build([base, layer], {"Cmd": [f"/opt/{name}"], "Env": ["PATH=/usr/bin"]}, compression="none")
        for digest, data in {**image.blobs, image.digest: image.manifest}.items():
            (place / "blobs/sha256" / digest.removeprefix("sha256:")).write_bytes(data)
        entries.append({"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest),
                        "annotations": {"io.containerd.image.name": f"localhost/{name}:1"}})
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def load(berth, programs, store):
    with tempfile.TemporaryDirectory() as directory:
        write_layout(programs, pathlib.Path(directory))
        subprocess.run([berth, "--root", store, "--state", f"{directory}/state", "load", "--quiet", "--input",
                        directory], check=True, stdin=subprocess.DEVNULL)
    # The layers are unpacked, and nothing pushes them: of the blobs only manifests and configurations are read.
    for blob in (store / "blobs/sha256").iterdir():
        if blob.stat().st_size > LARGEST_MANIFEST:
            blob.unlink()


# ---- the directory ------------------------------------------------------------------------------

def _add(tar, path, name):
    """As root's, whoever packs."""
    def owned(info):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info
    tar.add(path, name, filter=owned)


def pack(berth_programs, target, few=False):
    target.mkdir(parents=True, exist_ok=True)
    programs = compiled(berth_programs, few)
    judged = {name_of(*one[:3]): {"toolkit": one[0], "pieces": one[2]} for one in JUDGED
              if name_of(*one[:3]) in programs}
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        (place / "bin").mkdir()
        for name in PROGRAMS:
            shutil.copy2(berth_programs / name, place / "bin")
            subprocess.run(["strip", place / "bin" / name], check=False, capture_output=True)
        load(berth_programs / "berth", programs, place / "store")
        (place / "programs").mkdir()
        for name in ("card", "pooling"):
            if name in programs:
                shutil.copy2(programs[name], place / "programs" / name)
        (place / "root.tar").write_bytes(images.layer(base_entries()))
        if not few:
            shutil.copytree(BENCH, place / "networks/bench", ignore=shutil.ignore_patterns("*.cpp"))
            for name in ("networks.o", "libberth_base.a"):
                shutil.copy2(bench(berth_programs) / name, place / "networks")
        (place / "pack.json").write_text(json.dumps({"judged": judged}, indent=1))
        with tarfile.open(target / "lent-card.tar.gz", "w:gz", compresslevel=6) as tar:
            for one in sorted(place.iterdir()):
                _add(tar, one, one.name)
    for name in ("run.py", "steps.py"):
        shutil.copy2(HERE / name, target)
    size = sum(one.stat().st_size for one in target.iterdir())
    if size > LIMIT:
        sys.exit(f"pack.py: '{target}' has {size >> 20} MiB, which is over {LIMIT >> 20}")
    return size


def _main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, default=BENCH.parent / "build/release/bin")
    parser.add_argument("--few", action="store_true", help="fewer programs: for a rehearsal")
    options = parser.parse_args()
    os.nice(5)
    try:
        size = pack(options.programs.resolve(), options.directory, options.few)
    except toolkits.Unavailable as error:
        sys.exit(f"pack.py: {error}")
    print(f"{options.directory}: {size / (1 << 20):.1f} MiB; on the machine with the card: python3 run.py OUT")


if __name__ == "__main__":
    _main()
