# SPDX-License-Identifier: Apache-2.0
"""Files between a container and the host: cp, export."""

import io
import os
import stat
import tarfile
import time

import pytest

SHELL = ("sh", "-c")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture(params=["running", "stopped", "created"])
def container(request, berth, image):
    """Is called "hold", in one of the three states."""
    if request.param == "running":
        berth.ok("run", "-d", "--name", "hold", image, "sleep", "600")
    elif request.param == "stopped":
        berth.ok("run", "-d", "--name", "hold", image, "true")
        berth.ok("wait", "hold")
    else:
        berth.ok("create", "--name", "hold", image, "true")
    yield "hold"
    berth.ok("rm", "-f", "hold")


def put(work, profile, name, text="tea"):
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for each in (path, *path.parents):
        if each == work:
            break
        os.chown(each, profile.uid, profile.gid)
    return path


def members(berth, *args):
    done = berth.run(*args, text=False)
    assert done.returncode == 0, done.stderr
    return {m.name: m for m in tarfile.open(fileobj=io.BytesIO(done.stdout)).getmembers()}


def tar_of(*entries):
    """Bytes of a tar: (name, content) or a TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                tar.addfile(info, io.BytesIO(entry[1]))
    return out.getvalue()


# ---- cp -----------------------------------------------------------------------------------------

def test_cp_brings_a_file_in_and_out_again(berth, container, work, profile):
    source = put(work, profile, "cargo")
    os.chmod(source, 0o741)
    assert berth.ok("cp", source, f"{container}:/etc/goods") == ""
    assert berth.ok("cp", f"{container}:/etc/goods", work / "berth/back") == ""
    back = work / "berth/back"
    assert back.read_text() == "tea"
    assert back.stat().st_mode & 0o7777 == 0o741
    assert back.stat().st_uid == profile.uid


def test_cp_makes_the_files_of_a_container_root_s(berth, container, work, profile):
    os.chown(put(work, profile, "cargo"), profile.uid, profile.gid)
    berth.ok("cp", work / "cargo", f"{container}:/cargo")
    member = members(berth, "cp", f"{container}:/cargo", "-")["cargo"]
    assert (member.uid, member.gid) == (0, 0)


def test_cp_has_docker_s_table_of_sources_and_destinations(berth, container, work, profile):
    put(work, profile, "tree/leaf")
    put(work, profile, "file", "coffee")
    out = work / "berth"  # the user's own

    berth.ok("cp", work / "tree", f"{container}:/new")  # the destination is made
    berth.ok("cp", work / "tree", f"{container}:/etc")  # into a directory that is there
    berth.ok("cp", f"{work}/tree/.", f"{container}:/etc")  # what is in it
    berth.ok("cp", work / "file", f"{container}:/etc/")
    berth.ok("cp", work / "file", f"{container}:/etc/leaf")  # onto a file
    for path, text in (("/new/leaf", "tea"), ("/etc/tree/leaf", "tea"), ("/etc/leaf", "coffee"),
                       ("/etc/file", "coffee")):
        berth.ok("cp", f"{container}:{path}", out / "one")
        assert (out / "one").read_text() == text, path

    berth.ok("cp", f"{container}:/new", out / "first")
    berth.ok("cp", f"{container}:/new", out / "first")
    berth.ok("cp", f"{container}:/new/.", out / "third")
    names = sorted(str(p.relative_to(out)) for p in out.rglob("leaf"))
    assert [n for n in names if not n.startswith(("root", "state"))] == [
        "first/leaf", "first/new/leaf", "third/leaf"]

    assert "cannot copy directory" in berth.fail("cp", work / "tree", f"{container}:/etc/file",
                                                 status=1)
    assert berth.fail("cp", work / "file", f"{container}:/none/", status=1) == \
        f"berth: no such directory: {container}:/none/"
    assert berth.fail("cp", work / "file", f"{container}:/none/below", status=1) == \
        f"berth: no such path: {container}:/none/below"
    assert berth.fail("cp", f"{container}:/none", out, status=1) == \
        f"berth: no such path: {container}:/none"
    assert berth.fail("cp", f"{work}/file/.", f"{container}:/etc", status=1) == \
        f"berth: '{work}/file/.' is not a directory"
    berth.ok("cp", work / "file", f"{container}:/etc/tree/plain")
    (work / "tree/plain").mkdir()
    assert berth.fail("cp", work / "tree", f"{container}:/etc", status=1).startswith(
        "berth: cannot overwrite non-directory 'plain' with directory")


def test_cp_reads_and_writes_tars(berth, container, work):
    link = tarfile.TarInfo("d/l")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar = tar_of(("d/f", b"tea"), link)
    berth.ok("cp", "-", f"{container}:/etc", input=tar, text=False)
    found = members(berth, "cp", f"{container}:/etc/d", "-")
    assert set(found) == {"d", "d/f", "d/l"}
    assert found["d/l"].linkname == "/etc/passwd"
    done = berth.run("cp", "-", f"{container}:/etc/passwd", input=tar, text=False)
    assert (done.returncode, done.stderr.decode()) == (
        1, f"berth: destination '{container}:/etc/passwd' must be a directory\n")
    done = berth.run("cp", "-", f"{container}:/etc", input=tar_of(("../x", b"")), text=False)
    assert (done.returncode, done.stderr.decode()) == (
        1, "berth: entry '../x': its path goes up with '..'\n")


def test_cp_follows_the_link_that_is_copied_with_L_alone(berth, container, work, profile):
    put(work, profile, "file")
    (work / "link").symlink_to("file")
    berth.ok("cp", work / "link", f"{container}:/kept")
    berth.ok("cp", "-L", work / "link", f"{container}:/followed")
    assert members(berth, "cp", f"{container}:/kept", "-")["kept"].issym()
    assert members(berth, "cp", f"{container}:/followed", "-")["followed"].isreg()


def test_cp_sees_the_volumes_of_the_container(berth, image, work, profile):
    put(work, profile, "hold/cargo")
    volume = ("-v", f"{work}/hold:/hold")
    berth.ok("run", "-d", "--name", "live", *volume, image, "sleep", "600")
    berth.ok("create", "--name", "idle", *volume, image, "true")
    for name in ("live", "idle"):
        assert {"hold", "hold/cargo"} <= set(members(berth, "cp", f"{name}:/hold", "-"))
        berth.ok("cp", work / "hold/cargo", f"{name}:/hold/{name}")
        assert (work / "hold" / name).read_text() == "tea"
    berth.ok("rm", "-f", "live", "idle")


def test_cp_does_not_write_where_the_container_may_not(berth, image, work, profile):
    put(work, profile, "cargo")
    berth.ok("run", "-d", "--read-only", "--name", "live", image, "sleep", "600")
    berth.ok("create", "--read-only", "--name", "idle", image, "true")
    for name in ("live", "idle"):
        assert berth.fail("cp", work / "cargo", f"{name}:/etc", status=1) == \
            "berth: container rootfs is marked read-only"
    berth.ok("rm", "-f", "live", "idle")


def test_cp_names_what_is_no_container(berth, work, profile, image):
    put(work, profile, "cargo")
    assert berth.fail("cp", work / "cargo", "nobody:/", status=1).startswith(
        "berth: no such container: nobody")
    assert berth.fail("cp", work / "cargo", work / "other", status=1).startswith(
        "berth: must specify at least one container source")
    assert berth.fail("cp", "a:/x", "b:/y", status=1).startswith(
        "berth: copying between containers is not supported")


# ---- a container that means harm ----------------------------------------------------------------

@pytest.fixture
def secret(work, profile):
    """A file outside of the container that its links point at."""
    path = put(work, profile, "secret/word", "the secret word")
    return path


def test_links_of_a_container_lead_nowhere_outside(berth, container, work, profile, secret):
    """By absolute targets, by too many "..", on the way and at the end of a path."""
    up = "../" * 40
    links = []
    for name, target in (("end", str(secret)), ("up", up + str(secret)[1:]),
                         ("way", str(secret.parent)), ("upway", up + str(secret.parent)[1:])):
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, target
        links.append(link)
    berth.ok("cp", "-", f"{container}:/etc", input=tar_of(*links), text=False)
    out = work / "berth"
    for path in ("end", "up", "way/word", "upway/word"):
        assert "no such path" in berth.fail("cp", "-L", f"{container}:/etc/{path}", out / "got",
                                            status=1), path
    evil = put(work, profile, "evil", "overwritten")
    for path in ("end", "up", "way/word", "upway/word"):
        berth.run("cp", evil, f"{container}:/etc/{path}")
        assert secret.read_text() == "the secret word", path
    tar = tar_of(("way/word", b"overwritten"), ("end", b"overwritten"))
    berth.run("cp", "-", f"{container}:/etc", input=tar, text=False)
    assert secret.read_text() == "the secret word"
    assert not (out / "got").exists()


def test_a_container_that_swaps_a_directory_and_a_link_shows_nothing_of_the_host(
        berth, image, work, profile, secret):
    """The classic race, in both directions, while the container swaps as fast as it can."""
    swap = (f"mkdir -p /a /keep{secret.parent}; echo inside > /a/word; ln -s {secret.parent} /b; "
            "while :; do mv /a /c; mv /b /a; mv /a /b; mv /c /a; done")
    berth.ok("run", "-d", "--name", "racer", image, *SHELL, swap)
    evil = put(work, profile, "evil", "overwritten")
    out = work / "berth"
    end = time.monotonic() + 6
    tries = 0
    while time.monotonic() < end:
        tries += 1
        berth.run("cp", "racer:/a/word", out / "got")
        if (out / "got").exists():
            assert (out / "got").read_text() in ("inside\n", "overwritten")
            (out / "got").unlink()
        done = berth.run("cp", "racer:/a", "-", text=False)
        assert b"the secret word" not in done.stdout
        berth.run("cp", evil, "racer:/a/word2")
        berth.run("cp", evil, "racer:/a/word")
        berth.run("cp", "-", "racer:/", input=tar_of(("a/word", b"inside\n")), text=False)
        assert secret.read_text() == "the secret word"
        assert not (secret.parent / "word2").exists()
    assert tries > 3
    berth.ok("rm", "-f", "racer")


@pytest.mark.profiles("root")
def test_set_id_bits_and_devices_stay_in_the_container(berth, container, work):
    out = work / "berth"
    tool = tarfile.TarInfo("t/tool")
    tool.mode, tool.size = 0o4755, 0
    disk = tarfile.TarInfo("t/disk")
    disk.type, disk.mode, disk.devmajor, disk.devminor = tarfile.BLKTYPE, 0o666, 8, 0
    berth.ok("cp", "-", f"{container}:/", input=tar_of(tool, disk), text=False)
    inside = members(berth, "cp", f"{container}:/t", "-")
    assert inside["t/tool"].mode == 0o4755 and inside["t/disk"].isblk()
    done = berth.run("cp", f"{container}:/t", out / "t")
    assert done.returncode == 0
    assert (out / "t/tool").stat().st_mode & 0o7777 == 0o755
    assert not (out / "t/disk").exists()
    assert "set-id bits of 't/tool', ignoring" in done.stderr
    assert "devices of 't/disk', ignoring" in done.stderr


@pytest.mark.profiles("root")
def test_other_names_of_a_device_are_left_out_with_it(berth, container, work):
    disk, again = tarfile.TarInfo("t/disk"), tarfile.TarInfo("t/again")
    disk.type, disk.devmajor, disk.devminor = tarfile.CHRTYPE, 1, 3
    again.type, again.linkname = tarfile.LNKTYPE, "t/disk"
    berth.ok("cp", "-", f"{container}:/", input=tar_of(disk, again, ("t/z", b"tea")), text=False)
    done = berth.run("cp", f"{container}:/t", work / "berth/t")
    assert (done.returncode, os.listdir(work / "berth/t")) == (0, ["z"]), done.stderr
    assert "and 1 more, ignoring" in done.stderr


def test_a_device_or_fifo_is_not_replaced(berth, image, work, profile):
    """As root `cp web:/x /dev/null` would leave the machine without it."""
    berth.ok("create", "--name", "hold", image, "true")
    fifo, null = work / "berth/fifo", work / "berth/null"
    os.mkfifo(fifo)
    null.symlink_to("/dev/null")
    for path in (fifo, null, "/dev/null"):
        assert berth.fail("cp", "hold:/bin/busybox", path, status=1) == \
            f"berth: destination '{path}' must be a directory or a regular file"
    for done in (berth.run("export", "-o", null, "hold"), berth.run("save", "-o", null, image)):
        assert f"invalid output path: '{null}' must be a regular file: got a device" in done.stderr
    assert stat.S_ISFIFO(fifo.stat().st_mode) and stat.S_ISCHR(null.stat().st_mode)
    berth.ok("rm", "hold")


def test_a_tar_writes_to_no_read_only_root_by_a_link_of_a_volume(berth, image, work, profile):
    put(work, profile, "hold/cargo")
    (work / "hold/way").symlink_to("/etc")
    volume = ("--read-only", "-v", f"{work}/hold:/hold")
    berth.ok("run", "-d", "--name", "live", *volume, image, "sleep", "600")
    berth.ok("create", "--name", "idle", *volume, image, "true")
    for name in ("live", "idle"):
        done = berth.run("cp", "-", f"{name}:/hold", input=tar_of(("way/made", b"")), text=False)
        assert done.returncode == 1 and b"Read-only file system" in done.stderr, done.stderr
        berth.ok("cp", "-", f"{name}:/hold", input=tar_of((f"by-{name}", b"")), text=False)
    assert "etc/made" not in members(berth, "export", "idle")
    berth.ok("rm", "-f", "live", "idle")


def test_a_container_of_any_depth_is_removed(berth, image):
    """From the inside out: each turn puts what there is below a chain of its own."""
    berth.ok("run", "--name", "deep", image, *SHELL, "mkdir /top; for n in 1 2 3; do "
             "mkdir /new; cd /new; i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done; "
             "mv /top ./top; cd /; mv /new /top; done; echo made", timeout=120)
    berth.ok("rm", "deep")
    assert not list((berth.root / "containers").iterdir())


# ---- export -------------------------------------------------------------------------------------

def test_export_writes_the_files_without_volumes_and_mounts(berth, image, work, profile):
    put(work, profile, "hold/cargo")
    for name, verb in (("live", ("run", "-d")), ("idle", ("run",))):
        wait = "; sleep 600" if name == "live" else ""
        berth.ok(*verb, "--name", name, "-v", f"{work}/hold:/hold", image, *SHELL,
                 f"echo tea > /etc/made; rm /bin/vi 2>/dev/null; mkdir /ready{wait}")
    end = time.monotonic() + 10
    while "ready" not in (found := members(berth, "export", "live")):
        assert time.monotonic() < end
    for each in (found, members(berth, "export", "idle")):
        assert {"bin", "bin/busybox", "etc/made", "hold"} <= set(each)
        assert "hold/cargo" not in each
        assert not [n for n in each if n.startswith(("proc/", "sys/", "/", "./"))]
        assert each["etc/hosts"].size == 0  # the container's own is mounted over it
    out = work / "berth/all.tar"
    assert berth.ok("export", "-o", out, "idle") == ""
    assert "etc/made" in tarfile.open(out).getnames()
    berth.ok("rm", "-f", "live", "idle")


def test_an_export_that_fails_leaves_what_was_there(berth, image, work):
    berth.ok("run", "--name", "deep", image, *SHELL,
             "i=0; while [ $i -lt 450 ]; do mkdir d; cd d; i=$((i+1)); done")
    out = work / "berth/all.tar"
    out.write_text("the last one")
    before = sorted(os.listdir(work / "berth"))
    assert "deeper than 400 directories" in berth.fail("export", "-o", out, "deep", status=1)
    assert "deeper than 400 directories" in berth.fail("export", "-o", f"{out}2", "deep", status=1)
    assert sorted(os.listdir(work / "berth")) == before
    assert out.read_text() == "the last one"
    berth.ok("rm", "deep")


def test_export_is_not_for_a_terminal(berth, image):
    berth.ok("create", "--name", "idle", image, "true")
    terminal = berth.terminal("export", "idle")
    terminal.expect("cannot write an archive to a terminal")
    assert terminal.wait() == 1
    berth.ok("rm", "idle")


def test_a_copy_leaves_the_container_as_startable_as_it_was(berth, image, work, profile):
    """Nothing stays mounted, and what was brought in is there."""
    put(work, profile, "cargo")
    berth.ok("create", "--name", "tug", image, "cat", "/etc/cargo")
    berth.ok("cp", work / "cargo", "tug:/etc")
    members(berth, "export", "tug")
    assert berth.ok("start", "-a", "tug") == "tea"
    berth.ok("rm", "tug")


@pytest.mark.profiles("root", "user")
def test_a_device_is_not_copied_out_of_a_container_and_that_is_an_error(berth, image, work):
    berth.ok("run", "-d", "--name", "hold", image, "sleep", "600")
    assert berth.fail("cp", "hold:/dev/null", str(work / "null"), status=1) == (
        "berth: 'hold:/dev/null' is a device, which cp does not create on the host; "
        "try: berth cp hold:/dev/null - for a tar that has it")
    assert not (work / "null").exists()
    berth.ok("rm", "-f", "hold")
