# SPDX-License-Identifier: Apache-2.0
"""Whose ids and groups the processes of a container have."""

import dataclasses
import os
import pathlib
import pwd

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
