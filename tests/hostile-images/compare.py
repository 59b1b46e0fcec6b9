#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What berth, podman and umoci do with every item of the corpus, as docs/hostile-images.md.

usage: compare.py [--write] [NAME…]    as root; without --write the table is printed, with it the
                                       other rows stay as they are

Each tool has each item to itself: own mounts, processes and network, the file systems of the
machine read-only, all that can be written in one tmpfs of 512 MB and 200,000 files, 1.5 GB of
memory, and a minute. What the attacks reach for lies in that tmpfs, beside the tool's store."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import make

from support import hostile_registry

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/hostile-images.md"
BERTH = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS", ROOT / "build/release/bin"))
TOOLS = ("berth", "podman", "umoci")
SECONDS, MEMORY = 60, 1536 << 20
PODMAN = ["podman", "--root", "/tmp/store", "--runroot", "/run/podman", "--tmpdir", "/run/tmp",
          "--storage-driver", "vfs", "--events-backend", "none", "--cgroup-manager", "cgroupfs", "--runtime", "runc"]
OWN = [BERTH / "berth", "--root", "/tmp/store", "--state", "/tmp/state"]
CGROUP = "berth-tests-compare"  # podman leaves the one that it makes
NONE = "–"
MEANINGS = """\
- **refused**: the tool ended with an error, and nothing outside of its store changed.
- **contained**: the tool accepted it, and nothing outside changed; the attack had no effect.
- **accepted**: the tool accepted what it should have refused: content that contradicts the image's documents
  (digest, size, type), or the attribute in brackets, on which the kernel acts when the unpacked tree is used.
- **ESCAPES**: something outside of the tool's store changed.
- **hangs**: the tool did not end within a minute.
- **fills disk**, **fills memory**: the tool used all the disk or memory that it was given.
- **–**: not tried, because umoci neither pulls from registries nor runs containers."""


# ---- the place ----------------------------------------------------------------------------------

def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def make_place():
    mount("-o", "remount,bind,ro", "/")
    for place, options in (("/tmp", "size=512m,nr_inodes=200k,mode=1777"), ("/run", "size=64m"),
                           ("/var/tmp", "size=64m,mode=1777"), ("/var/lib/containers", "size=64m")):
        if os.path.isdir(place):
            mount("-t", "tmpfs", "-o", options, "tmpfs", place)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    make.make_canary()


@contextlib.contextmanager
def memory_limit():
    """A cgroup for this process and its children; gives the file that counts who was killed."""
    v1 = pathlib.Path("/sys/fs/cgroup/memory")
    place = v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")
    group = place / f"{CGROUP}-{os.getpid()}"
    group.mkdir()
    limit = group / ("memory.limit_in_bytes" if place == v1 else "memory.max")
    limit.write_text(str(MEMORY))
    try:
        yield group, group / ("memory.oom_control" if place == v1 else "memory.events")
    finally:
        group.rmdir()
        for left in pathlib.Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"):
            for path, _, _ in sorted(os.walk(left), reverse=True):
                os.rmdir(path)


# ---- the tools ----------------------------------------------------------------------------------

def command(tool, source, is_pull):
    if tool == "berth":
        return [*OWN, *(("pull", "--quiet", source) if is_pull else ("load", "-q", "-i", source))]
    if tool == "podman":
        flags = ("--tls-verify=false",) if is_pull else ()
        return [*PODMAN, "pull", "-q", *flags, source if is_pull else f"oci:{source}:latest"]
    return ["umoci", "unpack", "--image", f"{source}:latest", "/tmp/bundle"]


def run_command(tool, reference, argv):
    if tool == "berth":
        return [*OWN, "run", "--rm", "--network", "none", reference, *argv]
    return [*PODMAN, "run", "--rm", "--network", "none", "--cgroup-parent", f"/{CGROUP}", reference,
            *argv]


def trees(tool):
    if tool == "umoci":
        return [pathlib.Path("/tmp/bundle/rootfs")]
    pattern = "layers/*/fs" if tool == "berth" else "vfs/dir/*"
    return sorted(pathlib.Path("/tmp/store").glob(pattern))


def execute(argv, environment=None):
    """(exit status or None for a timeout, output, errors)"""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def failure(status, errors):
    if status is None:
        return "hangs"
    text = errors.lower()
    if "no space left" in text:
        return "fills disk"
    return "fills memory" if status in (-9, 137) or "out of memory" in text else "refused"


