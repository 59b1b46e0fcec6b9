# SPDX-License-Identifier: Apache-2.0
"""The limits of an ordinary user on a machine that runs systemd, by each way to a shell."""

from support import guest


def test_they_hold_however_he_has_come(run_tests):
    run_tests("guest/inside/test_user_limits.py", guest.with_systemd)
