# SPDX-License-Identifier: Apache-2.0
"""Layers that are EROFS images (--layer-format erofs): a container sees what it sees of directories,
and nothing is left of them on the host. Root's are mounted by the kernel, everybody else's through
FUSE."""

import contextlib
import hashlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

import pytest
from support import images, rich_layer, tree_image
from support.berth import Berth
from support.processes import kill_each, matching

USERS = pytest.mark.profiles("user", "single_id")
EROFS = ("--layer-format", "erofs")


@pytest.fixture
def disk(profile):
    """A store on a disk: what lies in memory is mounted through a loop device."""
    with tempfile.TemporaryDirectory(prefix="berth-tests-layers-", dir="/var/tmp") as path:
        os.chmod(path, 0o755)
        yield profile.own(pathlib.Path(path) / "own")


@pytest.fixture
def on_disk(programs, profile, disk):
    command = Berth(programs, profile, disk / "berth")
    yield command
    command.close()


def layer_files(berth):
    return sorted(path.name for path in berth.root.glob("layers/*/fs*"))


def servers():
    """The processes that serve images."""
    return sorted(matching(rb"^[^\0]*/berth-erofs\0"))


def traces(berth):
    """What the host shows of the images of a store: mounts, loop devices with one behind them, and
    servers."""
    mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    loops = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it goes at this moment
            loops.append(path.read_text(encoding="utf-8"))
    return [line for line in mounts if line.split()[2] in ("erofs", "fuse")] + [
        line for line in loops if str(berth.root) in line] + servers()


def nothing_left(berth, seconds=5):
    deadline = time.monotonic() + seconds
    while traces(berth) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert traces(berth) == []
    return True


@pytest.mark.parametrize("store", ["memory", "disk"])
def test_a_container_sees_what_it_sees_of_directories(berth, on_disk, push, store):
    reference = push(images.build(tree_image.layers()))
    plain = berth.ok("run", "--rm", reference, "sh", "-c", tree_image.LOOK)
    assert "tree/gone/new" in plain or "./gone/new" in plain
    berth.ok("rmi", "-f", reference)
    other = berth if store == "memory" else on_disk
    other.ok(*EROFS, "pull", "--quiet", reference)
    assert set(layer_files(other)) == {"fs.erofs"}
    assert other.ok("run", "--rm", reference, "sh", "-c", tree_image.LOOK) == plain
    assert nothing_left(other)
    other.ok("rmi", reference)
    assert layer_files(other) == []


def test_images_of_the_store_are_whole_file_systems(berth, push):
    berth.ok(*EROFS, "pull", "--quiet", push(images.build(tree_image.layers())))
    assert layer_files(berth) == ["fs.erofs"] * 3
    for path in berth.root.glob("layers/*/fs.erofs"):
        subprocess.run(["fsck.erofs", path], check=True, capture_output=True)


