# SPDX-License-Identifier: Apache-2.0
"""Whose ids and groups the processes of a container have."""

import dataclasses
import os

import pytest

from support.berth import Berth

GROUP = 45678  # of nobody else
SHELL = ("sh", "-c")


@pytest.fixture
def member(programs, profile, work):
    """berth as the user runs it once he is in GROUP."""
    command = Berth(programs, dataclasses.replace(profile, groups=(GROUP,)), work / "member")
    yield command
    command.close()


@pytest.fixture
def secret(work):
    """A file that GROUP alone may read, and its volume."""
    path = work / "secret"
    path.write_text("for the group\n")
    os.chown(path, 65534, GROUP)  # root of a container has no rights over it
    path.chmod(0o040)
    return f"{path}:/secret"


def reads(berth, image, *flags):
    done = berth.run("run", "--rm", "--cap-drop", "ALL", *flags, image, "cat", "/secret")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def test_groups_of_the_caller_are_kept_when_asked(member, busybox, secret, profile):
    member.ok("pull", "--quiet", busybox)
    # Who has one id cannot leave a group at all.
    assert reads(member, busybox, "-v", secret) == (profile.kind == "single_id")
    keep = ("-v", secret, "--group-add", "keep-groups")
    assert reads(member, busybox, *keep)
    if profile.kind == "root":
        assert reads(member, busybox, "--user", "1000:1000", *keep)
    shown = GROUP if profile.kind == "root" else 65534  # it has no number in a user namespace
    assert str(shown) in member.ok("run", "--rm", *keep, busybox, "id", "-G").split()


def test_who_is_not_in_a_group_keeps_nothing(berth, busybox, secret):
    berth.ok("pull", "--quiet", busybox)
    assert not reads(berth, busybox, "-v", secret, "--group-add", "keep-groups")


def test_kept_groups_stay_when_a_container_is_started_again_and_for_exec(member, busybox, secret):
    member.ok("pull", "--quiet", busybox)
    member.ok("create", "--name", "c1", "--cap-drop", "ALL", "-v", secret, "--group-add",
              "keep-groups", busybox, *SHELL, "cat /secret; sleep 100")
    try:
        member.ok("start", "c1")
        assert member.ok("exec", "c1", "cat", "/secret") == "for the group\n"
        member.ok("restart", "-t", "0", "c1")
        assert member.ok("exec", "c1", "cat", "/secret") == "for the group\n"
        assert member.ok("logs", "c1") == "for the group\n" * 2
    finally:
        member.ok("rm", "-f", "c1")


def test_keep_groups_is_alone(berth, busybox):
    line = berth.fail("run", "--rm", "--group-add", "crew", "--group-add", "keep-groups", busybox,
                      "true", status=125)
    assert line == ("berth: the '--group-add keep-groups' option is not allowed with any other "
                    "--group-add options")


# ---- --userns keep-id ---------------------------------------------------------------------------

USERS = pytest.mark.profiles("user", "single_id")
KEEP = ("run", "--rm", "--userns", "keep-id")


@pytest.fixture(params=["directory", "erofs"])
def image(berth, busybox, request):
    berth.ok("--layer-format", request.param, "pull", "--quiet", busybox)
    return busybox


@USERS
def test_the_caller_has_his_number_and_name(berth, image, profile):
    out = berth.ok(*KEEP, image, *SHELL, "id -u; id -g; id -un; echo $HOME; cat /proc/self/status")
    lines = out.splitlines()
    assert lines[:4] == [str(profile.uid), str(profile.gid), profile.name, "/"]
    assert "CapEff:\t0000000000000000" in lines
    assert berth.ok(*KEEP, "-w", "/etc", image, *SHELL, "echo $HOME") == "/etc\n"


@USERS
def test_home_is_his_own_where_it_is_mounted(berth, image, profile):
    home = str(profile.home)
    out = berth.ok(*KEEP, "-v", f"{home}:{home}", image, *SHELL, "echo $HOME; cd ~; pwd")
    assert out == f"{home}\n{home}\n"


