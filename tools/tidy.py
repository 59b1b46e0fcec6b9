#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on src/, and remembers which files were clean.

usage: tidy.py BUILD_DIR [SECONDS]

Checks a file again if it, one of our headers that it includes, or .clang-tidy has changed. With SECONDS,
starts no file after that time; the remaining files are counted and not remembered as clean. Files of the
latest commits come first, the others in random order, so that runs without a memory check every file sooner
or later.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.M)


def closure(source, known):
    """The source and all headers below src/ that it includes, directly or not."""
    if source in known:
        return known[source]
    known[source] = reached = {source}
    for name in INCLUDE.findall(source.read_bytes()):
        header = ROOT / "src" / name.decode()
        if header.exists():
            reached |= closure(header, known)
    return reached


def fingerprint(source, command, known):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + command.encode())
    for path in sorted(closure(source, known)):
        digest.update(path.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def recently_changed():
    log = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "log", "-20", "--format=",
                          "--name-only"], capture_output=True, text=True, check=False)
    return {ROOT / name for name in log.stdout.split()}


def check(source, build_dir):
    return subprocess.run(
        ["clang-tidy", "--quiet", "-p", build_dir, "--extra-arg=-Wno-unknown-warning-option", source],
        stdin=subprocess.DEVNULL, capture_output=True, text=True)


def main(build_dir, seconds=None):
    deadline = time.monotonic() + float(seconds) if seconds else None
    clean_dir = ROOT / "build" / "tidy"
    clean_dir.mkdir(parents=True, exist_ok=True)
    database = json.loads((pathlib.Path(build_dir) / "compile_commands.json").read_text())
    commands = {pathlib.Path(entry["file"]): entry["command"] for entry in database}
    ours = sorted(path for path in commands if (ROOT / "src") in path.parents)
    known = {}
    marks = {path: clean_dir / fingerprint(path, commands[path], known) for path in ours}
    recent = recently_changed()
    todo = [path for path in ours if not marks[path].exists()]
    random.shuffle(todo)
    todo.sort(key=lambda path: path not in recent)

    def work(path):
        if deadline and time.monotonic() > deadline:
            return path, None
        return path, check(path, build_dir)

    faulty = left = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(work, todo):
            if result is None:
                left += 1
            elif result.returncode == 0:
                marks[path].touch()
            else:
                faulty += 1
                print(result.stdout + result.stderr)
    print(f"clang-tidy: {len(ours)} files, {len(todo) - left} checked now, {faulty} with findings"
          + (f", {left} left for the next run" if left else ""))
    return 1 if faulty else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
