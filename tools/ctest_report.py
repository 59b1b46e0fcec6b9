#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads ctest's output on stdin and passes it on; before its summary come two tables.

usage: ctest … --output-junit FILE | ctest_report.py FILE GTEST_DIRECTORY ALLOWED_SKIPS

The tables are the slowest entries, and the skipped tests with their reason: ctest's own, and those
of GoogleTest programs, each of which is one entry of ctest and has left FILE.xml in GTEST_DIRECTORY. A skip that no line of
ALLOWED_SKIPS allows makes the run fail. A line is 'PATTERN: REASON', both shell patterns; '#'
starts a comment. Tests written in Python check their own skips against the same file
(tests/integration/conftest.py), because ctest sees a whole file as one test.
"""

import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SLOWEST = 15
SUMMARY = re.compile(r"^\d+% tests passed")


def read_allowed(path):
    """[(name pattern, reason pattern)] of an allowed-skips file."""
    allowed = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.split("#", 1)[0].strip()
            if line:
                name, _, reason = line.partition(": ")
                allowed.append((name.strip(), reason.strip() or "*"))
    return allowed


def is_allowed(allowed, name, reason):
    return any(fnmatch.fnmatchcase(name, n) and fnmatch.fnmatchcase(reason, r) for n, r in allowed)


def skips_of_programs(directory):
    """[(name, reason)] of what GoogleTest programs skipped, from the reports that they wrote."""
    skips = []
    for report in sorted(pathlib.Path(directory).glob("*.xml")):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                reason = skipped.get("message", "").strip().splitlines()
                name = f"{report.stem}/{case.get('classname')}.{case.get('name')}"
                skips.append((name, reason[-1] if reason else "no reason given"))
    return skips


def skips_of_ctest(cases):
    """[(name, reason)] of the entries that ctest did not run: disabled, or not built."""
    return [(case.get("name"), skip.get("message", "no reason given"))
            for case in cases if case.get("status") in ("notrun", "disabled")
            for skip in case.findall("skipped")]


def main(junit, programs, allowed_path):
    summary = []
    for line in sys.stdin:
        if summary or SUMMARY.match(line):
            summary.append(line)
        else:
            print(line, end="", flush=True)

    try:
        cases = ElementTree.parse(junit).getroot().findall("testcase")
        skips = skips_of_ctest(cases) + skips_of_programs(programs)
    except (OSError, ElementTree.ParseError) as error:
        sys.stdout.writelines(summary)
        sys.exit(f"ctest_report: {error}")

    print(f"\nThe {min(SLOWEST, len(cases))} slowest of {len(cases)} tests:")
    for case in sorted(cases, key=lambda c: -float(c.get("time", 0)))[:SLOWEST]:
        print(f"  {float(case.get('time', 0)):8.2f} s  {case.get('name')}")

    allowed = read_allowed(allowed_path)
    unexpected = [s for s in skips if not is_allowed(allowed, *s)]
    if skips:
        print("\nSkipped:")
        for name, reason in skips:
            mark = "" if (name, reason) not in unexpected else "  NOT in tests/allowed-skips"
            print(f"  {name}: {reason}{mark}")
    print()
    sys.stdout.writelines(summary)
    sys.stdout.flush()
    if unexpected:
        sys.exit(f"{len(unexpected)} skips are not in {allowed_path}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
