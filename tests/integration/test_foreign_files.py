# SPDX-License-Identifier: Apache-2.0
"""Image files of other engines, squashfs and SIF: they run as they are, and nothing is left of them
on the host, neither mount, device nor server."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from support import foreign, images
from support.processes import matching

ENVIRONMENT = "COLOUR=blue\nWORDS='two words'\n# no line of its own\n"
RC = "if [ $# -gt 0 ]; then exec \"$@\"; else exec /bin/sh -c 'echo by itself $COLOUR'; fi\n"
SINGULARITY = {
    "/.singularity.d/env/10-docker2singularity.sh": "export FROM=\"${FROM:-\"docker\"}\"\n",
    "/.singularity.d/env/90-environment.sh": "export COLOUR=red\n",
    "/.singularity.d/runscript": "#!/bin/sh\necho ran $COLOUR $FROM \"$@\"\n",
    "/.singularity.d/labels.json": json.dumps({"org.label-schema.name": "tool", "odd": 1}),
}


@pytest.fixture(scope="session")
def files(session_directory):
    """The directory of the files; each test copies what it changes."""
    directory = session_directory / "foreign"
    directory.mkdir()
    plain = foreign.tree(directory / "plain", {"/data/one": "1\n", "/bin/owned": "#!/bin/sh\nid -u\n"})
    foreign.squashfs(directory / "plain.sqsh", plain)
    enroot = foreign.tree(directory / "enroot", {"/etc/environment": ENVIRONMENT, "/etc/rc": RC})
    foreign.squashfs(directory / "enroot.squashfs", enroot, "-comp", "lzo")
    singularity = foreign.tree(directory / "singularity", SINGULARITY)
    foreign.squashfs(directory / "root.sqsh", singularity, "-comp", "gzip")
    foreign.sif(directory / "tool.sif", directory / "root.sqsh")
    return directory


@pytest.fixture
def copy(files, work, profile):
    """copy(name) → a file of the test's user."""
    def make(name):
        path = shutil.copy(files / name, work / name)
        path.chmod(0o644)
        foreign.give(profile, path)
        return path
    return make


def servers():
    return sorted(matching(rb"^/usr/(local/)?bin/squashfuse"))


def traces():
    """What the host shows of foreign files: mounts, loop devices, servers."""
    mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    loops = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it goes at this moment
            loops.append(path.read_text(encoding="utf-8").strip())
    return ([line for line in mounts if line.split()[2].startswith(("squashfs", "fuse."))] +
            [line for line in loops if "berth-tests" in line] + servers())


def nothing_left(seconds=5):
    deadline = time.monotonic() + seconds
    while traces() and time.monotonic() < deadline:
        time.sleep(0.02)
    return traces() == []


@pytest.mark.parametrize("name", ["plain.sqsh", "tool.sif"])
def test_a_file_runs_as_an_image(berth, copy, name):
    image = copy(name)
    before = image.read_bytes()
    script = "id -u; echo new > /data2; cat /data2; ls -d /tmp"
    assert berth.ok("run", "--rm", image, "sh", "-c", script) == "0\nnew\n/tmp\n"
    assert "read-only" in berth.run("run", "--rm", "--read-only", image, "touch", "/x").stderr.lower()
    assert image.read_bytes() == before
    assert nothing_left()


def test_a_relative_path_and_a_link_are_followed_once(berth, copy, work):
    image = copy("plain.sqsh")
    (work / "latest").symlink_to(image)
    assert berth.ok("run", "--rm", work / "latest", "cat", "/data/one") == "1\n"
    assert berth.ok("run", "--rm", f"{work}/../{work.name}/plain.sqsh", "cat", "/data/one") == "1\n"


