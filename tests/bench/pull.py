#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to pull a large image, beside podman and docker in the same run, and what of that
nobody could save.

The image is made of Debian's packages: several GB, about a hundred thousand files, a layer of more
than 1.5 GB compressed (support/large_image.py; built once, kept in BERTH_TEST_CACHE). A
docker-registry on loopback serves it. The engines take turns, each into a new store, with the page
cache dropped before; afterwards each pulls an image that shares all layers but a small one. The
stores lie on an ext4 of their own that is made anew for each turn, in a file of --directory.

The floor is what every pull has to do: inflate the layers, hash them compressed and uncompressed,
write what they hold. Each is measured alone, on one thread. No pipeline ends before the longest of
them has gone through the largest layer, nor before the processors have done them all.

Memory is the most anonymous memory (RssAnon) that the engine's processes had together, looked at
ten times a second: pages of files that are mapped, which the kernel may take back, are not in it.
The report names all that was resident, too.

usage: ./dev bench pull [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
"""

import contextlib
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, large_image, registry, registry_front, side_by_side  # noqa: E402
from support.bench_peers import Berth, Podman  # noqa: E402
from support.large_image import ALONE, FIRST, SECOND  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402

DIRECTORIES, EROFS = "berth pull", "berth --layer-format erofs pull"
STAGES = {  # of the floor, as bench_pull_floor names them
    "inflate": "inflate (ISA-L)",
    "sha256_compressed": "SHA-256 of the compressed bytes",
    "sha256_uncompressed": "SHA-256 of the uncompressed bytes",
    "tree": "write as files",
    "one_file": "write as one file",
}
ALWAYS = ["inflate", "sha256_compressed", "sha256_uncompressed"]
LAST_STAGE = {DIRECTORIES: "tree", EROFS: "one_file"}
DOCUMENTS = 64 << 10  # bytes of manifests, configs and errors beside a layer
TICKS = os.sysconf("SC_CLK_TCK")


# ---- what an engine's processes use --------------------------------------------------------------

def family(pid):
    """A process and all that descend from it."""
    found = [pid]
    for member in found:
        for children in pathlib.Path(f"/proc/{member}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in children.read_text().split()]
    return found


def resident_bytes(pids):
    """(anonymous memory, all memory) that the processes have."""
    found = {"RssAnon:": 0, "VmRSS:": 0}
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                name, _, rest = line.partition("\t")
                if name in found:
                    found[name] += int(rest.split()[0]) * 1024
    return tuple(found.values())


def cpu_seconds(pids):
    """Of processes and of those children of theirs that have ended."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS


@contextlib.contextmanager
def sampled(pid):
    """A list of the most bytes that the process and its family have had: anonymous, and all."""
    most, over = [0, 0], threading.Event()

    def look():
        while not over.wait(0.1):
            most[:] = map(max, most, resident_bytes(family(pid)))
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


# ---- engines -------------------------------------------------------------------------------------

class Disk:
    """A file system of the bench's own: always as new, and gone at once, where a hundred thousand
    files take minutes to remove on some. It lies in a sparse file, past the page cache."""
    SIZE = 32 << 30

    def __init__(self, work):
        self.image, self.point = work / "disk.img", work / "disk"
        self.point.mkdir()

    def renew(self):
        self.unmount()
        with open(self.image, "wb" if not self.image.exists() else "r+b") as image:
            image.truncate(self.SIZE)
        run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", "1000000", "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.image)
        device = run("losetup", "--find", "--show", "--direct-io=on", self.image).strip()
        try:
            run("mount", device, self.point)
        finally:
            run("losetup", "--detach", device)  # when it is unmounted
        for name in ("run", "tmp"):
            (self.point / name).mkdir()

    def unmount(self):
        for _ in range(50):
            if not os.path.ismount(self.point):
                return
            subprocess.run(["umount", "--recursive", self.point], check=False, capture_output=True)
            time.sleep(0.1)
        raise RuntimeError(f"{self.point}: still in use")


