# SPDX-License-Identifier: Apache-2.0
"""sys::enter_user_namespace on the real kernel."""

import json
import os
import subprocess

import pytest
from support.confine import Confine

SHOW = "cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; id -u; id -g"


@pytest.fixture
def confine(work):
    return Confine(work)


def in_private_mounts(script, account, confine, *args):
    """Runs `script` as root in mounts of its own, then confine there as `account`. The shell stays:
    with its last process the mount namespace would go, and with it what the mounts are slaves of."""
    command = " ".join(account.command([confine.program, *args]))
    return subprocess.run(["unshare", "--mount", "sh", "-ec", f"{script}\n{command}\nexit $?"],
                          text=True, capture_output=True, check=False, timeout=60, cwd="/")


@pytest.mark.profiles("user")
def test_a_user_with_subordinate_ids_has_them_inside(confine, profile):
    first, count = profile.subordinate_ids
    lines = confine.ok("user-namespace", "sh", "-c", SHOW, account=profile).split("\n")
    assert [line.split() for line in lines[:4]] == [
        ["0", str(profile.uid), "1"], ["1", str(first), str(count)],
        ["0", str(profile.gid), "1"], ["1", str(first), str(count)]]
    assert lines[4:7] == ["allow", "0", "0"]


@pytest.mark.profiles("single_id")
def test_a_user_without_has_the_single_id_and_no_warning(confine, profile):
    lines = confine.ok("user-namespace", "sh", "-c", SHOW, account=profile).split("\n")
    assert [line.split() for line in lines[:2]] == [["0", str(profile.uid), "1"],
                                                    ["0", str(profile.gid), "1"]]
    assert lines[2:5] == ["deny", "0", "0"]


@pytest.mark.profiles("user")
def test_files_can_be_given_to_subordinate_ids(confine, profile, work):
    file = work / "file"
    confine.ok("user-namespace", "sh", "-c", f"touch {file}; chown 33:34 {file}", account=profile)
    first, _ = profile.subordinate_ids
    assert (file.stat().st_uid, file.stat().st_gid) == (first + 32, first + 33)


@pytest.mark.profiles("user", "single_id")
def test_all_capabilities_hold_inside(confine, profile):
    status = confine.ok("user-namespace", "cat", "/proc/self/status", account=profile)
    effective = next(line for line in status.split("\n") if line.startswith("CapEff"))
    assert int(effective.split()[1], 16) & (1 << 21), "CAP_SYS_ADMIN"


@pytest.mark.profiles("user", "single_id")
def test_mounts_made_inside_are_not_seen_outside(confine, profile, work):
    place = profile.own(work / "place")
    out = confine.ok("user-namespace", "sh", "-c",
                     f"mount -t tmpfs none {place}; touch {place}/inside; ls {place}",
                     account=profile)
    assert out == "inside\n"
    assert os.listdir(place) == []


@pytest.mark.profiles("user", "single_id")
def test_mounts_follow_the_host_and_never_the_other_way(confine, profile):
    done = in_private_mounts("mount --make-rshared /", profile, confine,
                             "user-namespace", "cat", "/proc/self/mountinfo")
    assert done.returncode == 0, done
    root = next(line for line in done.stdout.split("\n") if line.split()[4] == "/")
    assert "master:" in root
    assert "shared:" not in done.stdout


@pytest.mark.profiles("single_id")
def test_supplementary_groups_are_kept(confine, profile, work):
    group = 54321
    secret = work / "secret"
    secret.write_text("for the group\n", encoding="utf-8")
    os.chown(secret, 0, group)
    secret.chmod(0o640)
    out = confine.ok("user-namespace", "cat", secret,
                     inside=["setpriv", f"--reuid={profile.uid}", f"--regid={profile.gid}",
                             f"--groups={group}"])
    assert out == "for the group\n"


