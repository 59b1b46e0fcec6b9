# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that look at Berth on another kernel than this machine's."""

import os
import pathlib

import pytest
from support import guest

PROGRAMS = pathlib.Path(os.environ["BERTH_TEST_PROGRAMS"]).resolve()


@pytest.fixture(scope="session")
def guest_image(request):
    if os.geteuid() != 0:
        pytest.skip("needs root, to make the guest's file system")
    return guest.prepare(request.config.cache_directory)


@pytest.fixture
def machine(guest_image):
    """A guest with the programs under test in /payload/bin."""
    made = guest.Machine(guest_image)
    for program in sorted(PROGRAMS.glob("berth*")):
        made.add(f"bin/{program.name}", program)
    return made
