# SPDX-License-Identifier: Apache-2.0
"""Waiting for what comes true by itself."""

import time


def wait_until(condition, timeout=15, pause=0.02, tell=lambda: "it did not come true in time"):
    """What `condition` gives as soon as that is true; a failure after `timeout` seconds that shows what tell() gives."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, tell()
        time.sleep(pause)
    return value
