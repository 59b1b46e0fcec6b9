#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs that the nodes of a job fetch an image once: measured with up to eight nodes on this
machine, simulated to 1,024.

Measured: each node is a store of its own, a berth-hub that gives on what comes, where others ask it,
and a berth-transfer that pulls; all on loopback, behind a registry that gives all of them together
no more than --registry-rate. The nodes share this machine's processors, so that rate is chosen low
enough for the network to be what is waited for.

Simulated: support/fetch_model.py says what the model has and what it has not. Its figures of a
program (how much a node gives on, how fast it unpacks, what a hop costs) are measured here first,
alone; then it is held against what was measured with 1 to 8 nodes, and the largest difference is
told. Links and registry of the simulated cluster are assumptions: --link and --registry.

usage: ./dev bench fetch [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
                         [--megabytes N] [--registry-rate B] [--link B] [--registry B] [--image B]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

COUNTS = (1, 2, 4, 8)
ARITIES = {0: "all from the registry", 1: "chain", 2: "tree of 2", 4: "tree of 4", 8: "tree of 8",
           16: "tree of 16"}
MEASURED_ARITIES = (0, 1, 2, 4)
SIMULATED = tuple(2 ** power for power in range(11))
STREAMS = 4
MOST_DIFFERENCE = 0.25


def begin():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--check", action="store_true",
                        help="fail where the model is wrong or the registry is asked twice")
    parser.add_argument("--megabytes", type=int, default=96, help="of the image that is measured")
    parser.add_argument("--registry-rate", type=float, default=20e6, help="of the measured registry")
    parser.add_argument("--link", type=float, default=3.1e9, help="of a simulated node: 25 Gb/s")
    parser.add_argument("--registry", type=float, default=1.25e9, help="simulated: 10 Gb/s")
    parser.add_argument("--image", type=int, default=10_000_000_000, help="simulated, compressed")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench fetch: layers belong to root; run it as root")
    os.environ["BERTH_TEST_PROGRAMS"] = str(options.programs.resolve())
    return options


