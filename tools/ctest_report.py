#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads ctest's output on stdin and passes it on; before its summary come two tables.

usage: ctest … --output-junit FILE | ctest_report.py FILE ALLOWED_SKIPS

The tables are the slowest tests, and the skipped ones with their reason. A skip that no line of
ALLOWED_SKIPS allows makes the run fail. A line is 'PATTERN: REASON', both shell patterns; '#'
starts a comment. Tests written in Python check their own skips against the same file
(tests/integration/conftest.py), because ctest sees a whole file as one test.
"""

import fnmatch
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


def skip_reason(case):
    """What GTEST_SKIP() said, or ctest's own word for it (a test that was disabled or not built)."""
    output = case.findtext("system-out") or ""
    found = re.search(r"Skipped\n(.+)", output)
    if found:
        return found.group(1).strip()
    skipped = case.find("skipped")
    return skipped.get("message", "no reason given") if skipped is not None else "no reason given"


def main(junit, allowed_path):
    summary = []
    for line in sys.stdin:
        if summary or SUMMARY.match(line):
            summary.append(line)
        else:
            print(line, end="", flush=True)

    try:
        cases = ElementTree.parse(junit).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        sys.stdout.writelines(summary)
        sys.exit(f"ctest_report: {error}")

    print(f"\nThe {min(SLOWEST, len(cases))} slowest of {len(cases)} tests:")
    for case in sorted(cases, key=lambda c: -float(c.get("time", 0)))[:SLOWEST]:
        print(f"  {float(case.get('time', 0)):8.2f} s  {case.get('name')}")

    allowed = read_allowed(allowed_path)
    skips = [(c.get("name"), skip_reason(c)) for c in cases if c.get("status") in ("notrun", "disabled")]
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
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
