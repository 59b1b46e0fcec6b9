#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to know whether an image fits: ranking, scanning, asking a registry, and what the
scan adds to a pull.

The image is made of real libraries of this machine: those of a CUDA toolkit where one is here,
else what is below /usr/lib. Pulls with and without the scan take turns, each into a new store.

usage: ./dev bench match [--runs N] [--directory DIR] [--tree DIR] [--json FILE] [--plot FILE]
                         [--check]
"""

import contextlib
import json
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import statistics
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import kept, registry, registry_front, side_by_side  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402

ENTRIES = 1000
LAYERS = 4
WITH, WITHOUT = "berth pull", "berth pull --no-scan"
GOALS = {  # name: (limit, unit)
    "ranking 1,000 entries": (2.0, "ms"),
    "scan of an unpacked GB on one core": (1.0, "s"),
    "requests for the verdict on a remote image": (3, ""),
    "bytes for it": (256 << 10, "B"),
    "pull with the scan ÷ pull without": (1.05, "×"),
}


# ---- an image of real libraries -----------------------------------------------------------------

def usual_tree():
    found = sorted(pathlib.Path("/usr/local").glob("cuda-*/lib"))
    return found[-1] if found else pathlib.Path("/usr/lib/x86_64-linux-gnu")


def usual_cuobjdump():
    """This machine's, else that of the newest toolkit in the tests' cache, or None."""
    kept_ones = sorted(kept.cache().glob("cuda-toolkit-*/root/usr/bin/cuobjdump"))
    return shutil.which("cuobjdump") or (kept_ones[-1] if kept_ones else None)


def files_of(tree, most):
    """Those whose sizes add up to `most` bytes, the same in every run."""
    files, total = [], 0
    for path in sorted(p for p in tree.rglob("*") if p.is_file() and not p.is_symlink()):
        if total + path.stat().st_size > most:
            continue
        files.append(path)
        total += path.stat().st_size
    return files, total


def push_image(server, work, files):
    """An image of some layers, as buildah or docker would have packed them; its size."""
    tars = []
    for number in range(LAYERS):
        listed = work / f"files-{number}"
        listed.write_text("".join(f"{path}\n" for path in files[number::LAYERS]))
        tar = work / f"layer-{number}.tar"
        subprocess.run(["tar", "-cf", tar, "-P", "--transform", "s,^/,opt/,", "-T", listed],
                       check=True)
        tars.append(tar)
    layout = work / "layout"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", f"{layout}:bench")
    for tar in tars:
        run("umoci", "raw", "add-layer", "--image", f"{layout}:bench", tar)
        tar.unlink()
    run("umoci", "config", "--image", f"{layout}:bench", "--config.cmd", "/opt/none")
    name = f"{server.address}/bench/match:latest"
    run("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:bench", f"docker://{name}")
    shutil.rmtree(layout)
    return name


# ---- measuring ----------------------------------------------------------------------------------

def berth_in(programs, work, store):
    return [str(programs / "berth"), "--root", str(work / store), "--state", str(work / "state")]


def forget(work, store):
    """What was found, so that it is looked for again."""
    for path in (work / store).rglob("facts.json"):
        path.unlink()
    shutil.rmtree(work / "state/facts", ignore_errors=True)


def scan_seconds(programs, work, image, runs):
    argv = berth_in(programs, work, "kept")
    taken = []
    for _ in range(runs + 1):
        forget(work, "kept")
        before = time.perf_counter()
        run("taskset", "-c", "0", *argv, "scan", image)
        taken.append(time.perf_counter() - before)
    return statistics.median(taken[1:])


def scan_instructions(programs, work, image):
    """In user mode, as callgrind counts them; None without valgrind. They hardly vary on a busy machine."""
    if not shutil.which("valgrind"):
        return None
    forget(work, "kept")
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/callgrind",
                           *berth_in(programs, work, "kept"), "scan", image],
                          check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def cuobjdump_seconds(cuobjdump, files):
    """What NVIDIA's program takes to list the code objects of those files that it can read."""
    before = time.perf_counter()
    for path in files:
        subprocess.run(["taskset", "-c", "0", cuobjdump, "--list-elf", path], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - before


def measure_pulls(contenders, work, runs):
    """Each in turn, into an empty store, with the registry's files in the page cache."""
    for round_number in range(runs + 1):
        for contender in random.sample(contenders, len(contenders)):
            shutil.rmtree(work / "new", ignore_errors=True)
            os.sync()
            before = time.perf_counter()
            run(*contender.argv)
            if round_number:
                contender.milliseconds.append((time.perf_counter() - before) * 1000)
    shutil.rmtree(work / "new", ignore_errors=True)


def remote_verdict(programs, work, server, image):
    """(requests, bytes) of `berth match` where facts are published."""
    argv = berth_in(programs, work, "kept")
    run(*argv, "scan", "--attach", image)
    with registry_front.running(server, referrers=False) as front:
        reference = front.address + "/" + image.split("/", 1)[1]
        subprocess.run([*berth_in(programs, work, "none"), "match", reference], check=False,
                       capture_output=True)
        return len(front.requests), sum(size for _, _, size in front.requests)


def more_options(parser):
    parser.add_argument("--tree", type=pathlib.Path, default=usual_tree(),
                        help="where the image's files are taken from")
    parser.add_argument("--megabytes", type=int, default=1500, help="of files in the image")
    parser.add_argument("--cuobjdump", default=usual_cuobjdump(),
                        help="NVIDIA's program, to compare the scan with")
    parser.set_defaults(runs=11)


def main():
    options = side_by_side.begin("match", __doc__, more_options)
    programs = options.programs.resolve()
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        server = stack.enter_context(registry.running(work / "registry"))
        files, size = files_of(options.tree, options.megabytes * 1_000_000)
        image = push_image(server, work, files)
        run(*berth_in(programs, work, "kept"), "pull", "--quiet", image)

        ranked = json.loads(run(programs / "bench_match_rank", ENTRIES))
        scan = scan_seconds(programs, work, image, 5)
        instructions = scan_instructions(programs, work, image)
        dumped = cuobjdump_seconds(options.cuobjdump, files) if options.cuobjdump else None
        requests, answered = remote_verdict(programs, work, server, image)
        ours = version(programs / "berth", "--version")
        argv = [*berth_in(programs, work, "new"), "pull", "--quiet"]
        contenders = [Contender(WITH, [*argv, image], ours),
                      Contender(WITHOUT, [*argv, "--no-scan", image], ours)]
        measure_pulls(contenders, work, options.runs)

    found = {contender.name: contender for contender in contenders}
    pairs = zip(found[WITH].milliseconds, found[WITHOUT].milliseconds)
    values = {
        "ranking 1,000 entries": ranked["median_ms"],
        "scan of an unpacked GB on one core": scan / (size / 1e9),
        "requests for the verdict on a remote image": requests,
        "bytes for it": answered,
        "pull with the scan ÷ pull without": statistics.median(a / b for a, b in pairs),
    }
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} pulls each, in turns; an "
          f"image of {len(files)} files, {size / 1e9:.2f} GB, from {options.tree}\n"
          f"with the words of all entries, as 'berth match' has them: "
          f"{ranked['explained_median_ms']:.3f} ms\n"
          f"the scan: {f'{instructions / 1e6:.0f} million instructions' if instructions else 'no valgrind'}, "
          f"{f'{scan / dumped:.3f} of the time of cuobjdump --list-elf' if dumped else 'no cuobjdump'}\n")
    side_by_side.tell(options, contenders, values, GOALS,
                      {"files": len(files), "bytes": size, "scan_s": scan, "ranked": ranked,
                       "scan_instructions": instructions, "cuobjdump_s": dumped},
                      WITHOUT,
                      "milliseconds to pull")


if __name__ == "__main__":
    main()
