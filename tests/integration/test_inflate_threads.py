# SPDX-License-Identifier: Apache-2.0
"""A gzip layer that several threads inflate, which only BERTH_INFLATE_THREADS asks for: what comes out is what
one thread gives, and what one refuses they refuse with the same words."""

import pathlib
import random
import re
import shutil
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "hostile-images")]

import make  # noqa: E402
from support import images  # noqa: E402

pytestmark = pytest.mark.profiles("root", "user")

HOSTILE = [name for name in make.BY_NAME if name.startswith("gzip-")] + ["bomb-gzip"]


@pytest.fixture(scope="module")
def large():
    """A layer of some MiB, compressed: words, chance, and a megabyte of nothing."""
    chance = random.Random(7)
    words = [chance.randbytes(chance.randrange(2, 12)) for _ in range(3000)]
    parts = [b" ".join(chance.choices(words, k=800_000)), chance.randbytes(1 << 20),
             bytes(1 << 20), b" ".join(chance.choices(words, k=200_000))]
    return images.build([images.busybox_layer(),
                         images.layer([images.file(f"data/{n}", part)
                                       for n, part in enumerate(parts)])])


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_a_layer_is_the_same_however_many_inflate_it(berth, push, large, threads):
    largest = max(map(len, large.blobs.values()))
    assert largest > 4 << 20  # so several segments
    reference = push(large)
    berth.ok("pull", "--quiet", reference, env={"BERTH_INFLATE_THREADS": threads})
    berth.ok("system", "check")
    assert berth.ok("run", "--rm", reference, "ls", "/data").split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("name", HOSTILE)
def test_several_threads_refuse_what_one_refuses(berth, work, name):
    item = make.BY_NAME[name]
    path = make.write(item, work)
    done = berth.run("load", "--quiet", "--input", path, timeout=100,
                     env={**item.environment, "BERTH_INFLATE_THREADS": 3})
    shutil.rmtree(path)
    if item.expect != "refused":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1, done.stdout
    says = re.escape(item.says).replace(r"\*", ".*")
    assert re.search(says + "$", done.stderr.strip()), done.stderr


def test_a_number_that_is_none_is_refused(berth, push, large):
    reference = push(large)
    line = berth.fail("pull", reference, status=1, env={"BERTH_INFLATE_THREADS": "all"})
    assert line == (f"berth: cannot pull '{reference}': BERTH_INFLATE_THREADS: expected a number of "
                    "at most 64, got 'all'")
