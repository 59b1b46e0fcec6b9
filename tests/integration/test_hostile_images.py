# SPDX-License-Identifier: Apache-2.0
"""The hostile corpus (tests/hostile-images): every item is refused with one line that says why, or
taken without anything happening outside of it; the store is as before, or holds one image more."""

import os
import pathlib
import re
import shutil
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "hostile-images")]

import compare  # noqa: E402
import make  # noqa: E402
from support import hostile_registry, images  # noqa: E402

# What an image is unpacked into concerns neither its documents nor what it does when it runs.
UNPACKED = [name for name, item in make.BY_NAME.items()
            if item.kind in ("paths", "kinds", "sizes")]
OTHERS = [name for name in make.BY_NAME if name not in UNPACKED]
EVERYBODY = pytest.mark.profiles("root", "user", "erofs")


@pytest.fixture
def canary(profile):
    """What the attacks reach for. It belongs to the user, who could change it."""
    make.make_canary()
    for path in (pathlib.Path(make.CANARY), *pathlib.Path(make.CANARY).iterdir()):
        os.chown(path, profile.uid, profile.gid)
    before = make.look_at_canary()
    yield
    after = make.look_at_canary()
    shutil.rmtree(make.CANARY)
    assert after == before


@pytest.fixture
def take(berth, work):
    """take(item) → the finished command, and the reference of what it took."""
    def load(item):
        path = make.write(item, work)
        done = berth.run("load", "--quiet", "--input", path, env=item.environment, timeout=100)
        shutil.rmtree(path)
        return done, done.stdout.split()[-1] if done.stdout else ""

    def pull(item):
        with hostile_registry.running(item.make().image, **item.faults) as registry:
            done = berth.run("pull", "--quiet", registry.reference, env=item.environment)
            return done, registry.reference
    return lambda item: pull(item) if item.faults else load(item)


def error_line(done):
    lines = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert len(lines) == 1, done.stderr
    assert all(c.isprintable() for c in lines[0]), lines[0]
    return lines[0]


def ends_with(line, pattern):
    return re.search(re.escape(pattern).replace(r"\*", ".*") + "$", line)


def files_of(listing):
    return {path for path, look in listing.items() if not look.startswith("d")}


def unpacked(berth):
    return sorted(berth.root.glob("layers/*/fs"))


def refused_with(item, profile):
    """The end of the line with which this user is refused; nothing where he is not."""
    if item.user_says and profile.kind == "user":
        return item.user_says
    return item.says if item.expect == "refused" else None


@EVERYBODY
@pytest.mark.parametrize("name", UNPACKED)
def test_an_attack_on_unpacking_is_refused_or_contained(attacked, name):
    attacked(name)


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("name", OTHERS)
def test_an_attack_on_readers_and_runners_is_refused_or_contained(attacked, name):
    attacked(name)


@pytest.fixture
def attacked(berth, take, canary, listing, profile):
    return lambda name: attack(berth, take, listing, profile, make.BY_NAME[name])


def attack(berth, take, listing, profile, item):
    done, reference = take(item)
    says = refused_with(item, profile)
    if says is not None:
        assert done.returncode == 1, f"taken: {done.stdout}"
        assert ends_with(error_line(done), says), done.stderr
        assert files_of(listing()) == {"version"}
        return
    assert done.returncode == 0, done.stderr
    assert list(berth.root.glob("tmp/*")) == []
    for tree in unpacked(berth) if item.harm else ():
        assert item.harm(tree) is None
    if item.run or item.run_says:
        run_it(berth, item, reference)
    berth.ok("rmi", "--force", reference)
    assert list(berth.root.glob("layers/*")) == []


def run_it(berth, item, reference):
    done = berth.run("run", "--rm", "--network", "none", reference, *item.run)
    if item.run_says:
        assert done.returncode != 0, done.stdout
        assert ends_with(error_line(done), item.run_says), done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert item.prints in done.stdout + done.stderr


@EVERYBODY
def test_a_store_that_refused_all_of_them_still_works(berth, take, canary, busybox):
    berth.ok("pull", "--quiet", busybox)
    for name in ("symlink-loop", "hardlink-up", "gzip-truncated", "diff-id-wrong",
                 "sparse-gnu-overlaps", "xattr-of-100-kib", "registry-cuts-a-blob"):
        assert take(make.BY_NAME[name])[0].returncode == 1
    assert berth.ok("run", "--rm", busybox, "echo", "well") == "well\n"
    berth.ok("pull", "--quiet", busybox)
    assert images.busybox().id[7:19] in berth.ok("images", "--no-trunc")


@pytest.mark.profiles("root")
def test_every_item_says_what_is_expected_of_it():
    for item in make.ITEMS:
        assert item.expect in ("refused", "contained")
        assert item.attack and (item.says or item.expect == "contained"), item.name
        assert item.expect == "contained" or not (item.run or item.run_says), item.name
    assert len(make.ITEMS) >= 60


@pytest.mark.profiles("root")
def test_the_table_of_tools_says_of_berth_what_is_tested_here():
    assert {name: verdicts["berth"] for name, verdicts in compare.written().items()} == {
        item.name: "refused" if item.expect == "refused" or item.run_says else "contained"
        for item in make.ITEMS}


@pytest.mark.profiles("root")
def test_every_refusal_that_others_do_not_share_has_its_reason_in_the_table():
    found = compare.written()
    alone = {name for name, verdicts in found.items() if compare.is_alone(verdicts)}
    assert alone == {item.name for item in make.ITEMS if item.why}
    rows = [(item, found[item.name]) for item in make.ITEMS]
    written = compare.TABLE.read_text(encoding="utf-8")
    assert compare.table(rows).partition("| Item |")[2] == written.partition("| Item |")[2]