def test_a_container_writes_and_is_committed_above_images(berth, push):
    reference = push(images.build(tree_image.layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    berth.ok("run", "--name", "hold", reference, "sh", "-c",
             "echo more >> /tree/owned; rm /tree/link; rm -r /tree/gone; chmod 600 /tree/size1")
    assert set(berth.ok("diff", "hold").splitlines()) >= {
        "C /tree/owned", "D /tree/link", "D /tree/gone", "C /tree/size1"}
    berth.ok(*EROFS, "commit", "hold", "after:1")
    assert layer_files(berth) == ["fs.erofs"] * 4
    assert berth.ok("run", "--rm", "after:1", "sh", "-c",
                    "cat /tree/owned; ls /tree | grep -c -e link -e gone; stat -c %a /tree/size1") == (
        "omore\n0\n600\n")
    berth.ok("cp", "hold:/tree/merged/low", "-", text=False)
    berth.ok("rm", "hold")
    assert nothing_left(berth)


def test_layers_that_are_there_are_used_as_they_are(berth, push):
    base = images.busybox_layer()
    first = push(images.build([base, images.layer([images.file("one", b"1\n")])]))
    second = push(images.build([base, images.layer([images.file("two", b"2\n")])]))
    berth.ok("pull", "--quiet", first)
    berth.ok(*EROFS, "pull", "--quiet", second)
    assert layer_files(berth) == ["fs", "fs", "fs.erofs"]
    assert berth.ok("run", "--rm", second, "cat", "/two") == "2\n"
    assert berth.ok("run", "--rm", first, "cat", "/one") == "1\n"


@pytest.mark.profiles("root")
def test_who_is_killed_leaves_no_mount_and_no_device(berth, push):
    reference = push(images.build(tree_image.layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    berth.ok("run", "-d", "--name", "hold", reference, "sleep", "600")
    pid = int(berth.ok("inspect", "--format", "{{.State.Pid}}", "hold"))
    assert traces(berth)  # a loop device, for the tests' store lies in memory
    os.kill(pid, signal.SIGKILL)
    berth.run("wait", "hold")
    assert nothing_left(berth)
    berth.ok("start", "hold")
    berth.ok("rm", "-f", "hold")
    assert nothing_left(berth)


def test_the_format_may_come_from_the_environment(berth, push):
    reference = push(images.build(tree_image.layers()))
    berth.run("pull", "--quiet", reference, env={"BERTH_LAYER_FORMAT": "erofs"})
    assert set(layer_files(berth)) == {"fs.erofs"}
    line = berth.fail("pull", reference, env={"BERTH_LAYER_FORMAT": "erosf"}, status=1)
    assert line == "berth: --layer-format: expected one of directory, erofs, got 'erosf'"
    line = berth.fail("--layer-format", "erosf", "pull", reference, status=125)
    assert "expected 'directory' or 'erofs'" in line


@pytest.mark.profiles("root")
def test_an_image_that_others_could_have_written_is_not_mounted(berth, push):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [image] = berth.root.glob("layers/*/fs.erofs")
    image.chmod(0o622)
    assert "it is writable by others" in berth.fail("run", "--rm", reference, "true")
    image.chmod(0o600)
    os.chown(image, 12345, 0)
    assert "'" in berth.fail("run", "--rm", reference, "true")
    os.chown(image, 0, 0)
    berth.ok("run", "--rm", reference, "true")


@pytest.mark.parametrize("harm", ["superblock", "cut", "empty", "gone"])
def test_a_damaged_image_is_one_line_and_no_crash(berth, push, harm):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [image] = berth.root.glob("layers/*/fs.erofs")
    if harm == "superblock":
        with image.open("r+b") as file:
            file.seek(1024)
            file.write(bytes(64))
    elif harm == "gone":
        image.unlink()
    else:
        os.truncate(image, 0 if harm == "empty" else 2000)
    line = berth.fail("run", "--rm", reference, "true")
    assert "fs.erofs" in line, line
    assert nothing_left(berth)


@pytest.mark.profiles("root")
def test_a_mount_of_a_layer_is_not_seen_on_the_host(on_disk, push):
    reference = push(images.build(tree_image.layers()))
    on_disk.ok(*EROFS, "pull", "--quiet", reference)
    on_disk.ok("run", "-d", "--name", "hold", reference, "sleep", "600")
    assert traces(on_disk) == []
    assert " erofs " not in on_disk.ok("exec", "hold", "cat", "/proc/mounts")
    on_disk.ok("rm", "-f", "hold")
    shutil.rmtree(on_disk.root / "tmp", ignore_errors=True)


# ---- through FUSE -------------------------------------------------------------------------------

def held(berth, reference, name="hold"):
    """A container that runs, and the servers of its layers."""
    before = set(servers())
    berth.ok("run", "-d", "--name", name, reference, "sleep", "600")
    return sorted(set(servers()) - before)


def test_the_image_is_the_same_whoever_writes_it(programs, accounts, work, push):
    reference = push(images.build(tree_image.layers()))
    sums = {}
    for kind in ("root", "user", "single_id"):
        berth = Berth(programs, accounts[kind], work / kind)
        berth.ok(*EROFS, "pull", "--quiet", reference)
        sums[kind] = {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
                      for path in berth.root.glob("layers/*/fs.erofs")}
        berth.close()
    assert len(sums["root"]) == 3
    assert sums["user"] == sums["single_id"] == sums["root"]


def exported(berth, reference):
    """{path: all that a tar says of it}"""
    berth.ok("create", "--name", "hold", reference, "none")
    tar = berth.ok("export", "hold", text=False)
    berth.ok("rm", "hold")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(tar), errors="surrogateescape") as archive:
        for member in archive:
            content = archive.extractfile(member).read() if member.isreg() else b""
            found[member.name] = (
                member.type, oct(member.mode), member.uid, member.gid, member.mtime, member.linkname,
                hashlib.sha256(content).hexdigest(),
                {key: value for key, value in member.pax_headers.items() if "xattr" in key})
    return found


@USERS
def test_all_that_a_layer_may_hold_is_as_in_directories(programs, accounts, berth, push, profile, work):
    reference = push(images.build([rich_layer.lower(rich_layer.ALL), rich_layer.upper()]))
    # The directories of a user with subordinate ids cannot have all owners: root's can.
    single = profile.kind == "single_id"
    other = Berth(programs, profile if single else accounts["root"], work / "directories")
    other.ok("pull", "--quiet", reference)
    plain = exported(other, reference)
    other.close()
    berth.ok(*EROFS, "pull", "--quiet", reference)
    assert set(layer_files(berth)) == {"fs.erofs"}
    ours = exported(berth, reference)
    # What such a user cannot make in a directory is in an image all the same.
    devices = {path for path, facts in ours.items() if facts[0] in (tarfile.CHRTYPE, tarfile.BLKTYPE)}
    devices.add("links/b/null")  # the second name of one
    assert ours.keys() - plain.keys() == (devices if single else set())
    unlike = {path: (ours[path], plain[path]) for path in plain if ours[path] != plain[path]}
    for path, (mine, theirs) in list(unlike.items()):
        nobody = not single and theirs[2] > 65535 and mine[2:4] == (65534, 65534)
        # Of a directory that no layer describes, or the engine has made.
        made_now = mine[:4] + mine[5:] == theirs[:4] + theirs[5:] and theirs[4] > time.time() - 600
        if nobody or made_now:
            del unlike[path]
    assert unlike == {}, unlike
    assert nothing_left(berth)


@USERS
def test_everything_that_reads_layers_reads_images(berth, push, work):
    reference = push(images.build(tree_image.layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    env = {"BERTH_LAYER_FORMAT": "erofs"}
    berth.ok("run", "-d", "--name", "hold", reference, "sleep", "600")
    assert berth.ok("exec", "hold", "cat", "/tree/owned") == "o"
    assert berth.ok("exec", "hold", "sh", "-c",
                    "rm /tree/many/file-0001; echo x >> /tree/owned; cat /tree/owned") == "ox\n"
    assert set(berth.ok("diff", "hold").splitlines()) == {
        "C /tree", "C /tree/many", "D /tree/many/file-0001", "C /tree/owned"}
    with tarfile.open(fileobj=io.BytesIO(berth.ok("cp", "hold:/tree/merged", "-", text=False))) as tar:
        assert sorted(tar.getnames()) == ["merged", "merged/high", "merged/low"]
    berth.ok("rm", "-f", "hold")
    berth.ok("create", "--name", "made", reference, "cat", "/tree/merged/low")
    assert berth.ok("start", "-a", "made") == "low"
    berth.ok("rm", "made")
    assert berth.ok("run", "--rm", "--mount", f"type=image,src={reference},dst=/data", reference,
                    "cat", "/data/tree/merged/low") == "low"
    (work / "Containerfile").write_text(f"FROM {reference}\nCOPY Containerfile /copied\n")
    berth.ok("save", "-o", "image.tar", reference)
    assert (berth.directory / "image.tar").stat().st_size > 1 << 20
    berth.ok("save", "--format", "sqsh", "-o", "image.sqsh", reference)
    assert berth.ok("run", "--rm", "./image.sqsh", "cat", "/tree/merged/high") == "high"
    assert berth.run("system", "check", env=env).returncode == 0
    berth.ok("rmi", reference)
    berth.ok("system", "prune", "--force")
    assert layer_files(berth) == []
    assert nothing_left(berth)


@USERS
@pytest.mark.parametrize("victim", ["container", "engine", "server"])
def test_who_is_killed_leaves_no_server(berth, push, victim):
    reference = push(images.build(tree_image.layers()))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    process = berth.spawn("run", "--rm", "--name", "hold", reference, "sleep", "600")
    deadline = time.monotonic() + 20
    while "true" not in berth.run("inspect", "--format", "{{.State.Running}}", "hold").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int(berth.ok("inspect", "--format", "{{.State.Pid}}", "hold"))
    assert len(servers()) == 3
    if victim == "server":
        kill_each(servers())
        assert berth.run("exec", "hold", "cat", "/tree/owned").returncode != 0
        # sleep may have ended by itself: a page of its program that is read again is gone.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    else:
        os.kill(pid if victim == "container" else process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    assert nothing_left(berth)
    berth.run("rm", "-f", "hold")
    assert berth.ok("run", "--rm", reference, "cat", "/tree/merged/low") == "low"
    assert nothing_left(berth)


@USERS
def test_a_server_has_no_rights_and_nothing_but_its_image(berth, push):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [server] = held(berth, reference)
    status = dict(line.split(":", 1) for line in
                  pathlib.Path(f"/proc/{server}/status").read_text(encoding="utf-8").splitlines())
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"
    files = {os.readlink(path) for path in pathlib.Path(f"/proc/{server}/fd").iterdir()}
    others = {name for name in files
              if not name.startswith(("/dev/null", "/dev/fuse", "/memfd:", "pipe:"))}
    assert [name.rpartition("/")[2] for name in others] == ["fs.erofs"]
    berth.ok("rm", "-f", "hold")
    assert nothing_left(berth)


WITHOUT_FUSE = """
place=$(mktemp -d) && mount -t tmpfs tmpfs $place && cd $place &&
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty . && mkdir shm pts &&
ln -s /proc/self/fd fd && cd / && mount --move $place /dev && rmdir $place && exec "$@"
"""


@USERS
def test_a_machine_without_fuse_is_one_line(berth, push, work):
    reference = push(images.build([images.busybox_layer()]))

    def run(*arguments):
        argv = ["unshare", "--mount", "sh", "-c", WITHOUT_FUSE, "sh", *berth.argv(*arguments)]
        ended = subprocess.run(argv, env=berth.account.environment(), text=True, cwd=work,
                               capture_output=True, check=False, timeout=60)
        assert ended.returncode != 0
        return [line for line in ended.stderr.splitlines() if line.startswith("berth: ")]

    assert run(*EROFS, "pull", reference) == [
        "berth: --layer-format erofs: open '/dev/fuse': No such file or directory; "
        "try: modprobe fuse, or --layer-format directory"]
    berth.ok(*EROFS, "pull", "--quiet", reference)
    [line] = run("run", "--rm", reference, "true")
    assert line.endswith("open '/dev/fuse': No such file or directory; try: modprobe fuse"), line


@pytest.mark.profiles("root")
def test_root_of_a_kernel_without_erofs_has_it_through_fuse(berth, push, work):
    """The first look of each process for a file system finds none."""
    reference = push(images.build([images.busybox_layer()]))
    berth.ok(*EROFS, "pull", "--quiet", reference)
    berth.ok("create", "--name", "hold", reference, "none")
    log = work / "calls"
    argv = ["strace", "-f", "-qq", "-o", log, "-e", "trace=fsopen,execve",
            "-e", "inject=fsopen:error=ENODEV:when=1",
            *berth.argv("cp", "hold:/etc/passwd", "-")]
    done = subprocess.run(argv, env=berth.account.environment(), timeout=60, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == berth.ok("cp", "hold:/etc/passwd", "-", text=False)
    calls = log.read_text(encoding="utf-8")
    assert 'fsopen("erofs"' in calls and "/berth-erofs" in calls, calls
    berth.ok("rm", "hold")
    assert nothing_left(berth)
