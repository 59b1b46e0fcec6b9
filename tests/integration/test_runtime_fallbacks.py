# SPDX-License-Identifier: Apache-2.0
"""Kernels without the newer system calls, each played by a filter that answers ENOSYS: a whole
container looks the same as on this one."""

import os
import subprocess

import pytest

from support import missing_calls
from support.oci_fixtures import (bundle, kind, mounted_hierarchies, place,  # noqa: F401
                                  runtime)

SINGLE = sorted(missing_calls.NUMBERS)
TOGETHER = {
    "detached-mounts": missing_calls.DETACHED_MOUNTS,
    "linux-5.1": (*missing_calls.DETACHED_MOUNTS, "clone3", "pidfd_open", "openat2", "close_range"),
    "all": tuple(SINGLE),
}
CASES = [pytest.param((name,), id=name) for name in SINGLE] + \
        [pytest.param(names, id=name) for name, names in TOGETHER.items()]


def skip_without_device_lists(kind, names):
    """Root's device rules are a program or v1's lists; without either a container is refused."""
    if "bpf" in names and kind == "root" and "devices" not in mounted_hierarchies():
        pytest.skip("no cgroup v1 for device rules")


@pytest.fixture
def whole(bundle, place, kind):
    """A container with an overlay for a root, binds, a tmpfs that is copied up, and restrictions."""
    os.rename(bundle.rootfs, place / "low")
    bundle.rootfs.mkdir()
    for name in ("high", "upper", "work", "data", "data/below"):
        (place / name).mkdir()
    (place / "low/opt/deep").mkdir(parents=True)
    (place / "low/opt/deep/file").write_text("image\n")
    (place / "data/file").write_text("host\n")
    options = [f"lowerdir+={place}/high", f"lowerdir+={place}/low", f"upperdir={place}/upper",
               f"workdir={place}/work"]
    bundle.config["mounts"].insert(0, {
        "destination": "/", "type": "overlay", "source": "overlay",
        "options": options + (["userxattr"] if kind == "userns" else [])})
    bundle.mount("/srv/rw", place / "data", "rbind", "nosuid")
    bundle.mount("/srv/ro", place / "data", "bind", "ro", "nodev", "noexec")
    bundle.mount("/srv/all", place / "data", "rbind", "rro")
    bundle.mount("/srv/file", place / "data/file", "bind", "ro")
    bundle.mount("/opt", "tmpfs", "mode=750", "ro", "tmpcopyup", "size=1m", kind="tmpfs")
    return bundle


SCRIPT = r"""
echo "$$ $(id -u) $(pwd)"
cat /srv/file /opt/deep/file
for f in /new /srv/rw/new /dev/shm/new; do echo > $f || echo "cannot write $f"; done
for f in /srv/ro/new /srv/all/new /srv/file /opt/new /proc/sys/kernel/sem /sys/new /sys/fs/cgroup/x
do (echo > $f) 2> /dev/null && echo "can write $f"; done
for d in null zero full random urandom tty; do stat -c '%n %t:%T' /dev/$d; done
stat -c '%a %n' /opt /dev/shm /dev
echo text > /dev/null; cat /dev/null
cat /proc/keys | wc -c; ls /sys/firmware | wc -l
readlink /dev/fd; readlink /dev/ptmx; test -c /dev/pts/ptmx && echo ptmx
ls /proc/self/fd | wc -l
while read id parent device root point flags rest; do echo "$point $flags"; done \
    < /proc/self/mountinfo
"""


def told(runtime, bundle, **options):
    """What the container says of itself, but for cgroups: which it joins may differ."""
    out = runtime.out(bundle.shell(SCRIPT), **options)
    return [line for line in out.splitlines() if not line.startswith("/sys/fs/cgroup/")]


@pytest.mark.parametrize("names", CASES)
def test_a_whole_container_is_the_same_without(runtime, whole, place, kind, names):
    skip_without_device_lists(kind, names)
    with_them = told(runtime, whole)
    assert with_them[:3] == ["1 0 /", "host", "image"]
    assert not any("can" in line for line in with_them), with_them
    (place / "upper/new").unlink()
    without = told(runtime, whole, preexec_fn=missing_calls.without(*names))
    assert without == with_them


@pytest.mark.parametrize("names", CASES)
def test_a_container_is_created_started_and_killed_without(runtime, bundle, kind, names):
    skip_without_device_lists(kind, names)
    bundle.args("/bin/sleep", "100").write()
    options = {"preexec_fn": missing_calls.without(*names)}
    with open(bundle.directory / "out", "wb") as out:
        done = runtime.call("create", "-b", str(bundle.directory), "c1", capture_output=False,
                            stdout=out, stderr=out, **options)
    assert done.returncode == 0, (bundle.directory / "out").read_text()
    try:
        is_started_and_killed(runtime, options)
    finally:
        runtime.call("delete", "--force", "c1")


def is_started_and_killed(runtime, options):
    assert runtime.state()["status"] == "created"
    for words, status in ((("start", "c1"), "running"), (("kill", "c1", "TERM"), "running"),
                          (("kill", "c1", "KILL"), None)):
        done = runtime.call(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert status in (None, runtime.state()["status"])
    done = runtime.call("delete", "--force", "c1", **options)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("names", [("bpf",), ("bpf", "clone3")], ids=" ".join)
def test_devices_are_refused_without_a_filter_program(runtime, bundle, kind, names):
    skip_without_device_lists(kind, names)
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/control", "major": 10, "minor": 237}]
    bundle.args("/bin/dd", "if=/dev/control", "count=0")
    options = {"preexec_fn": missing_calls.without(*names)}
    done = runtime.run(bundle, **options)
    assert done.stderr == "dd: can't open '/dev/control': Operation not permitted\n"
    bundle.linux["resources"]["devices"].append(
        {"allow": True, "type": "c", "major": 10, "minor": 237, "access": "r"})
    assert runtime.run(bundle, **options).returncode == 0


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_an_id_map_without_the_call_is_one_line(runtime, bundle, place):
    maps = [{"containerID": 0, "hostID": 100000, "size": 1}]
    bundle.mount("/data", place, "bind", "idmap")
    bundle.config["mounts"][-1] |= {"uidMappings": maps, "gidMappings": maps}
    done = runtime.run(bundle, preexec_fn=missing_calls.without("mount_setattr"))
    assert (done.returncode, done.stderr) == (
        1, f"berth-runtime: cannot run container 'c1': cannot mount '{place}' at '/data': "
           "config.json: mounts[7].options: idmap: needs Linux 5.12\n")


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_mounts_below_a_bind_become_read_only_without_mount_setattr(runtime, bundle, place):
    (place / "tree/below").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place / "tree/below"], check=True)
    try:
        bundle.mount("/data", place / "tree", "rbind", "rro").shell("echo > /data/below/x")
        done = runtime.run(bundle, preexec_fn=missing_calls.without("mount_setattr"))
    finally:
        subprocess.run(["umount", place / "tree/below"], check=True)
    assert done.stderr.endswith("can't create /data/below/x: Read-only file system\n"), done
