# SPDX-License-Identifier: Apache-2.0
"""Jobs with a /tmp and /dev/shm of their own: JobContainerType=job_container/tmpfs, which slurmstepd
itself is not in."""

import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.slurm_containers import with_plugin

CONFIGURATION = ("AutoBasePath=true", "BasePath={directory}/private")


@pytest.fixture(scope="module")
def cluster(programs):
    """All that a job needs is outside of /tmp."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="berth-tests-slurm-", dir="/var/tmp"))
    directory.chmod(0o755)
    made = with_plugin(directory, programs, lines=["JobContainerType=job_container/tmpfs", "PrologFlags=Contain"])
    made.write("job_container.conf", *(line.format(directory=directory) for line in CONFIGURATION))
    with made.running() as running:
        yield running
    # Slurm leaves its own mount.
    subprocess.run(["umount", "--recursive", "--lazy", directory / "private"], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(directory)


def test_the_container_has_the_jobs_places_and_not_the_nodes(slurm, busybox, work):
    (work / "of-the-node").touch()
    step = ("--chdir=/var/tmp", f"--container-image={busybox}", "--container-mounts=/tmp:/mnt,/dev/shm:/shm")
    seen = slurm.srun(*step, "sh", "-c", "touch /mnt/mine /shm/mine; ls /mnt; pwd")
    assert "mine" in seen.split() and work.parts[2] not in seen.split(), seen
    assert not pathlib.Path("/tmp/mine").exists() and not pathlib.Path("/dev/shm/mine").exists()


def test_what_the_batch_script_has_put_there_is_an_image_of_its_steps(slurm, busybox):
    directory = slurm.cluster.directory
    script = directory / f"job-{slurm.berth.account.kind}.sh"
    out = slurm.berth.account.own(pathlib.Path("/var/tmp") / f"{directory.name}-{slurm.berth.account.kind}")
    script.write_text(f"#!/bin/sh\n#SBATCH --ntasks=1\n"
                      f"cd /tmp && echo here >word\n"
                      f"srun --container-image={busybox} --container-save=/tmp/one.sqsh true\n"
                      f"srun --chdir=/tmp --container-image=./one.sqsh --container-mounts=./word:/word cat /word\n")
    script.chmod(0o755)
    try:
        job = slurm.call("sbatch", "--wait", "--parsable", "--chdir=/var/tmp", f"--output={out}/said", script)
        assert (job.returncode, (out / "said").read_text()) == (0, "here\n"), (job, (out / "said").read_text())
    finally:
        shutil.rmtree(out)
