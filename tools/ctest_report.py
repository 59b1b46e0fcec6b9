#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads ctest's output on stdin and passes it on; inserts tables before its summary.

usage: ctest … --output-junit FILE | ctest_report.py FILE GTEST_DIRECTORY TIMES_DIRECTORY ALLOWED_SKIPS

The tables list the slowest entries, with the processor time of those written in Python; their slowest tests;
the slowest fixtures, with all their set-ups summed (from TIMES_DIRECTORY, written by tests/support/times.py);
and the skipped tests with their reasons: ctest's own, and those of GoogleTest programs, which are one ctest
entry each and write FILE.xml to GTEST_DIRECTORY. All times are also written as JSON beside FILE. A skip that
no line of ALLOWED_SKIPS permits fails the run. A line is 'PATTERN: REASON', both shell patterns; '#' starts a
comment. Tests written in Python check their own skips against the same file (tests/integration/conftest.py),
because ctest sees a whole file as one test.
"""

import collections
import fnmatch
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SLOWEST = 15
SUMMARY = re.compile(r"^\d+% tests passed")


def read_allowed(path):
    """[(name pattern, reason pattern)] from an allowed-skips file."""
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
    """[(name, reason)] of the tests that GoogleTest programs skipped, from their reports."""
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
    """[(name, reason)] of the entries that ctest did not run (disabled, or not built), and of those that did
    nothing and printed a line 'Reason: …'."""
    found = []
    for case in cases:
        for skip in case.findall("skipped") if case.get("status") in ("notrun", "disabled") else ():
            told = re.search(r"^Reason: (.*)$", case.findtext("system-out") or "", re.MULTILINE)
            found.append((case.get("name"), told.group(1) if told else skip.get("message", "no reason given")))
    return found


def read_times(directory):
    """The lines that pytest sessions wrote: [line]."""
    return [json.loads(line) for path in sorted(pathlib.Path(directory).glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()]


def facts_of(cases, times):
    """Entries, tests and fixtures with their seconds, each list slowest first."""
    cpu = {line["session"]: line["cpu"] for line in times if "session" in line}
    entries = []
    for case in cases:
        name = case.get("name")
        session = name.replace("/test_", "/").removesuffix(".py")
        entries.append({"entry": name, "seconds": float(case.get("time", 0)), "cpu": cpu.get(session)})
    fixtures = collections.defaultdict(list)
    for line in times:
        if "fixture" in line:
            fixtures[line["fixture"]].append(line["seconds"])
    slowest = {"key": lambda one: -one["seconds"]}
    return {
        "entries": sorted(entries, **slowest),
        "tests": sorted((line for line in times if "test" in line), **slowest),
        "fixtures": sorted(({"fixture": name, "times": len(each), "seconds": round(sum(each), 2)}
                            for name, each in fixtures.items()), **slowest),
    }


def show(facts):
    entries = facts["entries"]
    print(f"\nThe {min(SLOWEST, len(entries))} slowest of {len(entries)} entries, and their processor time:")
    for one in entries[:SLOWEST]:
        cpu = f"{one['cpu']:8.2f} s" if one["cpu"] is not None else " " * 10
        print(f"  {one['seconds']:8.2f} s {cpu}  {one['entry']}")
    if facts["tests"]:
        print("\nThe slowest tests in them, and the fixtures that took longest:")
    for one in facts["tests"][:SLOWEST]:
        print(f"  {one['seconds']:8.2f} s  {one['test']}")
    for one in facts["fixtures"][:SLOWEST]:
        print(f"  {one['seconds']:8.2f} s  {one['fixture']}, set up {one['times']} times")


def main(junit, programs, times, allowed_path):
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

    facts = facts_of(cases, read_times(times))
    show(facts)
    pathlib.Path(junit).with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")

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
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
