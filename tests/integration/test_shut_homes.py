# SPDX-License-Identifier: Apache-2.0
"""Directories that their user may pass and the machine's root may not: a home on an NFS server that
makes root nobody. A file system of FUSE that only its user may enter is such a directory."""

import os
import subprocess

import pytest

USERS = pytest.mark.profiles("user", "single_id")


@pytest.fixture
def home(profile, work):
    lower, upper, scratch, mounted = (profile.own(work / name) for name in ("lower", "upper", "scratch", "home"))
    (lower / "data").mkdir()
    (lower / "data/file").write_text("of the home\n")
    subprocess.run(["chown", "-R", f"{profile.uid}:{profile.gid}", lower], check=True)
    done = profile.run(["fuse-overlayfs", "-o", f"lowerdir={lower},upperdir={upper},workdir={scratch}", mounted])
    assert done.returncode == 0, done
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


@pytest.fixture
def shut(home):
    with pytest.raises(PermissionError):
        os.listdir(home)
    return home


@USERS
@pytest.mark.parametrize("what", ["", "/data", "/data/file"])
@pytest.mark.parametrize("gpus", [False, True])
def test_what_lies_there_is_mounted_for_its_user(berth, busybox, shut, driver_tree, what, gpus):
    asks = ["--gpus", "all"] if gpus else []
    out = berth.ok("--driver-root", driver_tree("one"), "run", "--rm", *asks, "-v", f"{shut}{what}:/home/mine{what}",
                   "-w", "/home/mine" if what != "/data/file" else "/", busybox, "sh", "-c",
                   "cat /home/mine/data/file; [ ! -d /home/mine/data ] || touch /home/mine/data/new 2>/dev/null; pwd")
    assert out.splitlines()[0] == "of the home"


@USERS
def test_a_command_that_is_typed_there_runs(berth, busybox, shut):
    berth.ok("pull", "--quiet", busybox)
    berth_there = ["sh", "-c", 'cd "$0" && exec "$@"', shut, berth.programs / "berth", "--root", berth.root, "--state",
                   berth.state]
    words = ["run", "--rm", "-v", "./data:/data", busybox, "cat", "/data/file"]
    done = subprocess.run(berth.account.command([*berth_there, *words]), capture_output=True, text=True, check=False,
                          env=berth.account.environment(), cwd="/", timeout=60)
    assert (done.returncode, done.stdout) == (0, "of the home\n"), done


@USERS
def test_root_is_told_in_one_line(programs, shut, busybox, work):
    berth = [programs / "berth", "--root", work / "roots", "--state", work / "roots-state"]
    subprocess.run([*berth, "pull", "--quiet", busybox], check=True, capture_output=True)
    done = subprocess.run([*berth, "run", "--rm", "--network=none", "-v", f"{shut}/data:/data", busybox, "true"],
                          capture_output=True, text=True, check=False, timeout=60)
    subprocess.run([*berth, "rmi", "--force", busybox], check=True, capture_output=True)
    errors = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert done.returncode == 125 and len(errors) == 1, done
    assert f"'{shut}/data'" in errors[0] and "Permission denied" in errors[0]
