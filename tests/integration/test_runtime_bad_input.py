# SPDX-License-Identifier: Apache-2.0
"""Bad input: each gives runc's exit code and one line, and leaves nothing (the fixture `runtime`
looks)."""

import os
import subprocess

import pytest

from support.bundle import Runtime
from support.oci_fixtures import (assert_nothing_is_left, bundle, kind, ok, place,  # noqa: F401
                                  runtime)

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)


def refused(runtime, bundle, *verb, **options):
    """The error line of a verb on what is in the bundle already."""
    done = runtime.call(*(verb or ("run",)), "-b", str(bundle.directory), "c1", **options)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.count("\n") == 1, done
    return done.stderr.removeprefix("berth-runtime: ").rstrip("\n")


def cannot_read(bundle, reason):
    return f"cannot run container 'c1': cannot read bundle '{bundle.directory}': {reason}"


@pytest.mark.parametrize("text, reason", [
    ("", "config.json: line 1, column 1: invalid JSON"),
    ("{", None), ("[]", "config.json: expected an object, got an array"), ("nonsense", None),
    ('{"ociVersion": "1.0.2", "process": {"cwd"', None),
    ('{"ociVersion": "2.0.0"}', "config.json: ociVersion: expected 1.x, got '2.0.0'"),
    ('{"ociVersion": "1.0.2", "process": {"cwd": 3}}',
     "config.json: process.cwd: expected a string, got a number"),
    ('{"ociVersion": "1.0.2", "process": {"cwd": "/", "user": {"uid": 4294967296, "gid": 0}}}',
     "config.json: process.user.uid: 4294967296 is out of range"),
    ("[" * 100000, None),
])
def test_a_config_that_is_none_is_named_by_its_place(runtime, bundle, text, reason):
    (bundle.directory / "config.json").write_text(text)
    line = refused(runtime, bundle)
    if reason is None:
        assert line.startswith(cannot_read(bundle, "config.json: ")), line
        assert len(line) < 400
    else:
        assert line == cannot_read(bundle, reason)


def test_a_config_of_64_mb_is_not_read_to_its_end(runtime, bundle):
    (bundle.directory / "config.json").write_text('{"annotations": {"a": "' + "x" * (64 << 20))
    assert refused(runtime, bundle) == cannot_read(
        bundle, "read 'config.json': larger than 16777216 bytes")


def test_annotations_of_any_size_leave_the_container_in_reach(runtime, bundle):
    bundle.config["annotations"] = {"large": "\"\n" * (3 << 20)}
    bundle.args("/bin/sleep", "1000").write()
    assert runtime.call("create", "-b", str(bundle.directory), "c1", stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, capture_output=False).returncode == 0
    assert runtime.state()["annotations"] == bundle.config["annotations"]
    ok(runtime.call("delete", "--force", "c1"))


def placed(config, path, value):
    """Puts `value` where `path` says: 'linux.namespaces[]' is one more of these."""
    *parents, last = path.split(".")
    for name in parents:
        config = config.setdefault(name, {})
    if last.endswith("[]"):
        config.setdefault(last.removesuffix("[]"), []).append(value)
    else:
        config[last] = value


# The specification has runtimes pass over members that they do not know.
@pytest.mark.parametrize("path, value", [
    ("ociVersion", "1.99.0"), ("tomorrow", {"is": ["another", "day"]}), ("process.tomorrow", 1),
    ("process.user.tomorrow", 1), ("root.tomorrow", "1"), ("linux.tomorrow", [1]), ("linux.resources.tomorrow", {}),
    ("linux.resources.memory.tomorrow", 1), ("hooks.tomorrow", [{"path": "/nowhere"}]),
    ("mounts[]", {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "tomorrow": True}),
    ("linux.seccomp", {"defaultAction": "SCMP_ACT_ALLOW", "tomorrow": 1,
                       "syscalls": [{"names": ["tomorrows_call"], "action": "SCMP_ACT_ERRNO", "tomorrow": 1}]}),
    ("vm", {"hypervisor": {"path": "/nowhere"}}), ("zos", {}),
])
def test_members_of_the_future_are_passed_over(runtime, bundle, path, value):
    placed(bundle.args("/bin/true").config, path, value)
    done = runtime.run(bundle)
    assert (done.returncode, done.stderr) == (0, ""), done


# What one member that is known asks for is done, or it is an error that names it.
@pytest.mark.parametrize("path, value, words", [
    ("linux.namespaces[]", {"type": "tomorrow"}, "linux.namespaces: unknown type 'tomorrow'"),
    ("process.rlimits[]", {"type": "RLIMIT_TOMORROW", "hard": 1, "soft": 1}, "unknown type 'RLIMIT_TOMORROW'"),
    ("process.scheduler", {"policy": "SCHED_TOMORROW"}, "process.scheduler.policy: unknown value 'SCHED_TOMORROW'"),
    ("process.ioPriority", {"class": "IOPRIO_CLASS_TOMORROW", "priority": 1}, "unknown value 'IOPRIO_CLASS_TOMORROW'"),
    ("linux.memoryPolicy", {"mode": "MPOL_TOMORROW", "nodes": "0"}, "unknown value 'MPOL_TOMORROW'"),
    ("linux.personality", {"domain": "LINUX128"}, "unknown value 'LINUX128'"),
    ("linux.rootfsPropagation", "tomorrow", "linux.rootfsPropagation: unknown value 'tomorrow'"),
    ("linux.seccomp", {"defaultAction": "SCMP_ACT_TOMORROW"}, "unknown action 'SCMP_ACT_TOMORROW'"),
    ("linux.seccomp", {"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_TOMORROW"]},
     "unknown flag 'SECCOMP_FILTER_FLAG_TOMORROW'"),
    ("mounts[]", {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["tomorrow"]},
     "set mount option 'tomorrow'"),
])
def test_a_value_of_the_future_is_refused_by_its_name(runtime, bundle, path, value, words):
    placed(bundle.args("/bin/true").config, path, value)
    bundle.write()
    assert words in refused(runtime, bundle)