def test_an_enroot_image_brings_its_environment_and_its_command(berth, copy):
    image = copy("enroot.squashfs")
    assert berth.ok("run", "--rm", image) == "by itself blue\n"
    assert berth.ok("run", "--rm", image, "sh", "-c", "echo $COLOUR $WORDS") == "blue two words\n"
    assert berth.ok("run", "--rm", "-e", "COLOUR=red", image) == "by itself red\n"
    assert berth.ok("run", "--rm", "--entrypoint", "", image, "sh", "-c", "echo $0") == "sh\n"


def test_a_sif_runs_its_script_or_a_command_in_its_environment(berth, copy):
    image = copy("tool.sif")
    assert berth.ok("run", "--rm", image) == "ran red docker\n"
    assert berth.ok("run", "--rm", image, "sh", "-c", "echo $COLOUR") == "red\n"
    assert berth.ok("run", "--rm", image, "/.singularity.d/runscript", "a b") == "ran red docker a b\n"
    assert berth.ok("run", "--rm", "--env", "FROM=me", image) == "ran red me\n"


def test_a_container_of_a_file_lives_as_any_other(berth, copy):
    image = copy("plain.sqsh")
    berth.ok("run", "-d", "--name", "hold", image, "sleep", "600")
    assert berth.ok("exec", "hold", "cat", "/data/one") == "1\n"
    berth.ok("exec", "hold", "sh", "-c", "echo 2 > /data/two")
    assert berth.ok("diff", "hold").splitlines() == ["C /data", "A /data/two"]
    assert str(image) in berth.ok("ps", "--no-trunc")
    berth.ok("stop", "-t", "0", "hold")
    assert nothing_left()
    berth.ok("cp", "hold:/data/one", "-", text=False)
    berth.ok("start", "hold")
    assert berth.ok("exec", "hold", "cat", "/data/two") == "2\n"
    berth.ok("rm", "-f", "hold")
    assert nothing_left()


def test_what_would_be_done_is_told(berth, copy):
    image = copy("plain.sqsh")
    assert "overlay" in berth.ok("run", "--dry-run", image, "true")
    assert str(image) in berth.ok("run", "--explain", image, "true")
    berth.ok("create", "--name", "made", image, "cat", "/data/one")
    assert berth.ok("start", "-a", "made") == "1\n"
    berth.ok("rm", "made")
    assert nothing_left()


