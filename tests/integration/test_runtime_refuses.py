# SPDX-License-Identifier: Apache-2.0
"""Bad bundles and hostile images: one error line, and nothing left (the fixture looks)."""

import fcntl
import json
import os
import socket
import stat
import subprocess
import sys

import pytest

from support.bundle import PROGRAMS
from support.oci_fixtures import bundle, kind, place, runtime  # noqa: F401

RUN = "cannot run container 'c1': "


UP = "../" * 20


def host_busybox(number):
    """A program of the host, by way of whatever directory a descriptor names (CVE-2024-21626)."""
    return f"/proc/self/fd/{number}/{UP}bin/busybox"


@pytest.mark.parametrize("number", range(3, 20))
def test_finds_no_program_behind_a_descriptor(runtime, bundle, number):
    path = host_busybox(number)
    fault = ("No such file or directory", "Not a directory")
    bundle.args(path, "true")
    assert runtime.error(bundle) in [f"{RUN}execute '{path}': {text}" for text in fault]
    bundle.process["env"] = [f"PATH=/proc/self/fd/{number}/{UP}bin"]
    bundle.args("busybox", "true")
    assert runtime.error(bundle) == f"{RUN}execute 'busybox': executable file not found in $PATH"
    script = bundle.rootfs / "bin/script"
    script.write_text(f"#!{path} true\n")
    script.chmod(0o755)
    bundle.args("/bin/script")
    assert runtime.error(bundle) in [f"{RUN}execute '/bin/script': {text}" for text in fault]


@pytest.fixture
def waiting(runtime, bundle):
    """The pid of a container that was created and not started."""
    bundle.shell("true").write()
    with open(bundle.directory / "out", "wb") as out:
        done = runtime.call("create", "-b", str(bundle.directory), "c1", capture_output=False,
                            stdout=out, stderr=out)
    assert done.returncode == 0, (bundle.directory / "out").read_text()
    yield runtime.state()["pid"]
    runtime.call("delete", "--force", "c1")


def test_leaves_a_waiting_container_no_descriptor_but_sockets(waiting):
    links = {number: os.readlink(f"/proc/{waiting}/fd/{number}")
             for number in os.listdir(f"/proc/{waiting}/fd")}
    assert [link for number, link in links.items()
            if int(number) > 2 and not link.startswith("socket:")] == []


def test_the_runtimes_own_file_cannot_be_written_from_inside(waiting):
    # CVE-2019-5736: the file is the container's /proc/1/exe until it executes its program.
    path = f"/proc/{waiting}/exe"
    with open(path, "rb") as program:
        sealed = program_seals(program) & fcntl.F_SEAL_WRITE
        on_disk = os.fstat(program.fileno()).st_dev
    assert sealed or os.statvfs(path).f_flag & os.ST_RDONLY
    assert sealed or on_disk == os.stat(PROGRAMS).st_dev, "a copy that is not sealed"


def program_seals(file):
    try:
        return fcntl.fcntl(file, fcntl.F_GET_SEALS)
    except OSError:
        return 0  # no memory file


def test_the_runtime_as_a_containers_program_is_what_it_is(runtime, bundle):
    assert runtime.out(bundle.args("/proc/self/exe", "--version")).startswith("berth-runtime ")


def test_refuses_a_directory_as_a_standard_stream(runtime, bundle, place):
    directory = os.open(place, os.O_RDONLY)
    try:
        done = runtime.run(bundle.shell("true"), stdin=directory)
    finally:
        os.close(directory)
    assert (done.returncode, done.stderr) == (
        1, f"berth-runtime: {RUN}standard input is a directory of the host\n")


@pytest.mark.parametrize("name, kind_of_mount", [("proc", "proc"), ("sys", "sysfs"),
                                                 ("dev", "tmpfs")])
def test_refuses_a_link_in_the_place_of(runtime, bundle, name, kind_of_mount):
    (bundle.rootfs / name).symlink_to("/tmp")
    assert runtime.error(bundle) == (
        f"{RUN}cannot mount '{kind_of_mount}' at '/{name}': '/{name}' is a symbolic link in the "
        "image")


