# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the benches: commands that are measured in turns, and the peers' requirements."""

import argparse
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import time

PRIVATE = "BERTH_BENCH_PRIVATE_MOUNTS"
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass
class Contender:
    """A command that is started many times."""
    name: str
    argv: list
    version: str
    milliseconds: list = dataclasses.field(default_factory=list)

    def quantile(self, percent):
        if len(self.milliseconds) == 1:
            return self.milliseconds[0]
        return statistics.quantiles(self.milliseconds, n=100, method="inclusive")[percent - 1]

    @property
    def median(self):
        return statistics.median(self.milliseconds)


def run(*argv, **options):
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}: {done.stderr}")
    return done.stdout


def version(*argv):
    with contextlib.suppress(OSError, IndexError):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return (done.stdout or done.stderr).splitlines()[0].strip()
    return "unknown"


def tried(wanted):
    """The contenders that run here; leaves out one that fails, and prints the reason."""
    found = []
    for contender in wanted:
        contender.argv = [str(arg) for arg in contender.argv]
        try:
            run(*contender.argv)
            found.append(contender)
        except (OSError, RuntimeError) as error:
            print(f"left out: {contender.name}: {error}", file=sys.stderr)
    return found


# ---- what the peers need on this machine --------------------------------------------------------

@contextlib.contextmanager
def hugetlb_hierarchy():
    """crun 1.8.1 refuses a hybrid cgroup tree without hugetlb as a v1 hierarchy. This mount is in this
    process's private mount namespace and ends with it."""
    point = pathlib.Path("/sys/fs/cgroup/hugetlb")
    hybrid = pathlib.Path("/sys/fs/cgroup/unified").exists()
    if not hybrid or point.exists():
        yield
        return
    point.mkdir()
    try:
        run("mount", "-t", "cgroup", "-o", "hugetlb", "hugetlb", point)
        yield
    finally:
        subprocess.run(["umount", point], check=False, capture_output=True)
        point.rmdir()


def adopt_orphans():
    """podman's conmon outlives podman briefly: this process reaps it, as an init would."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def enter_private_mounts():
    """Restarts this program in a private mount namespace. There SIGTERM ends it as an error does, so
    that it removes what it has made."""
    if PRIVATE not in os.environ:
        os.environ[PRIVATE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))


@contextlib.contextmanager
def state_directory(directory):
    """A tmpfs in place of /run, in this process's private mount namespace."""
    directory.mkdir()
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory)
    try:
        yield
    finally:
        # podman may still have a mount below it.
        run("umount", "--lazy", directory)


# ---- measuring ----------------------------------------------------------------------------------

def time_once(argv, quiet):
    """Wall-clock milliseconds from before the spawn until after the wait."""
    actions = [(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)]
    started = time.perf_counter_ns()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    elapsed = (time.perf_counter_ns() - started) / 1e6
    if status:
        raise RuntimeError(f"{' '.join(argv)}: wait status {status}")
    return elapsed


def measure(found, runs, warm_up):
    """Runs every contender once per round, in a new random order."""
    quiet = os.open("/dev/null", os.O_RDWR)
    for round_number in range(warm_up + runs):
        for contender in random.sample(found, len(found)):
            elapsed = time_once(contender.argv, quiet)
            if round_number >= warm_up:
                contender.milliseconds.append(elapsed)
        reap_orphans()
    os.close(quiet)


# ---- telling ------------------------------------------------------------------------------------

def table(found, base):
    """Prints all measurements, the fastest first; `base`: the contender to compare with."""
    unit = next(contender for contender in found if contender.name == base)
    rows = [("", "median ms", "p10", "p90", f"× {base}", "version")]
    for contender in sorted(found, key=lambda c: c.median):
        rows.append((contender.name, f"{contender.median:.2f}", f"{contender.quantile(10):.2f}",
                     f"{contender.quantile(90):.2f}", f"{contender.median / unit.median:.2f}",
                     contender.version))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [row[n].rjust(widths[n]) for n in range(1, 5)]
        print("  ".join([*cells, row[5]]).rstrip())


def verdicts(values, goals):
    """Prints each goal, {name: (limit, unit)}, with its figure; returns the names of missed goals."""
    missed = []
    print()
    for name, (limit, unit) in goals.items():
        if name not in values:
            print(f"{name}: not measured here")
            continue
        value = values[name]
        met = value <= limit
        figure = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        print(f"{name}: {figure} {unit}, goal at most {limit:,} {unit}: "
              f"{'met' if met else 'MISSED'}")
        missed += [] if met else [name]
    return missed


def pyplot():
    """matplotlib's pyplot for files; prints the reason if there is none."""
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("Agg")
        from matplotlib import pyplot as found  # pylint: disable=import-outside-toplevel
        return found
    except ImportError:
        print("no plot: python3-matplotlib is not installed", file=sys.stderr)
        return None


def plot(found, path, label):
    """Writes box plots of all measurements to a file."""
    drawer = pyplot()
    if drawer is None:
        return
    ordered = sorted(found, key=lambda c: c.median, reverse=True)
    figure, axes = drawer.subplots(figsize=(8, 0.5 * len(ordered) + 1))
    axes.boxplot([c.milliseconds for c in ordered], vert=False, whis=(10, 90), showfliers=False,
                 labels=[c.name for c in ordered])
    axes.set_xscale("log")
    axes.set_xlabel(f"{label}; whiskers are p10 and p90")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def add_options(parser):
    """The options of every bench."""
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--directory", default="/var/tmp", help="where images and containers lie")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")


def begin(name, doc, add_more=lambda parser: None):
    """The options of the bench `name`, with those of `add_more`, for root's peers, in a private mount
    namespace; this process reaps its children's orphans."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    add_options(parser)
    add_more(parser)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(f"bench {name}: the peers' commands are those of root; run it as root")
    enter_private_mounts()
    adopt_orphans()
    return options


def tell(options, found, values, goals, more, base, label, draw=None):
    """Prints, writes and draws the results; fails if --check is set and a goal is missed. `more` is added to
    the JSON file; `draw` is called with the plot's path, for another plot than box plots."""
    table(found, base)
    missed = verdicts(values, goals)
    if options.json:
        options.json.write_text(json.dumps({
            "kernel": platform.release(), "cpus": os.cpu_count(), "runs": options.runs,
            "contenders": [{"name": c.name, "version": c.version, "command": c.argv,
                            "median_ms": c.median, "p10_ms": c.quantile(10),
                            "p90_ms": c.quantile(90), "ms": c.milliseconds} for c in found],
            "results": values, "goals": {name: limit for name, (limit, _) in goals.items()},
            "missed": missed, **more}, indent=1))
    if options.plot and draw:
        draw(options.plot)
    elif options.plot:
        plot(found, options.plot, label)
    if options.check and missed:
        sys.exit(1)
