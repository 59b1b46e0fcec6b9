# SPDX-License-Identifier: Apache-2.0
"""Jobs with a /tmp and /dev/shm of their own: JobContainerType=job_container/tmpfs, which slurmstepd
itself is not in."""

import os
import pathlib
import shutil
import tempfile

import pytest

from support.slurm_containers import with_plugin
from support.waiting import wait_until

# A mount namespace can only be bound in an older one, which Linux tells by numbers that each processor
# has a stock of.
ONE_AFTER_THE_OTHER = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), "unshare", "--mount")
CONFIGURATION = ("AutoBasePath=true", "BasePath={directory}/private")


@pytest.fixture(scope="module")
def cluster(programs):
    """All that a job needs is outside of /tmp."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="berth-tests-slurm-", dir="/var/tmp"))
    directory.chmod(0o755)
    ours = pathlib.Path(shutil.copytree(programs, directory / "bin"))
    made = with_plugin(directory, ours, lines=["JobContainerType=job_container/tmpfs", "PrologFlags=Contain"],
                       inside=ONE_AFTER_THE_OTHER)
    made.write("job_container.conf", *(line.format(directory=directory) for line in CONFIGURATION))
    try:
        with made.running() as running:
            yield running
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def in_job(slurm, busybox):
    """in_job(line…): what a batch script says, in whose steps {image} is the option for an image."""
    directory = slurm.berth.account.own(pathlib.Path(tempfile.mkdtemp(prefix="berth-tests-job-", dir="/var/tmp")))

    def run(*lines):
        script = directory / "job.sh"
        text = "".join(f"{line}\n" for line in ("#!/bin/sh", "exec 2>&1", *lines))
        script.write_text(text.replace("{image}", f"--container-image={busybox}"))
        done = slurm.call("sbatch", "--parsable", "--ntasks=2", f"--chdir={directory}", f"--output={directory}/said",
                          script)
        assert done.returncode == 0, done

        def has_ended():
            listed = slurm.call("squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={done.stdout.strip()}")
            return listed.returncode == 0 and listed.stdout.strip() in ("COMPLETED", "FAILED")
        wait_until(has_ended, timeout=60)
        return (directory / "said").read_text()
    try:
        yield run
    finally:
        shutil.rmtree(directory)


def test_the_container_has_the_jobs_places_and_not_the_nodes(in_job):
    pathlib.Path("/tmp/of-the-node").touch()
    seen = in_job("touch /tmp/mine /dev/shm/mine",
                  "srun --ntasks=2 {image} --container-mounts=/tmp:/mnt,/dev/shm:/shm ls /mnt /shm").split()
    assert seen.count("mine") == 4 and "of-the-node" not in seen, seen
    pathlib.Path("/tmp/of-the-node").unlink()
    assert not pathlib.Path("/tmp/mine").exists() and not pathlib.Path("/dev/shm/mine").exists()


def test_what_the_batch_script_has_put_there_is_an_image_of_its_steps(in_job):
    assert in_job("cd /tmp && echo here >word",
                  "srun --ntasks=1 {image} --container-save=/tmp/one.sqsh true",
                  "srun --ntasks=1 --chdir=/tmp --container-image=./one.sqsh --container-mounts=./word:/word cat /word"
                  ).splitlines()[-1] == "here"


def test_nothing_is_left_on_the_node(in_job, slurm):
    assert in_job("srun --ntasks=2 {image} --container-name=web true", "srun --ntasks=1 {image} --container-name=web pwd"
                  ).split()[-1] == "/"
    wait_until(slurm.cluster.is_idle)
    assert not pathlib.Path("/run/berth-jobs").exists()
