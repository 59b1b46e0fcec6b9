# SPDX-License-Identifier: Apache-2.0
"""What goes wrong beside a step with a container: slurmd killed, a task killed, a disk that is full on
one node, a user without a home or in many groups."""

import grp
import os
import signal
import subprocess

import pytest

from support import images
from support.slurm_containers import with_plugin
from support.users import NAMES
from support.waiting import wait_until

TEAM = "berthtestteam"


@pytest.fixture(scope="module")
def team(accounts):
    """A group of the ordinary users, which is not their first."""
    subprocess.run(["groupadd", "--force", TEAM], check=True)
    for name in NAMES.values():
        subprocess.run(["usermod", "--append", "--groups", TEAM, name], check=True)
    yield grp.getgrnam(TEAM)
    subprocess.run(["groupdel", TEAM], check=True)


@pytest.fixture(scope="module")
def cluster(session_directory, programs, team):
    directory = session_directory / "slurm-faults"
    directory.mkdir()
    with with_plugin(directory, programs, nodes=2).running() as running:
        yield running


@pytest.fixture
def other_store(slurm):
    """Of the second node, on a disk of 2 MB."""
    place = slurm.berth.account.own(slurm.berth.directory / "n2")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "small", place], check=True)
    yield place / "store"
    subprocess.run(["umount", place], check=True)


@pytest.mark.profiles("root", "user")
def test_a_step_goes_on_when_slurmd_is_killed_and_starts_again(slurm, image):
    meeting = slurm.berth.account.own(slurm.berth.directory / "meeting")
    step = slurm.spawn("srun", "--nodes=2", "--ntasks=2", f"--container-mounts={meeting}:/meeting", image,
                       "sh", "-c", "echo up; until [ -e /meeting/go ]; do usleep 50000; done; ls /bin/sh")
    assert [step.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    for node in slurm.cluster.nodes:
        slurm.cluster.restart(node)
    (meeting / "go").touch()
    out, errors = step.communicate(timeout=60)
    assert (step.returncode, out) == (0, "/bin/sh\n" * 2), errors
    wait_until(lambda: not slurm.containers())


@pytest.mark.profiles("root", "user")
def test_a_task_that_is_killed_ends_the_step(slurm, image):
    step = slurm.spawn("srun", "--nodes=2", "--ntasks=4", "--kill-on-bad-exit=1", "--label", image, "sh",
                       "-c", "echo $$; exec sleep 100")
    pids = dict(step.stdout.readline().split(": ") for _ in range(4))
    os.kill(int(pids["0"]), signal.SIGKILL)
    step.communicate(timeout=30)
    assert step.returncode in (137, 143)  # of those that srun ends then, too
    wait_until(lambda: not slurm.containers())
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.profiles("root", "user")
def test_a_disk_that_is_full_on_one_node_fails_the_step_once_and_clearly(slurm, push, other_store):
    large = images.layer([images.file("large", os.urandom(4 << 20))])
    reference = push(images.build([images.busybox_layer(), large]))
    slurm.berth.ok("pull", "--quiet", reference)
    said = slurm.refused("--nodes=2", "--ntasks=4", f"--container-image={reference}", "sleep", "100",
                         env={"TEST_ROOT_n2": other_store})
    assert said.count("No space left on device") == 1, said
    assert not slurm.containers()
    left = [path for path in other_store.rglob("*") if path.is_file() and path.stat().st_size > 1 << 20]
    assert not left, left


@pytest.mark.profiles("user", "single_id")
def test_the_groups_of_a_user_open_files_in_the_container(slurm, image, team):
    place = slurm.berth.directory / "team"
    place.mkdir()
    os.chown(place, 0, team.gr_gid)
    place.chmod(0o2770)
    slurm.srun(image, f"--container-mounts={place}:/team", "sh", "-c", "echo tea > /team/file")
    file = place / "file"
    assert (file.stat().st_uid, file.stat().st_gid) == (slurm.berth.account.uid, team.gr_gid)


@pytest.mark.profiles("user")
def test_a_user_without_a_home_has_a_container(slurm, image):
    homeless = {"HOME": "/no/such/home"}
    assert slurm.srun(image, "echo", "tea", env=homeless) == "tea\n"
    assert "/no/such/home" in slurm.refused(image, "--container-mount-home", "true", env=homeless)


@pytest.mark.profiles("user")
def test_no_user_of_the_image_is_needed(slurm, push):
    reference = push(images.build([images.busybox_layer()], {"User": "nobody-there"}))
    account = slurm.berth.account
    out = slurm.srun(f"--container-image={reference}", "sh", "-c", "id -u; id -g; touch /tmp/x; stat -c %u /tmp/x")
    assert out.split() == [str(account.uid), str(account.gid), str(account.uid)]
