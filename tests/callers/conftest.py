# SPDX-License-Identifier: Apache-2.0
"""One scenario under each program that calls an OCI runtime.

    RUNTIME=/usr/sbin/runc python3 -m pytest tests/callers

Without RUNTIME it is berth-runtime.
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from support import callers, leftovers
from support.bundle import PROGRAMS


@pytest.fixture(scope="session")
def tested(session_directory):
    """The runtime, where its file is nobody else's."""
    program = Path(os.environ.get("RUNTIME") or PROGRAMS / "berth-runtime").resolve()
    copy = session_directory / "tested" / program.name
    copy.parent.mkdir()
    shutil.copy2(program, copy)
    for sister in ("berth", "berth-gpu-probe"):
        if (program.parent / sister).exists():
            shutil.copy2(program.parent / sister, copy.parent)
    hook = program.parent / callers.NVIDIAS_HOOK
    if hook.exists():
        (copy.parent / "docker").mkdir()
        shutil.copy2(hook, copy.parent / "docker")
    return copy


@pytest.fixture(scope="session")
def nothing_left(session_directory):
    before = leftovers.snapshot(session_directory, set())
    yield
    callers.remove_cgroups()
    left = leftovers.since(before, session_directory, set())
    if left:
        leftovers.clear(before, session_directory, set())
        pytest.fail("left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(scope="session")
def view(session_directory, nothing_left):
    with callers.private_view(session_directory) as command:
        yield command


@pytest.fixture(scope="session")
def started(session_directory, tested, view):
    """started(name) → a Caller, also "slurm", whose server is started when it is first asked for."""
    running = {}
    with contextlib.ExitStack() as stack:
        def get(name):
            if name not in running:
                directory = session_directory / name
                directory.mkdir()
                kind = {**callers.CALLERS, "slurm": callers.Slurm}[name]
                made = kind(tested, directory, view)
                running[name] = stack.enter_context(made.running())
            return running[name]
        yield get


@pytest.fixture(params=callers.CALLERS)
def caller(request, started):
    """No container, nor anything that a runtime keeps of one, is left afterwards."""
    made = started(request.param)
    yield made
    made.remove_all()
    callers.until(lambda: not callers.cgroups(), f"no cgroup is left: {callers.cgroups()}", 5)
    assert made.kept_states() == []


@pytest.fixture
def shared(session_directory):
    """A directory of the host for the containers of a test."""
    with tempfile.TemporaryDirectory(prefix="shared-", dir=session_directory) as path:
        yield Path(path)
