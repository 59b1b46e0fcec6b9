#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs that containers outlive their command: memory of what stays with each, `ps` with a
thousand of them, `exec`, starts one after the other, and a gigabyte of log; podman beside it in the
same run where it does the same.

usage: ./dev bench lifecycle [--runs N] [--containers N] [--detached N] [--log-bytes N]
                             [--directory DIR] [--json FILE] [--plot FILE] [--check]
"""

import contextlib
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, registry, side_by_side  # noqa: E402
from support.bench_peers import Berth, Podman, podman_cgroups, remove_podman_cgroups  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402

RUNNING = 20
WATCHERS = ("berth-monitor", "berth-holder")
LINE = "x" * 79

GOALS = {  # name: (limit, unit)
    "PSS with one container": (1_000_000, "bytes"),
    "PSS each with 20 containers": (300_000, "bytes"),
    "ps with 1,000 containers": (30.0, "ms"),
    "exec true": (5.0, "ms"),
    "berth exec ÷ podman exec": (0.1, "×"),
    "detached starts ÷ podman": (0.1, "×"),
    "json-file ÷ cat": (3.0, "×"),
    "local ÷ cat": (1.2, "×"),
    "json-file ÷ podman": (0.3, "×"),
    "local ÷ podman": (0.3, "×"),
    "monitor with a busy log": (1_000_000, "bytes PSS"),
}


# ---- memory --------------------------------------------------------------------------------------

def watchers(programs):
    """The processes that stay with containers: /proc entries of berth-monitor and berth-holder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            program = pathlib.Path(os.readlink(entry / "exe")) if entry.name.isdigit() else None
            if program and program.parent == programs and program.name in WATCHERS:
                found.append(entry)
    return found


