# SPDX-License-Identifier: Apache-2.0
"""However a job ends, nothing of it is left on its node: an Epilog of Slurm's looks, which begins when
spank_berth.so has had its turn. There is one node, since several would be on this machine."""

import json
import os
import pathlib
import signal
import socket
import tempfile
import threading
import time

import pytest

from support import images, registry_front
from support.berth import Berth
from support.device_cgroup import DEVICES
from support.processes import kill_each, matching
from support.slurm_containers import STARTER, Submitter, with_plugin
from support.users import KINDS
from support.waiting import wait_until

TESTS = pathlib.Path(__file__).parents[1]
# What is there of the job's, and of its user's store.
EPILOG = """\
#!/usr/bin/python3
import json, os, pathlib, sys
sys.path.insert(0, "{tests}")
from support import leftovers

job = os.environ["SLURM_JOB_ID"]
here = pathlib.Path("{directory}")
places = [line.split('"')[1] for line in (here / f"place-{{os.environ['SLURM_JOB_UID']}}").read_text().splitlines()]
processes = {{}}
for place in places:
    processes |= leftovers.processes(place, set())
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        ours = f"SLURM_JOB_ID={{job}}".encode() in (entry / "environ").read_bytes().split(b"\\0")
        if ours and int(entry.name) != os.getpid():
            processes[int(entry.name)] = (entry / "cmdline").read_text()
    except OSError:
        pass
containers = pathlib.Path(places[0]) / "containers"
report = {{"processes": list(processes.values()),
          "mounts": [mount for mount in leftovers.mounts() if mount.startswith(tuple(places))],
          "cgroups": sorted(leftovers.cgroups()),
          "containers": sorted(os.listdir(containers)) if containers.exists() else [],
          "notes": [name for name in os.listdir("/run/berth-jobs") if name.startswith(f"{{job}}.")]
                   if os.path.exists("/run/berth-jobs") else []}}
(here / f"new-{{job}}").write_text(json.dumps(report))
(here / f"new-{{job}}").rename(here / f"report-{{job}}")
"""
NOTHING = {"processes": [], "mounts": [], "cgroups": [], "containers": [], "notes": []}
# A test may put another program in the place of berth when the job has ended.
INSTEAD = """\
#!/bin/sh
if [ "$2" = epilog ] && [ -e "${{0%/*}}/instead" ]; then exec "${{0%/*}}/instead" "$@"; fi
"""


@pytest.fixture(scope="module", params=["global", "job"])
def cluster(request, session_directory, programs, accounts):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="slurm-ends-", dir=session_directory))
    directory.chmod(0o755)
    epilog = directory / "epilog"
    epilog.write_text(EPILOG.format(tests=TESTS, directory=directory))
    epilog.chmod(0o755)
    # Slurm's own cgroups beside the one, where this machine lets it have them.
    confined = request.param == "job" and os.path.exists(DEVICES / "devices.deny")
    made = with_plugin(directory, programs, lines=[f"Epilog={epilog}"], constrained=confined,
                       arguments=[f"container_scope={request.param}"],
                       starter=STARTER.replace("#!/bin/sh\n", INSTEAD))
    with made.running() as running:
        running.scope = request.param
        yield running


def left_of(cluster, job):
    """What the epilog has seen."""
    path = cluster.directory / f"report-{job}"
    wait_until(path.exists, timeout=60)
    return json.loads(path.read_text())


@pytest.fixture
def name(cluster):
    """The options that give a container a name which is gone with its job."""
    return ["--container-name=web"] if cluster.scope == "job" else []


in_scope_of_jobs = pytest.mark.parametrize("cluster", ["job"], indirect=True, scope="module")
in_global_scope = pytest.mark.parametrize("cluster", ["global"], indirect=True, scope="module")


# ---- however a job ends -------------------------------------------------------------------------

def begin(slurm, *words, then="exec sleep 300"):
    """A step of two tasks. (srun, its job, [the tasks])"""
    step = slurm.spawn("srun", "--ntasks=2", *words, "sh", "-c", f"echo $SLURM_JOB_ID $$; {then}")
    said = [step.stdout.readline().split() for _ in range(2)]
    return step, said[0][0], [int(task) for _, task in said]


def by_itself(slurm, image, name):
    step, job, _ = begin(slurm, image, *name, then="touch /left")
    assert step.wait(timeout=30) == 0
    return job


