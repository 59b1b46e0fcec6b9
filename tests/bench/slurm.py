#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a container adds to a step of Slurm: `srun true` and `srun --container-image true`, with one
task, eight and 64 on one node. Slurm is a controller and a node on this machine, with
proctrack/linuxproc and task/none; the image is in the store.

Every contender runs once a round, in an order that is shuffled anew. What something adds is the
median of the differences within a round.

usage: ./dev bench slurm [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
"""

import contextlib
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import debian_images, registry, side_by_side  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402
from support.slurm_containers import with_plugin  # noqa: E402

TASKS, MANY = 8, 64
WHO = {"root": (0, 0), "a user": (65534, 65534)}  # nobody: without subordinate ids

GOALS = {  # name: (limit, unit)
    **{f"a container adds to a step of {who}": (15.0, "ms") for who in WHO},
    **{f"a container adds to each further task of {who}": (2.0, "ms") for who in WHO},
}


def plain(tasks, who):
    return f"srun true, {tasks_text(tasks)}, {who}"


def contained(tasks, who):
    return f"srun --container-image true, {tasks_text(tasks)}, {who}"


def tasks_text(tasks):
    return "1 task" if tasks == 1 else f"{tasks} tasks"


def contenders(cluster, work, programs, image):
    found = []
    for who, (uid, gid) in WHO.items():
        place = work / who.replace(" ", "-")
        place.mkdir()
        os.chown(place, uid, gid)
        me = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--inh-caps=-all",
              "env", f"SLURM_CONF={cluster.environment['SLURM_CONF']}", f"HOME={place}",
              f"TEST_ROOT={place}/root", f"TEST_STATE={place}/state"]
        run(*me, programs / "berth", "--root", place / "root", "--state", place / "state", "pull",
            "--quiet", image)
        for tasks in (1, TASKS, MANY):
            step = [*me, "srun", "--chdir=/", "--overcommit", f"--ntasks={tasks}"]
            found += [Contender(plain(tasks, who), [*step, "/bin/true"], version("slurmd", "-V")),
                      Contender(contained(tasks, who),
                                [*step, f"--container-image={image}", "/bin/true"],
                                version(str(programs / "berth"), "--version"))]
    return side_by_side.tried(found)


def differences(found, name, base):
    return [a - b for a, b in zip(found[name].milliseconds, found[base].milliseconds, strict=True)]


def results(contenders_):
    found = {contender.name: contender for contender in contenders_}
    values = {}
    for who in WHO:
        one = differences(found, contained(1, who), plain(1, who))
        values[f"a container adds to a step of {who}"] = statistics.median(one)
        for tasks in (TASKS, MANY):
            more = differences(found, contained(tasks, who), plain(tasks, who))
            each = statistics.median((b - a) / (tasks - 1) for a, b in zip(one, more, strict=True))
            name = f"a container adds to each further task of {who}"
            values[name if tasks == TASKS else f"{name}, {tasks}"] = each
    return values


def main():
    options = side_by_side.begin("slurm", __doc__)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory,
                                        ignore_cleanup_errors=True)))
        work.chmod(0o755)
        server = stack.enter_context(registry.running(
            work / "registry", storage=debian_images.kept_storage()))
        image = f"{server.address}/{debian_images.IMAGES['docker']}"
        # Where every user can execute them.
        programs = work / "bin"
        programs.mkdir()
        for program in [*options.programs.glob("berth*"), options.programs / "spank_berth.so"]:
            shutil.copy2(program, programs)
        place = work / "slurm"
        place.mkdir()
        cluster = stack.enter_context(with_plugin(place, programs).running())
        found = contenders(cluster, work, programs, image)
        side_by_side.measure(found, options.runs, options.warm_up)
        values = results(found)
    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved; "
          "/bin/true in Debian 12 (206 MB), which is in the store; proctrack/linuxproc, task/none\n")
    for who in WHO:
        name = f"a container adds to each further task of {who}, {MANY}"
        print(f"{name}: {values[name]:.2f} ms")
    side_by_side.tell(options, found, values, GOALS, {}, plain(1, "root"),
                      "milliseconds of a step that runs /bin/true")


if __name__ == "__main__":
    main()
