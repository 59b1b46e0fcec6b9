# SPDX-License-Identifier: Apache-2.0
"""AppArmor, which Debian's kernel has switched on and this machine's may not have."""

from support import guest


def test_profiles_are_enforced_where_the_kernel_has_apparmor(run_tests):
    run_tests(["guest/inside/test_apparmor.py"], guest.without_init)