def test_refuses_a_file_in_the_place_of_proc(runtime, bundle):
    (bundle.rootfs / "proc").write_text("")
    assert runtime.error(bundle) == \
        f"{RUN}cannot mount 'proc' at '/proc': '/proc' is not a directory in the image"


def test_resolves_mount_points_inside_the_root(runtime, bundle, place):
    outside = place / "outside"
    outside.mkdir()
    (place / "data").mkdir()
    (place / "data/mark").write_text("here\n")
    (bundle.rootfs / "up").symlink_to("../../outside")
    (bundle.rootfs / "absolute").symlink_to(outside)
    bundle.mount("/up/a", place / "data", "bind").mount("/absolute/b", place / "data", "bind")
    bundle.mount("/../../outside/c", place / "data", "bind")
    out = runtime.out(bundle.shell(f"cat /up/a/mark {outside}/b/mark /outside/c/mark"))
    assert out == "here\n" * 3
    assert list(outside.iterdir()) == []


CGROUP = "/sys/fs/cgroup" + ("/unified" if os.path.exists("/sys/fs/cgroup/unified") else "")


@pytest.mark.parametrize("target", ["/proc/self", "/sys/kernel", CGROUP])
def test_refuses_a_link_that_leads_a_bind_into_the_kernel(runtime, bundle, place, target):
    (place / "data").mkdir()
    (bundle.rootfs / "data").symlink_to(target)
    bundle.mount("/data", place / "data", "bind")
    assert runtime.error(bundle) == (
        f"{RUN}cannot mount '{place}/data' at '/data': '/data' leads into the kernel's file "
        "systems")


def test_refuses_a_mount_over_procfs(runtime, bundle, place):
    bundle.mount("/x/../proc/self/attr", place, "bind")
    assert runtime.error(bundle) == (
        f"{RUN}config.json: mounts[7].destination: nothing may be mounted over procfs at "
        "'/proc/self/attr'")


def test_refuses_a_working_directory_behind_a_descriptor(runtime, bundle):
    # CVE-2024-21626: the descriptor of a host directory is left open while cwd is entered.
    for number in range(3, 20):
        bundle.process["cwd"] = f"/proc/self/fd/{number}"
        line = runtime.error(bundle)
        prefix = f"{RUN}cannot enter working directory '/proc/self/fd/{number}': "
        assert line.startswith(prefix)
        assert line.removeprefix(prefix) in (
            f"open '/proc/self/fd/{number}': Too many levels of symbolic links",
            f"open '/proc/self/fd/{number}': nothing can be created there"), line


def test_refuses_a_working_directory_that_is_a_file(runtime, bundle):
    (bundle.rootfs / "file").write_text("")
    bundle.process["cwd"] = "/file"
    assert runtime.error(bundle) == (f"{RUN}cannot enter working directory '/file': enter "
                                     "directory '/file': Not a directory")


def test_refuses_a_working_directory_that_cannot_be_made(runtime, bundle):
    for name in ("dev", "proc", "sys"):
        (bundle.rootfs / name).mkdir()
    bundle.mount("/etc", bundle.rootfs / "etc", "bind", "ro")
    bundle.process["cwd"] = "/etc/none"
    assert runtime.error(bundle).startswith(f"{RUN}cannot enter working directory '/etc/none': create directory ")


def test_refuses_a_directory_over_a_file_and_a_file_over_a_directory(runtime, bundle, place):
    (place / "data").mkdir()
    bundle.mount("/etc/passwd", place / "data", "bind")
    assert runtime.error(bundle) == (f"{RUN}cannot mount '{place}/data' at '/etc/passwd': the "
                                     "source is a directory and the target a file")
    (place / "file").write_text("")
    bundle.config["mounts"].pop()
    bundle.mount("/etc", place / "file", "bind")
    assert runtime.error(bundle) == (f"{RUN}cannot mount '{place}/file' at '/etc': the source is a "
                                     "file and the target a directory")


def test_refuses_a_source_that_does_not_exist(runtime, bundle, place):
    bundle.mount("/data", place / "none", "bind")
    assert runtime.error(bundle) == (f"{RUN}cannot mount '{place}/none' at '/data': open "
                                     f"'{place}/none': No such file or directory")


