#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs './dev test' several times, beside busy processes if requested, and lists which tests failed how
often.

usage: rounds.py ROUNDS LOAD [ARGUMENT OF ./dev test]…

LOAD is a number of busy-loop processes. The exit status is 0 if no round failed. Each round's output is in
build/rounds/NUMBER.log.
"""

import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/rounds"
# Ends with its parent, even if that is killed.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100000))"


def failed_tests(since):
    """Names of failures since then: tests of pytest, of GoogleTest, and ctest entries that are neither."""
    failed = set()
    for path in (ROOT / "build/times").glob("*.jsonl"):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line.get("outcome", "passed") == "failed":
                failed.add(line["test"])
    reports = [*(ROOT / "build/debug/gtest").glob("*.xml"), ROOT / "build/ctest.xml"]
    for report in reports:
        if report.exists() and report.stat().st_mtime >= since:
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                if case.find("failure") is not None:
                    failed.add(case.get("name") if report.stem == "ctest" else f"{case.get('classname')}.{case.get('name')}")
    return failed


def one_round(number, arguments):
    """(exit status, names of failures)"""
    since = time.time()
    with open(LOGS / f"{number}.log", "wb") as log:
        command = subprocess.Popen([ROOT / "dev", "test", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            for line in command.stdout:
                log.write(line)
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                os.killpg(command.pid, signal.SIGTERM)
    return command.wait(), failed_tests(since)


def main(rounds, load, arguments):
    LOGS.mkdir(parents=True, exist_ok=True)
    fell, broke = collections.defaultdict(list), []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(load)]
    try:
        for number in range(1, rounds + 1):
            print(f"== round {number} of {rounds}", flush=True)
            status, failed = one_round(number, arguments)
            if status:
                broke.append(number)
            for name in failed:
                fell[name].append(number)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    print(f"\n{rounds - len(broke)} of {rounds} rounds passed")
    for name, numbers in sorted(fell.items(), key=lambda one: (-len(one[1]), one[0])):
        print(f"  failed in {len(numbers)}: {name} ({', '.join(f'build/rounds/{n}.log' for n in numbers)})")
    return 1 if broke else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or not (sys.argv[1] + sys.argv[2]).isdigit():
        sys.exit(__doc__)
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
