# SPDX-License-Identifier: Apache-2.0
"""The same content gives the same digests: in another store, on another day, from a directory that
was filled in another order, with SOURCE_DATE_EPOCH."""

import datetime
import io
import itertools
import json
import os
import subprocess
import tarfile
import time

import pytest

from support import images
from support.berth import Berth

DATE = 1_600_000_000
THEN = {"SOURCE_DATE_EPOCH": str(DATE)}


@pytest.fixture
def stores(programs, profile, work):
    """Two stores of one user."""
    made = [Berth(programs, profile, work / name) for name in ("port", "starboard")]
    yield made
    for one in made:
        one.close()


def fill(path, profile, names, keys, age):
    """The same files as ever, made in the order of `names`, with attributes in that of `keys`."""
    path.mkdir()
    for name in names:
        (path / name / "deep").mkdir(parents=True)
        (path / name / "deep/file").write_text(name)
        for key in keys:
            os.setxattr(path / name / "deep/file", f"user.{key}", key.encode())
    (path / "old").write_text("older than the date\n")
    (path / "a/link").symlink_to("../b")
    # Whichever of the two was there first: the first in the order of names holds the bytes.
    first, second = ("twin", "z-twin") if names[0] == "a" else ("z-twin", "twin")
    (path / first).write_text("both")
    (path / second).hardlink_to(path / first)
    now = time.time() - age
    for place in [path, *path.rglob("*")]:
        os.chown(place, profile.uid, profile.gid, follow_symlinks=False)
        os.utime(place, (now, now), follow_symlinks=False)
    os.utime(path / "old", (DATE - 1000, DATE - 1000))
    return path


@pytest.fixture
def twins(work, profile):
    """Two directories with the same content that differ in all that does not count."""
    names, keys = "abcdefgh", ("one", "two", "three")
    return (fill(work / "first", profile, names, keys, 5000),
            fill(work / "second", profile, names[::-1], keys[::-1], 0))


