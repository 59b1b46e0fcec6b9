#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the founding documents: mean pooling ("Containerized GPU") and convolutional
networks ("uDocker new GPU implementation"), on bare metal and in containers of berth as root, berth
as an ordinary user, podman, docker and Charliecloud, alone and with tenants beside them.

The programs (bench/) are measured as the documents did it: each takes its own time, from inside. The
whole command, with the start of its container, is in the JSON too. Every run of a container has one
on bare metal right before or after it; a figure is the median of the ratios of those pairs, with its
95 % interval.

A tenant has a processor of its own where there is no GPU, and a GPU where there are some. What of a
GPU was measured says "cuda"; without one nothing does.

usage: ./dev bench seeds [--quick | --full] [--runs PAIRS] [--network-runs N] [--tenant-runs N]
                         [--batches N] [--contenders NAME,…] [--directory DIR] [--json FILE]
                         [--plot FILE] [--check]
"""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import paired, room, seeds_report, side_by_side  # noqa: E402
from support.bench_peers import podman_cgroups, remove_podman_cgroups  # noqa: E402
from support.seeds_peers import (  # noqa: E402
    BARE, DATA, PLACE, Share, all_of, gpu_names, usable)

NETWORKS = ("alexnet", "googlenet", "overfeat", "vgg", "mnist")
OF_TENANTS = ("alexnet", "mnist")
TENANTS = 2  # of pooling, at once on the whole machine


@dataclasses.dataclass(frozen=True)
class Work:
    """What a network is given; `None` is what the documents' programs did, as ours do unasked."""
    batches: int | None = None
    burn_in: int | None = None
    batch_size: int | None = None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much is done. A share has to itself what it does in the burn-in while others start."""
    pairs: int = 30  # of pooling
    network_runs: int = 5
    tenant_runs: int = 5
    passes: int | None = None
    networks: Work = Work(10, 2, 2)
    digits: Work = Work(300, 20, 10)
    shared_networks: Work = Work(30, 4, 2)
    shared_digits: Work = Work(300, 40, 10)


QUICK = Sizes(pairs=3, network_runs=1, tenant_runs=2, passes=32, networks=Work(2, 1, 1),
              digits=Work(50, 5, 10), shared_networks=Work(5, 1, 1), shared_digits=Work(50, 5, 10))
AS_THE_DOCUMENTS = {name: Work() for name in
                    ("networks", "digits", "shared_networks", "shared_digits")}


@dataclasses.dataclass
class Device:
    """What computes: "cpu" or "cuda". `shares` has one for each tenant that is to be alone."""
    name: str
    shares: list
    sizes: Sizes
    alone: Share = Share()

    def pooling(self):
        return [f"{PLACE}/bench_pooling_{self.name}", *flag("passes", self.sizes.passes)]

    def network(self, name, shared=False):
        digits, sizes = name == "mnist", self.sizes
        work = ((sizes.shared_digits if digits else sizes.shared_networks) if shared
                else (sizes.digits if digits else sizes.networks))
        return [f"{PLACE}/bench_networks_{self.name}", "--network", name,
                *(["--data", DATA] if digits else []), *flag("batches", work.batches),
                *flag("burn-in", work.burn_in), *flag("batch-size", work.batch_size)]


def flag(name, value):
    return [] if value is None else [f"--{name}", value]


def short_networks(batches):
    """So many batches of each network on processors, in the proportions of the usual ones."""
    return {"networks": Work(batches, max(1, batches // 5), 2),
            "digits": Work(30 * batches, 2 * batches, 10)}


def processor_shares():
    """One for each processor; the first, which has the rest of the machine to do, is left out where
    there are more than two."""
    found = sorted(os.sched_getaffinity(0))
    return [Share(processor=number) for number in (found if len(found) < 3 else found[1:])]


def devices(programs, options):
    """The processors, and the GPUs where there are some and programs for them."""
    sizes = QUICK
    if not options.quick:
        sizes = Sizes(options.runs, options.network_runs, options.tenant_runs,
                      **(AS_THE_DOCUMENTS if options.full else short_networks(options.batches)))
    found = [Device("cpu", processor_shares(), sizes)]
    gpus = [Share(gpu=number) for number in range(len(gpu_names()))]
    if gpus and (programs / "bench_networks_cuda").exists():
        own = sizes if options.quick else dataclasses.replace(sizes, **AS_THE_DOCUMENTS)
        found.append(Device("cuda", gpus, own, gpus[0]))
    return found


# ---- measuring ----------------------------------------------------------------------------------

class Pairs:
    """{(what, peer): [(of the container, on bare metal)]}; each is a list of what tenants said."""

    def __init__(self, peers):
        self.bare, *self.others = peers
        self.found = collections.defaultdict(list)

    def take(self, what, words, shares, peers=None):
        """Every peer once, each with bare metal beside it, in an order that is shuffled anew."""
        others = self.others if peers is None else peers
        for peer in random.sample(others, len(others)):
            pair = [peer, self.bare]
            random.shuffle(pair)
            said = {one.name: one.together(words, shares) for one in pair}
            self.found[what, peer.name].append((said[peer.name], said[self.bare.name]))
            check_equal(words, said)
        side_by_side.reap_orphans()


def check_equal(words, said):
    """Pooling gives the same sum wherever it runs."""
    sums = {one.get("checksum") for results in said.values() for one in results}
    if len(sums) > 1:
        raise RuntimeError(f"{words}: the results differ: {sums}")


def progress(text):
    print(text, file=sys.stderr, flush=True)


def measure(device, peers):
    """All pairs of one device."""
    pairs = Pairs(peers)
    sizes, everything = device.sizes, [device.alone]
    for number in range(sizes.pairs):
        progress(f"{device.name}: pooling, pair {number + 1} of {sizes.pairs}")
        pairs.take("pooling", device.pooling(), everything)
    for number in range(sizes.tenant_runs):
        progress(f"{device.name}: pooling by {TENANTS} tenants, pair {number + 1} of "
                 f"{sizes.tenant_runs}")
        pairs.take("pooling, two tenants", device.pooling(), everything * TENANTS)
    for number in range(sizes.network_runs):
        for name in NETWORKS:
            progress(f"{device.name}: {name}, pair {number + 1} of {sizes.network_runs}")
            pairs.take(name, device.network(name), everything)
    return pairs.found


def measure_shares(device, peers):
    """{(network, peer): [(alone in its share, all shares at once)]}, bare metal included."""
    found = collections.defaultdict(list)
    for number in range(device.sizes.tenant_runs):
        progress(f"{device.name}: one container per share, {number + 1} of "
                 f"{device.sizes.tenant_runs}")
        for name in OF_TENANTS:
            words = device.network(name, shared=True)
            for peer in random.sample(peers, len(peers)):
                share = device.shares[number % len(device.shares)]
                turns = [lambda: peer.together(words, [share]),
                         lambda: peer.together(words, device.shares)]
                if number % 2:
                    at_once, alone = turns[1](), turns[0]()
                else:
                    alone, at_once = turns[0](), turns[1]()
                found[name, peer.name].append((alone, at_once))
        side_by_side.reap_orphans()
    return found


# ---- telling ------------------------------------------------------------------------------------

def of_tenants(results, figure):
    return statistics.mean(one[figure] for one in results)


def ratios(found, figure):
    """{(what, peer): Ratio} of a figure of the first of each pair to that of the second."""
    return {key: paired.ratio([of_tenants(ours, figure) for ours, _ in pairs],
                              [of_tenants(theirs, figure) for _, theirs in pairs])
            for key, pairs in found.items() if figure in pairs[0][0][0]}


def to_alone(shares, figure):
    """All at once to one alone, of the same peer."""
    return ratios({key: [(at_once, alone) for alone, at_once in runs]
                   for key, runs in shares.items()}, figure)


def to_bare(shares, figure):
    """All at once to all at once on bare metal, in the same round."""
    return ratios({key: [(ours, theirs) for (_, ours), (_, theirs)
                         in zip(runs, shares[(*key[:2], BARE)], strict=True)]
                   for key, runs in shares.items()}, figure)


GOAL, GOAL_OF_SHARES = 1.01, 1.1
ENOUGH = 30  # pairs, for the first


def goals_and_values(times, shares):
    goals, values = {}, {}
    for (device, what, peer), value in times.items():
        if device == "cpu" and peer.startswith("berth") and (
                what == "pooling" or what in NETWORKS and value.pairs >= ENOUGH):
            goals[f"{what}, {peer} ÷ bare metal"] = (GOAL, "×")
            values[f"{what}, {peer} ÷ bare metal"] = value.median
    for (device, what, peer), value in shares.items():
        if peer.startswith("berth"):
            name = f"{device}: deviation per batch of {what}, {peer}, one per share ÷ one alone"
            goals[name], values[name] = (GOAL_OF_SHARES, "×"), value.median
    return goals, values


def add_options(parser):
    parser.set_defaults(runs=30)
    parser.add_argument("--network-runs", type=int, default=5, help="pairs of each network")
    parser.add_argument("--tenant-runs", type=int, default=5, help="of tenants, each way")
    parser.add_argument("--batches", type=int, default=10, help="of each network on processors")
    parser.add_argument("--contenders", metavar="NAME,…", type=lambda text: text.split(","),
                        help="no others beside bare metal: those whose names begin like that")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few of everything, to try it out")
    size.add_argument("--full", action="store_true",
                      help="the documents' 1000 batches and 20000 steps on processors, too")


def wanted(peers, beginnings):
    """Bare metal, and of the others those that were asked for."""
    return [peer for peer in peers if beginnings is None or peer.name == BARE or
            peer.name.startswith(tuple(beginnings))]


def main():
    options = side_by_side.begin("seeds", __doc__, add_options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench seeds: ended by a signal"))
    room.own_etc()  # a user is made, and goes with this process's mounts
    programs = options.programs.resolve()
    found, shares = {}, {}
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        stack.enter_context(side_by_side.hugetlb_hierarchy())
        stack.enter_context(side_by_side.state_directory(work / "run"))
        stack.callback(remove_podman_cgroups, podman_cgroups())
        peers, left_out = stack.enter_context(all_of(programs, work))
        peers = wanted(peers, options.contenders)
        measured = devices(work / "bin", options)
        for device in measured:
            here = usable(peers, device.name, device.shares[0], left_out)
            if not here or here[0].name != BARE:
                sys.exit(f"bench seeds: {BARE}: {left_out[f'{BARE} on {device.name}']}")
            found |= {(device.name, *key): pairs for key, pairs in measure(device, here).items()}
            shares |= {(device.name, *key): pairs
                       for key, pairs in measure_shares(device, here).items()}

    figures = {name: ratios(found, name)
               for name in ("real_s", "user_s", "command_s", "mean_s")}
    report = seeds_report.Report(
        peers, left_out, measured, gpu_names(), found, shares, figures,
        # A network's time is that of its batches; the pooling program has but one.
        times={key: figures["mean_s"].get(key, value) for key, value in figures["real_s"].items()},
        to_alone={name: to_alone(shares, name) for name in ("deviation_s", "mean_s", "p99_s")},
        to_bare={name: to_bare(shares, name) for name in ("deviation_s", "p99_s")})
    goals, values = goals_and_values(report.times, report.to_alone["deviation_s"])
    seeds_report.tell(report)
    missed = side_by_side.verdicts(values, goals)
    if options.json:
        options.json.write_text(json.dumps(
            {**seeds_report.as_json(report), "results": values,
             "goals": {name: limit for name, (limit, _) in goals.items()}, "missed": missed},
            indent=1))
    if options.plot:
        seeds_report.plot(report, options.plot)
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
