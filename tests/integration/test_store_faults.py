# SPDX-License-Identifier: Apache-2.0
"""Whoever writes to the store is killed at any moment, while others read: at every moment all that
has a name is whole, and the next one who comes does what was to be done."""

import contextlib
import json
import os
import pathlib
import random
import signal
import threading
import time

import pytest

from support import images, store_check
from support.berth import Berth
from support.processes import command_lines, kill_each

pytestmark = pytest.mark.profiles("root", "user")
POINTS = int(os.environ.get("BERTH_FAULT_POINTS", "0")) // 2
CHANCE = random.Random(5)
NOISE = CHANCE.randbytes(3 << 20)
FILES = 600


@pytest.fixture
def chance():
    """The same in every run of a test unless BERTH_FAULT_SEED says."""
    return random.Random(os.environ.get("BERTH_FAULT_SEED", "berth"))


@pytest.fixture
def points(profile):
    """How many moments: BERTH_FAULT_POINTS=50 makes them a hundred over the four tests."""
    return POINTS or (6 if profile.kind == "root" else 4)


@pytest.fixture(scope="module")
def image():
    """Two layers: many small files, and one that takes its time."""
    small = [images.file(f"d{n % 20}/f{n}", b"%d\n" % n * 40) for n in range(FILES)]
    return images.build([images.busybox_layer(),
                         images.layer([*(images.directory(f"d{n}") for n in range(20)), *small]),
                         images.layer([images.file("noise", NOISE)])])


@pytest.fixture
def kept(berth, busybox):
    """An image that nobody touches: whoever reads it sees it whole."""
    berth.ok("pull", "-q", busybox)
    berth.ok("tag", busybox, "kept:1")
    berth.ok("run", "--rm", "kept:1", "true")
    return "kept:1"


@pytest.fixture
def whole(programs, profile, work, push, image):
    """What a pull that nobody disturbs makes of the image, in another store."""
    other = Berth(programs, profile, work / "undisturbed")
    other.ok("pull", "-q", push(image))
    yield store_check.trees(other.root)
    other.close()


@contextlib.contextmanager
def readers(berth, reference):
    """Two who read all the while; the first thing that goes wrong fails the test."""
    stop, seen, said = threading.Event(), [], []

    def read(*words):
        while not stop.is_set():
            done = berth.run(*words)
            seen.append(words)
            if done.returncode != 0 or "by 1000" not in done.stdout + "by 1000" * (
                    words[0] != "run"):
                said.append((words, done.returncode, done.stdout, done.stderr))
                return
            time.sleep(0.02)
    threads = [threading.Thread(target=read, args=words) for words in (
        ("run", "--rm", reference, "cat", "/home/sailor/owned"), ("images", "--format", "json"))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not said, said
    assert {words[0] for words in seen} == {"run", "images"}


def of_this_store(names=("berth-transfer",)):
    """{pid} of the programs that work on stores."""
    return {pid for pid, line in command_lines().items()
            if pathlib.Path(os.fsdecode(line.split(b"\0")[0])).name in names}


def kill_after(berth, chance, seconds, *words):
    """Kills the command, the program that works for it, or both; waits for the end of all."""
    front = berth.spawn(*words, start_new_session=True)
    time.sleep(seconds)
    victim = chance.choice(["both", "both", "front", "worker"])
    if victim == "both":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(front.pid, signal.SIGKILL)
    elif victim == "front":
        front.kill()
    else:
        kill_each(of_this_store())
    front.communicate(timeout=60)
    # A worker whose command is gone finds nobody to tell, and ends.
    deadline = time.monotonic() + 30
    while of_this_store():
        assert time.monotonic() < deadline, "a worker without its command goes on"
        time.sleep(0.01)
    assert front.returncode in (0, 1, 125, -signal.SIGKILL), (words, front.returncode)
    return front.returncode


def time_of(action):
    started = time.monotonic()
    action()
    return time.monotonic() - started


def assert_swept(berth):
    """The next one that works on the store leaves nothing of who was killed."""
    assert list((berth.root / "tmp").iterdir()) == []


def test_of_pull(berth, kept, push, image, whole, chance, points):
    reference = push(image)
    takes = time_of(lambda: berth.ok("pull", "-q", reference))
    keep = store_check.trees(berth.root).keys() - whole.keys()
    with readers(berth, kept):
        for _ in range(points):
            berth.run("rmi", "-f", reference)
            kill_after(berth, chance, chance.random() * takes * 1.1, "pull", "-q", reference)
            assert store_check.wrong(berth.root) == []
    berth.ok("pull", "-q", reference)
    assert store_check.wrong(berth.root) == []
    found = store_check.trees(berth.root)
    assert {name: tree for name, tree in found.items() if name not in keep} == whole
    assert_swept(berth)
    assert berth.ok("run", "--rm", reference, "sh", "-c", "ls /d[0-9]*/f* | wc -l") == f"{FILES}\n"


def test_of_load(berth, kept, push, image, whole, chance, points):
    """The same without a network: reading an archive, unpacking, publishing."""
    reference = push(image)
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, "loaded:1")
    archive = berth.directory / "archive.tar"
    berth.ok("save", "-o", archive, "loaded:1")
    berth.ok("rmi", "-f", reference, "loaded:1")
    takes = time_of(lambda: berth.ok("load", "-i", archive))
    with readers(berth, kept):
        for _ in range(points):
            berth.run("rmi", "-f", "loaded:1")
            kill_after(berth, chance, chance.random() * takes * 1.1, "load", "-i", archive)
            assert store_check.wrong(berth.root) == []
    berth.ok("load", "-i", archive)
    assert store_check.wrong(berth.root) == []
    found = store_check.trees(berth.root)
    assert {name: found[name] for name in whole} == whole
    assert_swept(berth)