def archive_of(berth, name):
    done = berth.run("save", name, text=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def members(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar if info.isfile()}


def parts(archive):
    """(config, [tar of each layer]) of an archive of one image."""
    files = members(archive)
    (entry,) = json.loads(files["manifest.json"])
    return json.loads(files[entry["Config"]]), [
        tarfile.open(fileobj=io.BytesIO(files[layer]), mode="r:*") for layer in entry["Layers"]]


def headers(layer):
    """What is told of every member, in their order."""
    return [{**info.get_info(), "pax": info.pax_headers} for info in layer]


def until_the_next_second():
    time.sleep(1.05 - time.time() % 1)


@pytest.mark.profiles("root", "user")
def test_a_directory_gives_one_digest_wherever_and_whenever_it_is_imported(stores, twins):
    ids, archives = [], []
    for berth, directory in zip(stores, twins):
        ids.append(berth.ok("import", directory, "same:1", env=THEN))
        archives.append(archive_of(berth, "same:1"))
        until_the_next_second()
    assert ids[0] == ids[1]
    assert archives[0] == archives[1]  # the manifest and the layers, too


@pytest.mark.profiles("root")
def test_an_imported_directory_has_nothing_later_than_the_date(berth, twins):
    berth.ok("import", twins[1], "dated:1", env=THEN)
    config, (layer,) = parts(archive_of(berth, "dated:1"))
    assert config["created"] == config["history"][0]["created"] == "2020-09-13T12:26:40Z"
    times = {info.name: info.mtime for info in layer}
    assert times.pop("./old") == DATE - 1000
    assert set(times.values()) == {DATE}
    assert list(times) == sorted(times)
    assert str(twins[1]) not in json.dumps(config)


@pytest.mark.profiles("root")
def test_without_a_date_an_image_is_of_now_and_files_keep_their_times(berth, twins):
    berth.ok("import", twins[0], "now:1")
    config, (layer,) = parts(archive_of(berth, "now:1"))
    created = datetime.datetime.fromisoformat(config["created"].replace("Z", "+00:00"))
    assert abs(created.timestamp() - time.time()) < 60
    assert layer.getmember("./a/deep/file").mtime == (twins[0] / "a/deep/file").stat().st_mtime
    assert config["history"][0]["comment"] == f"Imported from {twins[0]}"


def pieces(data):
    """Cut where nothing of the content would."""
    sizes = itertools.cycle((1, 70_001, 4096, 333, 1_200_000))
    while data:
        size = next(sizes)
        yield data[:size]
        data = data[size:]


@pytest.mark.profiles("root")
def test_a_tar_gives_one_digest_in_whatever_pieces_it_comes(stores, work):
    content = images.layer([images.file("bin/busybox", open("/bin/busybox", "rb").read()),
                            images.file("words", b"".join(b"word %d\n" % n for n in range(90_000)))])
    whole = work / "whole.tar"
    whole.write_bytes(content)
    stores[0].ok("import", whole, "same:1", env=THEN)
    dribbled = stores[1].spawn("import", "-", "same:1", env=THEN, stdin=subprocess.PIPE)
    for piece in pieces(content):
        os.write(dribbled.stdin.fileno(), piece)
        time.sleep(0.001)
    dribbled.stdin.close()
    assert dribbled.wait(60) == 0
    one, other = (archive_of(store, "same:1") for store in stores)
    assert one == other
    _, (layer,) = parts(one)
    assert layer.getmember("words").mtime == images.EPOCH  # a tar stays as it is


SCRIPT = {
    "first": "mkdir -p /new/b /new/a; echo 1 > /new/a/x; ln /new/a/x /new/b/y; rm /home/sailor/owned;"
             " ln -s a /new/c; echo more >> /etc/group; touch -d '2001-01-01 00:00:00' /new/old",
    "second": "ln -s /nowhere /gone; rm /gone; mkdir /new; touch -d '2001-01-01 00:00:00' /new/old;"
              " ln -s a /new/c; mkdir /new/b /new/a; echo 1 > /new/b/y; ln /new/b/y /new/a/x;"
              " echo more >> /etc/group; rm /home/sailor/owned",
}


@pytest.mark.profiles("root", "user")
def test_two_containers_with_the_same_files_are_committed_to_one_digest(stores, push):
    reference = push(images.busybox())
    archives = []
    for berth, (name, script) in zip(stores, SCRIPT.items()):
        berth.ok("run", "--name", name, reference, "sh", "-c", f"{script}; rm -f /root/.ash_history")
        # The words of the history are a container's own: one and the same command for both.
        berth.ok("commit", "--change", 'CMD ["sh"]', "-m", "work", name, "same:1", env=THEN)
        berth.ok("rm", name)
        archives.append(archive_of(berth, "same:1"))
        until_the_next_second()
    (one, layers), (other, others) = map(parts, archives)
    assert headers(layers[-1]) == headers(others[-1])
    assert one["rootfs"] == other["rootfs"]
    assert one["created"] == other["created"] == "2020-09-13T12:26:40Z"
    for config in (one, other):
        assert config["history"].pop()["created"] == "2020-09-13T12:26:40Z"
    assert one == other


@pytest.mark.profiles("root")
def test_the_same_commit_twice_has_one_digest(stores, push):
    reference = push(images.busybox())
    ids = []
    for berth in stores:
        berth.ok("run", "--name", "work", reference, "sh", "-c", "echo 1 > /new; rm -rf /home")
        ids.append(berth.ok("commit", "work", "same:1", env=THEN))
        berth.ok("rm", "work")
        until_the_next_second()
    assert ids[0] == ids[1]
    assert archive_of(stores[0], "same:1") == archive_of(stores[1], "same:1")


@pytest.mark.profiles("root")
def test_save_and_push_give_what_they_gave_before(stores, twins, start_registry):
    digests, archives = set(), []
    for berth, directory in zip(stores, twins):
        server = start_registry()
        target = f"{server.address}/same/app:1"
        berth.ok("import", directory, "same:1", env=THEN)
        berth.ok("tag", "same:1", target)
        berth.ok("push", "-q", target)
        digests.add(server.manifest("same/app", "1")[0])
        archives.append(archive_of(berth, "same:1"))
        layout = berth.directory / "layout"
        berth.ok("save", "--format", "oci", "-o", layout, "same:1")
        archives.append({path.relative_to(layout): path.read_bytes()
                         for path in layout.rglob("*") if path.is_file()})
        until_the_next_second()
    assert len(digests) == 1
    assert archives[0] == archives[2] and archives[1] == archives[3]


@pytest.mark.profiles("root")
@pytest.mark.parametrize("text", ["yesterday", "-1", "99999999999999"])
def test_a_date_that_is_none_is_one_line(berth, twins, listing, text):
    berth.ok("images")
    before = listing()
    line = berth.fail("import", twins[0], "x:1", status=1, env={"SOURCE_DATE_EPOCH": text})
    assert line == f"berth: SOURCE_DATE_EPOCH: expected seconds, got '{text}'"
    assert listing() == before
