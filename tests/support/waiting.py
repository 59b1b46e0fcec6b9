# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition."""

import time


def wait_until(condition, timeout=15, pause=0.02, tell=lambda: "it did not come true in time"):
    """Returns the result of `condition` once it is true; fails after `timeout` seconds with the text of
    tell()."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, tell()
        time.sleep(pause)
    return value
