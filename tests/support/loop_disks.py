# SPDX-License-Identifier: Apache-2.0
"""File systems on loop devices.

    with btrfs(work) as point: ...
"""

import contextlib
import subprocess


@contextlib.contextmanager
def btrfs(directory, size=256 << 20):
    """Mounts one until the end of the block; yields its path."""
    image, point = directory / "disk.img", directory / "btrfs"
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    point.mkdir()
    subprocess.run(["mount", "-o", "loop", image, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)
        image.unlink()
