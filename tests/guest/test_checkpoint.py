# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore on a kernel that CRIU can work on."""

import pytest
from support import guest


# systemd makes all mounts shared.
@pytest.mark.parametrize("boot", [guest.without_init, guest.with_systemd])
def test_containers_are_saved_and_brought_back(run_tests, boot):
    run_tests(["guest/inside/test_checkpoint.py"], boot)
