#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a build: builds a preset from scratch, without a compiler cache, and times every process.

usage: build_report.py PRESET [--jobs N] [--touch FILE[:TARGET]]… [TARGET…]

Prints the CPU seconds of each folder and of each program, the ten heaviest headers and the ten heaviest
files; with --touch also the cost to rebuild TARGET, or everything built here, after FILE has changed. Writes
the same to build/report/PRESET.json. All times are CPU seconds of compilers and linkers, user and system
together, unless called wall time; a header's are those of a file that includes only this header, with the
headers in it, times the number of compilations that read it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN = 10
RARE = 0.05  # headers that fewer of the compilations read are not timed


def timed(log, command):
    """Runs one compiler or linker, and appends its usage to `log`. Exits with its status."""
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    made = command[command.index("-o") + 1] if "-o" in command else ""
    line = json.dumps({"made": made, "seconds": round(used.ru_utime + used.ru_stime, 3)})
    with open(log, "a", encoding="utf-8") as out:
        out.write(line + "\n")
    return os.waitstatus_to_exitcode(status)


def lines_of(log, start=0):
    with open(log, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][start:]


class Build:
    """A separate build tree below build/report, which times every compiler and linker."""

    def __init__(self, preset, jobs):
        self.tree = ROOT / "build/report" / preset
        self.log = self.tree / "times.jsonl"
        self.jobs = jobs
        if self.tree.exists():
            shutil.rmtree(self.tree)
        self.tree.mkdir(parents=True)
        self.log.touch()
        launcher = f"{sys.executable};{__file__};--timed;{self.log}"
        subprocess.run(
            ["cmake", "--preset", preset, "-B", self.tree, f"-DBERTH_CCACHE={launcher}",
             f"-DCMAKE_CXX_LINKER_LAUNCHER={launcher}"],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def run(self, targets):
        """Builds `targets`: (wall seconds, output and usage of each process)."""
        before, start = len(lines_of(self.log)), time.monotonic()
        status = subprocess.run([sys.executable, ROOT / "tools/build_progress.py", f"build/report/{self.tree.name}",
                                 "-C", self.tree, "-j", str(self.jobs), *targets]).returncode
        if status:
            sys.exit(status)
        return time.monotonic() - start, lines_of(self.log, before)

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.tree, *arguments], check=True, capture_output=True,
                              text=True).stdout.splitlines()

    def headers(self):
        """header → the objects whose compilations read it."""
        readers, made = collections.defaultdict(set), None
        for line in self.ninja("-t", "deps"):
            if line.startswith("    "):
                readers[os.path.normpath(self.tree / line.strip())].add(made)
            elif line:
                made = line.split(":")[0]
        return readers

    def commands(self):
        """object → (folder, arguments of its compiler without launcher, source and output)."""
        found = {}
        for entry in json.loads((self.tree / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            words = words[words.index(str(self.log)) + 1:] if str(self.log) in words else words
            made = words[words.index("-o") + 1]
            found[made] = (entry["directory"], words[:words.index("-o")])
        return found


def folder_of(made):
    """'src/engine/CMakeFiles/berth_engine.dir/Unity/unity_0_cxx.cxx.o' → 'src/engine'."""
    return made.split("/CMakeFiles/")[0]


def files_of(build, made):
    """The sources of an object: those of its batch, or a single one."""
    path = build.tree / made.removesuffix(".o")
    if "/Unity/" not in made:
        inner = re.sub(r"^.*?\.dir/", "", made).removesuffix(".o")
        return [f"{folder_of(made)}/{inner}".replace("/__/", "/../")]
    named = re.findall(r'^#include "(.*)"$', path.read_text(), re.MULTILINE)
    return [os.path.relpath(name, ROOT) for name in named]


def is_named(path, named):
    """Whether a header is one that our sources include, or may include, directly."""
    if path.startswith(f"{ROOT}/"):
        return path.endswith((".hpp", ".h"))
    return any(path.endswith("/" + name) for name in named)


def header_costs(build):
    """[(header, compilations that read it, seconds of one)], the heaviest first."""
    objects = build.commands()
    named = set()
    for top in ("src", "tests"):
        for path in (ROOT / top).rglob("*.[ch]pp"):
            named.update(re.findall(r"^#include <(.*)>$", path.read_text(errors="replace"), re.MULTILINE))
    wanted = []
    for path, readers in build.headers().items():
        readers &= objects.keys()
        if len(readers) >= max(2, RARE * len(objects)) and is_named(path, named):
            wanted.append((path, readers))

    def cost(path, readers):
        folder, flags = objects[min(readers)]
        command = [*flags, "-fsyntax-only", "-w", "-x", "c++", "-"]
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        child.stdin.write(f'#include "{path}"\n'.encode())
        child.stdin.close()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status  # waited for above
        return used.ru_utime + used.ru_stime if status == 0 else 0.0

    with concurrent.futures.ThreadPoolExecutor(build.jobs) as pool:
        seconds = pool.map(lambda one: cost(*one), wanted)
        found = [(path, len(readers), round(once, 3)) for (path, readers), once in zip(wanted, seconds)]
    return sorted(found, key=lambda one: -one[1] * one[2])


def programs_of(build, used):
    """[(program, seconds of all its objects, seconds of its link)], the heaviest first."""
    found = []
    for made, link in used.items():
        if made.endswith((".o", ".a")):
            continue
        inputs = build.ninja("-t", "inputs", made)
        found.append((made, round(sum(used.get(name, 0) for name in inputs if name.endswith(".o")), 1), round(link, 1)))
    return sorted(found, key=lambda one: -one[1])


def report(build, wall, lines):
    used = {line["made"]: line["seconds"] for line in lines if line["made"]}
    folders = collections.Counter()
    for made, seconds in used.items():
        folders[folder_of(made) if made.endswith(".o") else "links"] += seconds
    files = sorted(((seconds, made) for made, seconds in used.items() if made.endswith(".o")), reverse=True)
    return {
        "preset": build.tree.name,
        "wall_s": round(wall, 1),
        "cpu_s": round(sum(used.values()), 1),
        "compilations": len(files),
        "links": len(used) - len(files),
        "folders": [{"folder": name, "cpu_s": round(seconds, 1)} for name, seconds in folders.most_common()],
        "programs": [{"program": name, "objects_cpu_s": objects, "link_cpu_s": link}
                     for name, objects, link in programs_of(build, used)],
        "files": [{"files": files_of(build, made), "cpu_s": round(seconds, 1)} for seconds, made in files],
        "headers": [{"header": os.path.relpath(path, ROOT) if path.startswith(f"{ROOT}/") else path,
                     "compilations": count, "once_cpu_s": once, "cpu_s": round(count * once, 1)}
                    for path, count, once in header_costs(build)],
    }


def short(files):
    if len(files) == 1:
        return files[0]
    return f"{files[0]} … {os.path.basename(files[-1])} ({len(files)} files)"


def show(facts):
    print(f"{facts['preset']}: {facts['cpu_s']} CPU s in {facts['wall_s']} s of wall time, "
          f"{facts['compilations']} compilations, {facts['links']} links")
    print(f"\n{'CPU s':>8}  folder")
    for one in facts["folders"]:
        print(f"{one['cpu_s']:8.1f}  {one['folder']}")
    tests = [one for one in facts["programs"] if "/unit_" in one["program"]]
    print(f"\n{'CPU s':>8} {'link':>6}  program, with all that it is linked from")
    for one in facts["programs"]:
        if one not in tests:
            print(f"{one['objects_cpu_s']:8.1f} {one['link_cpu_s']:6.1f}  {os.path.basename(one['program'])}")
    if tests:
        print(f"{'':8} {sum(one['link_cpu_s'] for one in tests):6.1f}  the {len(tests)} programs of unit tests")
    print(f"\n{'CPU s':>8} {'once':>6} {'read by':>8}  the heaviest headers")
    for one in facts["headers"][:SHOWN]:
        print(f"{one['cpu_s']:8.1f} {one['once_cpu_s']:6.2f} {one['compilations']:8}  {one['header']}")
    print(f"\n{'CPU s':>8}  the heaviest files")
    for one in facts["files"][:SHOWN]:
        print(f"{one['cpu_s']:8.1f}  {short(one['files'])}")
    for one in facts["touched"]:
        print(f"\n{one['file']} touched, {one['target']} built: {one['cpu_s']} CPU s in {one['wall_s']} s of wall time, "
              f"{one['compilations']} compilations, {one['links']} links")


def touch(build, what, targets):
    name, _, target = what.partition(":")
    (ROOT / name).touch()
    wall, lines = build.run([target] if target else targets)
    objects = sum(line["made"].endswith(".o") for line in lines)
    return {"file": name, "target": target or "all of it", "wall_s": round(wall, 1),
            "cpu_s": round(sum(line["seconds"] for line in lines), 1), "compilations": objects,
            "links": len(lines) - objects}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--touch", action="append", default=[])
    options = parser.parse_intermixed_args()
    for what in options.touch:
        if not (ROOT / what.partition(":")[0]).is_file():
            sys.exit(f"build_report: --touch {what}: there is no such file")
    build = Build(options.preset, options.jobs)
    wall, lines = build.run(options.targets)
    facts = report(build, wall, lines)
    facts["touched"] = [touch(build, what, options.targets) for what in options.touch]
    show(facts)
    path = ROOT / f"build/report/{options.preset}.json"
    path.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"\nwritten to {path.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--timed"]:
        sys.exit(timed(sys.argv[2], sys.argv[3:]))
    main()