def test_refuses_a_root_or_a_layer_that_does_not_exist(runtime, bundle, place):
    bundle.config["root"]["path"] = "none"
    assert runtime.error(bundle) == (f"{RUN}cannot mount the root file system: open "
                                     f"'{bundle.directory}/none': No such file or directory")
    bundle.config["root"]["path"] = "rootfs"
    bundle.config["mounts"].insert(0, {"destination": "/", "type": "overlay",
                                       "options": [f"lowerdir+={place}/none"]})
    assert runtime.error(bundle) == (f"{RUN}cannot mount the root file system: open "
                                     f"'{place}/none': No such file or directory")


def test_passes_on_the_kernels_words_about_an_option(runtime, bundle):
    bundle.mount("/data", "none", "moon=1", kind="tmpfs")
    assert runtime.error(bundle) == (f"{RUN}cannot mount 'tmpfs' at '/data': set mount option "
                                     "'moon=1' (tmpfs: Unknown parameter 'moon'): Invalid argument")


def test_refuses_an_option_that_the_overlay_does_not_know(runtime, bundle):
    bundle.config["mounts"].insert(0, {"destination": "/", "type": "overlay",
                                       "options": [f"lowerdir+={bundle.rootfs}", "moon=1"]})
    line = runtime.error(bundle)
    # Before Linux 6.5 the overlay looks at its options when it is made, and does not say which.
    assert line.startswith(f"{RUN}cannot mount the root file system: ")
    assert "'moon=1' (" in line or "make file system: " in line
    assert line.endswith("Invalid argument")


def test_refuses_an_unknown_file_system(runtime, bundle):
    bundle.mount("/data", "none", kind="moonfs")
    assert runtime.error(bundle) == (f"{RUN}cannot mount 'moonfs' at '/data': open file system "
                                     "type 'moonfs': No such device")


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_refuses_a_user_that_is_not_mapped(runtime, bundle):
    bundle.process["user"]["uid"] = 1000
    assert runtime.error(bundle) == f"{RUN}set user id 1000: not mapped in this user namespace"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_refuses_a_device_in_the_place_of_a_file(runtime, bundle):
    bundle.linux["devices"] = [{"type": "c", "path": "/etc/x", "major": 1, "minor": 3}]
    (bundle.rootfs / "etc/x").mkdir()
    assert runtime.error(bundle) == \
        f"{RUN}cannot make device '/etc/x': there is another file at this path"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("path", ["/data/new", "/way/new", "/data/deep/new", "/deeper/new"])
def test_no_node_is_made_in_a_volume(runtime, bundle, place, path):
    (place / "volume").mkdir(mode=0o777)
    bundle.mount("/data", place / "volume", "rbind")
    (bundle.rootfs / "way").symlink_to("data")
    (bundle.rootfs / "deeper").symlink_to("data/deep")
    bundle.linux["devices"] = [{"type": "c", "path": path, "major": 1, "minor": 3}]
    line = runtime.error(bundle)
    assert line.startswith(f"{RUN}cannot make device '{path}': make '")
    assert ": it is in another mount; try: " in line
    assert os.listdir(place / "volume") == []


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_node_that_a_volume_has_will_do(runtime, bundle, place):
    (place / "volume").mkdir()
    os.mknod(place / "volume/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    bundle.mount("/data", place / "volume", "rbind")
    bundle.linux["devices"] = [{"type": "c", "path": "/data/null", "major": 1, "minor": 3}]
    assert runtime.run(bundle.shell("stat -c %t:%T /data/null")).stdout == "1:3\n"
    bundle.linux["devices"][0]["minor"] = 5
    assert runtime.error(bundle) == (
        f"{RUN}cannot make device '/data/null': there is another file at this path")


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_refuses_a_host_node_that_is_another_device(runtime, bundle):
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/gpu0", "major": 195, "minor": 0}]
    bundle.config["annotations"] = {"dev.berth.device-source:/dev/gpu0": "/dev/zero"}
    assert runtime.error(bundle) == \
        f"{RUN}cannot make device '/dev/gpu0': '/dev/zero' is not c 195:0"


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_binds_the_host_node_that_was_named(runtime, bundle):
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/gpu0", "major": 1, "minor": 5}]
    bundle.config["annotations"] = {"dev.berth.device-source:/dev/gpu0": "/dev/zero"}
    assert runtime.out(bundle.shell("stat -c %t:%T /dev/gpu0; dd if=/dev/gpu0 bs=3 count=1 "
                                    "2>/dev/null | wc -c")) == "1:5\n3\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_lets_a_device_be_used_only_with_a_rule(runtime, bundle):
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/control", "major": 10, "minor": 237}]
    done = runtime.run(bundle.args("/bin/dd", "if=/dev/control", "count=0"))
    assert done.stderr == "dd: can't open '/dev/control': Operation not permitted\n"
    bundle.linux["resources"]["devices"].append(
        {"allow": True, "type": "c", "major": 10, "minor": 237, "access": "r"})
    assert runtime.run(bundle).returncode == 0


def report_of(runtime, bundle):
    """The JSON on --report-fd of a run that fails."""
    bundle.write()
    read, write = os.pipe()
    done = runtime.call("--report-fd", str(write), "run", "-b", str(bundle.directory), "c1",
                        pass_fds=(write,))
    os.close(write)
    text = os.read(read, 65536)
    os.close(read)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ""), done
    return json.loads(text)


