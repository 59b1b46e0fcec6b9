# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that run berth-runtime itself: `runtime` as root and inside `unshare -r`, and `bundle`.
A test module imports them with `from support.oci_fixtures import ...`."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support.bundle import Bundle, Runtime

ORDINARY = 65533  # a user without an account
PREFIX = {"root": (), "userns": ("unshare", "-r"),
          "user": ("setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups",
                   "unshare", "-r")}


def cgroup_name(base: Path):
    """For the containers of one test; other tests may run at the same time."""
    return "berth-oci-" + base.name[-8:]


def cgroups(base: Path):
    return {path for path, _, _ in os.walk("/sys/fs/cgroup") if cgroup_name(base) in path}


def processes(base: Path):
    """Processes that have `base` in their mount table or command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            ours = str(base) in (entry / "mountinfo").read_text() or \
                str(base).encode() in (entry / "cmdline").read_bytes()
            if ours and (entry / "stat").read_text().rsplit(")")[-1].split()[0] != "Z":
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def assert_nothing_is_left(base: Path, runtime: Runtime):
    for _ in range(50):  # a killed process may take a moment to go
        left = processes(base)
        if not left:
            break
        time.sleep(0.1)
    assert not left
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        assert str(base) not in table.read()
    assert not cgroups(base)
    assert not runtime.root.exists() or os.listdir(runtime.root) == []


@pytest.fixture
def place():
    """A directory that is accessible from a user namespace too."""
    path = Path(tempfile.mkdtemp(prefix="berth-tests-oci-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


# Tests for an ordinary user: those with one call, because each call makes its own user namespace; without
# those about root's files, which that user gets, or about cgroups, which that user lacks.
OF_ORDINARY_USERS = ("test_runtime_run", "test_runtime_refuses", "test_runtime_mounts",
                     "test_runtime_process")
OF_ROOT = ("test_refuses_a_link_that_leads_a_bind_into_the_kernel",
           "test_tmpcopyup_begins_with_what_the_image_has",
           "test_a_cgroup2_mount_shows_the_unified_hierarchy_alone",
           "test_the_runtimes_own_file_cannot_be_written_from_inside",
           "test_leaves_nothing_where_systemd_does_not_answer",
           "test_maps_ids_in_a_user_namespace_of_its_own")


def pytest_collection_modifyitems(items):
    """For the conftest of the modules that use `kind`."""
    def wanted(item):
        callspec = getattr(item, "callspec", None)
        if callspec is None or callspec.params.get("kind") != "user":
            return True
        return item.module.__name__ in OF_ORDINARY_USERS and item.originalname not in OF_ROOT
    items[:] = [item for item in items if wanted(item)]


@pytest.fixture(params=["root", "userns", "user"])
def kind(request):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    prefix = PREFIX[request.param]
    if prefix and subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    return request.param


@pytest.fixture
def bundle(place):
    made = Bundle(place / "bundle")
    made.linux["cgroupsPath"] = "/" + cgroup_name(place)
    return made


@pytest.fixture
def runtime(place, kind):
    """berth-runtime; afterwards checks that nothing of it is left."""
    made = Runtime(place / "state", PREFIX[kind])
    if kind == "user":
        made.owner = ORDINARY
        os.chown(place, ORDINARY, ORDINARY)
    yield made
    assert_nothing_is_left(place, made)


def own_user_namespace(bundle):
    """Gives the container a user namespace, and makes its root the owner of the image."""
    bundle.linux["namespaces"].append({"type": "user"})
    bundle.linux["uidMappings"] = bundle.linux["gidMappings"] = [
        {"containerID": 0, "hostID": 100000, "size": 65536}]
    for path, _, files in os.walk(bundle.rootfs):
        for name in ("", *files):
            os.chown(os.path.join(path, name), 100000, 100000, follow_symlinks=False)


def ok(done):
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def until(condition, seconds=20):
    """Waits until condition() is true, and returns its result."""
    for _ in range(seconds * 20):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("never came true")


@pytest.fixture
def start(runtime, bundle):
    """start(*flags) runs c1 detached, with its output in a file of the bundle; deletes it at the end."""
    used = [runtime]

    def call(*flags, by=runtime):
        used[0] = by
        bundle.write()
        with open(bundle.directory / "out", "w+", encoding="utf-8") as out:
            done = subprocess.run(by.command("run", "--detach", "-b", str(bundle.directory),
                                             *flags, "c1"), stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=out, timeout=60, check=False)
        assert done.returncode == 0, (bundle.directory / "out").read_text()

    yield call
    ok(used[0].call("delete", "--force", "c1"))


def mounted_hierarchies():
    """{key: mount point}; the key is a v1 controller or "unified"."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").split("\n"):
        head, _, tail = line.partition(" - ")
        if tail.startswith("cgroup2 "):
            found["unified"] = head.split()[4]
        elif tail.startswith("cgroup "):
            for option in tail.split()[2].split(","):
                found[option] = head.split()[4]
    return found


def without_hierarchies(*names):
    """The prefix that hides these cgroup mounts from a command."""
    places = " ".join(mounted_hierarchies()[name] for name in names)
    return ("unshare", "--mount", "sh", "-ec",
            f'for m in {places}; do umount "$m"; done; exec "$@"', "sh")


@pytest.fixture
def hybrid():
    """{what: mount point} of a machine with v1 and v2 hierarchies."""
    found = mounted_hierarchies()
    if not {"unified", "memory", "pids", "cpu", "freezer"} <= set(found):
        pytest.skip("cgroups are not hybrid here")
    return found
