# SPDX-License-Identifier: Apache-2.0
"""`berth run` in job scripts of schedulers that know nothing of it: cgroups and variables as each of
them lays them out, and what the container then is, has and leaves behind. No scheduler runs here.

Where from: pbs_cgroups.PY of OpenPBS; LSF's LSB_RESOURCE_ENFORCE="memory cpu gpu"; HTCondor's
ProcFamilyDirectCgroupV1 and AssignedGPUs; Flux's gpu-affinity, whose jobs are units of systemd;
Slurm's cgroup/v1 plugin."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess

import pytest

from support.device_cgroup import numbers_of
from support.oci_fixtures import mounted_hierarchies
from support.waiting import wait_until

# The minors of the eight GPUs in the order of their PCI addresses.
MINORS = [2, 5, 0, 7, 1, 4, 3, 6]
OURS = (4, 6)
SHOW = ("sh", "-c", "ls /dev | grep '^nvidia[0-9]'; echo $CUDA_VISIBLE_DEVICES")
GIVEN = "".join(f"nvidia{minor}\n" for minor in sorted(MINORS[index] for index in OURS)) + "0,1\n"


@dataclasses.dataclass(frozen=True)
class Scheduler:
    path: str  # of the job, below each of its hierarchies
    hierarchies: tuple
    variables: dict  # "{0}" is the id of the job's first GPU, "{0:.12}" its beginning
    denies: bool  # the job's device cgroup has no other GPUs


SCHEDULERS = {
    "pbs": Scheduler("pbs_jobs.service/jobid/17.host", ("cpuset", "memory", "devices", "cpuacct"),
                     {"PBS_JOBID": "17.host", "PBS_ENVIRONMENT": "PBS_BATCH",
                      "CUDA_VISIBLE_DEVICES": "{0},{1}", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True),
    "lsf": Scheduler("lsf/cluster1/job.17.4242.1700000000",
                     ("cpuset", "memory", "devices", "cpuacct", "freezer"),
                     {"LSB_JOBID": "17", "LS_JOBPID": "4242", "CUDA_VISIBLE_DEVICES": "0,1"}, True),
    "htcondor": Scheduler("htcondor/condor_var_lib_condor_execute_slot1_1@host",
                          ("memory", "cpu", "cpuacct", "freezer", "blkio"),
                          {"_CONDOR_SLOT": "slot1_1", "_CONDOR_JOB_AD": "/var/lib/.job.ad",
                           "_CONDOR_AssignedGPUs": "{0:.12},{1:.12}",
                           "CUDA_VISIBLE_DEVICES": "{0:.12},{1:.12}"}, False),
    "flux": Scheduler("user.slice/user-7.slice/user@7.service/app.slice/shell-0-f17.service",
                      ("unified", "memory", "pids"),
                      {"FLUX_JOB_ID": "f17", "FLUX_TASK_RANK": "0", "CUDA_VISIBLE_DEVICES": "4,6",
                       "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, False),
    "slurm": Scheduler("slurm/uid_7/job_17/step_0", ("cpuset", "memory", "devices", "freezer"),
                       {"SLURM_JOB_ID": "17", "SLURM_STEP_GPUS": "4,6",
                        "CUDA_VISIBLE_DEVICES": "0,1"}, True),
}


def is_removed(directory):
    """Whoever removes what is left behind a command is still in the job for a moment."""
    with contextlib.suppress(OSError):
        directory.rmdir()
    return not directory.exists()


class Job:
    """run(word…) is berth in a script of the job."""

    def __init__(self, berth, scheduler, tree, uuids):
        self.berth, self.scheduler, self.tree = berth, scheduler, tree
        mounts = mounted_hierarchies()
        self.places = {name: pathlib.Path(mounts[name], scheduler.path) for name in scheduler.hierarchies}
        ours = [uuids[index] for index in OURS]
        self.variables = {name: value.format(*ours) for name, value in scheduler.variables.items()}

    @contextlib.contextmanager
    def laid_out(self):
        made = []
        try:
            for name, place in self.places.items():
                top = pathlib.Path(mounted_hierarchies()[name])
                for directory in [*reversed(place.relative_to(top).parents), place.relative_to(top)][1:]:
                    if not (top / directory).exists():
                        (top / directory).mkdir()
                        made.append(top / directory)
                    for file in ("cpuset.cpus", "cpuset.mems") if name == "cpuset" else ():
                        (top / directory / file).write_text((top / file).read_text())
            if self.scheduler.denies:
                self._deny_others()
            yield self
        finally:
            for directory in reversed(made):
                wait_until(lambda gone=directory: is_removed(gone))

    def _deny_others(self):
        numbers = numbers_of(self.tree)
        for index in set(range(8)) - set(OURS):
            major, minor = numbers[f"/dev/nvidia{MINORS[index]}"]
            (self.places["devices"] / "devices.deny").write_text(f"c {major}:{minor} rwm")

    def run(self, *words):
        enter = "".join(f"echo $$ >{place}/cgroup.procs; " for place in self.places.values())
        argv = ["sh", "-ec", f'{enter} exec "$@"', "sh",
                *map(str, self.berth.argv("--driver-root", self.tree, *words))]
        return subprocess.run(argv, env=self.berth.account.environment(**self.variables),
                              cwd=self.berth.directory, stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True, timeout=60)

    def ok(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def pid_of(self, name):
        return json.loads(self.berth.ok("inspect", name))[0]["State"]["Pid"]

    def cgroups_of(self, name):
        """Of a container that runs: {hierarchy of the job: its path}."""
        found = {}
        for line in pathlib.Path(f"/proc/{self.pid_of(name)}/cgroup").read_text(encoding="utf-8").splitlines():
            _, names, path = line.split(":", 2)
            found.update(dict.fromkeys(names.split(",") if names else ["unified"], path))
        return {name: found[name] for name in self.places}


@pytest.fixture
def uuids(berth, driver_tree):
    listed = json.loads(berth.ok("--driver-root", driver_tree("eight"), "gpu", "list", "--format", "json"))
    return [gpu["uuid"] for gpu in listed["gpus"]]


@pytest.fixture(params=SCHEDULERS)
def job(request, berth, busybox, driver_tree, uuids):
    scheduler = SCHEDULERS[request.param]
    missing = set(scheduler.hierarchies) - set(mounted_hierarchies())
    if missing:
        pytest.skip("cgroups are not hybrid here")
    berth.ok("pull", "--quiet", busybox)
    with Job(berth, scheduler, driver_tree("eight"), uuids).laid_out() as made:
        yield made
        berth.run("rm", "--force", "c1")


def test_the_jobs_gpus_are_given_without_a_flag_and_no_other(job, busybox):
    assert job.ok("run", "--rm", busybox, *SHOW) == GIVEN
    assert job.ok("run", "--rm", "--gpus", "all", busybox, *SHOW) == GIVEN
    done = job.run("run", "--rm", "--gpus", "device=7", busybox, "true")
    assert done.returncode == 125
    expected = "no such GPU" if job.scheduler.denies else "not one of the GPUs of CUDA_VISIBLE_DEVICES="
    assert expected in done.stderr


def test_the_container_is_accounted_to_the_job(job, busybox):
    job.ok("run", "--detach", "--name", "c1", busybox, "sleep", "60")
    for hierarchy, path in job.cgroups_of("c1").items():
        assert path == f"/{job.scheduler.path}" or path.startswith(f"/{job.scheduler.path}/"), hierarchy


@pytest.mark.profiles("root")
def test_a_limit_of_the_container_is_one_below_the_jobs(job, busybox):
    job.ok("run", "--detach", "--name", "c1", "--memory", "64m", busybox, "sleep", "60")
    path = job.cgroups_of("c1")["memory"]
    assert os.path.dirname(path) == f"/{job.scheduler.path}"
    limit = pathlib.Path(f"{mounted_hierarchies()['memory']}{path}/memory.limit_in_bytes")
    assert limit.read_text() == f"{64 << 20}\n"
    # From outside of the job too.
    job.berth.ok("update", "--memory", "96m", "--memory-swap", "-1", "c1")
    assert limit.read_text() == f"{96 << 20}\n"
    job.berth.ok("rm", "--force", "c1")
    assert not limit.parent.exists()


@pytest.mark.profiles("root")
def test_a_parent_that_is_named_counts(job, busybox):
    job.ok("run", "--detach", "--name", "c1", "--memory", "64m", "--cgroup-parent", "/", busybox,
           "sleep", "60")
    assert os.path.dirname(job.cgroups_of("c1")["memory"]) == "/"


@pytest.mark.profiles("root")
def test_what_a_scheduler_kills_takes_the_container_along(job, busybox):
    """Every process in the job's cgroup and below, which is how each of them ends a job."""
    # Without a lease of GPUs, which whoever wants them next would clear away.
    job.ok("run", "--detach", "--name", "c1", "--memory", "64m", "--gpus", "none", busybox, "sleep", "60")
    process = pathlib.Path(f"/proc/{job.pid_of('c1')}")
    for procs in job.places["memory"].rglob("cgroup.procs"):
        for pid in procs.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)
    wait_until(lambda: not process.exists())
