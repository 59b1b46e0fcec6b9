# SPDX-License-Identifier: Apache-2.0
"""'image mount': a whole image at a directory, for the host's own tools."""

import os
import pathlib
import shutil
import subprocess

import pytest
from support import images
from support.processes import matching
from support.waiting import wait_until


@pytest.fixture
def image(berth, push):
    low = images.layer([images.directory("data"), images.file("data/low", "low"),
                        images.file("data/hidden", "x")])
    high = images.layer([images.whiteout("data/hidden"), images.file("data/high", "high")])
    reference = push(images.build([images.busybox_layer(), low, high]))
    berth.ok("pull", "-q", reference)
    return reference


@pytest.fixture
def place(work, profile):
    path = work / "a place"
    path.mkdir()
    os.chown(path, profile.uid, profile.gid)
    yield path
    while subprocess.run(["umount", path], check=False, capture_output=True).returncode == 0:
        continue


def rows(berth, form="{{.Image}}|{{.ID}}|{{.Directory}}"):
    return berth.ok("image", "mount", "--format", form).splitlines()


@pytest.mark.profiles("root", "erofs")
def test_the_whole_image_is_there_and_cannot_be_written(berth, image, place):
    assert berth.ok("image", "mount", image, place) == f"{place}\n"
    assert sorted(path.name for path in (place / "data").iterdir()) == ["high", "low"]
    assert (place / "data/low").read_text() == "low"
    assert not (place / "proc/version").exists()
    with pytest.raises(OSError):
        (place / "data/new").write_text("x")
    identity = berth.ok("images", "-q", image).strip()
    assert rows(berth) == [f"{image}|{identity}|{place}"]
    line = berth.fail("rmi", image, status=1)
    assert line == (f"berth: remove image '{image}': it is mounted at '{place}'; "
                    f"try: berth image unmount {place}")
    line = berth.fail("image", "mount", image, place, status=1)
    assert f"image '{image}' is mounted there; try: berth image unmount" in line
    berth.ok("image", "unmount", place)
    assert rows(berth) == [] and list(place.iterdir()) == []
    berth.ok("rmi", image)


@pytest.mark.profiles("root", "erofs")
def test_nothing_takes_a_mounted_image_away(berth, image, busybox, place, profile):
    """Not by its id either, nor for space, nor to change its form; what shares a layer stays, too."""
    berth.ok("tag", image, "second:1")
    other = "directory" if profile.kind == "erofs" else "erofs"
    berth.ok("image", "mount", image, place)
    identity = berth.ok("images", "-q", image).strip()
    for words in (("rmi", "-f", identity), ("rmi", "-f", f"sha256:{identity}")):
        assert f"is mounted at '{place}'" in berth.fail(*words, status=1)
    berth.ok("rmi", "second:1")
    line = berth.fail("image", "convert", "--to", other, image, status=1)
    assert "it is mounted, or shares layer " in line and "try: berth image unmount" in line
    line = berth.fail("system", "check", "--repair", status=1)
    assert f"is mounted at '{place}'; try: berth image unmount {place}" in line
    berth.ok("system", "prune", "-f", "--keep", "0")
    berth.ok("system", "dedupe")
    assert (place / "data/low").read_text() == "low"
    berth.ok("image", "unmount", place)
    berth.ok("image", "convert", "-q", "--to", other, image)
    berth.ok("system", "prune", "-f", "--keep", "0")
    assert berth.ok("images", "-q") == ""


CALLS = {"mkdirat": 258, "umount2": 166}  # on every 64-bit x86


