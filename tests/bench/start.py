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

import contextlib
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, registry, side_by_side  # noqa: E402
from support.bench_peers import Berth, Podman, podman_cgroups, remove_podman_cgroups  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402



# ---- the contenders ------------------------------------------------------------------------------

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
    return side_by_side.tried(wanted)


# ---- measuring ----------------------------------------------------------------------------------

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
    container = run(*berth.argv, "run", "-d", "--rm", "--network", "none", image, "sleep", "600").strip()
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


def main():
    options = side_by_side.begin("start", __doc__)

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
        rootfs = work / "rootfs"
        debian_images.unpack(server, debian_images.IMAGES["docker"], rootfs)
        driver_root = work / "driver"
        run(sys.executable, TESTS / "support/driver_tree.py", "eight", driver_root)
        programs = options.programs.resolve()

        found = contenders(programs, work, image, rootfs, driver_root)
        side_by_side.measure(found, options.runs, options.warm_up)
        memory = detached_memory(programs, work, image)
        stack.callback(subprocess.run, ["umount", "--recursive", "--lazy", work / "podman"],
                       check=False, capture_output=True)

    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved; "
          "/bin/true in Debian 12 (206 MB); GPUs are a synthetic driver tree of 8\n")
    print("PSS: " + (", ".join(f"{name} {size:,}" for name, size in memory.items()) or "nothing"))
    side_by_side.tell(options, found, results(found, memory), GOALS, {"pss_bytes": memory},
                      "berth run", "milliseconds to start and end /bin/true")


if __name__ == "__main__":
    main()
