# SPDX-License-Identifier: Apache-2.0
"""Names, removal and concurrency: what the store promises to any number of processes."""

import os
import signal
import time

import pytest

from support import images


def two_layers(content):
    return images.build([images.busybox_layer(), images.layer([images.file("extra", content)])])


def test_removal_deletes_what_nothing_else_needs(berth, push, busybox, listing):
    berth.ok("pull", "--quiet", busybox)
    before = listing()
    reference = push(two_layers("one\n"))
    berth.ok("pull", "--quiet", reference)
    assert listing() != before
    out = berth.ok("rmi", reference).splitlines()
    assert out[0] == f"Untagged: {reference}"
    assert out[1].startswith("Deleted: sha256:")
    assert listing() == before
    assert berth.ok("run", "--rm", busybox, "echo", "still") == "still\n"


def test_an_image_keeps_its_content_while_it_has_a_name(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("tag", busybox, "mine:1")
    assert berth.ok("rmi", busybox) == f"Untagged: {busybox}\n"
    assert berth.ok("run", "--rm", "mine:1", "echo", "here") == "here\n"


def test_an_unknown_image_is_not_removed(berth):
    assert berth.fail("rmi", "nothing", status=1).endswith(
        "no such image: nothing; try: berth images")


@pytest.mark.profiles("root", "single_id")
def test_eight_pulls_at_once_unpack_each_layer_once(berth, push, listing):
    reference = push(two_layers("many\n"))
    pulls = [berth.spawn("pull", "--quiet", reference) for _ in range(8)]
    for pull in pulls:
        _, err = pull.communicate(timeout=120)
        assert pull.returncode == 0, err
    assert len(list((berth.root / "layers").iterdir())) == 2
    assert list((berth.root / "tmp").iterdir()) == []
    assert berth.ok("run", "--rm", reference, "cat", "/extra") == "many\n"


@pytest.mark.profiles("root", "user")
def test_a_killed_pull_leaves_a_store_that_works(berth, push, busybox, listing):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "--rm", busybox, "true")
    before = listing()
    big = images.build([images.busybox_layer(),
                        images.layer([images.file(f"f{n}", bytes([n % 256]) * 4096)
                                      for n in range(2000)])])
    reference = push(big)
    for delay in (0.02, 0.05, 0.1, 0.15, 0.2):
        pull = berth.spawn("pull", "--quiet", reference)
        time.sleep(delay)
        pull.send_signal(signal.SIGKILL)
        pull.communicate()
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "sh", "-c", "ls /f* | wc -l") == "2000\n"
    assert list((berth.root / "tmp").iterdir()) == []
    berth.ok("rmi", reference)
    assert listing() == before


@pytest.mark.profiles("root", "user")
def test_pulls_and_removals_at_once_end_with_a_whole_image_or_none(berth, push):
    reference = push(two_layers("race\n"))
    for _ in range(4):
        running = [berth.spawn("pull", "--quiet", reference) for _ in range(2)]
        running += [berth.spawn("rmi", "-f", reference) for _ in range(2)]
        said = [process.communicate(timeout=60) for process in running]
        assert [process.returncode for process in running[:2]] == [0, 0], said
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "cat", "/extra") == "race\n"


@pytest.mark.profiles("root")
def test_a_name_that_moves_leaves_the_old_image_without_a_name(berth, registry):
    first, second = two_layers("first\n"), two_layers("second\n")
    name = "test/moving"
    first.push(registry, name)
    berth.ok("pull", "--quiet", f"{registry.address}/{name}")
    second.push(registry, name)
    berth.ok("pull", "--quiet", f"{registry.address}/{name}")
    assert berth.ok("run", "--rm", f"{registry.address}/{name}", "cat", "/extra") == "second\n"
    assert berth.ok("run", "--rm", first.id, "cat", "/extra") == "first\n"


@pytest.mark.profiles("root")
@pytest.mark.parametrize("name, reason", [
    ("Upper", "read image name 'Upper': repository name must be lower case"),
    ("a:" + "t" * 129, "read image name 'a:" + "t" * 129 + "': a tag has at most 128 letters, "
                       "digits, '_', '.' and '-', and starts with a letter, a digit or '_'"),
    ("a//b", "read image name 'a//b': a repository is made of lower-case letters and digits, joined "
             "by '.', '_', '__', '-' or '/'"),
    ("a@sha256:12", "read image name 'a@sha256:12': after '@' comes a digest: 'sha256:' and 64 "
                    "hexadecimal digits"),
])
def test_a_name_that_is_none_is_said_why(berth, name, reason):
    assert berth.fail("pull", name, status=1) == f"berth: cannot pull '{name}': {reason}"


@pytest.mark.parametrize("flag,what,way", [
    ("--root", "image store", "--root DIR"),
    ("--state", "state directory", "--state DIR, or XDG_RUNTIME_DIR")])
def test_a_directory_of_somebody_else_is_not_used(berth, work, profile, flag, what, way):
    place = work / "place"
    place.mkdir()
    os.chown(place, 4242, 4242)
    place.chmod(0o777)
    assert berth.fail(flag, place, "images", status=1) == (
        f"berth: {what} '{place}' belongs to another user; try: {way}")
    os.chown(place, profile.uid, profile.gid)
    assert berth.fail(flag, place, "images", status=1) == (
        f"berth: {what} '{place}' is writable by others; try: chmod go-w {place}")
    place.chmod(0o775)
    os.chown(place, profile.uid, 4242)
    assert berth.fail(flag, place, "images", status=1) == (
        f"berth: {what} '{place}' is writable by others; try: chmod go-w {place}")
    assert not list(place.iterdir())
    os.chown(place, profile.uid, profile.gid)
    (work / "link").symlink_to(place)
    berth.ok(flag, work / "link", "images")
