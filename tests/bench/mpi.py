#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a container adds to messages between two ranks of one node: ping-pong and allreduce through
shared memory, as tasks of Slurm steps of an ordinary user, with Open MPI and with MPICH; in a
container with the image's library and without one, with the same library of this machine.

Each round has a step with and one without a container for each MPI, in an order that is shuffled anew.
Each rank keeps to a processor of its own. A ratio is taken within a round: for an operation it is the
geometric mean of those of its sizes, and what counts is the median of all rounds.

usage: ./dev bench mpi [--runs N] [--turns N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
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


@dataclasses.dataclass
class Pair:
    """The same ranks as steps with and without a container; {figure: microseconds}, one each round."""
    kind: str
    bare: list
    contained: list
    found: dict = dataclasses.field(default_factory=lambda: {"bare": [], "contained": []})

    def measure(self, which):
        (figures,) = mpi.worlds(run(*getattr(self, which)))
        self.found[which].append(figures)

    def series(self, which, figure):
        return [figures[figure] for figures in self.found[which]]

    def figures(self):
        return list(self.found["bare"][0])

    def ratio(self, figure):
        return paired.ratio(self.series("contained", figure), self.series("bare", figure))

    def ratio_of(self, operation):
        """Over all sizes of an operation."""
        named = [figure for figure in self.figures() if figure.startswith(operation)]
        means = {which: [statistics.geometric_mean(figures[name] for name in named)
                         for figures in found] for which, found in self.found.items()}
        return paired.ratio(means["contained"], means["bare"])


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
    return Pair(kind, [*step, program, "time", turns],
                [*step, f"--container-image={image}", "/ranks", "time", turns])


def measure(pairs, runs, warm_up):
    for number in range(warm_up + runs):
        steps = [(pair, which) for pair in pairs for which in pair.found]
        for pair, which in random.sample(steps, len(steps)):
            pair.measure(which)
        if number + 1 == warm_up:
            for pair in pairs:
                pair.found = {which: [] for which in pair.found}


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
                         str(pair.ratio(figure))))
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
            ratios = [pair.ratio(name) for name in named]
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
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} rounds; two ranks of one node, "
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
            "pairs": [{"kind": pair.kind, "microseconds": pair.found} for pair in pairs],
            "results": {name: dataclasses.asdict(ratio) for name, ratio in ratios.items()},
            "goals": {name: limit for name, (limit, _) in GOALS.items()}, "missed": missed}, indent=1))
    if options.plot:
        plot(pairs, options.plot)
    if options.check and missed:
        sys.exit(1)


def add_options(parser):
    parser.add_argument("--turns", type=int, default=50_000, help="of a small message, in one step")


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
        measure(pairs, options.runs, options.warm_up)
    tell(options, pairs)


if __name__ == "__main__":
    main()