def by_failing(slurm, image, name):
    step, job, _ = begin(slurm, image, *name, then="exit 3")
    assert step.wait(timeout=30) == 3
    return job


def by_a_killed_task(slurm, image, name):
    step, job, tasks = begin(slurm, "--kill-on-bad-exit=1", image, *name)
    os.kill(tasks[0], signal.SIGKILL)
    assert step.wait(timeout=30) != 0
    return job


def by_being_cancelled(slurm, image, name):
    step, job, _ = begin(slurm, image, *name)
    slurm.call("scancel", job)
    assert step.wait(timeout=30) != 0
    return job


def by_being_cancelled_while_it_pulls(slurm, image, name):
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # a registry that never answers
        reference = f"127.0.0.1:{deaf.getsockname()[1]}/never/answers:1"
        step = slurm.spawn("srun", "--ntasks=2", f"--container-image={reference}", *name, "true")
        wait_until(lambda: matching(rb"slurm\0step") and matching(rb"berth-transfer"))
        job = slurm.call("squeue", "--noheader", "--format=%i").stdout.strip()
        slurm.call("scancel", job)
        assert step.wait(timeout=30) != 0
    return job


def by_itself_when_its_container_has_lost_its_owner(slurm, image, name):
    """As when memory is short. Nobody else removes the container then."""
    place = slurm.berth.account.own(slurm.berth.directory / "meeting")
    step, job, _ = begin(slurm, image, f"--container-mounts={place}:/meeting", *name,
                         then="until [ -e /meeting/go ]; do usleep 50000; done")
    kill_each(matching(rb"slurm\0step|/dev/berth-hold"))
    (place / "go").touch()
    assert step.wait(timeout=30) == 0
    return job


def by_being_cancelled_while_its_container_is_saved(slurm, image, name):
    """What the job holds up: Slurm would lose its patience before the plugin does."""
    place = slurm.berth.account.own(slurm.berth.directory / "meeting")
    step, job, tasks = begin(slurm, image, f"--container-mounts={place}:/meeting",
                             f"--container-save={slurm.berth.directory}/out.sqsh", *name,
                             then="until [ -e /meeting/go ]; do usleep 50000; done")
    for pid in matching(rb"slurm\0step"):
        os.kill(pid, signal.SIGSTOP)
    (place / "go").touch()
    wait_until(lambda: not any(os.path.exists(f"/proc/{task}") for task in tasks))
    slurm.call("scancel", job)
    step.wait(timeout=50)  # its tasks have ended well
    return job


ENDS = [by_itself, by_failing, by_a_killed_task, by_being_cancelled, by_being_cancelled_while_it_pulls,
        by_being_cancelled_while_its_container_is_saved, by_itself_when_its_container_has_lost_its_owner]


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_a_job_that_ends(cluster, slurm, image, name, end):
    job = end(slurm, image, name)
    assert left_of(cluster, job) == NOTHING
    wait_until(cluster.is_idle)  # and no node was drained


# ---- a time limit -------------------------------------------------------------------------------

class Limited:
    """A job of one user's: one step runs, and another is in the middle of a pull. Their srun are no part of
    the job: there the limit ends them too, sometimes before they have heard why."""

    def __init__(self, slurm, here, held, name):
        self.slurm, self.out = slurm, slurm.berth.account.own(slurm.berth.directory / "out")
        slurm.berth.ok("pull", "--quiet", here)
        self.job = slurm.call("sbatch", "--parsable", "--ntasks=4", "--time=1", f"--output={self.out}/batch",
                              "--wrap", "exec sleep 600").stdout.strip()
        wait_until(lambda: self.state() == "RUNNING", timeout=30)
        self.steps = [self.step("runs", here, *name, "sh", "-c", "echo up; exec sleep 600"),
                      self.step("pulls", held, "echo", "ran")]

    def step(self, name, image, *words):
        return self.slurm.spawn("srun", f"--jobid={self.job}", "--ntasks=2", "--exact", f"--output={self.out}/{name}",
                                f"--error={self.out}/{name}-said", f"--container-image={image}", *words)

    def said(self, what):
        path = self.out / what
        return path.read_text() if path.exists() else ""

    def state(self):
        told = self.slurm.call("scontrol", "show", "job", self.job).stdout
        return dict(word.split("=", 1) for word in told.split() if "=" in word)["JobState"]


