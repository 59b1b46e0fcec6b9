# SPDX-License-Identifier: Apache-2.0
"""The attack suite: one test per CVE of OCI runtimes, against any program with runc's command line.

    RUNTIME=/usr/sbin/runc python3 -m pytest tests/attacks

Without RUNTIME it is berth-runtime. An attack has one of these outcomes: "holds" (the container
ran, and the attacker got nothing), "refuses" (no container of the attack ran), "broken" (the
attacker got what he wanted), "n/a" (the runtime cannot do what the attack needs). "broken" fails
the run of berth-runtime; for other programs it is a line of the table. Whatever else goes wrong in
a test fails every run.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from support import leftovers
from support.attacks import (BERTH, RUNTIME, Broken, Outside, Target, Watcher, make_bundle,
                             view_of_cgroups)

IS_BERTH = RUNTIME == BERTH
CVE = re.compile(r"_cve_(\d{4})_(\d+)")
WORST_FIRST = ("error", "broken", "holds", "refuses", "n/a")


# ---- outcomes: a table at the end, and a file for table.py --------------------------------------

OUTCOMES = {}


def pytest_configure(config):
    config.addinivalue_line("markers", "attack(text): what is attacked, for the table")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    found = CVE.search(item.name)
    if found is None or (call.when != "call" and call.excinfo is None):
        return
    if call.excinfo is None:
        target = item.funcargs.get("target")
        outcome = "refuses" if target is not None and not target.entered else "holds"
    elif call.excinfo.errisinstance(pytest.skip.Exception):
        outcome = "n/a"
    elif call.excinfo.errisinstance(Broken):
        outcome = "broken"
        if not IS_BERTH:
            report.outcome = "passed"  # a finding about somebody else's program
    else:
        outcome = "error"
    text = item.get_closest_marker("attack").args[0]
    key = (f"CVE-{found[1]}-{found[2]}", text)
    before = OUTCOMES.get(key, "n/a")
    OUTCOMES[key] = min(before, outcome, key=WORST_FIRST.index)


def pytest_terminal_summary(terminalreporter):
    if not OUTCOMES:
        return
    terminalreporter.section(f"attacks on {RUNTIME}")
    for (cve, text), outcome in sorted(OUTCOMES.items(), key=lambda entry: cve_order(entry[0])):
        terminalreporter.write_line(f"{outcome:8} {cve}: {text}")


def cve_order(key):
    _, year, number = key[0].split("-")
    return int(year), int(number), key[1]


def pytest_sessionfinish(session):
    path = os.environ.get("BERTH_ATTACK_RESULTS")
    if path:
        Path(path).write_text(json.dumps([[*key, value] for key, value in OUTCOMES.items()]),
                              encoding="utf-8")


# ---- what a test asks for -----------------------------------------------------------------------

@pytest.fixture(scope="session")
def inside(session_directory):
    (session_directory / "cgroups").mkdir()
    with view_of_cgroups(RUNTIME, session_directory / "cgroups") as command:
        yield command


@pytest.fixture(scope="session")
def runtime_copy(session_directory, inside):
    """Checked once: every refusal below is one of the attack, not of all containers."""
    copy = session_directory / "attacked" / RUNTIME.name
    copy.parent.mkdir()
    shutil.copy2(RUNTIME, copy)
    directory = Path(tempfile.mkdtemp(prefix="plain-", dir=session_directory))
    plain = Target(copy, directory, inside)
    done = plain.run(make_bundle(directory, "bundle").shell("echo in"))
    if not plain.entered:
        pytest.exit(f"{RUNTIME} cannot run a plain container: {done.err}", returncode=1)
    return copy


@pytest.fixture
def place(session_directory):
    """A directory of the test's own on the host."""
    path = Path(tempfile.mkdtemp(prefix="attack-", dir=session_directory))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def target(runtime_copy, inside, place, session_directory):
    before = leftovers.snapshot(session_directory, set())
    made = Target(runtime_copy, place, inside)
    yield made
    made.prefix = []
    made.clear()
    left = leftovers.since(before, session_directory, set(), patience=1.0)
    if left:
        leftovers.clear(before, session_directory, set())
    if IS_BERTH and left:
        pytest.fail("the attack left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def new_bundle(place):
    count = iter(range(1000))
    return lambda: make_bundle(place, f"bundle{next(count)}")


@pytest.fixture
def bundle(new_bundle):
    return new_bundle()


@pytest.fixture
def outside(place):
    return Outside(place)


@pytest.fixture
def watch(target):
    """watch(bundle, verb, argument…) → a running Watcher."""
    watchers = []

    def start(bundle, *words):
        watchers.append(Watcher(target, bundle, *words))
        return watchers[-1]
    yield start
    for watcher in watchers:
        watcher.stop()
