# SPDX-License-Identifier: Apache-2.0
"""Waiting for what comes true by itself."""

import time


def wait_until(condition, timeout=15, pause=0.02):
    """What `condition` gives as soon as that is true; a failure after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(pause)
    return value
