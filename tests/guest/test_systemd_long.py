# SPDX-License-Identifier: Apache-2.0
"""A machine that runs systemd: all that test_systemd.py has a part of."""

from support import guest


def test_scopes_work(run_tests):
    run_tests(["guest/inside/test_scope.py"], guest.with_systemd)


def test_limits_of_an_ordinary_user_hold_however_he_has_come(run_tests):
    run_tests(["guest/inside/test_user_limits.py"], guest.with_systemd)