@pytest.fixture
def held(registry):
    """(the reference of an image whose layers come when let go of, how many were asked for, let_go)"""
    made = images.build([images.busybox_layer(), images.layer([images.file("told", "tea\n")])])
    made.push(registry, "test/held")
    asked, let_go = [], threading.Event()

    def before(method, path):
        if method == "GET" and path.endswith(tuple(made.layer_digests)):
            asked.append(path)
            let_go.wait(120)
    with registry_front.running(registry) as front:
        front.before = before
        yield f"{front.address}/test/held:latest", asked, let_go
        let_go.set()


@pytest.mark.long
@pytest.mark.profiles("root")  # here all users at once: a limit is looked at every 30 seconds
@in_scope_of_jobs
def test_steps_that_reach_the_time_limit_leave_nothing(cluster, programs, accounts, work, busybox, held, name):
    reference, asked, let_go = held
    jobs = [Limited(Submitter(cluster, Berth(programs, account, account.own(work / kind))), busybox, reference, name)
            for kind, account in ((kind, accounts[kind]) for kind in KINDS)]
    wait_until(lambda: all(one.said("runs") == "up\nup\n" for one in jobs), timeout=60)
    wait_until(lambda: len(matching(rb"slurm\0step")) == 2 * len(jobs) and len(asked) >= len(jobs), timeout=60)
    for one in jobs:
        cluster.ok("scontrol", "update", f"job={one.job}", "EndTime=now+1")
    wait_until(lambda: {one.state() for one in jobs} == {"TIMEOUT"}, timeout=90)
    for one in jobs:
        assert left_of(cluster, one.job) == NOTHING, one.slurm.berth.account
        for step in one.steps:
            assert step.wait(timeout=30) != 0
        for step in ("runs-said", "pulls-said"):
            assert one.said(step).count("DUE TO TIME LIMIT") >= 1, one.said(step)
        assert one.said("pulls") == ""
    wait_until(cluster.is_idle)
    let_go.set()
    for one in jobs:
        assert one.slurm.srun(f"--container-image={reference}", "cat", "/told") == "tea\n"
        one.slurm.berth.close()


# ---- names --------------------------------------------------------------------------------------

@in_global_scope
def test_a_name_of_the_node_stays_and_nothing_runs(cluster, slurm, image):
    step, job, _ = begin(slurm, image, "--container-name=web", then="true")
    assert step.wait(timeout=30) == 0
    seen = left_of(cluster, job)
    assert len(seen.pop("containers")) == 1 and {**seen, "containers": []} == NOTHING, seen
    assert slurm.berth.ok("rm", "pyxis_web") == "pyxis_web\n"


@in_global_scope
def test_a_name_that_looks_like_a_jobs_is_the_users(cluster, slurm, image):
    """As that of a job to come, and of its step."""
    job = int(slurm.srun(image, "sh", "-c", "echo $SLURM_JOB_ID"))
    names = [f"{job + 3}_web", f"{job + 3}.7-n1"]
    for one in names:
        slurm.srun(image, f"--container-name={one}", "true")
    step, last, _ = begin(slurm, image, then="true")
    assert step.wait(timeout=30) == 0 and int(last) == job + 3
    assert len(left_of(cluster, last)["containers"]) == 2
    slurm.berth.ok("rm", *(f"pyxis_{one}" for one in names))


@in_scope_of_jobs
def test_a_job_removes_no_container_of_another(cluster, slurm, image):
    step, job, _ = begin(slurm, image, "--container-name=web")
    assert slurm.srun(image, "--container-name=web", "sh", "-c", "touch /mine; ls -d /left 2>/dev/null; echo done") == "done\n"
    wait_until(lambda: slurm.berth.ok("ps", "--all", "--format", "{{.Names}}") == f"pyxis_{job}_web\n")
    slurm.call("scancel", job)
    step.communicate(timeout=30)
    assert left_of(cluster, job) == NOTHING


# ---- what removes them --------------------------------------------------------------------------

@pytest.fixture
def little_time(cluster):
    """Two seconds for what removes a job's containers, which on a busy machine may need more."""
    path = cluster.directory / "plugstack.conf"
    before = path.read_text()
    path.write_text(f"{before.strip()} epilog_seconds=2\n")
    yield
    path.write_text(before)


