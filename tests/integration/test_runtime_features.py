# SPDX-License-Identifier: Apache-2.0
"""features, spec and --version: what callers ask a runtime before they use it."""

import json
import shutil
import subprocess

import pytest

from support.bundle import PROGRAMS, make_root
from support.oci_fixtures import bundle, kind, ok, place, runtime  # noqa: F401

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)


def test_features_has_the_members_that_callers_read(runtime):
    told = json.loads(ok(runtime.call("features")))
    assert (told["ociVersionMin"], told["ociVersionMax"]) == ("1.0.0", "1.3.0")
    assert told["hooks"] == ["prestart", "createRuntime", "createContainer", "startContainer",
                             "poststart", "poststop"]
    assert {"rro", "rnosuid", "idmap", "ridmap", "tmpcopyup", "bind", "rbind", "ro", "rprivate",
            "nosymfollow"} <= set(told["mountOptions"])
    on_linux = told["linux"]
    assert on_linux["namespaces"] == ["cgroup", "ipc", "mount", "network", "pid", "time", "user",
                                      "uts"]
    assert len(on_linux["capabilities"]) == 41 and "CAP_BPF" in on_linux["capabilities"]
    assert on_linux["cgroup"]["v1"] and on_linux["cgroup"]["v2"]
    seccomp = on_linux["seccomp"]
    assert "SCMP_ACT_NOTIFY" in seccomp["actions"] and "SCMP_CMP_MASKED_EQ" in seccomp["operators"]
    assert "SCMP_ARCH_X86_64" in seccomp["archs"]
    assert set(seccomp["supportedFlags"]) <= set(seccomp["knownFlags"])
    assert "SECCOMP_FILTER_FLAG_LOG" in seccomp["supportedFlags"]
    assert "MPOL_BIND" in on_linux["memoryPolicy"]["modes"]


def test_has_every_member_that_runc_has(runtime):
    runc = shutil.which("runc")
    if runc is None:
        pytest.skip("needs runc")
    done = subprocess.run([runc, "features"], capture_output=True, text=True, check=True)
    wanted = json.loads(done.stdout)
    told = json.loads(ok(runtime.call("features")))

    def missing(ours, theirs, path):
        if isinstance(theirs, dict):
            return [line for key, value in theirs.items() if not key.startswith("org.opencontainers")
                    for line in (missing(ours[key], value, f"{path}.{key}") if key in ours
                                 else [f"{path}.{key}"])]
        if isinstance(theirs, list):
            # These are flags of a file system, which gets them as they are.
            own = {"acl", "noacl"}
            return [f"{path}: {word}" for word in theirs if word not in ours and word not in own]
        return []

    assert missing(told, wanted, "") == []


def test_spec_writes_a_bundle_that_runs(runtime, place):
    directory = place / "made"
    make_root(directory / "rootfs")
    ok(runtime.call("spec", "--bundle", str(directory)))
    path = directory / "config.json"
    config = json.loads(path.read_text())
    assert config["process"]["terminal"] and config["root"] == {"path": "rootfs", "readonly": True}
    config["process"]["terminal"] = False
    config["process"]["args"] = ["id"]
    path.write_text(json.dumps(config))
    done = runtime.call("run", "-b", str(directory), "c1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "uid=0(root) gid=0\n", "")
    again = runtime.call("spec", "--bundle", str(directory))
    assert (again.returncode, again.stderr) == (
        1, "berth-runtime: cannot write the configuration: create 'config.json': File exists\n")


def test_spec_for_an_ordinary_user_runs_for_one(runtime, place, kind):
    uid = 65533
    directory = place / "made"
    make_root(directory / "rootfs")
    state = place / "rootless"
    state.mkdir()
    subprocess.run(["chown", "-R", f"{uid}:{uid}", str(directory), str(state)], check=True)
    who = {"user": uid, "group": uid, "extra_groups": [], "check": False, "capture_output": True,
           "text": True, "timeout": 30, "stdin": subprocess.DEVNULL}
    program = [runtime.program, "--root", str(state)]
    done = subprocess.run([*program, "spec", "--rootless", "-b", str(directory)], **who)
    assert (done.returncode, done.stderr) == (0, "")
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config["process"]["terminal"] = False
    config["process"]["args"] = ["sh", "-c", "id; cat /proc/self/uid_map; ls /sys | grep -c ."]
    path.write_text(json.dumps(config))
    done = subprocess.run([*program, "run", "-b", str(directory), "c1"], **who)
    assert (done.returncode, done.stdout.split()[:5], done.stderr) == (
        0, ["uid=0(root)", "gid=0", "0", str(uid), "1"], ""), done


@pytest.mark.parametrize("name, first", [("runc", "runc version "), ("crun", "crun version "),
                                         ("berth-runtime", "berth-runtime version ")])
def test_tells_its_version_in_the_words_of_the_name_it_is_called_by(place, kind, name, first):
    link = place / name
    link.symlink_to(PROGRAMS / "berth-runtime")
    for flag in ("--version", "-v"):
        lines = subprocess.run([str(link), flag], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        assert lines[0].startswith(first)
        assert lines[1].startswith("commit: ") and lines[2] == "spec: 1.3.0"
