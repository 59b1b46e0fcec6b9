# SPDX-License-Identifier: Apache-2.0
"""A store on a file system that lacks what stores are made of: it works, or one line says what is
missing."""

import os
import subprocess

import pytest

from support import images, missing_calls, store_check
from support.berth import Berth

pytestmark = pytest.mark.profiles("root", "user")


@pytest.fixture
def plain(programs, profile, work):
    """berth with its store where no file has attributes."""
    point = work / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "-o", "mode=755", "berth-tests-plain", point],
                   check=True)
    os.chown(point, profile.uid, profile.gid)
    berth = Berth(programs, profile, point / "berth")
    yield berth
    berth.close()
    subprocess.run(["umount", point], check=True)


def test_an_image_without_marks_runs_where_no_file_has_attributes(plain, busybox):
    plain.ok("pull", "-q", busybox)
    assert store_check.wrong(plain.root) == []
    assert plain.ok("run", "--rm", busybox, "cat", "/home/sailor/owned") == "by 1000\n"


def test_a_layer_that_needs_an_attribute_is_refused_where_there_are_none(plain, push, busybox):
    """Without its mark an opaque directory would show what it hides."""
    plain.ok("pull", "-q", busybox)
    image = images.build([images.busybox_layer(), images.layer(
        [images.directory("home"), images.opaque("home"), images.file("home/new", "new\n")])])
    reference = push(image)
    line = plain.fail("pull", "-q", reference, status=1)
    assert line.startswith(f"berth: cannot pull '{reference}': cannot unpack layer "
                           f"'{image.layer_digests[1]}': ")
    assert "Operation not supported" in line
    assert store_check.wrong(plain.root) == []
    assert list((plain.root / "tmp").iterdir()) == []


@pytest.mark.profiles("root")
def test_a_store_whose_file_system_has_no_locks_is_refused(berth, busybox):
    """Two writers that cannot wait for each other would remove each other's work."""
    done = subprocess.run(berth.argv("pull", "-q", busybox), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, preexec_fn=missing_calls.without("flock"),
                          timeout=60, **berth._options(None))
    assert done.returncode == 1, done
    lines = [line for line in done.stderr.splitlines() if "warning: " not in line]
    assert len(lines) == 1 and lines[0].startswith(f"berth: cannot pull '{busybox}': "), lines
    assert "lock" in lines[0] and "Function not implemented" in lines[0]
    assert not list((berth.root / "images").glob("*"))