@pytest.fixture
def instead(cluster):
    """instead(line…): a shell script in the place of `berth slurm epilog`."""
    path = cluster.directory / "instead"

    def write(*lines):
        path.write_text("".join(f"{line}\n" for line in ("#!/bin/sh", *lines)))
        path.chmod(0o755)
    yield write
    path.unlink()


@in_scope_of_jobs
def test_what_removes_them_is_the_user_with_nothing_of_the_jobs_or_slurms(cluster, slurm, image, name, instead):
    account = slurm.berth.account
    told = account.own(slurm.berth.directory / "told")
    instead('cd "$HOME/told"', "id -u >id; id -g >>id; id -G >>id; grep -E '^(Uid|Gid|Groups):' /proc/self/status >status",
            "env >env; ls /proc/self/fd >fds; echo $* >words; readlink /proc/$$/cwd >>words; touch done")
    out = slurm.srun(image, *name, "sh", "-c", "echo $SLURM_JOB_ID",
                     env={"HOME": str(slurm.berth.directory), "XDG_DATA_HOME": "/data of mine", "LD_PRELOAD": "/evil.so",
                          "PATH": "/evil:/usr/bin:/bin", "SECRET": "x"})
    job = out.strip()
    wait_until(lambda: (told / "done").exists())
    uid, gid = str(account.uid), str(account.gid)
    assert (told / "id").read_text().split() == [uid, gid, gid]
    status = dict(line.split(":", 1) for line in (told / "status").read_text().splitlines())
    assert status["Uid"].split() == [uid] * 4 and status["Gid"].split() == [gid] * 4
    assert status["Groups"].split() == []
    variables = dict(line.split("=", 1) for line in (told / "env").read_text().splitlines())
    for one in ("PWD", "OLDPWD", "SHLVL", "_"):
        variables.pop(one, None)  # the shell's own
    assert variables.pop("SLURMD_NODENAME") in cluster.nodes
    assert variables.pop("XDG_RUNTIME_DIR", None) == slurm.environment().get("XDG_RUNTIME_DIR")
    assert variables == {"HOME": str(slurm.berth.directory), "XDG_DATA_HOME": "/data of mine",
                         "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    assert (told / "fds").read_text().split() == ["0", "1", "2", "3"]  # the last is that of ls
    assert (told / "words").read_text().split() == ["slurm", "epilog", f"--job={job}", "--scope=job", str(told)]


@pytest.mark.profiles("root", "user")
@in_scope_of_jobs
def test_one_that_hangs_is_killed_with_all_that_it_started(cluster, slurm, image, name, instead, little_time):
    instead("sleep 4321 &", "setsid sh -c 'setsid sleep 4321 & sleep 4321' &", "sleep 4321")
    before = time.monotonic()
    step, job, _ = begin(slurm, image, *name, then="true")
    assert step.wait(timeout=30) == 0
    wait_until(lambda: matching(rb"sleep\x004321"))
    left_of(cluster, job)
    assert time.monotonic() - before < 15 and not matching(rb"sleep\x004321")
    wait_until(cluster.is_idle)
    assert cluster.logs().count(f"cannot remove what job {job} has left: '{cluster.directory}/berth-of-the-test' "
                                "has not ended within 2 s, and is killed") == 1
    slurm.berth.run("rm", "--force", f"pyxis_{job}_web")


@pytest.mark.profiles("root", "user")
@in_scope_of_jobs
def test_one_that_fails_is_told_to_the_administrator_and_drains_no_node(cluster, slurm, image, name, instead):
    instead("printf 'no \\033[31mpower\\nmore\\n' >&2", "head -c 100000 /dev/zero >&2", "exit 7")
    step, job, _ = begin(slurm, image, *name, then="true")
    assert step.wait(timeout=30) == 0
    left_of(cluster, job)
    wait_until(cluster.is_idle)
    assert cluster.logs().count(f"cannot remove what job {job} has left: '{cluster.directory}/berth-of-the-test' "
                                "ended with 7 and said: no \\x1b[31mpower\n") == 1, cluster.logs()
    slurm.berth.run("rm", "--force", f"pyxis_{job}_web")


@pytest.mark.profiles("user")
@in_scope_of_jobs
def test_a_job_without_a_container_costs_its_user_nothing(cluster, slurm, instead):
    instead("touch /tmp/ran-for-nothing")
    job = slurm.srun("sh", "-c", "echo $SLURM_JOB_ID").strip()
    left_of(cluster, job)
    assert not os.path.exists("/tmp/ran-for-nothing")