def verdict(tool, item):
    """What the tool did, but for what happened outside."""
    if item.faults:
        with hostile_registry.running(item.make().image, **item.faults) as registry:
            status, output, errors = execute(command(tool, registry.reference, True))
    else:
        path = make.write(item, "/tmp")
        status, output, errors = execute(command(tool, path, False), item.environment)
    print(f"{tool} {item.name}: {status} {errors[-300:]}", file=sys.stderr)
    if status != 0:
        return failure(status, errors)
    if item.lie:
        return "accepted"
    harms = [item.harm(tree) for tree in trees(tool)] if item.harm else []
    if any(harms):
        return f"accepted ({next(filter(None, harms))})"
    if (item.run or item.run_says) and tool != "umoci":
        return run_verdict(tool, item, output.split()[-1])
    return "contained"


def run_verdict(tool, item, reference):
    status, output, errors = execute(run_command(tool, reference, item.run))
    print(f"{tool} {item.name}: run: {status} {output[-200:]} {errors[-300:]}", file=sys.stderr)
    if status is None:
        return "hangs"
    if item.prints and item.prints not in output + errors:
        return f"accepted (prints {' '.join((output + errors).split())[:60]!r})"
    return "contained" if item.prints or status == 0 else "refused"


def inside(tool, name):
    make_place()
    item = make.BY_NAME[name]
    before = make.look_at_canary()
    found = verdict(tool, item)
    after = make.look_at_canary() if os.path.isdir(make.CANARY) else None
    print(json.dumps("ESCAPES" if after != before else found))


# ---- the table ----------------------------------------------------------------------------------

def measure(tool, item):
    if tool == "umoci" and (item.faults or item.name.startswith("run-")):
        return NONE  # it neither pulls nor runs
    with memory_limit() as (group, counts):
        argv = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--mount-proc",
                "--net", "--ipc", "--kill-child", sys.executable, __file__, "--inside", tool,
                item.name]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: (
            group / "cgroup.procs").write_text(str(os.getpid())))
        killed = [line for line in counts.read_text().splitlines()
                  if line.startswith("oom_kill ") and not line.endswith(" 0")]
    if killed or not done.stdout.strip():
        return "fills memory"
    return json.loads(done.stdout.splitlines()[-1])


def version(*argv):
    shown = subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()
    return " ".join(shown[:1]).removeprefix("podman version ").removeprefix("umoci version ")


def escaped(text):
    return text.replace("|", r"\|").replace("*", r"\*")


def table(rows):
    podman, umoci = version("podman", "--version"), version("umoci", "--version")
    lines = ["# Hostile images", "",
             "An image can attack the program that unpacks or runs it. "
             f"This page shows what Berth, Debian's podman {podman} and Debian's umoci {umoci} do with each image of "
             "`tests/hostile-images/`, as root. Berth loads, podman pulls, and umoci unpacks the same "
             "OCI layout; the items `registry-…`, in which the registry attacks, are pulled by Berth and podman from "
             "a registry. If an image attacks when it starts (the items `run-…`, and devices), a container of it is "
             "run, too.", "", "`tests/hostile-images/compare.py --write` measures and writes this page; "
             "`tests/integration/test_hostile_images.py` checks Berth's column, also as an "
             "ordinary user and with layers that are EROFS images.", "", MEANINGS, "",
             "A tool gets 512 MB of disk, 1.5 GB of memory and a minute for each item. For two items one of Berth's "
             "limits is lowered to save time: " + ", ".join(
                 f"`{item.name}` (`{key}={value}`)" for item in make.ITEMS
                 for key, value in item.environment.items()) + ".", "",
             "| Item | Attack | Berth | podman | umoci |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| `{item.name}` | {escaped(item.attack)} | "
              + " | ".join(escaped(found[tool]) for tool in TOOLS) + " |" for item, found in rows]
    alone = [item for item, found in rows if is_alone(found)]
    if alone:
        lines += ["", "## Refused by Berth, contained by others", "", "| Item | Why |", "| --- | --- |"]
        lines += [f"| `{item.name}` | {escaped(item.why)} |" for item in alone]
    return "\n".join(lines) + "\n"


def is_alone(found):
    return found["berth"] == "refused" and "contained" in found.values()


def written():
    """{item: {tool: verdict}} of the table as it is."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.replace("\\*", "*") for cell in line.strip("| ").split(" | ")]
        if len(cells) == 2 + len(TOOLS) and cells[0].strip("`") in make.BY_NAME:
            found[cells[0].strip("`")] = dict(zip(TOOLS, cells[2:]))
    return found


def main(arguments):
    if arguments[:1] == ["--inside"]:
        return inside(*arguments[1:])
    names = [each for each in arguments if each != "--write"]
    measured = {item.name: {tool: measure(tool, item) for tool in TOOLS}
                for item in make.ITEMS if not names or item.name in names}
    if "--write" in arguments:
        measured = {**written(), **measured}
    rows = [(item, measured[item.name]) for item in make.ITEMS if item.name in measured]
    if "--write" in arguments:
        TABLE.write_text(table(rows), encoding="utf-8")
    else:
        print(table(rows), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
