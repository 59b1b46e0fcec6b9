# SPDX-License-Identifier: Apache-2.0
"""What a program finds that berth-runtime has started, as root and as root of a user namespace."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

from support import missing_calls
from support.bundle import MASKED, READONLY, Bundle
from support.oci_fixtures import bundle, hybrid, kind, place, runtime  # noqa: F401


def test_gives_the_exit_status_of_the_program(runtime, bundle):
    assert runtime.run(bundle.shell("exit 7")).returncode == 7
    assert runtime.out(bundle.shell("echo out")) == "out\n"


def test_gives_128_and_the_signal_when_the_program_is_killed(runtime, bundle):
    # Only from outside can the first process of a pid namespace be killed.
    bundle.args("/bin/sleep", "60").write()
    running = subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"))
    pid = wait_running(runtime)
    os.kill(pid, 9)
    assert running.wait(timeout=20) == 137


def wait_running(runtime):
    for _ in range(200):
        done = runtime.call("state", "c1")
        if done.returncode == 0 and '"status": "running"' in done.stdout:
            return runtime.state()["pid"]
        time.sleep(0.05)
    raise AssertionError("never running")


def test_has_namespaces_of_its_own(runtime, bundle):
    names = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
    links = runtime.out(bundle.shell(
        "; ".join(f"readlink /proc/self/ns/{name}" for name in names)))
    ours = [os.readlink(f"/proc/self/ns/{name}") for name in names]
    assert len(links.split()) == len(names)
    assert not set(links.split()) & set(ours)
    assert runtime.out(bundle.shell("echo $$; hostname")) == "1\nberth-test\n"


def test_sees_its_own_root_and_nothing_of_the_host(runtime, bundle):
    out = runtime.out(bundle.shell("ls /; cat /proc/self/mountinfo"))
    assert out.split("\n")[:7] == ["bin", "dev", "etc", "proc", "root", "sys", "tmp"]
    mounts = {line.split()[4] for line in out.splitlines()[7:]}
    assert {"/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/sys",
            "/sys/fs/cgroup"} <= mounts
    assert not any(str(bundle.directory) in point for point in mounts)


def test_has_the_default_devices_and_links(runtime, bundle):
    out = runtime.out(bundle.shell(
        "for d in null zero full random urandom tty; do stat -c '%n %t:%T %a' /dev/$d; done; "
        "for l in ptmx fd stdin stdout stderr; do readlink /dev/$l; done; "
        "echo x > /dev/null; dd if=/dev/zero bs=4 count=1 2>/dev/null | wc -c"))
    assert out.splitlines() == [
        "/dev/null 1:3 666", "/dev/zero 1:5 666", "/dev/full 1:7 666", "/dev/random 1:8 666",
        "/dev/urandom 1:9 666", "/dev/tty 5:0 666",
        "pts/ptmx", "/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "4"]


def test_has_the_identity_and_rights_of_the_config(runtime, bundle):
    out = runtime.out(bundle.shell("grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; "
                                   "umask"))
    facts = {line.split(":")[0]: line.split(":")[1].split() for line in out.splitlines()[:-1]}
    assert facts["Uid"] == ["0"] * 4 and facts["Gid"] == ["0"] * 4
    assert facts["CapEff"] == facts["CapPrm"] == facts["CapBnd"] == ["00000000a80425fb"]
    assert facts["CapInh"] == facts["CapAmb"] == ["0000000000000000"]
    assert facts["NoNewPrivs"] == ["1"]
    assert out.splitlines()[-1] == "0022"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_becomes_another_user_with_its_groups(runtime, bundle):
    bundle.process["user"] = {"uid": 1000, "gid": 1001, "additionalGids": [44, 45], "umask": 0o77}
    out = runtime.out(bundle.shell("id -u; id -g; id -G; umask; "
                                   "grep -E '^Cap(Eff|Prm)' /proc/self/status"))
    assert out.splitlines()[:4] == ["1000", "1001", "1001 44 45", "0077"]
    assert [line.split()[1] for line in out.splitlines()[4:]] == ["0" * 16] * 2


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_lets_another_user_open_its_own_standard_output(runtime, bundle):
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    assert runtime.out(bundle.shell("echo one > /dev/stdout")) == "one\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_program_may_open_the_file_again_that_it_is_redirected_to(runtime, bundle, place):
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    bundle.shell("echo one; echo two >>/dev/stdout").write()
    with open(place / "out", "w", encoding="utf-8") as out:
        subprocess.run(runtime.command("run", "-b", str(bundle.directory), "c1"), stdout=out,
                       check=True)
    assert (place / "out").read_text() == "one\ntwo\n" and os.stat(place / "out").st_uid == 1000


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_keeps_ambient_capabilities_for_another_user(runtime, bundle):
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    for name in ("inheritable", "ambient"):
        bundle.process["capabilities"][name] = ["CAP_NET_BIND_SERVICE"]
    out = runtime.out(bundle.shell("grep -E '^Cap(Eff|Amb)' /proc/self/status"))
    assert [line.split()[1] for line in out.splitlines()] == ["0000000000000400"] * 2


def test_hides_and_protects_paths(runtime, bundle):
    script = "; ".join(f"test ! -e {path} || test -z \"$(cat {path} 2>/dev/null; "
                       f"ls {path} 2>/dev/null | grep -v ^/)\" || echo shown {path}"
                       for path in MASKED)
    assert runtime.out(bundle.shell(script + "; true")) == ""
    script = "; ".join(f"test ! -e {path} || grep -q ' {path} ro,' /proc/self/mountinfo "
                       f"|| echo writable {path}" for path in READONLY)
    assert runtime.out(bundle.shell(script + "; true")) == ""
    assert "Read-only file system" in runtime.run(
        bundle.shell("echo 0 > /proc/sys/kernel/domainname")).stderr


def test_has_a_read_only_root_when_asked(runtime, bundle):
    bundle.config["root"]["readonly"] = True
    (bundle.rootfs / "dev").mkdir()
    (bundle.rootfs / "proc").mkdir()
    (bundle.rootfs / "sys").mkdir()
    done = runtime.run(bundle.shell("echo ok > /dev/shm/x; touch /x"))
    assert (done.returncode, done.stderr) == (1, "touch: /x: Read-only file system\n")


def test_binds_files_and_directories(runtime, bundle, place):
    data = place / "data"
    data.mkdir()
    (data / "file").write_text("content\n")
    bundle.mount("/srv/data", data, "rbind", "ro").mount("/etc/one", data / "file", "bind")
    done = runtime.run(bundle.shell("cat /srv/data/file /etc/one; echo y > /etc/one; "
                                    "echo x > /srv/data/file"))
    assert done.stdout == "content\ncontent\n"
    assert done.stderr.endswith("/srv/data/file: Read-only file system\n")
    assert (data / "file").read_text() == "y\n"


def test_mounts_an_overlay_as_the_root(runtime, bundle, place, kind):
    layers = [place / "low", place / "high"]
    for number, layer in enumerate(layers):
        layer.mkdir()
        (layer / "which").write_text(f"{number}\n")
        (layer / f"only{number}").write_text("")
    (place / "upper").mkdir()
    (place / "work").mkdir()
    os.rename(bundle.rootfs, place / "base")
    bundle.rootfs.mkdir()
    options = [f"lowerdir+={path}" for path in (*reversed(layers), place / "base")]
    options += [f"upperdir={place}/upper", f"workdir={place}/work"]
    options += ["userxattr"] if kind != "root" else []
    bundle.config["mounts"].insert(0, {"destination": "/", "type": "overlay", "source": "overlay",
                                       "options": options})
    assert runtime.out(bundle.shell("cat /which; ls / | grep only; echo new > /which")) == \
        "1\nonly0\nonly1\n"
    assert (place / "upper/which").read_text() == "new\n"
    assert (layers[1] / "which").read_text() == "1\n"
    assert list(bundle.rootfs.iterdir()) == []


def test_mounts_an_image_as_a_layer_above_and_below_directories(runtime, bundle, place, kind):
    if not shutil.which("mkfs.erofs"):
        pytest.skip("needs mkfs.erofs")
    if "erofs" not in pathlib.Path("/proc/filesystems").read_text() and subprocess.run(
            ["modprobe", "erofs"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no EROFS")
    layers = [place / name for name in ("low", "middle", "high")]
    for number, layer in enumerate(layers):
        layer.mkdir()
        (layer / "which").write_text(f"{number}\n")
        (layer / f"only{number}").write_text("")
    images = [place / "base.erofs", place / "middle.erofs"]
    os.rename(bundle.rootfs, place / "base")
    bundle.rootfs.mkdir()
    for image, tree in zip(images, (place / "base", layers[1])):
        subprocess.run(["mkfs.erofs", image, tree], check=True, capture_output=True)
        image.chmod(0o644)
    (place / "upper").mkdir()
    (place / "work").mkdir()
    own = ["userxattr"] if kind != "root" else []
    options = [f"lowerdir+={path}" for path in (layers[2], images[1], layers[0], images[0])]
    options += [f"upperdir={place}/upper", f"workdir={place}/work"]
    bundle.config["mounts"].insert(0, {"destination": "/", "type": "overlay", "source": "overlay",
                                       "options": own + options})
    bundle.shell("cat /which; ls / | grep only; echo new > /which; grep -c erofs /proc/mounts || true")
    # By the kernel for root, else through FUSE.
    assert runtime.out(bundle) == "2\nonly0\nonly1\nonly2\n0\n"
    assert (place / "upper/which").read_text() == "new\n"
    assert "erofs" not in pathlib.Path("/proc/self/mounts").read_text()


def test_starts_in_the_working_directory_and_makes_it(runtime, bundle):
    bundle.process["cwd"] = "/new/place"
    assert runtime.out(bundle.shell("pwd")) == "/new/place\n"


def test_passes_no_descriptors_but_those_asked_for(runtime, bundle):
    read, write = os.pipe()
    try:
        bundle.shell("ls /proc/self/fd | wc -l")
        assert runtime.out(bundle, "c1", pass_fds=(write,)) == "4\n"  # 0, 1, 2 and ls's own
        bundle.shell("echo hello >&3").write()
        command = runtime.command("run", "-b", str(bundle.directory), "--preserve-fds", "1", "c1")
        subprocess.run(["bash", "-c", f'exec 3>&{write} "$@"', "bash", *command], check=True,
                       pass_fds=(write,))
        assert os.read(read, 100) == b"hello\n"
    finally:
        os.close(read)
        os.close(write)


def test_has_a_loopback_that_is_up_and_no_other_network(runtime, bundle):
    out = runtime.out(bundle.shell("ip -o link"))
    assert "lo: <LOOPBACK,UP,LOWER_UP>" in out and len(out.splitlines()) == 1


def test_sets_limits_scores_and_sysctls(runtime, bundle):
    bundle.process["oomScoreAdj"] = 500
    bundle.linux["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "81", "kernel.msgmax": "4096"}
    out = runtime.out(bundle.shell("ulimit -n; cat /proc/self/oom_score_adj "
                                   "/proc/sys/net/ipv4/ip_unprivileged_port_start "
                                   "/proc/sys/kernel/msgmax"))
    assert out.split() == ["1024", "500", "81", "4096"]


def test_filters_system_calls(runtime, bundle):
    bundle.linux["seccomp"] = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}
    for privileges in (True, False):
        bundle.process["noNewPrivileges"] = privileges
        done = runtime.run(bundle.shell("mkdir /x"))
        assert "Operation not supported" in done.stderr, done


def test_shows_its_own_cgroup_alone(runtime, bundle):
    out = runtime.out(bundle.shell("cat /proc/self/cgroup; "
                                   "grep ' /sys/fs/cgroup' /proc/self/mountinfo"))
    lines = out.splitlines()
    assert all(line.endswith(":/") for line in lines if ":" in line.split()[0])
    assert all(" ro," in line for line in lines if " /sys/fs/cgroup" in line)


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_joins_a_namespace_by_its_path(runtime, bundle):
    bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                  if space["type"] != "uts"]
    bundle.linux["namespaces"].append({"type": "uts", "path": "/proc/self/ns/uts"})
    del bundle.config["hostname"]
    assert runtime.out(bundle.shell("hostname")) == socket.gethostname() + "\n"


def test_maps_ids_in_a_user_namespace_of_its_own(runtime, bundle, kind):
    bundle.linux["namespaces"].append({"type": "user"})
    size = 65536 if kind == "root" else 1
    host = 100000 if kind == "root" else 0
    for member in ("uidMappings", "gidMappings"):
        bundle.linux[member] = [{"containerID": 0, "hostID": host, "size": size}]
    if kind == "root":
        for path, _, files in os.walk(bundle.rootfs):
            for name in ("", *files):
                os.chown(os.path.join(path, name), host, host, follow_symlinks=False)
    if kind == "userns":
        bundle.config["mounts"] = [mount for mount in bundle.config["mounts"]
                                   if mount["type"] != "devpts"]
    bundle.process["oomScoreAdj"] = 500
    out = runtime.out(bundle.shell("id -u; cat /proc/self/uid_map; touch /mine; stat -c %u /mine; "
                                   "cat /proc/self/oom_score_adj"))
    assert out.split() == ["0", "0", str(host), str(size), "0", "500"]
    assert os.stat(bundle.rootfs / "mine").st_uid == host


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_joins_the_user_namespace_of_another_container(runtime, bundle, place):
    other = Bundle(place / "other").args("/bin/sleep", "60")
    other.linux["cgroupsPath"] = bundle.linux["cgroupsPath"] + "-other"
    other.linux["namespaces"].append({"type": "user"})
    mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    for member in ("uidMappings", "gidMappings"):
        bundle.linux[member] = other.linux[member] = mapping  # beside a path it says nothing new
    for path in (*other.rootfs.rglob("*"), *bundle.rootfs.rglob("*"), other.rootfs, bundle.rootfs):
        os.chown(path, 100000, 100000, follow_symlinks=False)
    other.write()
    assert runtime.call("run", "--detach", "-b", str(other.directory), "other",
                        capture_output=False, stdout=subprocess.DEVNULL).returncode == 0
    space = f"/proc/{runtime.state('other')['pid']}/ns/user"
    bundle.linux["namespaces"].append({"type": "user", "path": space})
    out = runtime.out(bundle.shell("readlink /proc/self/ns/user; echo $$; id -u; "
                                   "touch /mine; hostname"))
    same = os.readlink(space)
    assert runtime.call("delete", "--force", "other").returncode == 0
    assert out.split() == [same, "1", "0", "berth-test"]
    assert os.stat(bundle.rootfs / "mine").st_uid == 100000


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("call", ["openat2", "mount_setattr", "close_range", "clone3"])
def test_does_without_a_system_call_that_the_kernel_lacks(runtime, bundle, place, call):
    (place / "data").mkdir()
    bundle.mount("/srv/data", place / "data", "bind", "ro")
    done = runtime.run(bundle.shell("id -u; pwd; touch /srv/data/x; echo 1 > /proc/sys/kernel/sem"),
                       preexec_fn=missing_calls.without(call))
    assert done.stdout == "0\n/\n"
    assert done.stderr.count("Read-only file system") == 2, done.stderr


def test_prints_the_plan_that_it_would_execute(runtime, bundle):
    bundle.shell("true").write()
    plan = runtime.call("plan", "--bundle", str(bundle.directory), "c1").stdout.splitlines()
    assert "mount proc at '/proc' (nosuid,nodev,noexec)" in plan
    assert plan[-1] == "execute /bin/sh -c true"
    assert not runtime.root.exists()


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_moves_itself_into_cgroups_of_v1(runtime, bundle, place, hybrid):
    # The kernel lets nobody fork while one process moves another.
    bundle.linux["resources"]["pids"] = {"limit": 100}
    bundle.linux["resources"]["memory"] = {"limit": 1 << 27}
    runtime.prefix = ["strace", "-f", "-o", str(place / "trace"), "-e", "trace=openat"]
    out = runtime.out(bundle.shell("cat /proc/self/cgroup"))
    seen = {line.split(":")[1]: line.split(":")[2] for line in out.splitlines()}
    assert (seen["pids"], seen["memory"]) == ("/", "/")  # the roots of its cgroup namespace
    trace = (place / "trace").read_text()
    v1 = {path for name, path in hybrid.items() if name != "unified"}
    assert trace.count('"tasks"') == len(v1) and '"cgroup.procs"' not in trace


@pytest.mark.parametrize("kind", ["user"], indirect=True)
def test_the_root_of_a_users_namespace_keeps_states_in_the_users_runtime_directory(runtime, place):
    """podman without root calls like this, and names no --root."""
    command = [word for word in runtime.command("list") if word not in ("--root", str(runtime.root))]
    done = subprocess.run(command, env={**os.environ, "XDG_RUNTIME_DIR": str(place)}, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert os.listdir(place / "berth") == ["runtime"]