def noise(count, seed):
    """Half of it compresses well, as programs do."""
    generator = random.Random(seed)
    return b"".join(generator.randbytes(2048) + bytes(2048) for _ in range(count // 4096))


def make_image(megabytes):
    from support import images
    layers = 4
    each = (megabytes << 20) * 2 // layers  # gzip takes the other half away
    return images.build([images.layer([images.file(f"data/{n}-{part}", noise(each // 8, n * 8 + part))
                                       for part in range(8)]) for n in range(layers)])


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def checked(outcomes):
    for outcome in outcomes:
        if outcome.status:
            raise RuntimeError(outcome.output)


class Bench:
    def __init__(self, options, directory):
        from support import images
        self.options, self.directory = options, directory
        self.image = make_image(options.megabytes)
        self.small = images.build([images.layer([images.file("a", "a")])])
        self.size = sum(len(self.image.blobs[digest]) for digest in self.image.layer_digests)
        self.sent = {}

    def place(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.directory))

    # ---- figures of the programs, each alone -----------------------------------------------------

    def _kept(self, image):
        """A front whose store has all blobs packed, and a registry that gave them."""
        from support.job_nodes import Front, MeteredRegistry
        from support.transfer import Transfer
        registry = MeteredRegistry(image).__enter__()
        store = self.place()
        checked([Transfer(store).pull(registry.reference, keep_blobs=True)])
        front = Front(store, registry.reference, secrets.token_hex(32), idle_seconds=600)
        return registry, front

    def start_seconds(self):
        from support.job_nodes import peers
        from support.transfer import Transfer
        registry, front = self._kept(self.small)
        asked = peers(registry.reference, [front.address], front.key)
        times = [timed(lambda: checked([Transfer(self.place()).pull(registry.reference, peers=asked)]))
                 for _ in range(self.options.runs + 2)]
        front.kill()
        registry.__exit__()
        return statistics.median(times)

    def rates(self, start):
        """(bytes a second that a front gives, that a node unpacks)."""
        from support import shared_key
        from support.job_nodes import peers
        from support.transfer import Transfer
        registry, front = self._kept(self.image)
        asked = peers(registry.reference, [front.address], front.key)
        pulls = [timed(lambda: checked([Transfer(self.place()).pull(registry.reference,
                                                                    peers=asked)]))
                 for _ in range(self.options.runs)]
        front.ask("/v2/app/manifests/latest")
        def fetch(digest):
            request = f"GET /v2/app/blobs/{digest} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n"
            subprocess.run(shared_key.client(front.address, front.key), input=request.encode(),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

        def fetch_all():
            with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
                list(pool.map(fetch, self.image.layer_digests * 4))
        given = [timed(fetch_all) for _ in range(self.options.runs)]
        front.kill()
        registry.__exit__()
        return (4 * self.size / statistics.median(given),
                self.size / max(statistics.median(pulls) - start, 0.001))

    # ---- nodes that pull at once -----------------------------------------------------------------

    def pull_all(self, count, arity):
        """Seconds until the last node has the image."""
        from support.job_nodes import JobNodes, MeteredRegistry
        with MeteredRegistry(self.image, rate=self.options.registry_rate) as registry, \
                JobNodes(registry, self.place(), count, arity) as nodes:
            seconds = timed(lambda: checked(nodes.pull_all(memory_budget=64 << 20)))
            sent = sum(registry.sent[digest] for digest in self.image.layer_digests)
        self.sent[count, arity] = max(self.sent.get((count, arity), 0), sent / self.size)
        return seconds

    def measure(self):
        found = {(count, arity): [] for arity in MEASURED_ARITIES for count in COUNTS}
        for _ in range(self.options.runs):
            for key in random.sample(sorted(found), len(found)):
                found[key].append(self.pull_all(*key))
        return {key: statistics.median(times) for key, times in found.items()}


def loopback(bench, start, given, unpacked, hop, count):
    """This machine, whose processors `count` nodes share."""
    from support.fetch_model import Machine
    share = min(1, os.cpu_count() / count)
    return Machine(bench.options.registry_rate, 1e12, given * share, unpacked * share, hop, start)


def tell(options, bench, figures, measured, predicted, simulated):
    print(f"{platform.release()}, {os.cpu_count()} CPUs, median of {options.runs} runs\n")
    print("measured here, each alone:")
    for name, value in figures.items():
        print(f"  {name:55}{value:14,.3f}")
    print(f"\n{bench.size / 1e6:.0f} MB compressed behind a registry of "
          f"{options.registry_rate / 1e6:.0f} MB/s; seconds until the last node has it\n")
    print("| | nodes | measured, s | model, s | registry gave, × the image |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for (count, arity), seconds in measured.items():
        print(f"| {ARITIES[arity]} | {count} | {seconds:.2f} | {predicted[count, arity]:.2f} "
              f"| {bench.sent[count, arity]:.2f} |")
    print(f"\nSimulated, not measured: {options.image / 1e9:.0f} GB compressed, a registry of "
          f"{options.registry * 8 / 1e9:.0f} Gb/s, links of {options.link * 8 / 1e9:.0f} Gb/s, "
          "programs as measured above; seconds until the last node has it\n")
    print("| nodes | " + " | ".join(ARITIES.values()) + " |")
    print("| ---: |" + " ---: |" * len(ARITIES))
    for count in SIMULATED:
        print(f"| {count:,} | " + " | ".join(f"{simulated[count, arity]:,.0f}" for arity in ARITIES)
              + " |")
    print()


def plot(options, measured, predicted, simulated):
    from support import side_by_side
    pyplot = side_by_side.pyplot()
    if pyplot is None:
        return
    colours = dict(zip(ARITIES, ("tab:red", "tab:gray", "tab:blue", "tab:cyan", "tab:green",
                                 "tab:olive")))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for arity in MEASURED_ARITIES:
        left.plot(COUNTS, [predicted[count, arity] for count in COUNTS], color=colours[arity])
        left.plot(COUNTS, [measured[count, arity] for count in COUNTS], "o", color=colours[arity],
                  label=ARITIES[arity])
    left.set_title("this machine: points measured, lines model", fontsize=9)
    for arity, name in ARITIES.items():
        right.plot(SIMULATED, [simulated[count, arity] for count in SIMULATED],
                   color=colours[arity], label=name)
    right.set_yscale("log")
    right.set_title("simulated", fontsize=9)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("nodes")
        axes.set_ylabel("seconds until the last node has the image")
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(options.plot, dpi=120)
    print(f"plot: {options.plot}")


def main():
    options = begin()
    from support.fetch_model import Machine, simulate
    with tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                     ignore_cleanup_errors=True) as directory:
        bench = Bench(options, directory)
        start = bench.start_seconds()
        given, unpacked = bench.rates(start)
        deep = 5
        alone = statistics.median(bench.pull_all(1, 0) for _ in range(options.runs))
        chain = statistics.median(bench.pull_all(deep, 1) for _ in range(options.runs))
        hop = max((chain - alone) / (deep - 1), 0)
        measured = bench.measure()
    predicted = {(count, arity): simulate(loopback(bench, start, given, unpacked, hop, count),
                                          count, arity, bench.size).seconds
                 for count, arity in measured}
    cluster = Machine(options.registry, options.link, given, unpacked, hop, start)
    simulated = {(count, arity): simulate(cluster, count, arity, options.image).seconds
                 for count in SIMULATED for arity in ARITIES}
    figures = {"a node gives on, bytes/s": given, "a node unpacks, compressed bytes/s": unpacked,
               "a hop costs, s": hop, "a pull of next to nothing takes, s": start}
    tell(options, bench, figures, measured, predicted, simulated)
    difference = max(abs(predicted[key] / seconds - 1) for key, seconds in measured.items())
    twice = max(bench.sent[count, arity] for count, arity in measured if arity)
    print(f"the model's largest difference: {difference:.0%} (goal: {MOST_DIFFERENCE:.0%}); in a tree "
          f"the registry gave the image {twice:.2f} times at most (goal: once)")
    if options.json:
        def listed(found):
            return [{"nodes": count, "arity": arity, "seconds": seconds}
                    for (count, arity), seconds in found.items()]
        options.json.write_text(json.dumps({
            "kernel": platform.release(), "cpus": os.cpu_count(), "runs": options.runs,
            "figures": figures, "measured": listed(measured), "model_of_measured": listed(predicted),
            "simulated": listed(simulated), "largest_difference": difference,
            "registry_gave": twice}, indent=1))
    if options.plot:
        plot(options, measured, predicted, simulated)
    if options.check and (difference > MOST_DIFFERENCE or twice > 1.001):
        sys.exit(1)


if __name__ == "__main__":
    main()
