# SPDX-License-Identifier: Apache-2.0
"""The integration tests of berth-runtime on Debian's 6.1 kernel with cgroup v2 alone: each file in
a guest of its own, so that as many run at once as ctest has jobs."""

import pathlib

import pytest
from support import guest

INTEGRATION = pathlib.Path(__file__).resolve().parent.parent / "integration"
SUITE = sorted(path.name for pattern in ("test_runtime_*.py", "test_cgroup*.py")
               for path in INTEGRATION.glob(pattern))


@pytest.mark.parametrize("file", SUITE)
def test_passes_on_a_machine_with_cgroup_v2_alone(run_tests, file):
    run_tests([f"integration/{file}"], guest.without_init)
