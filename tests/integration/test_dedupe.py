# SPDX-License-Identifier: Apache-2.0
"""'system dedupe': identical files of layers take their place on the disk once, and nobody sees more
of that than a count of links."""

import json
import os
import random
import subprocess
import tarfile
import time

import pytest
from support import images, loop_disks, processes
from support.berth import Berth

pytestmark = pytest.mark.profiles("root", "user", "single_id")

BIG = os.urandom(300_000)


def common():
    """What two images have in layers of their own."""
    return [images.directory("data"), images.file("data/big", BIG),
            images.file("data/text", "twelve bytes", mode=0o640),
            images.file("data/program", b"#!/bin/sh\n" * 1000, mode=0o755)]


def build(*more):
    return images.build([images.busybox_layer(), images.layer([*common(), *more])])


@pytest.fixture
def two(berth, push):
    references = [push(build(images.file("own", name))) for name in ("first", "second")]
    for reference in references:
        berth.ok("pull", "-q", reference)
    return references


def dedupe(berth, *flags):
    return json.loads(berth.ok("system", "dedupe", "--format", "json", *flags))


def check(berth):
    done = berth.run("system", "check", "--format", "json")
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)["findings"]


def files(berth, path):
    return sorted((layer / path for layer in berth.root.glob("layers/*/fs")
                   if (layer / path).exists()), key=str)


def inodes(berth, path):
    return {file.stat().st_ino for file in files(berth, path)}


def taken(berth):
    """What the layers take of the disk."""
    out = subprocess.run(["du", "-s", "--block-size=1", berth.root / "layers"], check=True,
                         capture_output=True, text=True).stdout
    return int(out.split()[0])


def test_identical_files_become_one(berth, two):
    before, times = taken(berth), {path: path.stat().st_mtime_ns for path in files(berth, "data")}
    report = dedupe(berth)
    assert report["identical_files"] == 3 and report["way"] == "links"
    assert report["saved_bytes"] == before - taken(berth) >= len(BIG)
    for name in ("data/big", "data/text", "data/program"):
        assert len(files(berth, name)) == 2 and len(inodes(berth, name)) == 1
    assert len(inodes(berth, "own")) == 2
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert check(berth) == []
    assert list((berth.root / "tmp").iterdir()) == []
    for reference, own in zip(two, ("first", "second")):
        assert berth.ok("run", "--rm", reference, "cat", "/data/text", "/own") == "twelve bytes" + own


def test_what_was_made_one_stays_so(berth, two):
    dedupe(berth)
    again = dedupe(berth)
    assert (again["identical_files"], again["saved_bytes"], again["way"]) == (0, 0, None)
    assert berth.ok("system", "dedupe").endswith("nothing to save\n")


def test_a_dry_run_tells_the_same_and_changes_nothing(berth, two):
    before = inodes(berth, "data/big")
    told = dedupe(berth, "--dry-run")
    assert inodes(berth, "data/big") == before and len(before) == 2
    done = dedupe(berth)
    assert told.pop("dry_run") and not done.pop("dry_run")
    assert told == done
    assert not list(berth.root.glob("layers/*/linking"))


UNLIKE = {
    "mode": images.file("data/text", "twelve bytes", mode=0o600),
    "time": images.file("data/text", "twelve bytes", mode=0o640, mtime=images.EPOCH + 1),
    "content": images.file("data/text", "twelve BYTES", mode=0o640),
    "writable": images.file("data/text", "twelve bytes", mode=0o666),
    "attribute": images.file("data/text", "twelve bytes", mode=0o640,
                             pax_headers={"SCHILY.xattr.user.note": "x"}),
}


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("unlike", UNLIKE)
def test_what_differs_in_anything_stays_two(berth, push, unlike):
    other = images.file("data/text", "twelve bytes", mode=0o640)
    if unlike == "writable":
        other = UNLIKE[unlike]
    for entry in (other, UNLIKE[unlike]):
        layer = images.layer([images.directory("data"), entry, images.file("own", os.urandom(8))])
        berth.ok("pull", "-q", push(images.build([layer])))
    if unlike == "attribute" and not any("user.note" in os.listxattr(path)
                                         for path in files(berth, "data/text")):
        pytest.skip("no attributes of users on this file system")
    assert dedupe(berth)["identical_files"] == 0
    assert len(inodes(berth, "data/text")) == 2