@pytest.mark.parametrize("victim", ["container", "engine"])
def test_who_is_killed_leaves_nothing(berth, copy, victim):
    image = copy("plain.sqsh")
    process = berth.spawn("run", "--rm", "--name", "hold", image, "sleep", "600")
    deadline = time.monotonic() + 20
    while "true" not in berth.run("inspect", "--format", "{{.State.Running}}", "hold").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int(berth.ok("inspect", "--format", "{{.State.Pid}}", "hold"))
    os.kill(pid if victim == "container" else process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    assert nothing_left()
    berth.run("rm", "-f", "hold")


@pytest.mark.profiles("user", "single_id")
def test_a_server_has_no_rights_and_nothing_of_ours(berth, copy):
    berth.ok("run", "-d", "--name", "hold", copy("plain.sqsh"), "sleep", "600")
    [server] = servers()
    status = dict(line.split(":", 1) for line in
                  pathlib.Path(f"/proc/{server}/status").read_text(encoding="utf-8").splitlines())
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"
    held = {os.readlink(path) for path in pathlib.Path(f"/proc/{server}/fd").iterdir()}
    assert {name for name in held if not name.startswith(("/dev/null", "/dev/fuse", "/memfd:"))} == {
        name for name in held if name.endswith("plain.sqsh")}
    os.kill(server, signal.SIGKILL)  # its container is told, and nobody else
    assert berth.run("exec", "hold", "cat", "/data/one").returncode != 0
    berth.ok("rm", "-f", "hold")
    assert nothing_left()


@pytest.mark.profiles("root")
def test_the_kernel_reads_no_file_that_others_may_write(berth, copy):
    image = copy("plain.sqsh")
    image.chmod(0o646)
    line = berth.fail("run", "--rm", image, "true")
    way = f"; try: a copy in its place, which nobody else has open: cp {image} COPY, or berth import {image}"
    assert line.endswith("it is writable by others" + way)
    image.chmod(0o644)
    os.chown(image, 12345, 12345)
    line = berth.fail("run", "--rm", image, "true")
    assert line.endswith("it belongs to another user" + way)
    subprocess.run(["cp", image, berth.directory / "COPY"], check=True)
    berth.ok("run", "--rm", berth.directory / "COPY", "true")
    assert nothing_left()


@pytest.mark.profiles("user")
def test_a_missing_program_is_named_with_its_package(berth, copy, work):
    image = copy("plain.sqsh")
    hide = "".join(f"mount --bind /dev/null {path}; " for path in
                   ("/usr/bin/squashfuse", "/usr/bin/squashfuse_ll"))
    argv = ["unshare", "--mount", "sh", "-c", hide + "exec \"$@\"", "sh",
            *berth.argv("run", "--rm", image, "true")]
    ended = subprocess.run(argv, env=berth.account.environment(), text=True, capture_output=True,
                           cwd=work, check=False)
    assert ended.returncode == 125
    assert "no program '/usr/bin/squashfuse_ll'; try: apt install squashfuse" in ended.stderr


@pytest.mark.parametrize("harm, words", [
    ("truncated", "it is truncated: its squashfs has"),
    ("empty", "is neither a squashfs nor a SIF image"),
    ("magic", "is neither a squashfs nor a SIF image"),
    ("version", "its squashfs is not version 4"),
])
def test_a_damaged_squashfs_is_one_line(berth, copy, harm, words):
    image = copy("plain.sqsh")
    if harm in ("truncated", "empty"):
        os.truncate(image, 5000 if harm == "truncated" else 0)
    else:
        with image.open("r+b") as file:
            file.seek(0 if harm == "magic" else 28)
            file.write(b"\1\0")
    assert words in berth.fail("run", "--rm", image, "true")
    assert nothing_left()


def test_a_squashfs_of_garbage_is_one_line_and_leaves_nothing(berth, copy):
    image = copy("plain.sqsh")
    size = image.stat().st_size
    with image.open("r+b") as file:
        file.seek(48)
        file.write(b"\xff" * 48)  # the places of its tables
    assert size == image.stat().st_size
    assert "plain.sqsh" in berth.fail("run", "--rm", image, "true")
    assert nothing_left()


D = foreign.descriptor
HOSTILE = {
    "outside": (lambda at, size: [D(offset=at, size=size + 1)], {}, "an object is outside of the file"),
    "wraps": (lambda at, size: [D(offset=at, size=-1)], {}, "an object is outside of the file"),
    "negative": (lambda at, size: [D(offset=-at, size=size)], {}, "an object is outside of the file"),
    "over-table": (lambda at, size: [D(offset=at, size=size), D(offset=at + 5, size=9, role=2 + 1)], {},
                   "its root overlaps another object"),
    "over-header": (lambda at, size: [D(offset=0, size=at + size)], {}, "its root overlaps another object"),
    "two": (lambda at, size: [D(offset=at, size=size)] * 2, {}, "the SIF has two primary system partitions"),
    "none": (lambda at, size: [D(offset=at, size=size, role=foreign.DATA)], {},
             "the SIF has no primary system partition"),
    "unused": (lambda at, size: [D(offset=at, size=size, used=False)], {},
               "the SIF has no primary system partition"),
    "ext3": (lambda at, size: [D(offset=at, size=size, file_system=foreign.EXT3)], {},
             "the SIF's file system is not squashfs"),
    "encrypted": (lambda at, size: [D(offset=at, size=size, file_system=foreign.ENCRYPTED)], {},
                  "the SIF is encrypted"),
    "not-squashfs": (lambda at, size: [D(offset=at + 4096, size=size - 4096)], {},
                     "its root is not a squashfs"),
    "cut-root": (lambda at, size: [D(offset=at, size=4096)], {}, "it is truncated"),
    "many": (None, {"total": 1 << 40}, "no sane number of objects"),
    "no-table": (None, {"table": 1 << 50}, "the table of its objects is outside of the file"),
    "table-in-header": (None, {"table": 0}, "the table of its objects is outside of the file"),
    "circle": (lambda at, size: [D(offset=foreign.HEADER, size=size)], {},
               "its root overlaps another object"),
}


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_sif_is_refused(berth, files, work, profile, name):
    descriptors, more, words = HOSTILE[name]
    image = foreign.sif(work / "x.sif", files / "root.sqsh", descriptors, **more)
    foreign.give(profile, image)
    assert words in berth.fail("run", "--rm", image, "true")
    assert nothing_left()


def test_what_is_no_file_is_not_waited_for(berth, work, profile):
    os.mkfifo(work / "x.sqsh")
    foreign.give(profile, work / "x.sqsh")
    assert "it is not a regular file" in berth.fail("run", "--rm", work / "x.sqsh", "true", timeout=10)
    assert "it is not a regular file" in berth.fail("run", "--rm", "/dev/null", "true", timeout=10)


@pytest.mark.parametrize("kind", ["link", "fifo", "gone"])
def test_what_takes_the_place_of_the_file_later_is_refused(berth, copy, kind):
    image = copy("plain.sqsh")
    berth.ok("create", "--name", "made", image, "true")
    image.rename(image.with_suffix(".other"))
    if kind == "link":
        image.symlink_to(image.with_suffix(".other"))
    elif kind == "fifo":
        os.mkfifo(image)
    line = berth.fail("start", "-a", "made", status=1, timeout=20)
    assert "plain.sqsh" in line
    berth.ok("rm", "made")


def test_an_image_argument_is_a_file_by_its_first_letters_alone(berth, copy, work):
    image = copy("plain.sqsh")
    argv = berth.argv("run", "--rm", "plain.sqsh", "true")
    ended = subprocess.run(argv, env=berth.account.environment(), text=True, capture_output=True,
                           cwd=work, check=False)
    assert ended.returncode == 125
    assert ended.stderr == ("berth: 'plain.sqsh' is the name of an image in a registry; a file is given by its "
                            "path; try: ./plain.sqsh\n")
    assert f"'{work}' is a directory; try: --rootfs {work}" in berth.fail("run", "--rm", work, "true")
    missing = berth.fail("run", "--rm", f"{image}.not", "true")
    assert "No such file or directory" in missing


# ---- import and save ----------------------------------------------------------------------------

def config_of(berth, name):
    return json.loads(berth.ok("image", "inspect", name))[0]["Config"]


@pytest.mark.parametrize("name", ["enroot.squashfs", "tool.sif"])
def test_an_imported_file_is_an_ordinary_image(berth, copy, name):
    image = copy(name)
    image_id = berth.ok("import", image, "mine:1").strip()
    image.unlink()
    assert image_id in berth.ok("images", "--no-trunc", "--quiet")
    if name == "tool.sif":
        assert berth.ok("run", "--rm", "mine:1") == "ran red docker\n"
        assert config_of(berth, "mine:1")["Labels"] == {"org.label-schema.name": "tool"}
    else:
        assert berth.ok("run", "--rm", "mine:1") == "by itself blue\n"
        assert berth.ok("run", "--rm", "mine:1", "sh", "-c", "echo $WORDS; stat -c %a /tmp /") == (
            "two words\n755\n755\n")
    assert nothing_left()


def test_changes_come_after_what_a_file_says(berth, copy):
    berth.ok("import", "--change", "ENTRYPOINT []", "--change", 'CMD ["id", "-u"]', copy("tool.sif"), "mine:2")
    assert berth.ok("run", "--rm", "mine:2") == "0\n"


def test_what_the_kernel_must_not_parse_can_be_imported(berth, files, work, profile):
    image = pathlib.Path(shutil.copy(files / "plain.sqsh", work / "x.sqsh"))
    image.chmod(0o666)
    os.chown(image, 12345, 12345)
    berth.ok("import", image, "mine:3")
    assert berth.ok("run", "--rm", "mine:3", "cat", "/data/one") == "1\n"


@pytest.mark.profiles("root")
def test_a_small_file_with_endlessly_many_names_takes_no_more_than_its_memory(berth, work):
    foreign.squashfs_of_too_many(work / "many.sqsh", work, 30)
    assert (work / "many.sqsh").stat().st_size < 65536
    assert "out of memory" in berth.fail("import", work / "many.sqsh", "many", status=1)


def test_a_private_file_is_imported_as_well(berth, copy):
    image = copy("plain.sqsh")
    image.chmod(0o600)
    berth.ok("import", image, "mine:4")
    assert berth.ok("run", "--rm", "mine:4", "cat", "/data/one") == "1\n"
    assert list((berth.root / "tmp").iterdir()) == []


def test_owners_links_and_attributes_survive_an_import(berth, work, profile):
    top = work / "tree"
    (top / "bin").mkdir(parents=True)
    shutil.copy2("/bin/busybox", top / "bin/busybox")
    (top / "bin/sh").symlink_to("busybox")
    (top / "a").write_text("a", encoding="utf-8")
    os.link(top / "a", top / "b")
    (top / "setuid").write_text("s", encoding="utf-8")
    (top / "setuid").chmod(0o4711)
    os.utime(top / "a", (10 ** 9, 10 ** 9))
    image = foreign.squashfs(work / "x.sqsh", top)
    foreign.give(profile, image)
    berth.ok("import", image, "mine:5")
    look = ("busybox stat -c '%a %u %h %Y' /a; busybox stat -c %a /setuid; "
            "busybox stat -c %i /a /b | busybox uniq | busybox wc -l").replace("busybox", "/bin/busybox")
    said = berth.ok("run", "--rm", "mine:5", "/bin/busybox", "sh", "-c", look)
    assert said == "644 0 2 1000000000\n4711\n1\n"


@pytest.mark.parametrize("harm", ["truncated", "garbage"])
def test_a_damaged_file_is_not_imported(berth, copy, listing, harm):
    image = copy("plain.sqsh")
    berth.run("images")
    before = listing()
    if harm == "truncated":
        os.truncate(image, 5000)
    else:
        with image.open("r+b") as file:
            file.seek(48)
            file.write(b"\xff" * 48)
    line = berth.fail("import", image, "mine:6", status=1)
    assert line.startswith("berth: cannot import") and ("truncated" in line or "rdsquashfs" in line)
    assert listing() == before


def test_a_saved_image_is_started_by_enroot_and_by_us(berth, push, work):
    layers = [images.busybox_layer(),
              images.layer([images.directory("data"), images.file("data/low", b"low"), images.file("gone", b"g")]),
              images.layer([images.whiteout("gone"), images.file("data/high", b"high", mode=0o640, uid=0, gid=0)])]
    reference = push(images.build(layers, config={
        "Env": ["PATH=/bin", "GREETING=it's me"], "Entrypoint": ["/bin/echo", "a b"], "Cmd": ["c", "$d"],
        "WorkingDir": "/data"}))
    berth.ok("pull", "--quiet", reference)
    berth.ok("save", "--format", "sqsh", "-o", work / "out.sqsh", reference)
    assert nothing_left()
    image = work / "out.sqsh"
    assert berth.ok("run", "--rm", image) == "a b c $d\n"
    assert berth.ok("run", "--rm", image, "x") == "a b x\n"
    script = "pwd; echo $GREETING; ls /data; ls /gone 2>&1 | wc -l; stat -c '%a %u' /data/high /etc/rc"
    assert berth.ok("run", "--rm", "--workdir", "/data", "--entrypoint", "sh", image, "-c", script) == (
        "/data\nit's me\nhigh\nlow\n1\n640 0\n755 0\n")
    # As enroot does it: the kernel's or squashfuse's files, and /etc/rc by a shell.
    listing = subprocess.run(["unsquashfs", "-cat", image, "etc/rc"], check=True, capture_output=True, text=True)
    assert "exec '/bin/echo' 'a b' \"$@\"" in listing.stdout


def test_the_same_image_is_saved_as_the_same_bytes(berth, push, work):
    reference = push(images.build([images.busybox_layer(), images.layer([images.file("x/y", b"1")])]))
    saved = []
    for name in ("one", "two"):
        berth.ok("pull", "--quiet", reference)
        berth.ok("save", "--format", "sqsh", "-o", work / name, reference)
        saved.append((work / name).read_bytes())
        berth.ok("rmi", "-f", reference)
        time.sleep(1.1)
    assert saved[0] == saved[1]


@pytest.mark.profiles("root")
def test_a_squashfs_needs_one_image_and_a_file(berth, push, work):
    reference = push(images.build([images.busybox_layer()]))
    berth.ok("pull", "--quiet", reference)
    assert "a squashfs file cannot be written to stdout" in berth.fail("save", "--format", "sqsh", reference, status=1)
    assert "only one image" in berth.fail("save", "--format", "sqsh", "-o", work / "x", reference, reference, status=1)
    assert not (work / "x").exists()
    os.mkfifo(work / "pipe")
    reader = os.open(work / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    line = berth.fail("save", "--format", "sqsh", "-o", work / "pipe", reference, status=1, timeout=10)
    os.close(reader)
    assert "a squashfs is written to a file, not to a pipe" in line


@pytest.mark.profiles("user")
@pytest.mark.parametrize("program", ["sqfs2tar", "rdsquashfs", "tar2sqfs"])
def test_missing_tools_of_import_and_save_are_named(berth, copy, busybox, work, program):
    image = copy("plain.sqsh")
    if program == "tar2sqfs":
        berth.ok("pull", "--quiet", busybox)
    words = (["save", "--format", "sqsh", "-o", work / "o", busybox] if program == "tar2sqfs"
             else ["import", image, "mine:7"])
    argv = ["unshare", "--mount", "sh", "-c", f"mount --bind /dev/null /usr/bin/{program}; exec \"$@\"", "sh",
            *berth.argv(*words)]
    ended = subprocess.run(argv, env=berth.account.environment(), text=True, capture_output=True, check=False)
    assert ended.returncode == 1
    assert f"no program '/usr/bin/{program}'; try: apt install squashfs-tools-ng" in ended.stderr


@pytest.mark.profiles("root")
def test_the_tools_of_root_are_nobody(berth, copy, work):
    """What parses a foreign file as a child of root has no rights over root's files."""
    image = copy("tool.sif")
    seen = work / "seen"
    wrapper = work / "wrapper"
    wrapper.write_text(f"#!/bin/sh\ncat /proc/self/status > {seen}\nexec {work}/real \"$@\"\n", encoding="utf-8")
    wrapper.chmod(0o755)
    shutil.copy2("/usr/bin/sqfs2tar", work / "real")
    seen.touch()
    seen.chmod(0o666)
    argv = ["unshare", "--mount", "sh", "-c", f"mount --bind {wrapper} /usr/bin/sqfs2tar; exec \"$@\"", "sh",
            *berth.argv("import", image, "mine:8")]
    subprocess.run(argv, env=berth.account.environment(), check=True, capture_output=True)
    status = dict(line.split(":", 1) for line in seen.read_text(encoding="utf-8").splitlines())
    assert status["Uid"].split() == ["65534"] * 4 and status["Groups"].strip() == ""
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"


# ---- as data ------------------------------------------------------------------------------------

def data_image(layers=2):
    made = [images.layer([images.directory("set"), images.file("set/low", b"low"), images.file("set/gone", b"1")])]
    if layers > 1:
        made.append(images.layer([images.directory("set"), images.file("set/high", b"high"),
                                  images.whiteout("set/gone")]))
    return images.build(made)


READ = "ls /data/set; touch /data/x 2>&1 | grep -ci read-only; cat /data/set/low"


@pytest.mark.parametrize("layers, listed", [(1, "gone\nlow\n"), (2, "high\nlow\n")])
def test_an_image_is_data(berth, busybox, push, layers, listed):
    reference = push(data_image(layers))
    mount = f"type=image,src={reference},dst=/data"
    assert berth.ok("run", "--rm", "--mount", mount, busybox, "sh", "-c", READ) == listed + "1\nlow"
    assert nothing_left()


@pytest.mark.parametrize("name", ["plain.sqsh", "tool.sif"])
def test_a_file_is_data(berth, busybox, copy, name):
    image = copy(name)
    mount = f"type=image,source={image},target=/data,ro"
    script = ("ls /data/bin/busybox; touch /data/x 2>&1 | grep -ci read-only; "
              "grep -c ' /data .*nosuid,nodev' /proc/mounts")
    said = berth.ok("run", "--rm", "--mount", mount, busybox, "sh", "-c", script)
    assert said == "/data/bin/busybox\n1\n1\n"
    assert berth.ok("run", "--rm", "--mount", mount, image, "ls", "/data/bin/busybox").endswith("busybox\n")
    assert nothing_left()


def test_data_stays_as_long_as_its_container(berth, busybox, push, copy):
    reference = push(data_image())
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "-d", "--name", "hold", "--mount", f"type=image,src={reference},dst=/data",
             "--mount", f"type=image,src={copy('plain.sqsh')},dst=/other", busybox, "sleep", "600")
    assert berth.ok("exec", "hold", "cat", "/data/set/high", "/other/data/one") == "high1\n"
    mounts = json.loads(berth.ok("inspect", "hold"))[0]["Mounts"]
    assert [(m["Type"], m["Destination"], m["RW"]) for m in mounts] == [
        ("image", "/data", False), ("image", "/other", False)]
    berth.ok("stop", "-t", "0", "hold")
    assert nothing_left()
    berth.ok("start", "hold")
    assert berth.ok("exec", "hold", "cat", "/data/set/high") == "high"
    berth.ok("rm", "-f", "hold")
    berth.ok("rmi", reference)
    assert nothing_left()


def test_an_image_in_use_as_data_is_not_removed(berth, busybox, push):
    reference = push(data_image())
    berth.ok("create", "--name", "made", "--mount", f"type=image,src={reference},dst=/data", busybox, "true")
    assert "container" in berth.fail("rmi", reference, status=1)
    berth.ok("rm", "made")
    berth.ok("rmi", reference)


@pytest.mark.profiles("root")
@pytest.mark.parametrize("mount, words", [
    ("type=image,dst=/data", "an image needs a source"),
    ("type=image,src=x,dst=/data,ro=false", "an image is read-only"),
    ("type=image,src=/nowhere.sqsh,dst=/data", "No such file or directory"),
    ("type=image,src=x,dst=data", "data"),
    ("type=image,src=/etc/passwd,dst=/data", "is neither a squashfs nor a SIF image"),
])
def test_a_wrong_mount_of_an_image_is_one_line(berth, busybox, mount, words):
    assert words in berth.fail("run", "--rm", "--mount", mount, busybox, "true")


def test_the_place_of_data_is_a_directory(berth, busybox, copy):
    mount = f"type=image,src={copy('plain.sqsh')},dst=/bin/busybox"
    assert "the path in the image is not a directory" in berth.fail("run", "--rm", "--mount", mount, busybox, "true")