def test_a_capability_of_the_future_is_told_and_left_out(runtime, bundle):
    bundle.args("/bin/true").process["capabilities"] = {"bounding": ["CAP_CHOWN", "CAP_TOMORROW"]}
    done = runtime.run(bundle)
    assert done.returncode == 0
    assert done.stderr == ("berth-runtime: warning: process.capabilities.bounding: unknown capability 'CAP_TOMORROW', "
                           "ignoring\n")


def test_a_truncated_config_is_refused_wherever_it_ends(runtime, bundle):
    bundle.write()
    path = bundle.directory / "config.json"
    whole = path.read_text()
    for length in range(0, len(whole) - 1, max(1, len(whole) // 40)):
        path.write_text(whole[:length])
        assert refused(runtime, bundle).startswith(cannot_read(bundle, "config.json: "))


def test_a_bundle_that_is_none(runtime, bundle):
    (bundle.directory / "config.json").unlink(missing_ok=True)
    assert refused(runtime, bundle) == cannot_read(
        bundle, "open 'config.json': No such file or directory")
    os.mkfifo(bundle.directory / "config.json")
    assert refused(runtime, bundle, timeout=20) == cannot_read(
        bundle, "open 'config.json': not a regular file")


@pytest.mark.parametrize("name, target", [("proc", "/etc"), ("sys", "/etc"), ("dev", "/etc"),
                                          ("proc", "proc"), ("dev", "../../dev")])
def test_a_link_in_the_place_of_a_kernel_file_system(runtime, bundle, name, target):
    (bundle.rootfs / name).symlink_to(target)
    bundle.write()
    line = refused(runtime, bundle)
    assert f"'/{name}'" in line and "symbolic link" in line, line


def test_links_that_lead_round_and_round(runtime, bundle, place):
    (bundle.rootfs / "a").symlink_to("b")
    (bundle.rootfs / "b").symlink_to("a")
    bundle.mount("/a/file", place, "bind").write()
    assert refused(runtime, bundle) == (
        f"cannot run container 'c1': cannot mount '{place}' at '/a/file': open '/a/file': Too many "
        "levels of symbolic links")


@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer",
                                   "startContainer"])
def test_a_hook_that_is_not_there(runtime, bundle, stage):
    bundle.config["hooks"] = {stage: [{"path": "/nosuch/hook"}]}
    bundle.write()
    assert refused(runtime, bundle) == (
        f"cannot run container 'c1': cannot run the {stage} hook: start '/nosuch/hook': No such "
        "file or directory")


def test_a_full_state_directory(bundle, place, kind):
    """Of a few kilobytes, so that the state fits at first and then does not."""
    state = place / "full"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(state)],
                   check=True)
    try:
        (state / "filler").write_bytes(b"x" * 4096)
        runtime = Runtime(state)
        bundle.write()
        line = refused(runtime, bundle)
        assert line.startswith("cannot run container 'c1': ") and line.endswith(
            "No space left on device"), line
        assert os.listdir(state) == ["filler"]
    finally:
        subprocess.run(["umount", str(state)], check=True)
    state.rmdir()
    assert_nothing_is_left(place, Runtime(place / "state"))


def test_a_read_only_state_directory(bundle, place, kind):
    state = place / "readonly"
    state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=700", "tmpfs", str(state)], check=True)
    try:
        bundle.write()
        assert refused(Runtime(state), bundle) == (
            "cannot run container 'c1': create directory 'c1': Read-only file system")
    finally:
        subprocess.run(["umount", str(state)], check=True)
    state.rmdir()
    assert_nothing_is_left(place, Runtime(place / "state"))


def test_no_permission_for_a_namespace(bundle, place, kind):
    uid = 65533
    state = place / "state"
    state.mkdir(mode=0o700)
    os.chown(state, uid, uid)
    bundle.write()
    runtime = Runtime(state)
    assert refused(runtime, bundle, user=uid, group=uid, extra_groups=[]) == (
        "cannot run container 'c1': make a process in new namespaces: Operation not permitted; "
        "try: a user namespace in linux.namespaces, as 'berth-runtime spec --rootless' writes it")
    assert os.listdir(state) == []


def test_errors_go_to_the_log_as_callers_read_them(runtime, bundle, place):
    import json
    done = runtime.call("--log", str(place / "log.json"), "--log-format", "json", "start", "c1")
    assert done.returncode == 1
    entry, = map(json.loads, (place / "log.json").read_text().splitlines())
    assert entry["level"] == "error" and "does not exist" in entry["msg"]
    assert len(entry["time"]) == len("2026-01-01T00:00:00Z")
    runtime.call("--log", str(place / "log"), "start", "c1")
    assert (place / "log").read_text().endswith(
        "error: cannot start container 'c1': container 'c1' does not exist\n")
