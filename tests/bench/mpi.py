#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a container adds to messages between two ranks of one node: ping-pong and allreduce through
shared memory, as tasks of Slurm steps of an ordinary user, with Open MPI and with MPICH; in a
container with the image's library and without one, with the same library of this machine.

In each round there is for each MPI a step with and one without a container, side by side, and each
rank keeps to a processor of its own. One of the two measures while the ranks of the other sleep, in
blocks of some milliseconds whose order is shuffled: so both have the same machine. A ratio is taken of
two blocks that follow each other, for an operation as the geometric mean of those of its sizes; the
median of a round's is one figure, for each start of a program has other addresses; and what counts is the
median of all rounds.

usage: ./dev bench mpi [--runs N] [--blocks N] [--turns N] [--directory DIR] [--json FILE] [--plot FILE]
                       [--check]
"""

import contextlib
import dataclasses
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

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import mpi, paired, registry, side_by_side  # noqa: E402
from support.side_by_side import run, version  # noqa: E402
from support.slurm_containers import with_plugin  # noqa: E402

USER = 65534  # nobody: without subordinate ids
OPERATIONS = ("ping-pong", "allreduce")
GOALS = {f"{operation}, {kind}": (1.02, "×") for kind in mpi.KINDS for operation in OPERATIONS}


class World:
    """Two ranks, which measure when they are told to."""

    def __init__(self, command):
        self._process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def measure(self):
        """{figure: microseconds}"""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()
        if self._process.returncode != 0:
            raise RuntimeError(f"{self._process.args} ended with {self._process.returncode}")


@dataclasses.dataclass
class Pair:
    """The same ranks as steps with and without a container."""
    kind: str
    commands: dict  # of "bare" and "contained"
    rounds: list = dataclasses.field(default_factory=list)  # [[{which: {figure: microseconds}}]]

    def measure(self, blocks):
        with World(self.commands["bare"]) as bare, World(self.commands["contained"]) as contained:
            worlds = {"bare": bare, "contained": contained}
            found = [{which: worlds[which].measure() for which in random.sample(list(worlds), 2)}
                     for _ in range(blocks + 1)]
        self.rounds.append(found[1:])  # the first has connections to make, and pages

    def series(self, which, figure):
        return [block[which][figure] for blocks in self.rounds for block in blocks]

    def figures(self):
        return list(self.rounds[0][0]["bare"])

    def ratio(self, named):
        """Of all these figures."""
        def of_block(block):
            return statistics.geometric_mean(block["contained"][name] / block["bare"][name] for name in named)
        return paired.of_ratios([statistics.median(map(of_block, blocks)) for blocks in self.rounds])

    def ratio_of(self, operation):
        """Over all sizes of an operation."""
        return self.ratio([figure for figure in self.figures() if figure.startswith(operation)])


def prepare(work, programs, cluster, image, kind, turns):
    """The pair of `kind`, with the image in the user's store."""
    place = work / kind
    place.mkdir()
    os.chown(place, USER, USER)
    program = place / "ranks"
    program.write_bytes(mpi.program(kind))
    program.chmod(0o755)
    me = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all",
          "env", f"SLURM_CONF={cluster.environment['SLURM_CONF']}", f"HOME={place}",
          f"TEST_ROOT={place}/root", f"TEST_STATE={place}/state"]
    run(*me, programs / "berth", "--root", place / "root", "--state", place / "state", "pull",
        "--quiet", image)
    step = [*me, "srun", "--chdir=/", f"--mpi={mpi.KINDS[kind].slurm}", "--nodes=1", "--ntasks=2"]
    return Pair(kind, {"bare": [*step, program, "time", turns],
                       "contained": [*step, f"--container-image={image}", "/ranks", "time", turns]})


def measure(pairs, runs, blocks):
    for _ in range(runs):
        for pair in random.sample(pairs, len(pairs)):
            pair.measure(blocks)


def table(pairs):
    rows = [("", "bare µs", "p10", "p90", "container µs", "p10", "p90", "ratio")]
    for pair in pairs:
        for figure in pair.figures():
            cells = []
            for which in ("bare", "contained"):
                series = sorted(pair.series(which, figure))
                cells += [statistics.median(series), series[len(series) // 10],
                          series[-1 - len(series) // 10]]
            rows.append((f"{pair.kind}, {figure} B", *(f"{cell:.2f}" for cell in cells),
                         str(pair.ratio([figure]))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                    zip(row[1:], widths[1:], strict=True))]))


def plot(pairs, path):
    drawer = side_by_side.pyplot()
    if drawer is None:
        return
    figure, axes = drawer.subplots(figsize=(8, 4))
    for pair in pairs:
        for operation in OPERATIONS:
            named = [name for name in pair.figures() if name.startswith(operation)]
            ratios = [pair.ratio([name]) for name in named]
            axes.errorbar([int(name.split()[1]) for name in named], [r.median for r in ratios],
                          yerr=[[r.median - r.low for r in ratios], [r.high - r.median for r in ratios]],
                          capsize=3, label=f"{operation}, {pair.kind}")
    axes.axhline(1.02, color="grey", linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("bytes")
    axes.set_ylabel("in a container ÷ without, with its 95 % interval")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def tell(options, pairs):
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} rounds of {options.blocks} pairs of blocks; two ranks of one node, "
          f"{version('slurmd', '-V')}, proctrack/linuxproc, task/none\n")
    table(pairs)
    ratios = {f"{operation}, {pair.kind}": pair.ratio_of(operation)
              for pair in pairs for operation in OPERATIONS}
    print()
    for name, ratio in ratios.items():
        print(f"{name}: {ratio}")
    values = {name: ratio.median for name, ratio in ratios.items()}
    missed = side_by_side.verdicts(values, GOALS)
    if options.json:
        options.json.write_text(json.dumps({
            "kernel": platform.release(), "cpus": os.cpu_count(), "runs": options.runs,
            "pairs": [{"kind": pair.kind, "microseconds": pair.rounds} for pair in pairs],
            "results": {name: dataclasses.asdict(ratio) for name, ratio in ratios.items()},
            "goals": {name: limit for name, (limit, _) in GOALS.items()}, "missed": missed}, indent=1))
    if options.plot:
        plot(pairs, options.plot)
    if options.check and missed:
        sys.exit(1)


def add_options(parser):
    parser.add_argument("--turns", type=int, default=4000, help="of a small message, in one block")
    parser.add_argument("--blocks", type=int, default=40, help="of each step, in one round")


def main():
    options = side_by_side.begin("mpi", __doc__, add_options)
    if os.cpu_count() < 2:
        sys.exit("bench mpi: two ranks need two processors")
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        work.chmod(0o755)
        server = stack.enter_context(registry.running(work / "registry"))
        images = mpi.push_all(server)
        # Where every user can execute them.
        programs = work / "bin"
        programs.mkdir()
        for program in [*options.programs.glob("berth*"), options.programs / "spank_berth.so"]:
            shutil.copy2(program, programs)
        place = work / "slurm"
        place.mkdir()
        cluster = stack.enter_context(with_plugin(place, programs).running())
        pairs = [prepare(work, programs, cluster, image, kind, options.turns)
                 for kind, image in images.items()]
        measure(pairs, options.runs, options.blocks)
    tell(options, pairs)


if __name__ == "__main__":
    main()