@USERS
def test_what_he_makes_in_a_volume_is_his(berth, image, work, profile):
    data = profile.own(work / "data")
    os.chown(data, profile.uid, GROUP)  # a group without a number in any namespace of his
    data.chmod(0o700)
    out = berth.ok(*KEEP, "-v", f"{data}:/data", "-w", "/data", image, *SHELL,
                   "touch mine; stat -c %u:%g mine")
    assert out == f"{profile.uid}:{profile.gid}\n"
    made = (data / "mine").stat()
    assert (made.st_uid, made.st_gid) == (profile.uid, profile.gid)


@USERS
def test_files_of_the_image_are_his_and_root_is_somebody_else(berth, image, work, profile):
    script = "stat -c %u /bin/busybox; touch /etc/x && echo written; stat -c %u /etc/x"
    assert berth.ok(*KEEP, image, *SHELL, script) == f"{profile.uid}\nwritten\n{profile.uid}\n"
    data = profile.own(work / "data")
    root = (*KEEP, "--user", "0", "-v", f"{data}:/data", image, *SHELL,
            "id -u; touch /data/x; mkdir /new; chown 77 /new; stat -c %u /new")
    if profile.kind == "single_id":
        assert berth.fail(*root, status=125) == (
            "berth: user '0': this user has only one user id; "
            "try: ask for subordinate ids in /etc/subuid and /etc/subgid")
        return
    assert berth.ok(*root) == "0\n77\n"
    assert (data / "x").stat().st_uid == profile.subordinate_ids[0] + profile.uid - 1


@USERS
def test_he_may_have_another_number(berth, image, work, profile):
    data = profile.own(work / "data")
    out = berth.ok("run", "--rm", "--userns", "keep-id:uid=70000,gid=6", "-v", f"{data}:/data",
                   image, *SHELL, "id -u; id -g; touch /data/x")
    assert out == "70000\n6\n"
    assert (data / "x").stat().st_uid == profile.uid
    for wrong in ("keep-id:", "keep-id:uid=x", "keep-id:pid=1", "keep-id:uid=4294967295"):
        line = berth.fail("run", "--rm", "--userns", wrong, image, "true", status=125)
        assert "keep-id: expected uid=NUMBER or gid=NUMBER" in line


@USERS
def test_number_and_files_are_the_same_after_a_restart_and_for_exec(berth, image, profile):
    berth.ok("run", "-d", "--name", "c1", "--userns", "keep-id", image, "sleep", "1000")
    try:
        for _ in range(2):
            assert berth.ok("exec", "c1", "id", "-u") == f"{profile.uid}\n"
            if profile.kind == "user":
                assert berth.ok("exec", "--user", "0", "c1", "id", "-u") == "0\n"
            berth.ok("exec", "c1", "touch", "/etc/new")
            copied = berth.directory / "copied"
            berth.ok("cp", "c1:/etc/new", copied)
            assert copied.stat().st_uid == profile.uid
            assert "A /etc/new\n" in berth.ok("diff", "c1")
            berth.ok("restart", "-t", "0", "c1")
        assert '"UsernsMode": "keep-id"' in berth.ok("inspect", "c1")
        assert berth.ok("run", "--rm", "--pid", "container:c1", image, "id", "-u") == "0\n"
    finally:
        berth.ok("rm", "-f", "c1")


@USERS
def test_a_namespace_of_another_container_is_none_of_his(berth, image):
    line = berth.fail(*KEEP, "--pid", "container:c1", image, "true", status=125)
    assert line.startswith("berth: no such container: c1")
    berth.ok("run", "-d", "--name", "c1", image, "sleep", "1000")
    line = berth.fail(*KEEP, "--pid", "container:c1", image, "true", status=125)
    berth.ok("rm", "-f", "c1")
    assert line == ("berth: conflicting options: --userns keep-id and a namespace of another "
                    "container")


@pytest.mark.profiles("root")
def test_root_has_no_id_to_keep(berth, image):
    assert berth.fail(*KEEP, image, "true", status=125) == (
        "berth: keep-id is only supported in rootless mode; try: no --userns: root has every id")
