#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Start latency of /bin/true out of a Debian root file system: berth beside its peers, in one run.

Every contender runs once a round, in an order that is shuffled anew, so that what disturbs the
machine disturbs all of them. A figure is the median; p10 and p90 show the spread. Only ratios
travel from one machine to another. Images and containers are on disk; what each keeps below /run
by default is on a tmpfs here too, as /run is one on any ordinary machine.

usage: ./dev bench start [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]

The plot needs python3-matplotlib, which brings 360 MB and is not installed by setup.
"""

import argparse
import contextlib
import ctypes
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
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, registry  # noqa: E402

CACHE = pathlib.Path(os.environ.get("BERTH_TEST_CACHE", "/var/cache/berth-tests"))
PRIVATE = "BERTH_BENCH_PRIVATE_MOUNTS"
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass
class Contender:
    name: str
    argv: list
    version: str
    milliseconds: list = dataclasses.field(default_factory=list)

    def quantile(self, percent):
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


# ---- what the peers need on this machine --------------------------------------------------------

@contextlib.contextmanager
def hugetlb_hierarchy():
    """crun 1.8.1 refuses a hybrid cgroup tree in which hugetlb is not a v1 hierarchy. The mount is
    made in this process's private mount namespace and ends with it."""
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
    """podman's conmon outlives podman for a moment: this process reaps it, as an init would."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def podman_cgroups():
    return set(pathlib.Path("/sys/fs/cgroup").glob("*/libpod_parent"))


def remove_podman_cgroups(before):
    """podman leaves its parent cgroups; the machine is to be as it was."""
    time.sleep(0.2)
    reap_orphans()
    for path in podman_cgroups() - before:
        for directory, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def enter_private_mounts():
    """Restarts this program in a mount namespace of its own."""
    if PRIVATE not in os.environ:
        os.environ[PRIVATE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])


@contextlib.contextmanager
def state_directory(directory):
    """The tmpfs that stands for /run, in this process's private mount namespace."""
    directory.mkdir()
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory)
    try:
        yield
    finally:
        # podman may still have a mount below it.
        run("umount", "--lazy", directory)


def make_bundle(directory, rootfs):
    """The bundle that 'runc spec' makes, for /bin/true."""
    directory.mkdir()
    run("runc", "spec", cwd=directory)
    path = directory / "config.json"
    spec = json.loads(path.read_text())
    spec["process"]["args"] = ["/bin/true"]
    spec["process"]["terminal"] = False
    spec["root"] = {"path": str(rootfs), "readonly": False}
    path.write_text(json.dumps(spec))
    return directory


class Berth:
    def __init__(self, programs, work, image):
        self.programs, self.image = programs, image
        self.argv = [str(programs / "berth"), "--root", str(work / "berth"),
                     "--state", str(work / "run/berth")]
        self.version = version(self.argv[0], "--version")

    def run_argv(self, *flags, driver_root=None):
        place = ["--driver-root", driver_root] if driver_root else []
        return [*self.argv, *place, "run", "--rm", "--network", "none", *flags, self.image,
                "/bin/true"]


class Podman:
    # The hard limits of a machine without CAP_SYS_RESOURCE cannot be raised, so they are named.
    LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]

    def __init__(self, work):
        self.argv = ["podman", "--root", str(work / "podman"), "--runroot",
                     str(work / "run/podman"), "--tmpdir", str(work / "run/libpod"),
                     "--cgroup-manager", "cgroupfs", "--events-backend", "none"]

    def run_argv(self, image):
        return [*self.argv, "run", "--rm", "--network", "none", *self.LIMITS, image, "/bin/true"]


def contenders(programs, work, image, rootfs, driver_root):
    """All that is installed here; each is tried once, and one that fails says why and is left
    out."""
    bundle = make_bundle(work / "bundle", rootfs)
    berth = Berth(programs, work, image)
    run(*berth.argv, "pull", "--quiet", image)
    wanted = [
        Contender("fork and exec", ["/bin/true"], ""),
        Contender("unshare, chroot", ["unshare", "-mpfiun", "chroot", rootfs, "/bin/true"],
                  version("unshare", "--version")),
        Contender("berth run", berth.run_argv(), berth.version),
        Contender("berth run --gpus all", berth.run_argv("--gpus", "all", driver_root=driver_root),
                  berth.version),
        Contender("berth-runtime run",
                  [programs / "berth-runtime", "--root", work / "run/berth-runtime", "run", "--bundle",
                   bundle, "bench-berth"], version(str(programs / "berth-runtime"), "--version")),
        Contender("crun run", ["crun", "--root", work / "run/crun", "run", "--bundle", bundle,
                               "bench-crun"], version("crun", "--version")),
        Contender("runc run", ["runc", "--root", work / "run/runc", "run", "--bundle", bundle,
                               "bench-runc"], version("runc", "--version")),
        Contender("bubblewrap", ["bwrap", "--unshare-all", "--bind", rootfs, "/", "--proc",
                                 "/proc", "--dev", "/dev", "/bin/true"],
                  version("bwrap", "--version")),
    ]
    if shutil.which("podman"):
        podman = Podman(work)
        run(*podman.argv, "pull", "--quiet", "--tls-verify=false", image)
        wanted.append(Contender("podman run", podman.run_argv(image),
                                version("podman", "--version")))
    found = []
    for contender in wanted:
        contender.argv = [str(arg) for arg in contender.argv]
        try:
            run(*contender.argv)
            found.append(contender)
        except (OSError, RuntimeError) as error:
            print(f"left out: {contender.name}: {error}", file=sys.stderr)
    return found


# ---- measuring ----------------------------------------------------------------------------------