@pytest.mark.profiles("user", "single_id")
def test_the_working_directory_is_kept(confine, profile, work):
    directory = profile.own(work / "here")
    out = subprocess.run(profile.command([confine.program, "user-namespace", "pwd", "-P"]),
                         text=True, capture_output=True, check=True, cwd=directory).stdout
    assert out == f"{directory}\n"


@pytest.mark.profiles("user")
def test_without_newuidmap_the_single_id_is_used_and_the_package_named(confine, profile, work):
    (work / "upper").mkdir()
    (work / "overlay-work").mkdir()
    hide = (f"mknod {work}/upper/newuidmap c 0 0; mount -t overlay overlay /usr/bin -o "
            f"lowerdir=/usr/bin,upperdir={work}/upper,workdir={work}/overlay-work")
    done = in_private_mounts(hide, profile, confine, "user-namespace")
    assert (done.returncode, done.stdout) == (0, "single\n")
    assert done.stderr == (
        f"warning: cannot use the subordinate ids of '{profile.name}': '/usr/bin/newuidmap' is not "
        f"installed (apt install uidmap), using the single id {profile.uid} instead\n")


@pytest.mark.profiles("user")
def test_of_what_both_helpers_say_the_first_lines_are_passed_on(confine, profile, work):
    for name in ("newuidmap", "newgidmap"):
        (work / name).write_text(f"#!/bin/sh\nprintf '{name}: no\\nand more\\n' >&2\nexit 1\n")
        (work / name).chmod(0o755)
    done = in_private_mounts("; ".join(f"mount --bind {work}/{name} /usr/bin/{name}"
                                       for name in ("newuidmap", "newgidmap")),
                             profile, confine, "user-namespace")
    assert done.stderr == (
        f"warning: cannot use the subordinate ids of '{profile.name}': newuidmap: no; "
        f"newgidmap: no (check the lines of '{profile.name}' in /etc/subuid and /etc/subgid), "
        f"using the single id {profile.uid} instead\n")


@pytest.mark.profiles("user")
def test_what_newgidmap_says_is_passed_on(confine, profile, work):
    powerless = work / "newgidmap"
    powerless.write_bytes(open("/usr/bin/newgidmap", "rb").read())
    powerless.chmod(0o755)
    done = in_private_mounts(f"mount --bind {powerless} /usr/bin/newgidmap", profile, confine,
                             "user-namespace")
    assert (done.returncode, done.stdout) == (0, "single\n")
    assert done.stderr.startswith(
        f"warning: cannot use the subordinate ids of '{profile.name}': newgidmap: ")
    assert done.stderr.endswith(
        f" (check the lines of '{profile.name}' in /etc/subuid and /etc/subgid), using the single "
        f"id {profile.uid} instead\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.profiles("single_id")
def test_namespaces_that_are_used_up_name_the_switch(confine, profile):
    # The limit is one of the namespace around it, so nobody else on the machine notices.
    script = f"echo 0 > /proc/sys/user/max_user_namespaces; exec {confine.program} user-namespace"
    done = subprocess.run(profile.command(["unshare", "--user", "--map-root-user", "sh", "-c",
                                           script]),
                          text=True, capture_output=True, check=False, cwd="/")
    assert (done.returncode, done.stderr) == (
        1, "confine: make a user namespace: No space left on device; try: sysctl "
           "user.max_user_namespaces=65536 (it is 0 now), as root\n")


def test_root_of_somebody_elses_namespace_has_the_paths_of_its_user(programs, profile, work):
    home, runtime = profile.own(work / "home"), profile.own(work / "run")
    runtime.chmod(0o700)
    command = profile.command(["unshare", "--user", "--map-root-user", programs / "berth", "info",
                               "--format", "json"])
    env = profile.environment(HOME=home, XDG_RUNTIME_DIR=runtime)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    info = json.loads(done.stdout)
    assert info["DockerRootDir"] == f"{home}/.local/share/berth"
    assert info["Berth"]["State"] == f"{runtime}/berth"