def test_names_of_one_layer_are_never_made_links(berth, push):
    """Else a tar of the container would have links where it had files."""
    twins = [images.file("data/one", BIG), images.file("data/other", BIG)]
    berth.ok("pull", "-q", push(images.build([images.layer(twins)])))
    assert dedupe(berth)["identical_files"] == 0


def test_layers_that_containers_use_keep_their_files(berth, two):
    used = berth.ok("create", two[0], "true").strip()
    before = {path: path.stat().st_ino for path in files(berth, "data/big")}
    report = dedupe(berth)
    assert report["used_layers"] == 2 and report["identical_files"] == 3
    after = {path: path.stat().st_ino for path in files(berth, "data/big")}
    [kept] = [path for path in before if before[path] == after[path]]
    assert (kept.parents[1] / "own").read_text() == "first"
    other = berth.ok("create", two[1], "true").strip()
    berth.ok("rmi", "-f", two[0])
    assert dedupe(berth)["identical_files"] == 0
    berth.ok("rm", used, other)
    assert not any(finding["damage"] for finding in check(berth))


def test_both_used_is_nothing_to_do_and_said(berth, two):
    for reference in two:
        berth.ok("create", reference, "true")
    out = berth.ok("system", "dedupe")
    assert out.startswith("3 layers stay as they are: containers use them, or they are mounted\n")
    assert len(inodes(berth, "data/big")) == 2


def test_a_container_that_runs_sees_its_files_all_the_time(berth, two):
    script = "echo ready; while true; do md5sum /data/* /own; done"
    container = berth.ok("run", "-d", two[0], "sh", "-c", script).strip()
    dedupe(berth)
    berth.ok("rm", "-f", container)
    dedupe(berth)
    lines = berth.ok("run", "--rm", two[1], "sh", "-c", "md5sum /data/*")
    assert len(lines.splitlines()) == 3
    assert check(berth) == []


def test_one_image_goes_and_the_other_stays_whole(berth, two):
    dedupe(berth)
    berth.ok("rmi", two[0])
    assert berth.ok("run", "--rm", two[1], "cat", "/data/text") == "twelve bytes"
    assert check(berth) == []


def members(path):
    with tarfile.open(path) as tar:
        return [(member.name, member.type, member.size, member.linkname, member.mode, member.mtime)
                for member in tar]


def test_export_commit_save_and_push_give_what_they_gave(berth, push, start_registry):
    references = [push(build(images.file("own", name))) for name in ("first", "second")]
    for reference in references:
        berth.ok("pull", "-q", "--keep-blobs", reference)

    def all_forms(turn):
        berth.ok("create", "--name", "hold", references[1], "true")
        berth.ok("export", "-o", f"{turn}.tar", "hold")
        berth.ok("commit", "hold", "made:1", env={"SOURCE_DATE_EPOCH": "1700000000"})
        berth.ok("save", "-o", f"{turn}-saved.tar", references[1])
        berth.ok("rm", "hold")
        found = (members(berth.directory / f"{turn}.tar"),
                 members(berth.directory / f"{turn}-saved.tar"),
                 json.loads(berth.ok("inspect", "made:1"))[0]["RootFS"]["Layers"])
        berth.ok("rmi", "made:1")
        return found

    before = all_forms("before")
    assert dedupe(berth)["identical_files"] == 3
    assert all_forms("after") == before
    target = f"{start_registry().address}/copy/app:1"
    berth.ok("tag", references[1], target)
    berth.ok("push", "-q", target)
    digest = json.loads(berth.ok("inspect", references[1]))[0]["RepoDigests"][0].partition("@")[2]
    berth.ok("rmi", target, references[1])
    assert berth.ok("pull", "-q", target).strip() == target
    assert json.loads(berth.ok("inspect", target))[0]["RepoDigests"][0].endswith("@" + digest)


@pytest.mark.parametrize("flags", [[], ["--read-only"]])
def test_copies_of_such_layers_are_what_they_were(berth, two, flags):
    look = ["sh", "-c", "cd /data && for f in *; do stat -c '%n %a %s %Y' $f; md5sum $f; done"]
    before = berth.ok("--rootfs-driver", "copy", "run", "--rm", *flags, two[1], *look)
    dedupe(berth)
    assert berth.ok("--rootfs-driver", "copy", "run", "--rm", *flags, two[1], *look) == before
    assert check(berth) == []


