# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore on a kernel that CRIU can work on."""

from support import guest


def test_containers_are_saved_and_brought_back(run_tests):
    run_tests("guest/inside/test_checkpoint.py", guest.without_init)