class Engine(Contender):
    """A contender whose store is on the disk; `second` has the milliseconds of the image that
    shares layers, the other lists are of the first pull."""

    def __init__(self, name, argv, version_text, disk, image):
        super().__init__(name, [str(arg) for arg in argv], version_text)
        self.disk, self.image = disk, image
        self.second, self.memory, self.resident, self.cpu, self.flush = [], [], [], [], []

    @contextlib.contextmanager
    def started(self):
        """Yields the daemon's process id, if there is one."""
        yield None

    def pull(self, tag, daemon=None):
        """(milliseconds, CPU seconds, most bytes of anonymous and of all memory) with nothing in
        the page cache. The registry's share of the processors is not in the CPU seconds."""
        drop_caches()
        before = cpu_seconds(family(daemon)) if daemon else 0
        started = time.perf_counter()
        process = subprocess.Popen([*self.argv, f"{self.image}:{tag}"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with sampled(daemon or process.pid) as most:
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            elapsed = (time.perf_counter() - started) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{self.name}: {said.decode()[-2000:]}")
        after = cpu_seconds(family(daemon)) if daemon else 0
        return elapsed, usage.ru_utime + usage.ru_stime + after - before, *most

    def take_turn(self):
        """The large image into an empty store, then the one that shares layers with it."""
        self.disk.renew()
        with self.started() as daemon:
            elapsed, cpu, memory, resident = self.pull(FIRST, daemon)
            self.flush.append(seconds_to_sync())
            self.milliseconds.append(elapsed)
            self.cpu.append(cpu)
            self.memory.append(memory)
            self.resident.append(resident)
            self.second.append(self.pull(SECOND, daemon)[0])


class Docker(Engine):
    """A dockerd of its own for each turn; the time it takes to start is not counted."""

    def __init__(self, disk, image):
        argv = ["docker", "--host", f"unix://{disk.point / 'docker.sock'}", "pull", "--quiet"]
        super().__init__("docker pull", argv, version("dockerd", "--version"), disk, image)

    @contextlib.contextmanager
    def started(self):
        with debian_images.docker_engine(self.disk.point, driver="overlay2"):
            yield int((self.disk.point / "docker.pid").read_text())


def engines(programs, disk, image):
    berth = Berth(programs, disk.point, image)
    found = [Engine(name, [*berth.argv, *flags, "pull", "--quiet"], berth.version, disk, image)
             for name, flags in ((DIRECTORIES, ()), (EROFS, ("--layer-format", "erofs")))]
    podman = [*Podman(disk.point).argv, "--storage-driver", "overlay", "pull", "--quiet",
              "--tls-verify=false"]
    for name, make in {
            "podman": lambda: Engine("podman pull", podman, version("podman", "--version"), disk,
                                     image),
            "docker": lambda: Docker(disk, image)}.items():
        if shutil.which(name):
            found.append(make())
        else:
            print(f"left out: {name}: it is not installed", file=sys.stderr)
    return found


# ---- measuring -----------------------------------------------------------------------------------

def seconds_to_sync():
    started = time.perf_counter()
    os.sync()
    return time.perf_counter() - started


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def measure(found, alone, runs):
    """Every engine once a round, in an order that is shuffled anew; `alone` gets the milliseconds
    of a pull of the second image's own layer alone."""
    for number in range(runs):
        for engine in random.sample(found, len(found)):
            engine.take_turn()
            if engine.name == DIRECTORIES:
                engine.disk.renew()
                alone.append(engine.pull(ALONE)[0])
            print(f"round {number + 1} of {runs}: {engine.name} {engine.milliseconds[-1]:,.0f} ms",
                  file=sys.stderr, flush=True)
        side_by_side.reap_orphans()


def requests_of_second(engine, server, layers):
    """(requests, bytes beside its own layer, layers asked for) of a pull of the image that shares
    the other layers."""
    engine.disk.renew()
    engine.pull(FIRST)
    with registry_front.running(server, referrers=False) as front:
        run(*engine.argv, f"{front.address}/{large_image.REPOSITORY}:{SECOND}")
        answered = sum(size for method, _, size in front.requests if method != "HEAD")
        asked = [path for _, path, _ in front.requests]
    fetched = [layer for layer in layers if any(path.endswith(layer.digest) for path in asked)]
    return len(asked), answered - layers[-1].size, len(fetched)


# ---- the floor -----------------------------------------------------------------------------------

def seconds_to_receive(server, layers):
    """All blobs out of the registry, one after the other, to nowhere."""
    drop_caches()
    base = f"{server.url}/v2/{large_image.REPOSITORY}/blobs"
    started = time.perf_counter()
    run("curl", "--silent", "--fail", *(f"{base}/{layer.digest}" for layer in layers),
        *["--output", "/dev/null"] * len(layers))
    return time.perf_counter() - started


def floor_seconds(measured, last):
    """What a pipeline on all processors needs that ends with the stage `last`."""
    stages = [*ALWAYS, last]
    largest = max(measured, key=lambda layer: layer["compressed"])
    chain = max(largest[stage]["s"] for stage in stages)
    work = sum(layer[stage]["cpu_s"] for layer in measured for stage in stages)
    return max(chain, work / os.cpu_count())


def tell_floor(measured, receive, floors, found):
    total = {key: sum(layer[key] for layer in measured) for key in ("compressed", "uncompressed")}
    largest = max(measured, key=lambda layer: layer["compressed"])
    print("the floor, each alone on one thread:   seconds     CPU   of the largest layer     MB/s")
    for stage, text in STAGES.items():
        seconds = sum(layer[stage]["s"] for layer in measured)
        cpu = sum(layer[stage]["cpu_s"] for layer in measured)
        size = total["compressed" if stage == "sha256_compressed" else "uncompressed"]
        print(f"  {text:36}{seconds:8.2f}{cpu:8.2f}{largest[stage]['s']:23.2f}"
              f"{size / seconds / 1e6:9,.0f}")
    print(f"  (receiving from the registry, not in the floor: {receive:.2f} s)")
    for engine in found:
        if engine.name in floors:
            seconds = engine.median / 1000
            print(f"{engine.name}: {seconds:.2f} s, floor on {os.cpu_count()} CPUs "
                  f"{floors[engine.name]:.2f} s: {seconds / floors[engine.name]:.2f} × it")
    print()


# ---- telling -------------------------------------------------------------------------------------

def tell_engines(found):
    """What the table of medians has no column for."""
    print("medians:                               CPU s   CPUs busy   MB anonymous   MB resident"
          "   s to sync after   ms second pull")
    for engine in found:
        cpu = statistics.median(engine.cpu)
        print(f"  {engine.name:34}{cpu:8.1f}{cpu / engine.median * 1000:12.2f}"
              f"{statistics.median(engine.memory) / 1e6:15.0f}"
              f"{statistics.median(engine.resident) / 1e6:14.0f}"
              f"{statistics.median(engine.flush):18.2f}"
              f"{statistics.median(engine.second):17,.0f}")
    print()


def erofs_goal(floor, fastest):
    """0.18 of the faster peer, or what the floor leaves where that is too little."""
    share = floor * 1000 / fastest
    return 1.25 * share if share > 0.15 else 0.18


def goals_and_values(found, floors, alone, beyond):
    """({name: (limit, unit)}, {name: figure})."""
    by_name = {engine.name: engine for engine in found}
    ours = by_name[DIRECTORIES]
    peers = [engine.median for engine in found if engine.name not in floors]
    goals = {"directories ÷ the faster peer": (0.30, "×")}
    values = {}
    if peers:
        goals["EROFS ÷ the faster peer"] = (erofs_goal(floors[EROFS], min(peers)), "×")
        values["directories ÷ the faster peer"] = ours.median / min(peers)
        if EROFS in by_name:
            values["EROFS ÷ the faster peer"] = by_name[EROFS].median / min(peers)
    goals |= {"most anonymous memory": (600_000_000, "bytes"),
              "second pull ÷ its own layer alone": (1.25, "×"),
              "layers asked for in a second pull": (1, ""),
              "bytes beside that layer": (DOCUMENTS, "bytes")}
    values |= {"most anonymous memory": max(max(engine.memory) for engine in found
                                            if engine.name in floors),
               "second pull ÷ its own layer alone": (statistics.median(ours.second)
                                                     / statistics.median(alone)),
               "layers asked for in a second pull": beyond["layers"],
               "bytes beside that layer": beyond["bytes"]}
    return goals, values


def bars(found, floors, measured, receive):
    """[(text, seconds, colour)] of the plot, the lowest first."""
    rows = [(text, sum(layer[stage]["s"] for layer in measured), "tab:gray")
            for stage, text in reversed(STAGES.items())]
    rows.append(("receive from the registry", receive, "tab:gray"))
    rows += [(f"floor of {name}", seconds, "tab:olive") for name, seconds in floors.items()
             if any(engine.name == name for engine in found)]
    for engine in sorted(found, key=lambda engine: engine.median):
        rows.append((engine.name, engine.median / 1000,
                     "tab:blue" if engine.name in floors else "tab:orange"))
    return rows


def plot(rows, path):
    pyplot = side_by_side.pyplot()
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(figsize=(8, 0.35 * len(rows) + 1))
    drawn = axes.barh([text for text, _, _ in rows], [seconds for _, seconds, _ in rows],
                      color=[colour for _, _, colour in rows])
    axes.bar_label(drawn, fmt="%.1f", padding=3)
    axes.set_xlabel("seconds; grey: all layers, each stage alone on one thread")
    axes.margins(x=0.1)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def main():
    options = side_by_side.begin("pull", __doc__, lambda parser: parser.set_defaults(runs=5))
    programs = options.programs.resolve()
    storage = large_image.kept_storage()
    layers = large_image.layers_of(storage, FIRST)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        disk = Disk(work)
        stack.callback(disk.unmount)
        os.environ["TMPDIR"] = str(disk.point / "tmp")  # podman puts blobs there
        server = stack.enter_context(registry.running(work / "registry", storage=storage))
        found = engines(programs, disk, f"{server.address}/{large_image.REPOSITORY}")
        alone = []
        measure(found, alone, options.runs)
        requests, beside, asked = requests_of_second(
            found[0], server, large_image.layers_of(storage, SECOND))
        receive = seconds_to_receive(server, layers)
        disk.renew()
        drop_caches()
        measured = json.loads(run(programs / "bench_pull_floor", disk.point,
                                  *(large_image.blob_path(storage, layer) for layer in layers)))

    floors = {name: floor_seconds(measured, last) for name, last in LAST_STAGE.items()}
    goals, values = goals_and_values(found, floors, alone, {"layers": asked, "bytes": beside})
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} pulls each, in turns, page "
          f"cache dropped; {len(layers)} layers of {sum(x.size for x in layers) / 1e9:.2f} GB "
          f"compressed, the largest {max(x.size for x in layers) / 1e9:.2f} GB, "
          f"{sum(x.unpacked for x in layers) / 1e9:.2f} GB and {sum(x.files for x in layers):,} "
          f"files unpacked\n"
          f"the image that shares all layers but one of {layers_size(storage):.1f} MB: {requests} "
          f"requests, {statistics.median(alone):,.0f} ms for that layer alone\n")
    tell_floor(measured, receive, floors, found)
    tell_engines(found)
    more = {"layers": measured, "floor_s": floors, "receive_s": receive, "alone_ms": alone,
            "engines": [{"name": e.name, "second_ms": e.second, "anonymous_bytes": e.memory,
                         "resident_bytes": e.resident, "cpu_s": e.cpu, "sync_s": e.flush}
                        for e in found]}
    rows = bars(found, floors, measured, receive)
    side_by_side.tell(options, found, values, goals, more, DIRECTORIES, "",
                      lambda path: plot(rows, path))


def layers_size(storage):
    return large_image.layers_of(storage, SECOND)[-1].size / 1e6


if __name__ == "__main__":
    main()
