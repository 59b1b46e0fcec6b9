# SPDX-License-Identifier: Apache-2.0
"""process.apparmorProfile on a kernel that enforces it: tests/guest/test_apparmor.py runs this file
in a guest."""

import subprocess

import pytest
from support.bundle import Runtime
from support.oci_fixtures import assert_nothing_is_left, bundle, ok, place, start  # noqa: F401

NAME = "berth-test"
PROFILE = f"""profile {NAME} flags=(attach_disconnected) {{
  file,
  capability,
  signal,
  deny /tmp/closed w,
}}
"""
TRY_BOTH = """
cat /proc/self/attr/apparmor/current
for name in open closed; do
  echo text 2>/dev/null >/tmp/$name && echo $name can be written
done
exit 0
"""
UNDER_IT = f"{NAME} (enforce)\nopen can be written\n"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    subprocess.run(["apparmor_parser", "--replace", "--skip-cache"], input=PROFILE, text=True,
                   check=True)
    yield
    subprocess.run(["apparmor_parser", "--remove"], input=PROFILE, text=True, check=True)


@pytest.fixture
def runtime(place):
    made = Runtime(place / "state")
    yield made
    assert_nothing_is_left(place, made)


@pytest.mark.parametrize("new_privileges", [False, True])
def test_the_program_runs_under_its_profile(runtime, bundle, new_privileges):
    bundle.process["noNewPrivileges"] = not new_privileges
    bundle.process["apparmorProfile"] = NAME
    assert runtime.out(bundle.shell(TRY_BOTH)) == UNDER_IT


@pytest.mark.parametrize("wanted", ["", "unconfined"])
def test_nothing_is_denied_without_a_profile(runtime, bundle, wanted):
    bundle.process["apparmorProfile"] = wanted
    assert runtime.out(bundle.shell(TRY_BOTH)) == \
        "unconfined\nopen can be written\nclosed can be written\n"


def test_a_process_that_is_added_has_the_profile_too(runtime, bundle, start):
    bundle.process["apparmorProfile"] = NAME
    bundle.args("/bin/sleep", "60")
    start()
    assert ok(runtime.call("exec", "c1", "/bin/sh", "-c", TRY_BOTH)) == UNDER_IT


def test_a_profile_that_is_not_loaded_is_an_error(runtime, bundle):
    bundle.process["apparmorProfile"] = "moon"
    assert runtime.error(bundle) == (
        "cannot run container 'c1': cannot apply process.apparmorProfile: AppArmor profile 'moon' is "
        "not loaded")
