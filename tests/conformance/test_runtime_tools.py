# SPDX-License-Identifier: Apache-2.0
"""The validation suite of opencontainers/runtime-tools at 260e151, one test per program of it.

    RUNTIME_TOOLS=DIR ./dev test conformance                           berth-runtime
    RUNTIME_TOOLS=DIR RUNTIME=/usr/sbin/runc ./dev test conformance    what runc does, not judged

What differs is in the file expected-differences, with the reasons.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support import kept, leftovers, mount_view
from support.bundle import PROGRAMS

COMMIT = "260e151"
CHECKOUT = os.environ.get("RUNTIME_TOOLS")
RUNTIME = Path(os.environ.get("RUNTIME") or PROGRAMS / "berth-runtime").resolve()
IS_BERTH = RUNTIME.name == "berth-runtime"
LIST = Path(__file__).with_name("expected-differences")
CGROUPS = ("cgrouptest", "testdir")  # what the suite calls its own
VIEW = "mount -t tmpfs -o mode=755 tmpfs /run || exit 1"


def read_list():
    """{program: (failures, those that depend on the machine)}"""
    expected = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, failures, _, _ = (field.strip() for field in line.split("|"))
        words = failures.split()
        expected[name] = ({word for word in words if not word.endswith("?")},
                          {word.rstrip("?") for word in words if word.endswith("?")})
    return expected


def failures_in(tap, status):
    """The numbers of the assertions that failed; "exit" for a program that did; "error" for one
    that asserts nothing and prints what was wrong."""
    failed = set(re.findall(r"^not ok (\d+)", tap, re.MULTILINE))
    if status:
        failed.add("exit")
    if not re.search(r"^(not )?ok ", tap, re.MULTILINE) and '"error": "' in tap:
        failed.add("error")
    return failed


def programs():
    if not CHECKOUT:
        return ["runtime-tools"]
    return sorted(path.name for path in Path(CHECKOUT, "validation").iterdir()
                  if list(path.glob("*.go")) and path.name != "util")


def remove_cgroups():
    for directory, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
        if any(name in Path(directory).parts for name in CGROUPS):
            os.rmdir(directory)


@pytest.fixture(scope="session")
def suite(session_directory):
    """The command that runs a program of the suite, in the checkout."""
    if not CHECKOUT:
        pytest.skip("RUNTIME_TOOLS does not name a checkout of opencontainers/runtime-tools")
    head = subprocess.run(["git", "-c", "safe.directory=*", "-C", CHECKOUT, "rev-parse", "HEAD"],
                          check=True, capture_output=True, text=True).stdout
    assert head.startswith(COMMIT), f"{CHECKOUT} is at {head.strip()}, not at {COMMIT}"
    cache = kept.cache() / "go"
    subprocess.run(["make", "runtimetest", "validation-executables"], cwd=CHECKOUT, check=True,
                   capture_output=True,
                   env={**os.environ, "GOFLAGS": "-mod=vendor", "GOPROXY": "off",
                        "GOCACHE": str(cache / "build"), "GOPATH": str(cache / "path")})
    before = leftovers.snapshot(session_directory, set())
    with mount_view.view(VIEW) as command:
        yield [*command, f"--wd={CHECKOUT}"]
    # A program that fails leaves its container: that is how the suite is.
    leftovers.clear(before, session_directory, set())
    remove_cgroups()


@pytest.mark.parametrize("name", programs())
def test_conforms_but_for_what_is_listed(suite, session_directory, name, capsys):
    done = subprocess.run(
        [*suite, f"validation/{name}/{name}.t"], check=False, text=True, capture_output=True,
        stdin=subprocess.DEVNULL, timeout=120,
        env={**os.environ, "RUNTIME": str(RUNTIME), "TMPDIR": str(session_directory)})
    failed = failures_in(done.stdout, done.returncode)
    if not IS_BERTH:
        with capsys.disabled():
            print(f"\n{name}: {' '.join(sorted(failed)) or 'passes'}")
        return
    certain, possible = read_list().get(name, (set(), set()))
    assert failed - possible == certain, done.stdout[-3000:] + done.stderr[-1000:]


def test_lists_nothing_that_the_suite_does_not_have(suite):
    assert set(read_list()) <= set(programs())