def time_once(argv, quiet):
    """Wall-clock milliseconds from before the spawn to after the wait."""
    actions = [(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)]
    started = time.perf_counter_ns()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    elapsed = (time.perf_counter_ns() - started) / 1e6
    if status:
        raise RuntimeError(f"{' '.join(argv)}: wait status {status}")
    return elapsed


def measure(found, runs, warm_up):
    quiet = os.open("/dev/null", os.O_RDWR)
    for round_number in range(warm_up + runs):
        for contender in random.sample(found, len(found)):
            elapsed = time_once(contender.argv, quiet)
            if round_number >= warm_up:
                contender.milliseconds.append(elapsed)
        reap_orphans()
    os.close(quiet)


def berth_processes(programs):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "exe").startswith(str(programs)):
                found.append(entry)
    return found


def pss_bytes(entry):
    lines = (entry / "smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def detached_memory(programs, work, image):
    """{program: PSS} of every process of Berth that stays with one detached container."""
    berth = Berth(programs, work, image)
    container = run(*berth.argv, "run", "-d", "--rm", image, "sleep", "600").strip()
    try:
        time.sleep(0.5)
        return {os.path.basename(os.readlink(entry / "exe")): pss_bytes(entry)
                for entry in berth_processes(programs)}
    finally:
        run(*berth.argv, "rm", "--force", container)


# ---- telling ------------------------------------------------------------------------------------

GOALS = {  # name: (limit, unit)
    "berth run ÷ crun run": (1.0, "×"),
    "berth run ÷ podman run": (0.06, "×"),
    "--gpus all with 8 GPUs adds": (1.5, "ms"),
    "stays with a detached container": (2_000_000, "bytes PSS"),
}


def results(found, memory):
    by_name = {contender.name: contender for contender in found}
    berth = by_name["berth run"]
    values = {}
    for peer in ("crun run", "podman run"):
        if peer in by_name:
            values[f"berth run ÷ {peer}"] = berth.median / by_name[peer].median
    if "berth run --gpus all" in by_name:
        pairs = zip(by_name["berth run --gpus all"].milliseconds, berth.milliseconds)
        values["--gpus all with 8 GPUs adds"] = statistics.median(a - b for a, b in pairs)
    if memory:
        values["stays with a detached container"] = sum(memory.values())
    return values


def table(found):
    berth = next(contender for contender in found if contender.name == "berth run")
    rows = [("", "median ms", "p10", "p90", "× berth run", "version")]
    for contender in sorted(found, key=lambda c: c.median):
        rows.append((contender.name, f"{contender.median:.2f}", f"{contender.quantile(10):.2f}",
                     f"{contender.quantile(90):.2f}", f"{contender.median / berth.median:.2f}",
                     contender.version))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [row[n].rjust(widths[n]) for n in range(1, 5)]
        print("  ".join([*cells, row[5]]).rstrip())


def verdicts(values):
    """Prints each goal with its figure; returns the names of those that are missed."""
    missed = []
    print()
    for name, (limit, unit) in GOALS.items():
        if name not in values:
            print(f"{name}: not measured here")
            continue
        met = values[name] <= limit
        figure = f"{values[name]:,.0f}" if limit > 1000 else f"{values[name]:.3f}"
        print(f"{name}: {figure} {unit}, goal at most {limit:,} {unit}: "
              f"{'met' if met else 'MISSED'}")
        missed += [] if met else [name]
    return missed


def plot(found, path):
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("Agg")
        from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("no plot: python3-matplotlib is not installed", file=sys.stderr)
        return
    ordered = sorted(found, key=lambda c: c.median, reverse=True)
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(ordered) + 1))
    axes.boxplot([c.milliseconds for c in ordered], vert=False, whis=(10, 90), showfliers=False,
                 labels=[c.name for c in ordered])
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds to start and end /bin/true; whiskers are p10 and p90")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--directory", default="/var/tmp", help="where images and containers lie")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench start: the peers' commands are those of root; run it as root")
    enter_private_mounts()
    adopt_orphans()

    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        server = stack.enter_context(registry.running(
            work / "registry", storage=debian_images.kept_storage(CACHE)))
        stack.enter_context(hugetlb_hierarchy())
        stack.enter_context(state_directory(work / "run"))
        stack.callback(remove_podman_cgroups, podman_cgroups())
        image = f"{server.address}/{debian_images.IMAGES['docker']}"
        rootfs = work / "rootfs"
        debian_images.unpack(server, debian_images.IMAGES["docker"], rootfs)
        driver_root = work / "driver"
        run(sys.executable, TESTS / "support/driver_tree.py", "eight", driver_root)
        programs = options.programs.resolve()

        found = contenders(programs, work, image, rootfs, driver_root)
        measure(found, options.runs, options.warm_up)
        memory = detached_memory(programs, work, image)
        stack.callback(subprocess.run, ["umount", "--recursive", "--lazy", work / "podman"],
                       check=False, capture_output=True)

    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved; "
          "/bin/true in Debian 12 (206 MB); GPUs are a synthetic driver tree of 8\n")
    table(found)
    values = results(found, memory)
    missed = verdicts(values)
    print("PSS: " + (", ".join(f"{name} {size:,}" for name, size in memory.items()) or "nothing"))
    if options.json:
        options.json.write_text(json.dumps({
            "kernel": platform.release(), "cpus": os.cpu_count(), "runs": options.runs,
            "contenders": [{"name": c.name, "version": c.version, "command": c.argv,
                            "median_ms": c.median, "p10_ms": c.quantile(10),
                            "p90_ms": c.quantile(90), "ms": c.milliseconds} for c in found],
            "results": values, "goals": {name: limit for name, (limit, _) in GOALS.items()},
            "missed": missed, "pss_bytes": memory}, indent=1))
    if options.plot:
        plot(found, options.plot)
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
