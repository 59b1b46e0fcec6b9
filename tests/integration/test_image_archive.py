# SPDX-License-Identifier: Apache-2.0
"""load, save and import, both ways with skopeo."""

import io
import json
import subprocess
import tarfile

import pytest

from support import images


def skopeo(*args):
    return subprocess.run(["skopeo", *args], check=True, capture_output=True, text=True).stdout


def owned(berth, path):
    """The file or tree at `path`, for this test's user to read."""
    subprocess.run(["chmod", "-R", "a+rX", path], check=True)
    return path


@pytest.fixture
def saved(berth, push, work):
    """A reference in the store and its archive."""
    reference = push(images.busybox())
    berth.ok("pull", "--quiet", reference)
    berth.ok("tag", reference, "boat:1")
    berth.ok("save", "-o", work / "boat.tar", "boat:1")
    return work / "boat.tar"


def test_what_was_saved_is_loaded_with_the_same_digest(berth, saved, listing):
    before = berth.ok("images", "--format", "json")
    berth.ok("rmi", "-f", images.busybox().id)
    assert berth.ok("load", "-i", saved) == "Loaded image: boat:1\n"
    assert berth.ok("run", "--rm", "boat:1", "cat", "/home/sailor/owned") == "by 1000\n"
    assert images.busybox().id.split(":")[1][:12] in before


@pytest.mark.profiles("root", "user")
def test_an_archive_goes_through_pipes(berth, saved):
    archive = berth.run("save", "boat:1", text=False).stdout
    assert tarfile.open(fileobj=io.BytesIO(archive)).getnames()[:4] == [
        "oci-layout", "index.json", "manifest.json", "repositories"]
    done = berth.run("load", input=archive, text=False)
    assert done.stdout == b"Loaded image: boat:1\n", done.stderr


@pytest.mark.profiles("root")
@pytest.mark.parametrize("transport", ["docker-archive", "oci-archive"])
def test_skopeo_reads_what_was_saved(berth, saved, transport):
    config = json.loads(skopeo("inspect", "--config", f"{transport}:{saved}:boat:1"))
    assert config["rootfs"]["diff_ids"] == images.busybox().diff_ids


@pytest.mark.profiles("root")
def test_skopeo_reads_an_oci_directory(berth, saved, work):
    berth.ok("save", "--format", "oci", "-o", work / "layout", "boat:1")
    manifest = skopeo("inspect", "--raw", f"oci:{work}/layout:boat:1")
    assert images.digest_of(manifest.encode()) == images.busybox().digest
    line = berth.fail("save", "--format", "oci", "-o", work / "layout", "boat:1", status=1)
    assert line == f"berth: cannot save boat:1: write '{work}/layout': it already exists"


@pytest.mark.parametrize("target", ["docker-archive:{}/b.tar:sub:2", "oci-archive:{}/b.tar:sub:2",
                                    "oci:{}/b.tar:sub:2"])
def test_what_skopeo_wrote_is_loaded(berth, saved, work, target):
    skopeo("copy", "-q", f"oci-archive:{saved}:boat:1", target.format(work))
    assert berth.ok("load", "-i", owned(berth, work / "b.tar")) == "Loaded image: sub:2\n"
    assert berth.ok("run", "--rm", "sub:2", "echo", "loaded") == "loaded\n"


@pytest.mark.profiles("root")
@pytest.mark.parametrize("packer", ["gzip", "xz", "zstd", "bzip2"])
def test_a_packed_archive_is_loaded(berth, saved, packer):
    subprocess.run([packer, "-k", "-q", saved], check=True)
    packed = next(path for path in saved.parent.iterdir() if path.name.startswith("boat.tar."))
    assert berth.ok("load", "-i", packed) == "Loaded image: boat:1\n"


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("name,magic", [("lrzip", b"LRZI\0\6"), ("grzip", b"GRZipII\0\2\4:)"),
                                        ("lzop", b"\x89LZO\0\r\n\x1a\n")])
def test_no_program_is_started_for_an_archive(berth, work, listing, name, magic):
    (work / name).write_text(f"#!/bin/sh\ntouch {work}/started\n")
    (work / name).chmod(0o755)
    archive = work / "packed"
    archive.write_bytes(magic + bytes(4096))
    archive.chmod(0o644)
    path = {"PATH": f"{work}:/usr/bin:/bin"}
    berth.ok("images")
    before = listing()
    assert berth.fail("load", "-i", archive, status=1, env=path) == (
        f"berth: cannot load '{archive}': read the archive: it is not a tar archive")
    assert berth.fail("import", archive, "packed:1", status=1, env=path).startswith(
        f"berth: cannot import '{archive}': ")
    assert not (work / "started").exists()
    assert listing() == before