def pss_bytes(entries):
    total = 0
    for entry in entries:
        with contextlib.suppress(OSError):
            lines = (entry / "smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def memory(berth, programs, values):
    ids = [run(*berth.argv, "run", "-d", "--network", "none", berth.image, "sleep", "3600").strip()]
    time.sleep(0.5)
    values["PSS with one container"] = pss_bytes(watchers(programs))
    for _ in range(RUNNING - 1):
        ids.append(run(*berth.argv, "run", "-d", "--network", "none", berth.image, "sleep", "3600").strip())
    time.sleep(0.5)
    values["PSS each with 20 containers"] = pss_bytes(watchers(programs)) // RUNNING
    return ids


# ---- many ----------------------------------------------------------------------------------------

def time_of(argv):
    started = time.perf_counter()
    run(*argv)
    return (time.perf_counter() - started) * 1000


def many(berth, options, values):
    """`ps -a` beside 20 that run and the rest that was created."""
    for _ in range(max(0, options.containers - RUNNING)):
        run(*berth.argv, "create", berth.image, "true")
    run(*berth.argv, "ps", "-a")
    values["ps with 1,000 containers"] = statistics.median(
        time_of([*berth.argv, "ps", "-a"]) for _ in range(options.runs))


def starts(berth, podman, options, values):
    """The seconds that detached containers take, one after the other."""
    def all_of(argv, remove):
        ids = []
        started = time.perf_counter()
        for _ in range(options.detached):
            ids.append(run(*argv).strip())
        elapsed = time.perf_counter() - started
        run(*remove, *ids)
        return elapsed

    ours = all_of([*berth.argv, "run", "-d", "--network", "none", berth.image, "true"],
                  [*berth.argv, "rm", "-f"])
    print(f"{options.detached} detached starts: berth {ours:.2f} s")
    if podman is None:
        return
    theirs = all_of([*podman.argv, "run", "-d", "--network", "none", *Podman.LIMITS, berth.image,
                     "true"], [*podman.argv, "rm", "-f"])
    print(f"{options.detached} detached starts: podman {theirs:.2f} s")
    values["detached starts ÷ podman"] = ours / theirs


# ---- logs ----------------------------------------------------------------------------------------

def produce(size):
    return f"yes {LINE} | head -c {size}"


def cat_seconds(work, size):
    """The floor: the same bytes through a pipe into a file."""
    target = work / "cat.out"
    started = time.perf_counter()
    subprocess.run(f"{produce(size)} | cat > {target}", shell=True, check=True)
    elapsed = time.perf_counter() - started
    target.unlink()
    return elapsed


@contextlib.contextmanager
def sampled(watched):
    """A list that ends as [most bytes of PSS meanwhile], looked at five times a second."""
    most, over = [0], threading.Event()

    def look():
        while not over.wait(0.2):
            most[0] = max(most[0], pss_bytes(watched()))
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def log_seconds(argv, wait, remove, image, size):
    """From the start of the container to its end; and the PSS of who keeps its log."""
    before = pss_bytes(remove["watchers"]())
    with sampled(remove["watchers"]) as most:
        started = time.perf_counter()
        identity = run(*argv, image, "sh", "-c", produce(size)).strip()
        run(*wait, identity)
        elapsed = time.perf_counter() - started
    run(*remove["argv"], identity)
    return elapsed, most[0] - before


def logs(berth, podman, programs, work, options, values):
    size = options.log_bytes
    floor = min(cat_seconds(work, size) for _ in range(2))
    print(f"{size:,} bytes of 80-byte lines: cat {floor:.2f} s")
    ours = {}
    remove = {"argv": [*berth.argv, "rm", "-f"], "watchers": lambda: watchers(programs)}
    for driver in ("json-file", "local"):
        argv = [*berth.argv, "run", "-d", "--network", "none", "--log-driver", driver,
                "--log-opt", "max-size=100m", "--log-opt", "max-file=3"]
        ours[driver], peak = log_seconds(argv, [*berth.argv, "wait"], remove, berth.image, size)
        print(f"  berth {driver} {ours[driver]:.2f} s, its monitor has {peak:,} bytes PSS at most")
        values[f"{driver} ÷ cat"] = ours[driver] / floor
        if driver == "json-file":
            values["monitor with a busy log"] = peak
    if podman is None:
        return
    argv = [*podman.argv, "run", "-d", "--network", "none", *Podman.LIMITS, "--log-driver",
            "k8s-file", "--log-opt", "max-size=100m"]
    remove = {"argv": [*podman.argv, "rm", "-f"], "watchers": lambda: []}
    theirs, _ = log_seconds(argv, [*podman.argv, "wait"], remove, berth.image, size)
    print(f"  podman k8s-file {theirs:.2f} s")
    for driver, seconds in ours.items():
        values[f"{driver} ÷ podman"] = seconds / theirs


# ---- exec ----------------------------------------------------------------------------------------

def executions(berth, podman, identity):
    found = [Contender("berth exec", [*berth.argv, "exec", identity, "true"], berth.version)]
    if podman is not None:
        theirs = run(*podman.argv, "run", "-d", "--network", "none", *Podman.LIMITS, berth.image,
                     "sleep", "3600").strip()
        found.append(Contender("podman exec", [*podman.argv, "exec", theirs, "true"],
                               version("podman", "--version")))
    return side_by_side.tried(found)


def main():
    options = side_by_side.begin("lifecycle", __doc__, lambda parser: (
        parser.add_argument("--containers", type=int, default=1000),
        parser.add_argument("--detached", type=int, default=200),
        parser.add_argument("--log-bytes", type=int, default=1_000_000_000)))
    values = {}
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        server = stack.enter_context(registry.running(
            work / "registry", storage=debian_images.kept_storage()))
        stack.enter_context(side_by_side.hugetlb_hierarchy())
        stack.enter_context(side_by_side.state_directory(work / "run"))
        stack.callback(remove_podman_cgroups, podman_cgroups())
        image = f"{server.address}/{debian_images.IMAGES['docker']}"
        programs = options.programs.resolve()
        berth = Berth(programs, work, image)
        run(*berth.argv, "pull", "--quiet", image)
        podman = None
        with contextlib.suppress(OSError, RuntimeError):
            podman = Podman(work)
            run(*podman.argv, "pull", "--quiet", "--tls-verify=false", image)
        stack.callback(subprocess.run, ["umount", "--recursive", "--lazy", work / "podman"],
                       check=False, capture_output=True)
        ids = memory(berth, programs, values)
        stack.callback(lambda: run(*berth.argv, "rm", "-f", *run(*berth.argv, "ps", "-aq").split()))
        found = executions(berth, podman, ids[0])
        if podman is not None:
            stack.callback(lambda: run(*podman.argv, "rm", "-f", "--all", "--time", "0"))
        side_by_side.measure(found, options.runs, options.warm_up)
        many(berth, options, values)
        starts(berth, podman, options, values)
        logs(berth, podman, programs, work, options, values)

    by_name = {contender.name: contender for contender in found}
    values["exec true"] = by_name["berth exec"].median
    if "podman exec" in by_name:
        values["berth exec ÷ podman exec"] = (by_name["berth exec"].median
                                              / by_name["podman exec"].median)
    print(f"\n{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved\n")
    side_by_side.tell(options, found, values, GOALS, {}, "berth exec",
                      "milliseconds to start and end true in a running container")


if __name__ == "__main__":
    main()
