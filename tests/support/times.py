# SPDX-License-Identifier: Apache-2.0
"""Measures tests and fixtures, to find out what makes the suite slow.

With BERTH_TEST_TIMES=DIRECTORY every session writes a file of JSON lines there, which tools/ctest_report.py
reads: {"test": id, "seconds": wall, "outcome": word}; {"fixture": name, "scope": scope, "seconds": wall} with
the time of a fixture's own set-up, without that of the fixtures that it uses; and at the end {"session":
folder/file, "seconds": wall, "cpu": seconds of this process and its reaped children}.
"""

import json
import os
import pathlib
import resource
import time

import pytest

_lines = []
_started = time.monotonic()
_within = []  # for each fixture being set up: the seconds of those that it uses


def is_wanted():
    return "BERTH_TEST_TIMES" in os.environ


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef, request):
    start = time.monotonic()
    _within.append(0.0)
    yield
    whole = time.monotonic() - start
    own = whole - _within.pop()
    if _within:
        _within[-1] += whole
    _lines.append({"fixture": fixturedef.argname, "scope": fixturedef.scope, "seconds": round(own, 4)})


def pytest_runtest_logreport(report):
    if report.when == "call" or report.failed:
        _lines.append({"test": report.nodeid, "seconds": round(report.duration, 4), "outcome": report.outcome})


def pytest_sessionfinish(session):
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    names = sorted({f"{item.path.parent.name}/{item.path.stem.removeprefix('test_')}" for item in session.items})
    _lines.append({"session": "+".join(names), "seconds": round(time.monotonic() - _started, 2),
                   "cpu": round(sum(one.ru_utime + one.ru_stime for one in used), 2)})
    directory = pathlib.Path(os.environ["BERTH_TEST_TIMES"])
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / f"{os.getpid()}-{time.time_ns()}.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in _lines)
