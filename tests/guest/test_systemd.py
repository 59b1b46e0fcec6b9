# SPDX-License-Identifier: Apache-2.0
"""--systemd-cgroup on a machine that runs systemd."""

from support import guest


def test_scopes_work_on_a_machine_that_runs_systemd(run_tests):
    run_tests("guest/inside/test_scope.py", guest.with_systemd)