def test_disk_usage_counts_them_once(berth, two):
    def size_of_images():
        return json.loads(berth.ok("system", "df", "-v", "--format", "json"))
    assert size_of_images()["LinkedSize"] == "0B"
    dedupe(berth)
    assert size_of_images()["LinkedSize"] == "310kB"
    kept = json.loads(berth.ok("system", "prune", "-f", "--keep", "0", "--format", "json"))
    assert kept["kept_bytes"] == 0
    assert [path.name for path in (berth.root / "layers").iterdir()] == []


@pytest.mark.profiles("root", "user")
def test_who_is_killed_leaves_a_store_without_damage(berth, push, busybox):
    count, tries = 400, 12
    entries = [images.file(f"d{n % 20}/{n}", f"{n}" * 50, mode=0o644) for n in range(count)]
    entries = [*(images.directory(f"d{n}") for n in range(20)), *entries]
    references = []
    for turn in range(2):
        image = images.build([images.layer([*entries, images.file("own", f"{turn}")])])
        references.append(push(image))
    berth.ok("pull", "-q", busybox)
    marked = 0
    for _ in range(tries):
        for reference in references:
            berth.ok("pull", "-q", reference)
        work = berth.spawn("system", "dedupe")
        readers = [berth.spawn("run", "--rm", busybox, "true"), berth.spawn("images")]
        time.sleep(random.uniform(0, 0.05))
        processes.kill_all(work.pid)
        for process in (work, *readers):
            process.communicate(timeout=60)
        marked += bool(list(berth.root.glob("layers/*/linking")))
        assert all(finding["damage"] is False for finding in check(berth))
        dedupe(berth)
        assert check(berth) == []
        assert len(inodes(berth, "d1/1")) == 1
        berth.ok("rmi", *references)
    print(f"{marked} of {tries} were killed while they linked")


def test_an_interrupted_run_is_mended_by_the_next(berth, two):
    """As a process leaves it that was killed between a link and the time of its directory."""
    [first, _] = files(berth, "data")
    (first.parents[1] / "linking").touch()
    owner = (berth.root / "layers").stat()
    os.chown(first.parents[1] / "linking", owner.st_uid, owner.st_gid)
    os.utime(first)
    [finding] = check(berth)
    assert "'berth system dedupe' was killed" in finding["text"] and not finding["damage"]
    dedupe(berth)
    assert check(berth) == []
    assert first.stat().st_mtime == images.EPOCH
    os.utime(first)
    assert berth.run("system", "check").returncode == 1


def test_others_pull_run_and_remove_meanwhile(berth, push, two):
    third = push(build(images.file("own", "third")))
    for _ in range(5):
        processes = [berth.spawn("system", "dedupe"), berth.spawn("system", "dedupe"),
                     berth.spawn("pull", "-q", third), berth.spawn("run", "--rm", two[1], "true")]
        for process in processes:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        berth.ok("rmi", third)
    assert check(berth) == []
    assert dedupe(berth)["identical_files"] == 0


# ---- blocks --------------------------------------------------------------------------------------

@pytest.fixture
def btrfs(work):
    """A file system on a loop device that can share blocks."""
    with loop_disks.btrfs(work) as point:
        yield point


def used_bytes(point):
    subprocess.run(["btrfs", "filesystem", "sync", point], check=True, capture_output=True)
    status = os.statvfs(point)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@pytest.mark.profiles("root", "user")
def test_blocks_are_shared_where_the_file_system_can(programs, profile, push, btrfs):
    os.chown(btrfs, profile.uid, profile.gid)
    berth = Berth(programs, profile, btrfs / "berth")
    big = os.urandom(4 << 20)
    for name in ("first", "second"):
        layer = images.layer([images.file(f"{name}/{n}", big, mtime=images.EPOCH + n)
                              for n in range(2)])
        berth.ok("pull", "-q", push(images.build([images.busybox_layer(), layer])))
    # A layer that a container uses has its blocks shared, too.
    berth.ok("create", "--name", "hold", berth.ok("images", "-q").split()[0], "true")
    before = used_bytes(btrfs)
    told = dedupe(berth, "--dry-run")
    report = dedupe(berth)
    assert report["way"] == "blocks" and report["identical_files"] == 3
    assert report["saved_bytes"] == told["saved_bytes"] == 3 * len(big)
    assert before - used_bytes(btrfs) >= 3 * len(big) - (1 << 20)
    assert len(inodes(berth, "first/0") | inodes(berth, "second/0")) == 2
    assert check(berth) == []
    assert dedupe(berth)["identical_files"] == 0
    berth.ok("rm", "hold")
    berth.close()
