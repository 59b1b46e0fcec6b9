# SPDX-License-Identifier: Apache-2.0
"""'system check': whatever was damaged in the store is found and told, and repaired by removing it."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from support import images


@pytest.fixture
def image():
    return images.build([images.busybox_layer(), images.layer([
        images.directory("data"), images.file("data/text", b"twelve bytes", uid=0, mode=0o640),
        images.file("data/empty"), images.symlink("data/link", "text"),
        images.hardlink("data/twice", "data/text"), images.fifo("data/pipe")])])


@pytest.fixture
def pulled(berth, push, image):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    return reference


def check(berth, *flags):
    done = berth.run("system", "check", "--format", "json", *flags)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["damaged"] else 0)
    return report


def data_of(berth):
    if list(berth.root.glob("layers/*/fs.erofs")):
        pytest.skip("layers are images here")
    (tree,) = (path for path in berth.root.glob("layers/*/fs") if (path / "data").exists())
    return tree / "data"


def texts(report, kind):
    return [finding["text"] for finding in report["findings"]
            if finding["kind"] == kind and finding["damage"]]


def same_length(path):
    status = path.stat()
    path.write_bytes(b"TWELVE bytes")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def same_time(path, change):
    status = path.stat()
    change(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def relink(path):
    path.unlink()
    path.symlink_to("elsewhere")


DAMAGES = {
    "changed bytes": (lambda data: same_length(data / "text"), "'data/text' has other content"),
    "truncated": (lambda data: os.truncate(data / "text", 3), "'data/text' has 3 bytes and had 12"),
    "missing": (lambda data: (data / "empty").unlink(), "'data/empty' is missing"),
    "extra": (lambda data: (data / "more").write_text(""), "'data/more' is not of the layer"),
    "mode": (lambda data: (data / "text").chmod(0o666), "'data/text' has mode 666 and had 640"),
    "time": (lambda data: os.utime(data / "empty"), "'data/empty' was changed later"),
    "link": (lambda data: relink(data / "link"), "'data/link' leads elsewhere than it did"),
    "kind": (lambda data: ((data / "empty").unlink(), (data / "empty").mkdir()),
             "'data/empty' is a directory and was a file"),
    "whole directory": (shutil.rmtree, "'data/text' is missing"),
    "owner": (lambda data: os.chown(data / "empty", 54321, 54321), "'data/empty' has another owner"),
}


def test_a_store_as_it_was_pulled_is_clean(berth, pulled):
    berth.ok("run", "--rm", pulled, "cat", "/data/text")
    report = check(berth)
    assert report["findings"] == []
    assert (report["records"], report["layers"]) == (1, 2)
    assert report["files"] > 3 and report["bytes"] > 12
    out = berth.ok("system", "check").strip()
    assert out.startswith("Checked 1 names, 2 blobs, 2 layers with ") and out.endswith(": no damage")


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage != "owner"])
def test_each_damage_of_a_layer_is_told_by_its_path(berth, pulled, damage):
    check_damage(berth, pulled, *DAMAGES[damage])


@pytest.mark.profiles("root")  # who has the numbers that a user's files have outside, too
def test_another_owner_is_damage(berth, pulled):
    check_damage(berth, pulled, *DAMAGES["owner"])


def check_damage(berth, pulled, change, text):
    change(data_of(berth))
    report = check(berth)
    assert report["damaged"] == 1
    assert text in texts(report, "layer")
    assert report["findings"][0]["images"] == [pulled]
    repaired = check(berth, "--repair")
    assert {finding["done"] for finding in repaired["findings"] if finding["damage"]} == {"removed"}
    assert check(berth)["damaged"] == 0
    berth.ok("pull", "-q", pulled)
    assert berth.ok("run", "--rm", pulled, "cat", "/data/text") == "twelve bytes"
    assert check(berth)["findings"] == []


def blob(berth, digest):
    return berth.root / "blobs/sha256" / digest.removeprefix("sha256:")


@pytest.mark.parametrize("which", ["manifest", "config"])
@pytest.mark.parametrize("how", ["cut", "missing", "changed"])
def test_a_damaged_document_goes_with_its_name(berth, image, pulled, which, how):
    path = blob(berth, image.digest if which == "manifest" else image.id)
    if how == "missing":
        path.unlink()
    else:
        text = path.read_bytes()
        path.write_bytes(text[:-5] if how == "cut" else text.replace(b"linux", b"LINUX") + b" ")
    report = check(berth)
    expected = "is missing" if how == "missing" else "does not have the digest that it is named by"
    assert expected in texts(report, "blob")
    check(berth, "--repair")
    assert check(berth)["damaged"] == 0
    berth.ok("pull", "-q", pulled)
    assert berth.ok("run", "--rm", pulled, "cat", "/data/text") == "twelve bytes"
    assert check(berth)["findings"] == []


def test_a_kept_layer_blob_is_read_whole(berth, push, image):
    reference = push(image)
    berth.ok("pull", "-q", "--keep-blobs", reference)
    path = blob(berth, image.layer_digests[1])
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    assert texts(check(berth), "blob") == ["does not have the digest that it is named by"]
    check(berth, "--repair")
    assert not path.exists()
    assert berth.ok("run", "--rm", reference, "cat", "/data/text") == "twelve bytes"


def test_a_damaged_record_is_told_and_removed(berth, pulled):
    (record,) = (berth.root / "images").iterdir()
    record.write_text("{")
    assert texts(check(berth), "record") == ["is not an image record"]
    check(berth, "--repair")
    assert check(berth)["findings"] == []
    assert list((berth.root / "layers").iterdir()) == []


@pytest.mark.parametrize("make, text", [
    (lambda layer: (layer / "layer.json").unlink(), "layer.json"),
    (lambda layer: (layer / "layer.json").write_text("[]"), "layer.json"),
    (lambda layer: (layer / "tree").write_text("berth-tree 1\n"), "its record 'tree' is damaged"),
    (lambda layer: os.truncate(layer / "tree", 100), "its record 'tree' is damaged"),
])
def test_a_half_made_layer_is_damage(berth, pulled, make, text):
    make(data_of(berth).parent.parent)
    (found,) = texts(check(berth), "layer")
    assert text in found
    check(berth, "--repair")
    assert check(berth)["damaged"] == 0


def test_leftovers_are_told_but_are_no_damage(berth, pulled):
    (berth.root / "tmp/stage-1").mkdir(0o700)
    (berth.root / "images/half.tmp-1").write_text("")
    for path in ("tmp/stage-1", "images/half.tmp-1"):
        shutil.chown(berth.root / path, berth.root.stat().st_uid, berth.root.stat().st_gid)
    (record,) = (berth.root / "images").glob("*.json")
    record.unlink()
    report = check(berth)
    assert report["damaged"] == 0
    left = [finding["object"] for finding in report["findings"] if finding["kind"] == "leftover"]
    assert {"tmp/stage-1", "images/half.tmp-1"} < set(left)
    assert {path.partition("/")[0] for path in left} == {"tmp", "images", "layers", "blobs", "origins"}
    check(berth, "--repair")
    assert list((berth.root / "layers").iterdir()) == []
    assert check(berth)["findings"] == []


@pytest.mark.parametrize("place", ["layers", "blobs/sha256", "images", "."])
def test_what_others_may_write_is_told_and_closed(berth, pulled, place):
    path = berth.root / place
    if place == "images":
        (path,) = path.iterdir()
    if place == ".":
        path = berth.root / "tmp"
    path.chmod(0o777)
    assert texts(check(berth), "permissions") == ["can be written by others"]
    check(berth, "--repair")
    assert path.stat().st_mode & 0o22 == 0
    assert check(berth)["findings"] == []


def test_what_a_container_needs_is_kept_and_it_is_said(berth, pulled):
    container = berth.ok("create", pulled, "true").strip()
    (data_of(berth) / "empty").unlink()
    report = check(berth, "--repair")
    done = {finding["done"] for finding in report["findings"] if finding["damage"]}
    short = container[:12]
    assert done == {f"kept: container {short} uses it; try: berth rm {short}"}
    assert check(berth)["damaged"] == 1
    berth.ok("rm", container)
    check(berth, "--repair")
    assert check(berth)["damaged"] == 0


def test_a_container_whose_image_is_gone_is_told(berth, image, pulled):
    container = berth.ok("create", pulled, "true").strip()
    blob(berth, image.digest).unlink()
    report = check(berth)
    assert texts(report, "container") == [f"its image {image.digest} is gone"]
    berth.ok("rm", container)


def test_a_layer_from_before_there_were_records_is_a_note(berth, pulled):
    (data_of(berth).parent.parent / "tree").unlink()
    report = check(berth)
    assert report["damaged"] == 0
    (note,) = report["findings"]
    assert note["kind"] == "note"


@pytest.mark.profiles("erofs")
@pytest.mark.parametrize("where", [0.0, 0.1, 0.5, 0.999])
def test_a_changed_byte_of_a_layer_that_is_an_image_is_found(berth, push, where):
    reference = push(images.build([images.layer(
        [images.file(f"d/{n}", os.urandom(n * 500)) for n in range(200)])]))
    berth.ok("pull", "-q", reference)
    assert check(berth)["findings"] == []
    (path,) = berth.root.glob("layers/*/fs.erofs")
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 1
    path.write_bytes(content)
    (found,) = texts(check(berth), "layer")
    assert found.startswith("'fs.erofs' has other content from byte ")
    path.write_bytes(content[:-4096])
    assert any("bytes and had" in text for text in texts(check(berth), "layer"))
    check(berth, "--repair")
    assert check(berth)["damaged"] == 0


def test_a_file_with_holes_is_compared_too(berth, push, tmp_path):
    sparse = tmp_path / "sparse"
    with open(sparse, "wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"middle")
    tar = subprocess.run(["tar", "--sparse", "-cf", "-", "-C", tmp_path, "sparse"], check=True,
                         capture_output=True).stdout
    berth.ok("pull", "-q", push(images.build([tar])))
    assert check(berth)["findings"] == []
    (path,) = berth.root.glob("layers/*/fs/sparse")
    same_time(path, lambda file: file.open("r+b").write(b"x"))
    assert texts(check(berth), "layer") == ["'sparse' has other content"]


@pytest.mark.profiles("root", "user")
def test_checks_beside_pulls_removals_and_runs_find_nothing(berth, push, busybox):
    berth.ok("pull", "-q", busybox)
    reference = push(images.build([images.layer(
        [images.file(f"d/{n}", os.urandom(2000)) for n in range(300)])]))
    for _ in range(5):
        running = [berth.spawn("pull", "-q", reference), berth.spawn("system", "check"),
                   berth.spawn("run", "--rm", busybox, "true"), berth.spawn("rmi", "-f", reference),
                   berth.spawn("system", "check", "--repair")]
        done = [process.communicate(timeout=60) for process in running]
        assert running[1].returncode == 0, done[1]
        assert running[4].returncode == 0, done[4]
        assert running[2].returncode == 0, done[2]
    assert check(berth, "--repair")["damaged"] == 0
    assert check(berth)["findings"] == []


@pytest.mark.profiles("root", "user")
def test_a_killed_repair_leaves_a_store_that_can_be_repaired(berth, image, pulled):
    for _ in range(6):
        berth.ok("pull", "-q", pulled)
        (data_of(berth) / "empty").unlink()
        repair = berth.spawn("system", "check", "--repair")
        reader = berth.spawn("images")
        time.sleep(random.uniform(0, 0.1))
        repair.send_signal(signal.SIGKILL)
        repair.communicate()
        reader.communicate(timeout=60)
        check(berth, "--repair")
        assert check(berth)["damaged"] == 0


@pytest.mark.profiles("user", "single_id")
def test_devices_that_a_user_cannot_make_are_recorded(berth, push):
    reference = push(images.build([images.busybox_layer(), images.layer([
        images.directory("nodes"), images.character_device("nodes/zero", 1, 5),
        images.character_device("nodes/null", 1, 3)])]))
    assert "2 device nodes (first: 'nodes/zero')" in berth.run("pull", reference).stderr
    report = check(berth)
    assert report["damaged"] == 0
    (note,) = report["findings"]
    assert note["images"] == [reference] and not note["damage"]
    assert note["text"] == ("is without 2 of its device nodes, which this user cannot make; the first: "
                            "'nodes/zero' (c 1:5)")


@pytest.mark.profiles("root", "erofs")
def test_a_file_of_many_attributes_and_two_names_is_as_it_was(berth, push):
    many = {f"SCHILY.xattr.user.{n}": "x" * 1000 for n in range(3)}
    large = {"SCHILY.xattr.user.large": "x" * 7000}
    reference = push(images.build([images.busybox_layer(), images.layer([
        images.file("many", b"1", pax_headers=many), images.hardlink("many-too", "many"),
        images.file("large", b"2", pax_headers=large), images.hardlink("large-too", "large")])]))
    berth.ok("pull", "-q", reference)
    assert check(berth)["findings"] == []
