# SPDX-License-Identifier: Apache-2.0
"""A machine that runs systemd: --systemd-cgroup, and the limits of an ordinary user."""

from support import guest


def test_scopes_work_on_a_machine_that_runs_systemd(run_tests):
    run_tests("guest/inside/test_scope.py", guest.with_systemd)


def test_limits_of_an_ordinary_user_hold_after_a_login(run_tests):
    run_tests("guest/inside/test_user_limits.py", guest.with_systemd, "not service and not scope and not cron")
