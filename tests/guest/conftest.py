# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that look at Berth on another kernel than this machine's."""

import os
import pathlib
import xml.etree.ElementTree as ElementTree

import pytest
from support import guest

TESTS = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS",
                                       TESTS.parent / "build/release/bin")).resolve()
DEADLINE = 1150  # below the TIMEOUT of tests/CMakeLists.txt

PYTEST = """
cd /payload
export BERTH_TEST_PROGRAMS=/payload/bin PYTHONDONTWRITEBYTECODE=1
python3 -m pytest {files} -m '{marks}' -q --junit-xml=/tmp/junit.xml </dev/null
cat /tmp/junit.xml >/dev/ttyS1
""" + guest.POWER_OFF


@pytest.fixture(scope="session")
def guest_image():
    """guest_image(packages) → one with those beside guest.PACKAGES."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make the guest's file system")
    return lambda packages=(): guest.prepare((*guest.PACKAGES, *packages))


@pytest.fixture
def machine(request, guest_image):
    """A guest with the programs under test in /payload/bin, and the tests beside them with the
    skips that are allowed there; the test's module may name PACKAGES that it needs."""
    made = guest.Machine(guest_image(getattr(request.module, "PACKAGES", ())))
    for program in [*sorted(PROGRAMS.glob("berth*")), PROGRAMS / "spank_berth.so"]:
        made.add(f"bin/{program.name}", program)
    made.add("tests/confine", PROGRAMS.parent / "tests/confine")
    made.add("tests/allowed-skips", TESTS / "guest/allowed-skips")
    for name in ("conftest.py", "pytest.ini", "support", "data", "integration", "guest/inside"):
        made.add(f"tests/{name}", TESTS / name)
    made.add("tools", TESTS.parent / "tools")
    return made


def failures(cases):
    """{name: the last lines of what it said} of the tests that failed."""
    found = {}
    for case in cases:
        for child in case:
            if child.tag in ("failure", "error"):
                found[case.get("name")] = (child.text or child.get("message"))[-1500:]
    return found


@pytest.fixture
def run_tests(machine):
    """run_tests(files, boot, marks) → passes when every test of `files` that pytest's -m selects does in a
    guest that was brought up by `boot`, a function of a script and of the machine."""
    def run(files, boot, marks=""):
        script = PYTEST.replace("{files}", " ".join(f"tests/{file}" for file in files)).replace("{marks}", marks)
        ended = machine.run(boot(script, machine), deadline=DEADLINE)
        assert ended.report.strip(), f"pytest wrote no report:\n{ended.console[-3000:]}"
        cases = ElementTree.fromstring(ended.report).findall(".//testcase")
        failed = failures(cases)
        assert not failed, "\n".join(f"{name}:\n{text}" for name, text in failed.items())
        skipped = [line for line in ended.console.splitlines()
                   if "not in tests/allowed-skips" in line]
        assert not skipped
        assert [case for case in cases if case.find("skipped") is None], "every test was skipped"
    return run
