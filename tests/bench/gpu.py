#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What GPUs add to a start: a driver tree of eight synthetic GPUs, in one run with the same
devices through podman and a CDI file whose seven hooks are static programs that end at once.
The driver's files are synthetic too, or with --driver NVIDIA's own (./dev drivers).

Every contender runs once a round, in an order that is shuffled anew. What something adds is the
median of the differences within a round.

usage: ./dev bench gpu [--driver BRANCH] [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
"""

import contextlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, driver_layouts, real_drivers, registry, side_by_side  # noqa: E402
from support.bench_peers import Berth, Podman, podman_cgroups, remove_podman_cgroups  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402

CDI = pathlib.Path("/run/cdi")
HOOKS = 7  # that NVIDIA's generator writes into a file

PLAIN, DEFAULT, WHOLE = "berth run", "berth run --gpus all", "berth run --gpus all, all capabilities"
PODMAN, PODMAN_CDI = "podman run", "podman run --device nvidia.com/gpu=all"


# ---- a CDI file for podman ------------------------------------------------------------------------

@contextlib.contextmanager
def cdi_directory():
    """An empty /run/cdi in this process's private mount namespace."""
    made = not CDI.exists()
    if made:
        CDI.mkdir()
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", CDI)
    try:
        yield
    finally:
        run("umount", "--lazy", CDI)
        if made:
            CDI.rmdir()


def write_cdi_file(berth, driver_root):
    """Berth's own description of the tree, its hook replaced by seven that only read what they are
    told: crun fails when a hook ends before that."""
    text = run(*berth.argv, "--driver-root", driver_root, "cdi", "generate", "--format", "json")
    spec = json.loads(text)
    hooks = [{"hookName": "createContainer", "path": "/bin/busybox", "args": ["cat"]}] * HOOKS
    spec.setdefault("containerEdits", {})["hooks"] = hooks
    for device in spec["devices"]:
        device["containerEdits"].pop("hooks", None)
    (CDI / "nvidia.json").write_text(json.dumps(spec))
    return len(spec["containerEdits"].get("mounts", []))


def contenders(berth, podman, image, driver_root):
    flags = {"driver_root": driver_root}
    wanted = [
        Contender(PLAIN, berth.run_argv(**flags), berth.version),
        Contender(DEFAULT, berth.run_argv("--gpus", "all", **flags), berth.version),
        Contender(WHOLE, berth.run_argv("--gpus", "all,capabilities=all", **flags), berth.version),
        Contender(PODMAN, podman.run_argv(image), version("podman", "--version")),
        Contender(PODMAN_CDI, podman.run_argv(image, "--device", "nvidia.com/gpu=all"),
                  version("podman", "--version")),
    ]
    return side_by_side.tried(wanted)


# ---- measuring ----------------------------------------------------------------------------------

def processes(argv):
    """How many processes a command consists of, threads and itself included."""
    with tempfile.NamedTemporaryFile("r") as trace:
        run("strace", "-f", "-qq", "-e", "trace=clone,clone3,fork,vfork,execve,execveat", "-o",
            trace.name, *argv)
        return 1 + len(re.findall(r"(?:clone3?|v?fork).* = [0-9]+$", trace.read(), re.MULTILINE))


def executions(argv):
    """How many programs a command executes."""
    with tempfile.NamedTemporaryFile("r") as trace:
        run("strace", "-f", "-qq", "-e", "trace=execve,execveat", "-o", trace.name, *argv)
        return len(re.findall(r"execve.* = 0$", trace.read(), re.MULTILINE))


def inventory_check(programs, berth, driver_root):
    """The median milliseconds of judging an inventory that is valid, in one process."""
    program = programs / "bench_inventory_check"
    if not program.exists():
        return None
    out = run(program, "--driver-root", driver_root, "--state", berth.state)
    return json.loads(out)["median_us"] / 1000


OTHERS = 8  # containers that have GPUs already


def lease_cost(programs, work):
    """The median milliseconds of all that is done about a container's lease, in one process."""
    program = programs / "bench_gpu_ledger"
    if not program.exists():
        return None
    place = work / "lease"
    place.mkdir()
    return json.loads(run(program, place, OTHERS))["median_us"] / 1000


# ---- telling ------------------------------------------------------------------------------------

GOALS = {  # name: (limit, unit)
    "--gpus all with 8 GPUs adds": (1.0, "ms"),
    "all capabilities add": (2.0, "ms"),
    "processes that --gpus all adds": (0, ""),
    "programs that --gpus all adds": (0, ""),
    "check of a valid inventory": (0.1, "ms"),
    "lease of a container beside 8 others": (0.5, "ms"),
    "added by berth ÷ added by podman with CDI hooks": (1.0, "×"),
}


def make_tree(options, path):
    """Writes the driver tree; returns its root, and what it is."""
    if options.driver:
        driver = real_drivers.get(options.driver)
        tree = driver_layouts.make("debian", driver, path, gpus=8)
        return tree.root, f"8 synthetic GPUs with the files of NVIDIA's driver {driver.version}"
    # With an NVML that answers: one that fails is asked again every few minutes.
    stub = options.programs.resolve().parent / "lib/libnvml_stub.so"
    run(sys.executable, TESTS / "support/driver_tree.py", "eight", path, "--nvml-stub", stub)
    return path, "8 GPUs of a synthetic driver tree"


def added(found, name, base):
    pairs = zip(found[name].milliseconds, found[base].milliseconds)
    return statistics.median(a - b for a, b in pairs)


def results(contenders_, counted, costs):
    found = {contender.name: contender for contender in contenders_}
    values = {"--gpus all with 8 GPUs adds": added(found, DEFAULT, PLAIN),
              "all capabilities add": added(found, WHOLE, PLAIN), **counted}
    values.update({name: cost for name, cost in costs.items() if cost is not None})
    if PODMAN_CDI in found and PODMAN in found:
        values["podman with a CDI file adds"] = added(found, PODMAN_CDI, PODMAN)
        values["added by berth ÷ added by podman with CDI hooks"] = (
            values["all capabilities add"] / values["podman with a CDI file adds"])
    return values


def main():
    options = side_by_side.begin("gpu", __doc__, lambda parser: parser.add_argument(
        "--driver", choices=real_drivers.BRANCHES, help="take NVIDIA's files of this branch"))

    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        server = stack.enter_context(registry.running(
            work / "registry", storage=debian_images.kept_storage()))
        stack.enter_context(side_by_side.state_directory(work / "run"))
        stack.enter_context(cdi_directory())
        stack.callback(remove_podman_cgroups, podman_cgroups())
        image = f"{server.address}/{debian_images.IMAGES['docker']}"
        programs = options.programs.resolve()
        driver_root, tree = make_tree(options, work / "driver")
        berth, podman = Berth(programs, work, image), Podman(work)
        run(*berth.argv, "pull", "--quiet", image)
        run(*podman.argv, "pull", "--quiet", "--tls-verify=false", image)
        mounts = write_cdi_file(berth, driver_root)

        found = contenders(berth, podman, image, driver_root)
        side_by_side.measure(found, options.runs, options.warm_up)
        argv = {contender.name: contender.argv for contender in found}
        counted = {
            "processes that --gpus all adds": processes(argv[WHOLE]) - processes(argv[PLAIN]),
            "programs that --gpus all adds": executions(argv[WHOLE]) - executions(argv[PLAIN])}
        run(*berth.argv, "--driver-root", driver_root, "gpu", "list")  # for a new inventory
        costs = {"check of a valid inventory": inventory_check(programs, berth, driver_root),
                 "lease of a container beside 8 others": lease_cost(programs, work)}
        stack.callback(subprocess.run, ["umount", "--recursive", "--lazy", work / "podman"],
                       check=False, capture_output=True)

    values = results(found, counted, costs)
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved; "
          f"/bin/true in Debian 12 (206 MB); {tree}\n")
    if "podman with a CDI file adds" in values:
        print(f"podman: a CDI file of {mounts} mounts and {HOOKS} hooks that end at once adds "
              f"{values['podman with a CDI file adds']:.2f} ms\n")
    side_by_side.tell(options, found, values, GOALS, {"cdi_mounts": mounts}, PLAIN,
                      "milliseconds to start and end /bin/true")


if __name__ == "__main__":
    main()