@pytest.mark.parametrize("program, kind_of_error, what", [
    ("nosuch", "not_found", "execute 'nosuch': executable file not found in $PATH"),
    ("/no/such", "not_found", "execute '/no/such'"),
    ("/etc/passwd", "denied", "execute '/etc/passwd'"),
    ("/etc", "denied", "execute directory '/etc'"),
])
def test_tells_a_command_that_cannot_be_run(runtime, bundle, program, kind_of_error, what):
    report = report_of(runtime, bundle.args(program))
    assert (report["stage"], report["kind"], report["what"]) == ("command", kind_of_error, what)


def test_says_why_a_command_cannot_be_run(runtime, bundle):
    assert runtime.error(bundle.args("nosuch")) == \
        f"{RUN}execute 'nosuch': executable file not found in $PATH"
    assert runtime.error(bundle.args("/no/such")) == \
        f"{RUN}execute '/no/such': No such file or directory"
    assert runtime.error(bundle.args("/etc/passwd")) == \
        f"{RUN}execute '/etc/passwd': Permission denied"
    assert runtime.error(bundle.args("/etc")) == \
        f"{RUN}execute directory '/etc': Permission denied"


@pytest.mark.parametrize("command, words", [
    ("nosuch", "execute 'nosuch': executable file not found in $PATH"),
    ("/no/such", "execute '/no/such': no such file or directory"),
    ("/etc", "execute directory '/etc': permission denied"),
])
def test_logs_a_failure_in_the_words_that_docker_looks_for(runtime, bundle, place, command, words):
    bundle.args(command).write()
    done = runtime.call("--log", str(place / "log.json"), "--log-format", "json", "run",
                        "-b", str(bundle.directory), "c1")
    (line,) = (place / "log.json").read_text().splitlines()
    entry = json.loads(line)
    assert (done.returncode, entry["level"], entry["msg"]) == (1, "error", RUN + words)


def test_tells_a_failure_of_its_own_apart(runtime, bundle, place):
    bundle.mount("/data", place / "none", "bind")
    report = report_of(runtime, bundle)
    assert (report["stage"], report["kind"], report["errno"]) == ("engine", "not_found", 2)
    assert report["context"] == [RUN.removesuffix(": ")]


def test_names_what_is_wrong_with_a_config(runtime, bundle):
    bundle.process["cwd"] = "tmp"
    assert runtime.error(bundle) == \
        f"{RUN}config.json: process.cwd: expected an absolute path, got 'tmp'"
    bundle.config["mounts"] = "all"
    assert runtime.error(bundle) == (f"{RUN}cannot read bundle '{bundle.directory}': config.json: "
                                     "mounts: expected an array, got a string")


def test_refuses_ids_and_flags_that_make_no_sense(runtime, bundle):
    bundle.write()
    for words, line in {
        ("run", "-b", str(bundle.directory), "a/b"):
            "cannot run container 'a/b': invalid character '/' in container ID 'a/b': expected letters, "
            "digits and _ + - .",
        ("state", "none"): "container 'none' does not exist",
        ("kill", "none"): "container 'none' does not exist",
        ("start", "none"): "cannot start container 'none': container 'none' does not exist",
        ("delete", "none"): "cannot delete container 'none': container 'none' does not exist",
    }.items():
        done = runtime.call(*words)
        assert (done.returncode, done.stderr) == (1, f"berth-runtime: {line}\n")
    assert runtime.call("delete", "--force", "none").returncode == 0