def test_of_commit(berth, kept, chance, points):
    berth.ok("run", "--name", "work", kept, "sh", "-c",
             f"for n in $(seq {FILES}); do echo $n > /f$n; done; dd if=/dev/urandom of=/noise "
             "bs=1M count=2 2>/dev/null; rm /home/sailor/owned")
    takes = time_of(lambda: berth.ok("commit", "work", "made:0"))
    before = store_check.trees(berth.root)
    with readers(berth, kept):
        for n in range(1, points + 1):
            kill_after(berth, chance, chance.random() * takes * 1.1, "commit", "work", f"made:{n}")
            assert store_check.wrong(berth.root) == []
    berth.ok("commit", "work", "made:last")
    assert_swept(berth)
    assert store_check.trees(berth.root) == before  # the same tree: the same layer, once
    names = [f"{one['Repository']}:{one['Tag']}" for one in map(json.loads, berth.ok(
        "images", "--format", "json").splitlines())]
    for name in {*names} & {f"made:{n}" for n in range(points + 1)}:
        assert berth.ok("run", "--rm", name, "sh", "-c", "ls /f* | wc -l") == f"{FILES}\n"
    berth.ok("rm", "work")


@pytest.mark.parametrize("verb", [("rmi", "-f"), ("image", "prune", "-a", "-f")], ids="-".join)
def test_of_removal(berth, kept, push, image, whole, chance, points, verb):
    reference = push(image)
    berth.ok("create", "--name", "keeper", kept, "true")  # else a prune takes that image, too
    archive = berth.directory / "archive.tar"
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, "gone:1")
    berth.ok("save", "-o", archive, "gone:1")
    berth.ok("rmi", reference)
    words = (*verb, "gone:1") if verb[0] == "rmi" else verb
    takes = time_of(lambda: berth.ok(*words))
    with readers(berth, kept):
        for _ in range(points):
            berth.ok("load", "-i", archive)
            kill_after(berth, chance, chance.random() * takes * 1.1, *words)
            assert store_check.wrong(berth.root) == []
    berth.ok("load", "-i", archive)
    found = store_check.trees(berth.root)
    assert {name: found[name] for name in whole} == whole
    berth.ok("rmi", "-f", "gone:1")
    assert_swept(berth)
    assert not whole.keys() - images_layers() & store_check.trees(berth.root).keys()
    berth.ok("rm", "keeper")


def images_layers():
    """The layer that the image shares with the one that is kept."""
    name = images.busybox().diff_ids[0].removeprefix("sha256:")
    return {name, f"{name}-mapped", f"{name}-single"}
