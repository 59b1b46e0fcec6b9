# SPDX-License-Identifier: Apache-2.0
"""'system prune --keep': the least recently used images go until the rest is small enough, and never
what a container needs."""

import json
import os
import random
import signal
import time

import pytest
from support import images

SIZE = 300_000


@pytest.fixture
def three(berth, push):
    """Three images of one layer each, pulled one after the other."""
    references = []
    for name in "abc":
        image = images.build([images.layer([images.file(name, os.urandom(SIZE))])])
        references.append(push(image))
        berth.ok("pull", "-q", references[-1])
    return references


def names(berth):
    return set(berth.ok("images", "--format", "{{.Repository}}:{{.Tag}}").split())


def used_at(berth, reference):
    record = json.loads(berth.ok("inspect", reference))[0]
    manifest = record["RepoDigests"][0].rpartition(":")[2]
    return (berth.root / "blobs/sha256" / manifest).stat().st_mtime_ns


def keep(berth, size, *more):
    return json.loads(berth.ok("system", "prune", "-f", "--keep", size, "--format", "json", *more))


def test_the_least_recently_used_image_goes_first(berth, three):
    pruned = keep(berth, str(2 * SIZE + SIZE // 2))
    assert [image["references"] for image in pruned["images"]] == [[three[0]]]
    assert SIZE <= pruned["reclaimed_bytes"] < SIZE + 10_000
    assert pruned["kept_bytes"] <= 2 * SIZE + SIZE // 2
    assert names(berth) == set(three[1:])
    assert len(list((berth.root / "layers").iterdir())) == 2
    assert list((berth.root / "tmp").iterdir()) == []
    assert berth.run("system", "check").returncode == 0


def test_a_container_that_was_made_is_a_use(berth, three, busybox):
    before = used_at(berth, three[0])
    container = berth.ok("create", three[0], "/nothing").strip()
    assert used_at(berth, three[0]) > before
    berth.ok("rm", container)
    pruned = keep(berth, str(2 * SIZE + SIZE // 2))
    assert [image["references"] for image in pruned["images"]] == [[three[1]]]


def test_a_pull_that_finds_nothing_new_is_a_use(berth, three):
    berth.ok("pull", "-q", three[0])
    pruned = keep(berth, str(2 * SIZE + SIZE // 2))
    assert [image["references"] for image in pruned["images"]] == [[three[1]]]


def test_what_a_container_needs_stays_however_little_is_to_be_kept(berth, three):
    container = berth.ok("create", three[1], "/nothing").strip()
    assert len(keep(berth, "0")["images"]) == 2
    assert names(berth) == {three[1]}
    berth.ok("rm", container)
    assert len(keep(berth, "0")["images"]) == 1
    assert list((berth.root / "layers").iterdir()) == []


def test_a_dry_run_tells_the_same_and_removes_nothing(berth, three, listing):
    before = listing()
    told = keep(berth, "400000", "--dry-run")
    assert listing() == before
    done = keep(berth, "400000")
    assert told.pop("dry_run") and not done.pop("dry_run")
    assert told == done


def test_a_shared_layer_counts_once_and_goes_last(berth, push):
    shared = images.layer([images.file("shared", os.urandom(SIZE))])
    references = []
    for name in "ab":
        own = images.layer([images.file(name, os.urandom(SIZE))])
        references.append(push(images.build([shared, own])))
        berth.ok("pull", "-q", references[-1])
    pruned = keep(berth, str(2 * SIZE + SIZE // 2))
    assert [image["references"] for image in pruned["images"]] == [[references[0]]]
    assert SIZE <= pruned["images"][0]["bytes"] < SIZE + 10_000
    assert pruned["kept_bytes"] >= 2 * SIZE


def test_the_words_are_docker_s(berth, three):
    out = berth.ok("system", "prune", "-f", "--keep", "1").splitlines()
    assert out[0] == "Deleted Images:"
    assert f"untagged: {three[0]}" in out
    assert sum(line.startswith("deleted: sha256:") for line in out) == 6
    assert out[-1].startswith("Total reclaimed space: 9")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("flags, reason", [
    (["--keep", "many"], "--keep: 'many' is not a size; try: 50GB"),
    (["--keep", "1g", "--all"], "--keep cannot be used together with --all, --volumes or --filter: it selects "
                                "images only by their last use"),
    (["--dry-run"], "--dry-run and --format need --keep"),
])
def test_what_cannot_be_meant_is_said_why(berth, flags, reason):
    assert berth.fail("system", "prune", "-f", *flags, status=1).endswith(reason)


@pytest.mark.profiles("root", "user")
def test_a_killed_prune_leaves_a_store_without_damage(berth, push, busybox):
    berth.ok("pull", "-q", busybox)
    image = images.build([images.layer([images.file(f"d/{n}", b"x" * 100) for n in range(500)])])
    reference = push(image)
    for _ in range(8):
        berth.ok("pull", "-q", reference)
        prune = berth.spawn("system", "prune", "-f", "--keep", "0")
        readers = [berth.spawn("run", "--rm", busybox, "true"), berth.spawn("images")]
        time.sleep(random.uniform(0, 0.08))
        prune.send_signal(signal.SIGKILL)
        for process in (prune, *readers):
            process.communicate(timeout=60)
        done = berth.run("system", "check")
        assert done.returncode == 0, done.stdout
    berth.ok("system", "check", "--repair")
    assert list((berth.root / "tmp").iterdir()) == []