def systemd_error(runtime, bundle, path):
    bundle.linux["cgroupsPath"] = path
    bundle.write()
    done = runtime.call("--systemd-cgroup", "run", "--bundle", str(bundle.directory), "c1",
                        env={"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/none", "PATH": "/bin",
                             "DBUS_SESSION_BUS_ADDRESS": "unix:path=/none"})
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.removeprefix(f"berth-runtime: {RUN}")


def test_names_the_place_of_a_path_that_systemd_cannot_use(runtime, bundle):
    for path, reason in {
        "/berth-oci-x": "expected slice:prefix:name, got '/berth-oci-x'",
        "a.slice:b": "expected slice:prefix:name, got 'a.slice:b'",
        "a.slice:b:": "expected slice:prefix:name, got 'a.slice:b:'",
        "a:b:c": "expected the name of a slice, got 'a'",
        "a--b.slice:b:c": "expected the name of a slice, got 'a--b.slice'",
        "a.slice:b:c/d": "'b-c/d.scope' cannot be the name of a unit",
    }.items():
        assert systemd_error(runtime, bundle, path) == \
            f"config.json: linux.cgroupsPath: {reason}\n"


def test_leaves_nothing_where_systemd_does_not_answer(runtime, bundle, kind):
    bus = {"root": "system's", "userns": "user's"}[kind]
    assert systemd_error(runtime, bundle, "system.slice:berth:c1") == (
        f"cannot make the systemd scope: connect to the {bus} bus: No such file or directory\n")


def test_a_caller_says_when_to_begin_and_hears_the_exit_code(runtime, bundle):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.send(b"g")
        done = runtime.run(bundle.shell("exit 7"), "c1", "--caller-fd", str(theirs.fileno()),
                           pass_fds=[theirs.fileno()])
        assert (done.returncode, done.stderr) == (7, "")
        assert ours.recv(16) == (7).to_bytes(4, sys.byteorder)


def test_makes_nothing_for_a_caller_that_gives_up(runtime, bundle):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        done = runtime.run(bundle.shell("echo ran"), "c1", "--caller-fd", str(theirs.fileno()),
                           pass_fds=[theirs.fileno()])
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", f"berth-runtime: {RUN}wait for the caller: it has ended\n")


def started_for_a_caller(runtime, bundle, first):
    """berth-runtime for a caller that has said `first`, and the caller's socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.send(first)
    bundle.write()
    with theirs:
        command = runtime.command("run", "--bundle", str(bundle.directory), "--caller-fd",
                                  str(theirs.fileno()), "c1")
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
    return process, ours


def test_decides_when_a_caller_says_so_and_makes_nothing_before_the_next_word(runtime, bundle):
    process, ours = started_for_a_caller(runtime, bundle.shell("echo ran"), b"d")
    with ours:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        assert runtime.call("list", "--quiet").stdout == ""
        ours.send(b"g")
        assert process.communicate(timeout=20) == ("ran\n", "")
        assert ours.recv(16) == (0).to_bytes(4, sys.byteorder)


def test_tells_a_mistake_of_the_config_before_the_caller_says_go(runtime, bundle):
    bundle.config["hostname"] = 7
    process, ours = started_for_a_caller(runtime, bundle, b"d")
    with ours:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "")
    assert "config.json: hostname: expected a string" in err


def test_makes_nothing_for_a_caller_that_gives_up_after_it_was_to_decide(runtime, bundle):
    process, ours = started_for_a_caller(runtime, bundle.shell("echo ran"), b"d")
    ours.close()
    assert process.communicate(timeout=20) == (
        "", f"berth-runtime: {RUN}wait for the caller: it has ended\n")


def test_refuses_a_caller_that_is_no_socket(runtime, bundle):
    done = runtime.run(bundle.shell("echo ran"), "c1", "--caller-fd", "77")
    assert done.stderr == (f"berth-runtime: {RUN}cannot use --caller-fd: duplicate file descriptor "
                           "77: Bad file descriptor\n")