@pytest.mark.profiles("root")
def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_refused(berth, work, listing):
    info = tarfile.TarInfo("blobs/sha256/zeros")
    info.size = 1300 << 20
    bomb = work / "bomb.tar.zst"
    with bomb.open("wb") as target:
        packer = subprocess.Popen(["zstd", "-1", "-q"], stdin=subprocess.PIPE, stdout=target)
        packer.stdin.write(info.tobuf())
        for _ in range(1300):
            packer.stdin.write(bytes(1 << 20))
        packer.stdin.write(bytes(1024))
        packer.stdin.close()
        assert packer.wait() == 0
    berth.ok("images")
    before = listing()
    for words in (["load", "-i", bomb], ["import", bomb, "bomb:1"]):
        assert berth.fail(*words, status=1) == (
            f"berth: cannot {words[0]} '{bomb}': read the archive: "
            "it unpacks to more than 1000 times its size")
        assert listing() == before


def repack(saved, change):
    """The archive with `change(name, data)` applied to each file; None leaves one out."""
    with tarfile.open(saved) as source:
        members = [(info, source.extractfile(info).read()) for info in source if info.isfile()]
    changed = saved.with_name("changed.tar")
    with tarfile.open(changed, "w") as target:
        for info, data in members:
            data = change(info.name, data)
            if data is not None:
                info.size = len(data)
                target.addfile(info, io.BytesIO(data))
    changed.chmod(0o644)
    return changed


@pytest.mark.profiles("root", "user")
def test_a_damaged_archive_is_refused_and_leaves_the_store_as_it_was(berth, saved, listing):
    berth.ok("rmi", "-f", images.busybox().id)
    before = listing()
    layer = "blobs/sha256/" + images.busybox().layer_digests[0].split(":")[1]

    flipped = repack(saved, lambda name, data: data[:-1] + b"!" if name == layer else data)
    with tarfile.open(flipped) as archive:
        data = archive.extractfile(layer).read()
    assert berth.fail("load", "-i", flipped, status=1) == (
        f"berth: cannot load '{flipped}': read the archive: '{layer}' has digest "
        f"{images.digest_of(data)} and {len(data)} bytes instead of {len(data)}")
    assert listing() == before

    without = repack(saved, lambda name, data: None if name == layer else data)
    assert berth.fail("load", "-i", without, status=1) == (
        f"berth: cannot load '{without}': read the archive: it has no '{layer}'")
    assert listing() == before

    nothing = repack(saved, lambda name, data: data if name == "repositories" else None)
    assert berth.fail("load", "-i", nothing, status=1) == (
        f"berth: cannot load '{nothing}': read the archive: it is neither an OCI layout nor a "
        "docker-archive; try: berth import, for the tar of a root file system")
    assert listing() == before


@pytest.fixture
def rootfs(work, profile):
    path = work / "rootfs"
    (path / "bin").mkdir(parents=True)
    (path / "bin/busybox").write_bytes(open("/bin/busybox", "rb").read())
    (path / "bin/busybox").chmod(0o755)
    (path / "bin/sh").symlink_to("busybox")
    (path / "twin").hardlink_to(path / "bin/busybox")
    subprocess.run(["chown", "-R", f"{profile.uid}:{profile.gid}", path], check=True)
    return path


def test_a_directory_is_imported(berth, rootfs):
    out = berth.ok("import", "--change", 'CMD ["/bin/sh", "-c", "echo $GREETING"]',
                   "--change", "ENV GREETING='hello there'", "-m", "made by hand", rootfs, "mine:3")
    assert out.startswith("sha256:") and len(out) == 72
    assert berth.ok("run", "--rm", "mine:3") == "hello there\n"
    assert berth.ok("run", "--rm", "mine:3", "/bin/busybox", "stat", "-c", "%h", "/twin") == "2\n"
    assert "made by hand" in berth.ok("history", "mine:3")


@pytest.mark.parametrize("packer", [None, "gzip", "xz", "zstd"])
def test_a_tar_is_imported(berth, rootfs, work, packer):
    tar = subprocess.run(["tar", "-C", rootfs, "-c", "."], check=True, capture_output=True).stdout
    if packer:
        tar = subprocess.run([packer, "-c"], input=tar, check=True, capture_output=True).stdout
    done = berth.run("import", "-", "piped", input=tar, text=False)
    assert done.returncode == 0, done.stderr
    assert berth.ok("run", "--rm", "piped", "/bin/busybox", "echo", "in") == "in\n"


@pytest.mark.profiles("root", "user")
def test_a_wrong_import_is_refused_and_leaves_the_store_as_it_was(berth, rootfs, work, listing):
    berth.ok("images")
    before = listing()
    assert berth.fail("import", "--change", "RUN rm -rf /", rootfs, "x", status=1) == (
        f"berth: cannot import '{rootfs}': read change 'RUN rm -rf /': expected CMD, ENTRYPOINT, ENV, EXPOSE, "
        "LABEL, ONBUILD, STOPSIGNAL, USER, VOLUME or WORKDIR")
    assert berth.fail("import", work / "none", "x", status=1) == (
        f"berth: cannot import '{work}/none': open '{work}/none': No such file or directory")
    text = work / "text"
    text.write_text("this is no archive\n" * 100)
    text.chmod(0o644)
    line = berth.fail("import", text, "x", status=1)
    assert line.startswith(f"berth: cannot import '{text}': cannot unpack layer 'sha256:")
    assert line.endswith("tar: a header has a wrong checksum")
    assert listing() == before
