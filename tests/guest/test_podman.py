# SPDX-License-Identifier: Apache-2.0
"""Podman without root beside Berth on a machine that runs systemd."""

from support import guest

PACKAGES = ("crun", "podman")


def test_a_users_limits_are_the_same_with_podman(run_tests):
    run_tests(["guest/inside/test_as_podman.py"], guest.with_systemd)
