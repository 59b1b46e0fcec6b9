# SPDX-License-Identifier: Apache-2.0
"""The harness of the tests that run Berth's programs on the real kernel.

    def test_says_who_it_is(berth, busybox):
        assert berth.ok("run", "--rm", busybox, "id", "-u") == "0\\n"

runs three times: as root, as an ordinary user with subordinate ids, and as one without. A test
that is about one of them only says so: @pytest.mark.profiles("root"). "erofs" is root whose layers are
EROFS images; BERTH_TEST_ROOT=erofs runs all of root's tests so, BERTH_TEST_LAYER_FORMAT=erofs everybody's.

With BERTH_TEST_USERS=turns such a test runs as one of them, half of the tests as the ordinary user: as which,
its name says, so it is the same each time (docs/decisions/0170).
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools")]

import ctest_report  # noqa: E402
from support import images, leftovers, scratch, times, users  # noqa: E402
from support import registry as registries  # noqa: E402
from support.berth import Berth  # noqa: E402
from support.store_listing import store_listing  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS",
                                       TESTS.parent / "build/release/bin")).resolve()


# Of programs that inherit this one's environment (support/users.py has the others').
os.environ["BERTH_NETWORK"] = users.NETWORK


def pytest_configure(config):
    config.addinivalue_line("markers", "profiles(*kinds): the kinds of user that the test is about")
    if times.is_wanted():
        config.pluginmanager.register(times)


def pytest_generate_tests(metafunc):
    if "profile" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("profiles")
        kinds = marker.args if marker else users.KINDS
        if kinds:  # an empty marker: the test says it in its own way
            metafunc.parametrize("profile", kinds, indirect=True)


# The order in which the users take turns.
TURNS = ("user", "root", "user", "single_id")


def is_left_out(item):
    """Whether the short run leaves it out: a long test, and one that runs as other users than this one."""
    if item.get_closest_marker("long"):
        return True
    kind = getattr(item, "callspec", None) and item.callspec.params.get("profile")
    marker = item.get_closest_marker("profiles")
    # A test that says it in its own way has each of its rows.
    if not kind or marker and not marker.args:
        return False
    turns = marker.args if marker else TURNS
    rows = (index for name, index in item.callspec.indices.items() if name != "profile")
    return kind != turns[(zlib.crc32(item.originalname.encode()) + sum(rows)) % len(turns)]


def pytest_collection_modifyitems(config, items):
    if os.environ.get("BERTH_TEST_USERS") == "turns":
        left_out = {item for item in items if is_left_out(item)}
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


# ---- skips: every one is printed with its reason and has to be allowed --------------------------

SKIPS = []


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        SKIPS.append((pathlib.Path(report.nodeid).name, reason))


def pytest_sessionfinish(session, exitstatus):
    allowed = ctest_report.read_allowed(TESTS / "allowed-skips")
    unexpected = [skip for skip in SKIPS if not ctest_report.is_allowed(allowed, *skip)]
    if unexpected and os.geteuid() == 0 and exitstatus == 0:
        for name, reason in unexpected:
            print(f"\nskipped, and not in tests/allowed-skips: {name}: {reason}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# ---- the session: a directory that all users can reach, programs, users, a registry -------------

@pytest.fixture(scope="session")
def session_directory():
    if os.geteuid() != 0:
        pytest.skip("needs root, to make users and registries")
    with scratch.directory("berth-tests") as path:
        yield path


@pytest.fixture(scope="session")
def programs(session_directory):
    """The programs under test where every user can execute them, whatever the checkout's modes."""
    if not (PROGRAMS / "berth").exists():
        pytest.fail(f"no berth in {PROGRAMS}: run './dev build release'", pytrace=False)
    copied = session_directory / "bin"
    copied.mkdir()
    for program in PROGRAMS.iterdir():
        if program.name.startswith(("berth", "spank_berth")) and program.is_file():
            shutil.copy2(program, copied / program.name)
            (copied / program.name).chmod(0o755)
    return copied


@pytest.fixture(scope="session")
def accounts(session_directory):
    home = session_directory / "home"
    home.mkdir()
    with users.accounts(home) as made:
        yield made


@pytest.fixture(scope="session")
def registry(session_directory):
    """docker-registry on loopback, plain HTTP, shared by the tests of a session."""
    with registries.running(session_directory / "registry") as running:
        yield running


# ---- what a test asks for -----------------------------------------------------------------------

@pytest.fixture
def profile(request, accounts):
    """The user who runs berth in this test."""
    kind = getattr(request, "param", "root")
    account = accounts[os.environ.get("BERTH_TEST_ROOT", kind) if kind == "root" else kind]
    form = os.environ.get("BERTH_TEST_LAYER_FORMAT")
    if not form:
        return account
    return dataclasses.replace(account, variables=(("BERTH_LAYER_FORMAT", form),))


@pytest.fixture
def work(session_directory, leaves_nothing, profile):
    """A directory of the test's own that belongs to its user; gone afterwards."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="test-", dir=session_directory))
    path.chmod(0o755)
    os.chown(path, profile.uid, profile.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def berth(programs, profile, work):
    """The command line with an empty store."""
    command = Berth(programs, profile, work / "berth")
    yield command
    command.close()


@pytest.fixture
def start_registry(work):
    """start_registry(tls=True, users={"name": "password"}) → a registry of the test's own."""
    with contextlib.ExitStack() as stack:
        def start(**options):
            directory = tempfile.mkdtemp(prefix="registry-", dir=work)
            return stack.enter_context(registries.running(directory, **options))
        yield start


@pytest.fixture(scope="session")
def busybox(registry):
    """The reference of a busybox image in the session's registry."""
    images.busybox().push(registry, "library/busybox")
    return f"{registry.address}/library/busybox:latest"


@pytest.fixture
def push(registry, request):
    """push(image, …) → a reference to it that no other test uses."""
    count = iter(range(1000))

    def push_image(image):
        name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower()).strip("-")
        name = f"test/{'-'.join(filter(None, name.split('-')))}-{next(count)}"
        image.push(registry, name)
        return f"{registry.address}/{name}:latest"
    return push_image


@pytest.fixture(scope="session")
def driver_tree(session_directory):
    """driver_tree(kind, option…) → a synthetic NVIDIA driver root, as ./dev driver-tree makes."""
    made = {}

    def make(kind, *options):
        key = (kind, *options)
        if key not in made:
            made[key] = session_directory / f"driver-{len(made)}-{kind}"
            subprocess.run([sys.executable, TESTS / "support/driver_tree.py", kind, made[key],
                            *options], check=True, capture_output=True)
        return made[key]
    return make


@pytest.fixture
def listing(berth):
    """listing() → what the test's store holds now, to be compared with itself later."""
    return lambda: store_listing(berth.root)


@pytest.fixture
def leaves_nothing(session_directory, accounts):
    """Fails the test that leaves a mount, a cgroup, a process or a file behind."""
    uids = {account.uid for account in accounts.values() if account.kind != "root"}
    before = leftovers.snapshot(session_directory, uids)
    yield
    left = leftovers.since(before, session_directory, uids)
    if left:
        leftovers.clear(before, session_directory, uids)
        pytest.fail("the test left behind:\n" + "\n".join(left), pytrace=False)
