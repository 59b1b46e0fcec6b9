# SPDX-License-Identifier: Apache-2.0
"""A machine that runs systemd: --systemd-cgroup, and the limits of an ordinary user after a login."""

from support import guest


def test_scopes_work_and_limits_of_an_ordinary_user_hold(run_tests):
    run_tests(["guest/inside/test_scope.py", "guest/inside/test_user_limits.py"], guest.with_systemd, "not long")
