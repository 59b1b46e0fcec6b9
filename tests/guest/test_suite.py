# SPDX-License-Identifier: Apache-2.0
"""The integration tests of berth-runtime on Debian's 6.1 kernel with cgroup v2 alone: each file in
a guest of its own, so that as many run at once as ctest has jobs."""

import pathlib
import xml.etree.ElementTree as ElementTree

import pytest
from support import guest

TESTS = pathlib.Path(__file__).resolve().parent.parent
SUITE = sorted(path.name for pattern in ("test_runtime_*.py", "test_cgroup*.py")
               for path in (TESTS / "integration").glob(pattern))

SCRIPT = guest.MOUNTS + """
cd /payload
export BERTH_TEST_PROGRAMS=/payload/bin PYTHONDONTWRITEBYTECODE=1
python3 -m pytest tests/integration/{file} -q --junit-xml=/tmp/junit.xml </dev/null
cat /tmp/junit.xml >/dev/ttyS1
""" + guest.POWER_OFF


@pytest.fixture
def suite(machine):
    """A guest with the tests beside the programs, and with the skips that are allowed there."""
    machine.add("tests/confine", TESTS.parent / "build/release/tests/confine")
    machine.add("tests/allowed-skips", TESTS / "guest/allowed-skips")
    for name in ("conftest.py", "pytest.ini", "support", "integration"):
        machine.add(f"tests/{name}", TESTS / name)
    machine.add("tools", TESTS.parent / "tools")
    return machine


def failures(cases):
    """{name: the last lines of what it said} of the tests that failed."""
    found = {}
    for case in cases:
        for child in case:
            if child.tag in ("failure", "error"):
                found[case.get("name")] = (child.text or child.get("message"))[-600:]
    return found


@pytest.mark.parametrize("file", SUITE)
def test_passes_on_a_machine_with_cgroup_v2_alone(suite, file):
    ended = suite.run(SCRIPT.replace("{file}", file), deadline=600)
    cases = ElementTree.fromstring(ended.report).findall(".//testcase")
    failed = failures(cases)
    assert not failed, "\n".join(f"{name}:\n{text}" for name, text in failed.items())
    skipped = [line for line in ended.console.splitlines() if "not in tests/allowed-skips" in line]
    assert not skipped
    passed = [case for case in cases if case.find("skipped") is None]
    assert passed, "every test was skipped"
