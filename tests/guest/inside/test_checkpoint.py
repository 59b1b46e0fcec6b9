# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore on a kernel that CRIU can work on: tests/guest/test_checkpoint.py runs this
file in a guest."""

import contextlib
import json
import subprocess

import pytest
from support.bundle import Runtime
from support.oci_fixtures import (assert_nothing_is_left, bundle, cgroup_name, ok,  # noqa: F401
                                  place, start, until)

COUNT = "i=0; while :; do i=$((i+1)); echo $i >/tmp/count; sleep 0.1; done"


@pytest.fixture
def runtime(place):
    made = Runtime(place / "state")
    yield made
    for name in ("c1", "c2"):
        made.call("delete", "--force", name)
    assert_nothing_is_left(place, made)


@pytest.fixture
def images(place):
    return place / "images"


@pytest.fixture
def counter(bundle, start):
    """A container that counts, and what it has come to."""
    def count():
        with contextlib.suppress(OSError, ValueError):
            return int((bundle.rootfs / "tmp/count").read_text(encoding="utf-8"))
        return 0
    bundle.shell(COUNT)
    start()
    until(lambda: count() > 5)
    return count


@pytest.fixture
def checkpoint(runtime, images):
    def call(*flags, name="c1"):
        return runtime.call("checkpoint", "--image-path", str(images), *flags, name)
    return call


@pytest.fixture
def restore(runtime, bundle, images):
    """restore(name) detached; its output goes to a file, because it lives on with it."""
    def call(name="c2", *flags):
        out = bundle.directory / "restored"
        with open(out, "w+", encoding="utf-8") as stream:
            done = subprocess.run(
                runtime.command("restore", "--detach", "--image-path", str(images), "--bundle",
                                str(bundle.directory), *flags, name), stdin=subprocess.DEVNULL,
                stdout=stream, stderr=stream, timeout=60, check=False)
        assert done.returncode == 0, out.read_text(encoding="utf-8") + log(images / "restore.log")
    return call


def log(path):
    return path.read_text(encoding="utf-8")[-6000:] if path.exists() else ""


def saved(done, images):
    assert (done.returncode, done.stderr) == (0, ""), done.stderr + log(images / "dump.log")


def test_a_restored_container_goes_on_where_it_was(runtime, bundle, counter, checkpoint, restore,
                                                   images):
    saved(checkpoint(), images)
    reached = counter()
    assert runtime.call("state", "c1").returncode == 1
    restore("c2", "--pid-file", str(bundle.directory / "pid"))
    state = runtime.state("c2")
    assert state["status"] == "running"
    assert (bundle.directory / "pid").read_text(encoding="utf-8") == str(state["pid"])
    with open(f"/proc/{state['pid']}/cgroup", encoding="utf-8") as table:
        assert table.read() == f"0::{bundle.linux['cgroupsPath']}\n"
    until(lambda: counter() > reached)
    assert counter() < reached + 100
    assert ok(runtime.call("exec", "c2", "/bin/cat", "/proc/1/comm")) == "sh\n"
    ok(runtime.call("pause", "c2"))
    ok(runtime.call("resume", "c2"))
    ok(runtime.call("kill", "c2", "KILL"))
    until(lambda: runtime.state("c2")["status"] == "stopped")
    ok(runtime.call("delete", "c2"))


def test_images_can_be_restored_more_than_once(runtime, counter, checkpoint, restore, images):
    saved(checkpoint(), images)
    for name in ("c1", "c2"):
        reached = counter()
        restore(name)
        until(lambda: counter() != reached)
        ok(runtime.call("delete", "--force", name))


def test_a_container_can_be_left_running(runtime, counter, checkpoint, images):
    saved(checkpoint("--leave-running"), images)
    reached = counter()
    assert runtime.state()["status"] == "running"
    until(lambda: counter() > reached)


def test_a_container_goes_on_when_its_checkpoint_fails(runtime, bundle, start, checkpoint, images):
    talk = "sleep 600 | /bin/busybox nc -l -p 7 >/dev/null & sleep 1; " \
        "sleep 600 | /bin/busybox nc 127.0.0.1 7 >/dev/null & "
    bundle.shell(talk + "sleep 1; " + COUNT)
    start()
    count = bundle.rootfs / "tmp/count"
    until(count.exists)
    done = checkpoint()
    assert done.returncode == 1
    assert done.stderr.startswith("berth-runtime: cannot checkpoint container 'c1': run 'criu dump'"
                                  ": exit status 1: "), done.stderr
    assert "--tcp-established" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert runtime.state()["status"] == "running"
    reached = count.read_text(encoding="utf-8")
    until(lambda: count.read_text(encoding="utf-8") != reached)
    saved(checkpoint("--tcp-established", "--leave-running"), images)


def test_a_paused_container_is_restored_running(runtime, counter, checkpoint, restore, images):
    ok(runtime.call("pause", "c1"))
    reached = counter()
    saved(checkpoint(), images)
    restore("c2")
    until(lambda: counter() > reached)


def test_memory_can_be_written_ahead(runtime, counter, place, images, checkpoint, restore):
    ok(runtime.call("checkpoint", "--pre-dump", "--image-path", str(place / "ahead"), "c1"))
    assert runtime.state()["status"] == "running"
    saved(checkpoint("--parent-path", "../ahead"), images)
    reached = counter()
    restore("c2")
    until(lambda: counter() > reached)


def test_what_is_mounted_into_a_container_is_there_again(runtime, bundle, counter, place, start,
                                                         checkpoint, restore, images):
    ok(runtime.call("delete", "--force", "c1"))
    (place / "data").mkdir()
    (place / "data/name").write_text("before\n", encoding="utf-8")
    (bundle.rootfs / "link").symlink_to("/tmp")
    bundle.mount("/link/data", place / "data", "rbind", "ro")
    start()
    saved(checkpoint("--work-path", str(place / "work")), images)
    assert (place / "work/dump.log").exists()
    (place / "data/name").write_text("after\n", encoding="utf-8")
    restore("c2", "--work-path", str(place / "work"))
    look = "cat /tmp/data/name; cat /proc/kcore | wc -c; touch /tmp/data/new 2>/dev/null || echo no"
    assert ok(runtime.call("exec", "c2", "/bin/sh", "-c", look)) == "after\n0\nno\n"


def test_a_mount_below_a_bind_is_there_again(runtime, bundle, counter, place, start, checkpoint, restore,
                                             images):
    """No bind of the config is for it: the images name its place."""
    ok(runtime.call("delete", "--force", "c1"))
    deep = place / "data/deep"
    deep.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "deep", deep], check=True)
    try:
        (deep / "name").write_text("before\n", encoding="utf-8")
        bundle.mount("/data", place / "data", "rbind")
        start()
        saved(checkpoint(), images)
        assert "/data/deep" in (images / "outside-mounts.json").read_text(encoding="utf-8")
        (deep / "name").write_text("after\n", encoding="utf-8")
        restore("c2")
        look = "cat /data/deep/name; grep -c ' /data/deep ' /proc/self/mountinfo"
        assert ok(runtime.call("exec", "c2", "/bin/sh", "-c", look)) == "after\n1\n"
        ok(runtime.call("delete", "--force", "c2"))
    finally:
        subprocess.run(["umount", deep], check=True)


def test_a_restore_in_the_foreground_has_streams_and_status(runtime, bundle, checkpoint, images):
    bundle.shell("until [ -e /tmp/go ]; do sleep 0.1; done; echo heard; exit 7").write()
    with subprocess.Popen(runtime.command("run", "--detach", "-b", str(bundle.directory), "c1"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as first:
        assert first.wait() == 0
        saved(checkpoint(), images)
        assert first.stdout.read() == b""
    (bundle.rootfs / "tmp/go").touch()
    done = runtime.call("restore", "--image-path", str(images), "-b", str(bundle.directory), "c2")
    assert (done.returncode, done.stdout, done.stderr) == (7, "heard\n", ""), \
        log(images / "restore.log")


def test_hooks_set_things_up_before_the_processes_go_on(runtime, bundle, counter, place, checkpoint,
                                                        restore, images):
    saved(checkpoint(), images)
    reached = counter()
    seen = place / "seen"
    script = place / "hook"
    script.write_text(f"#!/bin/sh\ncat >{seen}; cat {bundle.rootfs}/tmp/count >>{seen}\n",
                      encoding="utf-8")
    script.chmod(0o755)
    bundle.config["hooks"] = {"createRuntime": [{"path": str(script)}],
                              "startContainer": [{"path": "/nonexistent"}]}
    bundle.write()
    restore("c2")
    head, end = json.JSONDecoder().raw_decode(seen.read_text(encoding="utf-8"))
    assert head["pid"] == runtime.state("c2")["pid"]
    assert int(seen.read_text(encoding="utf-8")[end:]) == reached
    until(lambda: counter() > reached)


def test_nothing_is_left_of_a_restore_that_fails(runtime, bundle, counter, checkpoint, images):
    saved(checkpoint(), images)
    (images / "core-1.img").unlink()
    done = runtime.call("restore", "-d", "--image-path", str(images), "-b", str(bundle.directory),
                        "c2")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "cannot restore container 'c2': run 'criu restore': exit status" in done.stderr
    assert not list(runtime.root.iterdir())


def test_who_was_run_in_the_foreground_is_restored_there(runtime, bundle, checkpoint, images):
    bundle.shell("until [ -e /tmp/go ]; do sleep 0.1; done; exit 7").write()
    with subprocess.Popen(runtime.command("run", "-b", str(bundle.directory), "c1"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as first:
        until(lambda: runtime.call("state", "c1").returncode == 0
              and runtime.state()["status"] == "running")
        saved(checkpoint(), images)
        assert first.wait() == 137
    command = ("restore", "--image-path", str(images), "-b", str(bundle.directory))
    done = runtime.call(*command, "--detach", "c2")
    assert done.returncode == 1 and "ran in the foreground" in done.stderr, done
    (bundle.rootfs / "tmp/go").touch()
    done = runtime.call(*command, "c2")
    assert (done.returncode, done.stderr) == (7, ""), done


@pytest.mark.parametrize("status", ["created", "stopped"])
def test_only_a_running_container_can_be_checkpointed(runtime, bundle, checkpoint, images, status):
    bundle.args("/bin/true").write()
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    done = runtime.call("create", "-b", str(bundle.directory), "c1", capture_output=False, **silent)
    assert done.returncode == 0
    if status == "stopped":
        ok(runtime.call("start", "c1"))
        until(lambda: runtime.state()["status"] == "stopped")
    done = checkpoint()
    assert done.returncode == 1
    assert done.stderr == ("berth-runtime: cannot checkpoint container 'c1': container cannot be "
                           f"checkpointed in {status} state\n")
    assert not images.exists()