def swapped(berth, work, call, *words, touching=()):
    """Runs berth with the directory above `work`/mine/there exchanged for a link to `work`/other while it is
    held back before `call`, of those that touch some path."""
    trace = work / "trace"
    traced = subprocess.Popen(["strace", "-f", "-qq", "-o", trace, "-e", f"trace={call}", "-e",
                               f"inject={call}:delay_enter=1000000:when=1", *touching,
                               *berth.argv(*words)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def is_held():
        pids = matching(rb"\0image\0(un)?mount\0") - {traced.pid}
        return any(pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith(f"{CALLS[call]} ") for pid in pids)

    wait_until(is_held)
    (work / "mine").rename(work / "moved")
    (work / "mine").symlink_to(work / "other")
    traced.communicate(timeout=30)
    assert call in trace.read_text()


@pytest.mark.profiles("root")
def test_an_image_is_mounted_where_the_name_led_and_nowhere_else(berth, busybox, work):
    berth.ok("pull", "-q", busybox)
    for name in ("mine", "other"):
        (work / name / "there").mkdir(parents=True)
    # When the directory has been looked at, and before it is mounted on.
    swapped(berth, work, "mkdirat", "image", "mount", busybox, work / "mine/there",
            touching=("-P", berth.state / "empty"))
    assert rows(berth, "{{.Directory}}") == [str(work / "moved/there")]
    berth.ok("image", "unmount", work / "moved/there")


@pytest.mark.profiles("root")
def test_the_mount_that_was_named_is_taken_away_and_no_other(berth, busybox, work):
    berth.ok("pull", "-q", busybox)
    for name in ("mine", "other"):
        (work / name / "there").mkdir(parents=True)
        berth.ok("image", "mount", busybox, work / name / "there")
    swapped(berth, work, "umount2", "image", "unmount", work / "mine/there")
    assert rows(berth, "{{.Directory}}") == [str(work / "other/there")]
    berth.ok("image", "unmount", work / "other/there")


@pytest.mark.profiles("root")
def test_an_image_of_one_layer(berth, busybox, place):
    berth.ok("pull", "-q", busybox)
    berth.ok("image", "mount", busybox, place)
    assert (place / "bin/busybox").stat().st_size > 100_000
    berth.ok("image", "unmount", place)


@pytest.mark.profiles("root")
def test_a_file_of_another_engine(berth, image, place):
    if not shutil.which("tar2sqfs"):
        pytest.skip("needs tar2sqfs")
    berth.ok("save", "--format", "sqsh", "-o", "image.sqsh", image)
    path = berth.directory / "image.sqsh"
    berth.ok("image", "mount", path, place)
    assert (place / "data/high").read_text() == "high"
    assert rows(berth) == [f"{path}||{place}"]
    berth.ok("image", "unmount", place)
    assert list(place.iterdir()) == []


@pytest.mark.profiles("root")
@pytest.mark.parametrize("words, reason", [
    (["nowhere:1", "PLACE"], "no such image: nowhere:1; try: berth pull nowhere:1"),
    (["IMAGE", "/nowhere"], "open '/nowhere': No such file or directory"),
    (["IMAGE", "/etc/passwd"], "open '/etc/passwd': Not a directory"),
    (["IMAGE"], "berth image mount takes an IMAGE and a DIR, or neither"),
])
def test_wrong_words_are_one_line(berth, image, place, words, reason):
    words = [{"IMAGE": image, "PLACE": str(place)}.get(word, word) for word in words]
    assert reason in berth.fail("image", "mount", *words, status=1)
    assert rows(berth) == []


@pytest.mark.profiles("root")
def test_what_is_no_image_is_not_unmounted(berth, place):
    line = berth.fail("image", "unmount", place, status=1)
    assert line == f"berth: no image is mounted at '{place}'; try: berth image mount"


@pytest.mark.profiles("user", "single_id")
def test_a_user_is_told_the_way(berth, image, place):
    line = berth.fail("image", "mount", image, place, status=1)
    assert "; try: berth unshare" in line and "--mount type=image" in line
    assert "; try: berth unshare" in berth.fail("image", "unmount", place, status=1)
    assert rows(berth) == []


@pytest.mark.profiles("user", "single_id")
def test_a_user_mounts_inside_of_unshare(berth, image, place):
    words = [str(berth.programs / "berth"), "--root", str(berth.root), "--state", str(berth.state)]
    program = " ".join(words)
    out = berth.ok("unshare", "sh", "-ec",
                   f"{program} image mount {image} \"$0\" >/dev/null; cat \"$0/data/low\"; "
                   f"{program} image mount --format '{{{{.Directory}}}}'; "
                   f"{program} image unmount \"$0\"; ls \"$0\"", place)
    assert out == f"low{place}\n"
    assert list(place.iterdir()) == []


@pytest.mark.profiles("user", "single_id")
def test_unshare_runs_what_it_is_told(berth):
    assert berth.ok("unshare", "id", "-u") == "0\n"
    assert berth.ok("unshare", env={"SHELL": "/bin/true"}) == ""
    assert berth.run("unshare", "sh", "-c", "exit 7").returncode == 7
    line = berth.fail("unshare", "no-such-program", status=127)
    assert line == "berth: find 'no-such-program' in PATH"


@pytest.mark.profiles("root")
def test_root_needs_no_unshare(berth):
    assert "root has all ids" in berth.fail("unshare", "true")
