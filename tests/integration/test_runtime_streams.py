# SPDX-License-Identifier: Apache-2.0
"""The standard streams of a container that are the null device, and programs that find none."""

import subprocess

import pytest

from support.bundle import PROGRAMS
from support.oci_fixtures import bundle, kind, ok, place, runtime, start  # noqa: F401

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
WITHOUT_DEV = 'mount -t tmpfs none /dev && exec "$0" <&-'
BEGIN_WITH_STREAMS = ("berth", "berth-cdi-hook", "berth-erofs", "berth-gpu-probe", "berth-hub", "berth-monitor",
                      "berth-mps", "berth-network", "berth-runtime", "berth-transfer")


def test_a_null_device_that_was_open_for_reading_can_be_written_too(runtime, bundle):
    """As with runc and crun, which open it anew for both."""
    bundle.config["root"]["readonly"] = False
    bundle.shell("echo x >&0 && readlink /proc/self/fd/0 >/seen").write()
    with open("/dev/null", "rb") as null:
        done = runtime.call("run", "-b", str(bundle.directory), "c1", stdin=null)
    assert (done.returncode, done.stderr) == (0, "")
    assert (bundle.rootfs / "seen").read_text() == "/dev/null\n"


@ROOT
def test_a_null_device_of_exec_can_be_written_too(runtime, bundle, start):
    bundle.args("/bin/sleep", "100")
    start()
    with open("/dev/null", "rb") as null:
        assert ok(runtime.call("exec", "c1", "/bin/sh", "-c", "echo x >&0 && echo written", stdin=null)) == "written\n"


def can_be_loaded(name):
    """Whether the program and its libraries are here; the guest has not those of all."""
    said = subprocess.run(["ldd", str(PROGRAMS / name)], text=True, capture_output=True, check=False)
    return (PROGRAMS / name).exists() and "not found" not in said.stdout


@ROOT
@pytest.mark.parametrize("name", [name for name in BEGIN_WITH_STREAMS if can_be_loaded(name)])
def test_a_program_without_a_standard_stream_says_that_there_is_no_null_device(kind, name):
    done = subprocess.run(["unshare", "--mount", "sh", "-c", WITHOUT_DEV, str(PROGRAMS / name)],
                          text=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert done.stderr == f"{name}: open '/dev/null' as a standard stream: No such file or directory\n"
