# SPDX-License-Identifier: Apache-2.0
"""Volumes with and without names, and --mount."""

import os
import signal
import time

import pytest

from support import images

SHELL = ("sh", "-c")


@pytest.fixture
def shell(berth, busybox):
    """shell(script, flag…) → the output of a script in a container."""
    berth.ok("pull", "--quiet", busybox)

    def run(script, *flags):
        return berth.ok("run", "--rm", *flags, busybox, *SHELL, script)
    return run


def volumes(berth):
    directory = berth.root / "volumes"
    return sorted(os.listdir(directory)) if directory.exists() else []



def test_a_named_volume_outlives_its_containers(shell, berth):
    shell("echo tea >/hold/cargo", "-v", "hold:/hold")
    assert shell("cat /mnt/cargo", "-v", "hold:/mnt:ro") == "tea\n"
    assert "Read-only file system" in shell("echo x 2>&1 >/mnt/cargo || true", "-v", "hold:/mnt:ro")
    assert volumes(berth) == ["hold"]


def test_an_empty_volume_gets_what_the_image_has_there_with_owners(shell):
    listing = "cd /home && stat -c '%n %u %g %a %s' . sailor sailor/owned"
    assert shell(listing, "-v", "homes:/home") == shell(listing)
    assert shell("cat /mnt/sailor/owned", "-v", "homes:/mnt") == "by 1000\n"


def test_a_volume_that_has_something_is_left_as_it_is(shell):
    shell("echo mine >/mnt/passwd", "-v", "settings:/mnt")
    assert shell("ls /etc", "-v", "settings:/etc").split() == [
        "hostname", "hosts", "passwd", "resolv.conf"]
    assert shell("ls /etc | wc -l", "-v", "bare:/etc:nocopy").strip() == "3"


def test_an_anonymous_volume_goes_with_its_container(shell, berth, busybox):
    assert "yes" in shell("grep -q ' /data ' /proc/mounts && echo yes", "-v", "/data")
    assert volumes(berth) == []
    berth.ok("run", "--name", "kept", "-v", "/data", busybox, "true")
    assert len(volumes(berth)) == 1
    assert len(volumes(berth)[0]) == 64
    berth.ok("rm", "-v", "kept")
    assert volumes(berth) == []
    berth.ok("run", "--name", "again", "-v", "/data", "-v", "named:/named", busybox, "true")
    berth.ok("rm", "again")
    assert len(volumes(berth)) == 2


def test_a_start_that_fails_leaves_no_anonymous_volume(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    berth.run("run", "-v", "/data", "--name", "none", busybox, "/no/such/command")
    berth.fail("run", "-v", "/data", "--user", "nobody-here", busybox, "true", status=125)
    berth.run("rm", "-fv", "none")
    assert volumes(berth) == []


def test_what_an_image_declares_becomes_a_volume(berth, push):
    image = images.build([images.busybox_layer()], config={
        "Volumes": {"/var/data": {}, "relative": {}, "/": {}, "/a/../b": {}}})
    reference = push(image)
    berth.ok("pull", "--quiet", reference)
    mounts = "grep -o ' /var/data [a-z0-9]* ' /proc/mounts || true"
    assert berth.ok("run", "--rm", reference, *SHELL, mounts) != ""
    # What the user mounts there comes first.
    assert berth.ok("run", "--rm", "--tmpfs", "/var/data", reference, *SHELL,
                    mounts) == " /var/data tmpfs \n"
    assert volumes(berth) == []


def test_the_volumes_of_another_container_are_mounted_too(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "--name", "first", "-v", "hold:/hold", "-v", "/anonymous", busybox, *SHELL,
             "echo tea >/hold/cargo; echo salt >/anonymous/cargo")
    assert berth.ok("run", "--rm", "--volumes-from", "first", busybox, "cat", "/hold/cargo",
                    "/anonymous/cargo") == "tea\nsalt\n"
    assert "Read-only" in berth.ok("run", "--rm", "--volumes-from", "first:ro", busybox, *SHELL,
                                   "echo x 2>&1 >/hold/cargo || true")
    # The second container's end takes nothing of the first away.
    assert berth.ok("run", "--rm", "--volumes-from", "first", busybox, "cat",
                    "/anonymous/cargo") == "salt\n"
    line = berth.fail("run", "--rm", "--volumes-from", "first:mine", busybox, "true", status=125)
    assert line == "berth: invalid mode: mine for --volumes-from 'first:mine'"


def test_mounts_in_docker_s_long_form(shell, work, profile):
    source = profile.own(work / "data")
    (source / "in").write_text("from the host")
    assert shell("cat /data/in", "--mount", f"type=bind,src={source},dst=/data,ro") == (
        "from the host")
    assert "size=1024k" in shell("grep /scratch /proc/mounts", "--mount",
                                 "type=tmpfs,dst=/scratch,tmpfs-size=1m")
    shell("echo tea >/hold/cargo", "--mount", "source=hold,target=/hold")
    assert shell("cat /hold/cargo", "-v", "hold:/hold") == "tea\n"


def test_a_source_of_mount_has_to_exist(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    line = berth.fail("run", "--rm", "--mount", "type=bind,src=/no/such,dst=/a", busybox, "true",
                      status=125)
    assert line == ('berth: invalid mount config for type "bind": bind source path does not exist: '
                    "/no/such")


def test_a_place_is_mounted_once(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    line = berth.fail("run", "--rm", "-v", "one:/a", "--tmpfs", "/a", busybox, "true", status=125)
    assert line == "berth: Duplicate mount point: /a"


def test_a_volume_over_a_file_of_the_image_is_refused_before_anything_is_made(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    line = berth.fail("run", "--rm", "-v", "hold:/etc/passwd", busybox, "true", status=125)
    assert line == ("berth: volume 'hold:/etc/passwd': the source is a directory, the destination "
                    "in the image is not")
    assert volumes(berth) == []


def test_two_containers_that_fill_one_volume_see_all_of_it(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    running = [berth.spawn("run", "--rm", "-v", "shared:/etc", busybox, *SHELL,
                           "ls /etc | wc -l; cat /etc/passwd | wc -l") for _ in range(4)]
    ended = [process.communicate(timeout=60) for process in running]
    assert [err for _, err in ended] == [""] * 4
    assert len({out for out, _ in ended}) == 1


def test_a_volume_whose_filling_was_killed_is_filled_again(berth, shell, profile):
    shell("true", "-v", "torn:/mnt:nocopy")
    directory = berth.root / "volumes/torn"
    assert shell("echo half >/mnt/half", "-v", "torn:/mnt:nocopy") == ""
    (directory / "filling").touch()
    os.chown(directory / "filling", profile.uid, profile.gid)
    names = shell("ls /etc", "-v", "torn:/etc").split()
    assert "passwd" in names and "half" not in names
    assert not (directory / "filling").exists()


def test_the_anonymous_volume_of_a_killed_berth_is_swept(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    process = berth.spawn("run", "--rm", "-v", "/data", busybox, *SHELL, "echo up; sleep 100")
    assert process.stdout.readline() == "up\n"
    assert len(volumes(berth)) == 1
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)
    deadline = time.monotonic() + 20
    while volumes(berth) and time.monotonic() < deadline:
        berth.ok("run", "--rm", busybox, "true")
    assert volumes(berth) == []
