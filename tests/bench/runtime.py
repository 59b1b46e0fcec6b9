#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""berth-runtime beside crun and runc on one bundle, as Docker would write it.

All namespaces, Docker's seccomp profile and capabilities, a cgroup with a limit of processes and
device rules, eight mounts; the program is busybox's true. Every command runs once a round, in an
order that is shuffled anew. Then, of berth-runtime alone: the system calls of a run, the most
memory it has in use, and 500 containers that four callers make, start and delete at once.

usage: ./dev bench runtime [--runs N] [--directory DIR] [--json FILE] [--plot FILE] [--check]
                           [--calls]
"""

import argparse
import collections
import concurrent.futures
import contextlib
import copy
import json
import multiprocessing
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import bundle, leftovers, side_by_side  # noqa: E402
from support.side_by_side import Contender, run, version  # noqa: E402

# Docker's profile, as the package golang-github-containers-common has it for podman.
PROFILE = pathlib.Path("/usr/share/containers/seccomp.json")
CGROUP = "/berth-bench"
CONTAINERS, CALLERS = 500, 4
PROGRAM = "/bin/true"

GOALS = {  # name: (limit, unit)
    "berth-runtime run ÷ crun run": (0.5, "×"),
    "berth-runtime run ÷ runc run": (0.2, "×"),
    "berth-runtime exec ÷ crun exec": (0.5, "×"),
    "system calls of berth-runtime run": (250, "calls"),
    "peak memory of berth-runtime run": (2_000_000, "bytes"),
    f"left by {CONTAINERS} containers": (0, "things"),
}


# ---- the bundle ---------------------------------------------------------------------------------

def docker_seccomp(capabilities):
    """The profile for these capabilities on this architecture, in the words of runtime-spec."""
    profile = json.loads(PROFILE.read_text())
    names = {"x86_64": ("SCMP_ARCH_X86_64", "amd64"), "aarch64": ("SCMP_ARCH_AARCH64", "arm64")}
    native, short = names[platform.machine()]
    families = [one for one in profile["archMap"] if one["architecture"] == native]

    def applies(rule):
        wanted, unwanted = rule.get("includes", {}), rule.get("excludes", {})
        return (set(wanted.get("caps", ())) <= capabilities
                and short in wanted.get("arches", [short])
                and not set(unwanted.get("caps", ())) & capabilities
                and short not in unwanted.get("arches", ()))
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": [native, *(one for family in families
                                    for one in family["subArchitectures"])],
        "syscalls": [{key: rule[key] for key in ("names", "action", "args", "errnoRet")
                      if rule.get(key) is not None}
                     for rule in profile["syscalls"] if applies(rule)],
    }


def make_config(rootfs, name, args):
    config = copy.deepcopy(bundle.DEFAULT)
    config["ociVersion"] = "1.0.2"  # what Docker 20.10 says, and crun 1.8 takes
    config["root"]["path"] = str(rootfs)
    config["process"]["args"] = list(args)
    config["mounts"].append({"destination": "/etc/hosts", "type": "bind", "source": "/etc/hosts",
                             "options": ["rbind", "rprivate"]})
    config["linux"]["cgroupsPath"] = f"{CGROUP}/{name}"
    config["linux"]["resources"]["pids"] = {"limit": 1000}
    config["linux"]["seccomp"] = docker_seccomp(set(bundle.CAPABILITIES))
    return config


class Peer:
    """An OCI runtime with a --root and bundles of its own."""

    def __init__(self, program, work):
        self.program, self.work = str(program), work
        self.name = pathlib.Path(program).name
        self.version = version(self.program, "--version")
        self.root = work / "run" / self.name

    def argv(self, *words):
        return [self.program, "--root", str(self.root), *map(str, words)]

    def bundle(self, name, *args):
        directory = self.work / f"{self.name}-{name}"
        directory.mkdir()
        config = make_config(self.work / "rootfs", f"{self.name}-{name}", args)
        (directory / "config.json").write_text(json.dumps(config))
        return directory

    def run_argv(self, directory):
        return self.argv("run", "--bundle", directory, f"{self.name}-run")

    @contextlib.contextmanager
    def container(self):
        """A container that waits; its name."""
        name = f"{self.name}-exec"
        directory = self.bundle("exec", "/bin/sleep", "9999")
        detached = self.argv("run", "--detach", "--bundle", directory, name)
        subprocess.run(detached, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            yield name
        finally:
            run(*self.argv("delete", "--force", name))


# ---- of berth-runtime alone ---------------------------------------------------------------------

def system_calls(argv, directory):
    """{name: how many}, in the whole life of the process, and of its child up to the execve of the
    program."""
    trace = directory / "strace"
    run("strace", "--follow-forks", "--seccomp-bpf", "-o", trace, *argv)
    done = set()  # processes that have become the program
    found = collections.Counter()
    for line in trace.read_text().splitlines():
        pid, _, text = line.partition(" ")
        call = re.match(r"\s*(\w+)\(", text)  # neither a signal, nor the rest of a call, nor an end
        if call is None or pid in done:
            continue
        found[call[1]] += 1
        if call[1] == "execve" and f'"{PROGRAM}"' in text:
            done.add(pid)
    if not done:
        raise RuntimeError(f"strace saw no execve of {PROGRAM}")
    return found


def peak_memory(argv):
    """Bytes resident at the most, by ru_maxrss: of the largest among the process and those that it
    waited for. A child inherits the figure of the program that starts it, which must be a small
    one, so this is not for Python to ask: GNU time does."""
    with tempfile.NamedTemporaryFile("r") as answer:
        run("/usr/bin/time", "--format", "%M", "--output", answer.name, *argv)
        return int(answer.read()) * 1024


def make_start_delete(peer, directory, names):
    for name in names:
        config = json.loads((directory / "config.json").read_text())
        for words in (("create", "--bundle", directory / name, name), ("start", name),
                      ("delete", "--force", name)):
            if words[0] == "create":
                (directory / name).mkdir()
                config["linux"]["cgroupsPath"] = f"{CGROUP}/{name}"
                (directory / name / "config.json").write_text(json.dumps(config))
            # create's container keeps these as its own, so that nothing may wait for their end.
            subprocess.run(peer.argv(*words), check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL)


def many_at_once(peer, work):
    """(seconds, what was left) of containers that several callers make at once."""
    directory = peer.bundle("many", PROGRAM)
    before = leftovers.snapshot(work, set())
    started = time.monotonic()
    # Python 3.14 would start servers for it, which stay.
    forked = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(CALLERS, mp_context=forked) as pool:
        for one in [pool.submit(make_start_delete, peer, directory,
                                [f"many-{number}" for number in range(first, CONTAINERS, CALLERS)])
                    for first in range(CALLERS)]:
            one.result()
    seconds = time.monotonic() - started
    left = [one for one in leftovers.since(before, work, set())
            if one.removeprefix("cgroup /sys/fs/cgroup/").partition("/")[2] != CGROUP.strip("/")]
    return seconds, left + [f"state {path}" for path in sorted(peer.root.glob("many-*"))]


def remove_cgroups():
    """The parent that the bundles name, which is not the runtime's to remove, and those of a runtime
    that was killed."""
    top = pathlib.Path("/sys/fs/cgroup")
    parents = (*top.glob(f"*{CGROUP}"), top / CGROUP.lstrip("/"))
    for _ in range(20):  # the kernel frees them once their killed processes are gone
        for parent in parents:
            for directory, _, _ in os.walk(parent, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
        if not any(parent.exists() for parent in parents):
            return
        time.sleep(0.1)


# ---- the whole ----------------------------------------------------------------------------------

def contenders(peers, stack):
    wanted = []
    for peer in peers:
        directory = peer.bundle("run", PROGRAM)
        wanted.append(Contender(f"{peer.name} run", peer.run_argv(directory), peer.version))
    found = side_by_side.tried(wanted)
    running = {contender.name.split()[0] for contender in found}
    execs = []
    for peer in peers:
        if peer.name in running:
            name = stack.enter_context(peer.container())
            execs.append(Contender(f"{peer.name} exec", peer.argv("exec", name, PROGRAM),
                                   peer.version))
    return found + side_by_side.tried(execs)


def ratios(found):
    median = {contender.name: contender.median for contender in found}
    pairs = [("berth-runtime run", "crun run"), ("berth-runtime run", "runc run"),
             ("berth-runtime exec", "crun exec")]
    return {f"{ours} ÷ {theirs}": median[ours] / median[theirs]
            for ours, theirs in pairs if theirs in median}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    side_by_side.add_options(parser)
    parser.add_argument("--calls", action="store_true", help="list the system calls")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench runtime: cgroups and device nodes are root's; run it as root")
    if not PROFILE.exists():
        sys.exit(f"bench runtime: no {PROFILE}; install golang-github-containers-common")
    side_by_side.enter_private_mounts()
    side_by_side.adopt_orphans()

    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="berth-bench-", dir=options.directory)))
        stack.enter_context(side_by_side.hugetlb_hierarchy())
        stack.enter_context(side_by_side.state_directory(work / "run"))
        stack.callback(remove_cgroups)
        bundle.make_root(work / "rootfs")
        berth = Peer(options.programs.resolve() / "berth-runtime", work)
        with contextlib.ExitStack() as running:
            found = contenders([berth, Peer("crun", work), Peer("runc", work)], running)
            side_by_side.measure(found, options.runs, options.warm_up)
        argv = next(contender.argv for contender in found if contender.name == "berth-runtime run")
        calls = system_calls(argv, work)
        memory = peak_memory(argv)
        seconds, left = many_at_once(berth, work)

    print(f"{platform.release()}, {os.cpu_count()} CPUs, {options.runs} runs each, interleaved; "
          f"{PROGRAM} of busybox, with what Docker asks for by default\n")
    values = {**ratios(found), "system calls of berth-runtime run": sum(calls.values()),
              "peak memory of berth-runtime run": memory,
              f"left by {CONTAINERS} containers": len(left)}
    side_by_side.tell(options, found, values, GOALS,
                      {"calls": dict(calls), "many_seconds": seconds, "left": left},
                      "berth-runtime run", "milliseconds")
    print(f"{CONTAINERS} containers by {CALLERS} callers at once: {seconds:.1f} s")
    print("\n".join(left))
    if options.calls:
        print("\n".join(f"{count:5} {name}" for name, count in calls.most_common()))


if __name__ == "__main__":
    main()
