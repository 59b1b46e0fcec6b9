# SPDX-License-Identifier: Apache-2.0
"""Images that `--container` of srun, sbatch and salloc names, without a plugin: packaging/slurm and
the lines of docs/slurm.md."""

import json
import os
import subprocess

import pytest

from support import images
from support.berth import Berth
from support.bundle import Bundle
from support.device_cgroup import DEVICES
from support.processes import kill_each, matching
from support.slurm import need_mpi, version
from support.slurm_containers import Submitter
from support.slurm_images import with_images
from support.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    lines = ["AuthInfo=cred_expire=5", "SchedulerParameters=bf_interval=1,sched_interval=2",
             "LaunchParameters=use_interactive_step"]
    # Character devices that every machine has stand for the synthetic tree's.
    gpus = [f"/dev/tty{number}" for number in range(1, 9)]
    with with_images(session_directory / "slurm-images", programs, lines, nodes=2, gpus=gpus).running() as running:
        yield running


@pytest.fixture
def slurm(cluster, berth):
    """No node is drained, and nothing of a job is left, whatever a test did."""
    yield Submitter(cluster, berth)
    wait_until(cluster.is_idle)
    wait_until(lambda: not directories_of_jobs(cluster))


def directories_of_jobs(cluster):
    """What Prolog and slurmstepd have made for jobs that are not yet gone."""
    return [path for path in cluster.spool.glob("*") if path.name != "image"]


def tasks_of(cluster):
    """The directories that slurmstepd has made for tasks: in that of the job, or beside it (22.05)."""
    return [*cluster.spool.glob("n?.*/*/*"), *cluster.spool.glob("n?.*.*.*")]


@pytest.fixture
def image(slurm, busybox):
    slurm.berth.ok("pull", "--quiet", busybox)
    return f"--container={busybox}"


HAS_SRUN = ("sh", "-c", "ls /usr/bin/srun 2>/dev/null || echo no srun")


# ---- steps --------------------------------------------------------------------------------------

def test_a_task_runs_in_the_image_as_who_submitted(slurm, image):
    account = slurm.berth.account
    assert slurm.srun(image, *HAS_SRUN) == "no srun\n"
    assert slurm.srun(*HAS_SRUN) == "/usr/bin/srun\n"
    assert slurm.srun(image, "id", "-u") == f"{account.uid}\n"


def test_the_image_is_pulled_when_it_is_not_there(slurm, busybox):
    done = slurm.call("srun", f"--container={busybox}", "echo", "tea")
    assert (done.returncode, done.stdout) == (0, "tea\n"), done


def test_each_node_runs_its_task_in_the_image(slurm, image):
    out = slurm.srun("--nodes=2", "--ntasks=2", image, "sh", "-c",
                     "echo $SLURM_PROCID $SLURMD_NODENAME; ls /usr/bin/srun 2>/dev/null || echo no srun")
    assert sorted(out.splitlines()) == ["0 n1", "1 n2", "no srun", "no srun"]


@pytest.mark.parametrize("status", [0, 1, 42])
def test_the_status_of_a_task_is_that_of_its_program(slurm, image, status):
    assert slurm.call("srun", image, "sh", "-c", f"exit {status}").returncode == status


def test_a_program_that_the_image_does_not_have(slurm, image):
    done = slurm.call("srun", image, "no-such-program")
    assert done.returncode == 127 and "no-such-program" in done.stderr, done


def test_words_and_standard_input_reach_the_task_as_they_are(slurm, image):
    words = ("a b", "c'd", 'e"f', "$HOME", "", "-x", "*")
    assert slurm.srun(image, "sh", "-c", 'for w; do echo "<$w>"; done', "sh", *words) == \
        "".join(f"<{word}>\n" for word in words)
    assert slurm.srun(image, "cat", input="tea\n") == "tea\n"


def test_variables_of_the_task_pass_and_those_of_the_image_count_more(slurm, push):
    reference = push(images.build([images.busybox_layer()],
                                  {"Env": ["PATH=/bin", "FLAVOUR=image", "OTHER=image"]}))
    env = {"FLAVOUR": "job", "PASSED": "job\nof two lines", "LANG": "xx_XX"}
    show = ("sh", "-c", 'echo "$FLAVOUR $OTHER $PASSED $PATH ${LANG-none} $SLURM_PROCID"')
    assert slurm.srun(f"--container={reference}", *show, env=env) == \
        "image image job\nof two lines /bin none 0\n"


def test_variables_that_lead_to_files_of_the_node_stay_outside(slurm, image):
    env = {"LD_LIBRARY_PATH": "/soft/lib", "PYTHONHOME": "/soft/python", "SITE_HOME": "/soft/site"}
    assert slurm.srun(image, "sh", "-c", "echo ${LD_LIBRARY_PATH-none} ${PYTHONHOME-none} $SITE_HOME", env=env) == \
        "none none /soft/site\n"


def test_a_job_without_variables_has_a_container(slurm, image):
    names = "TEST_ROOT,TEST_STATE"  # the store of the test
    assert slurm.srun(f"--export={names}", image, "echo", "tea") == "tea\n"


def test_variables_of_pyxis_stand_for_options(slurm, image):
    place = slurm.berth.account.own(slurm.berth.directory / "place")
    (place / "file").write_text("tea\n")
    env = {"PYXIS_CONTAINER_MOUNTS": f"{place}:/mnt", "PYXIS_CONTAINER_WORKDIR": "/mnt",
           "PYXIS_CONTAINER_READONLY": "1"}
    assert slurm.srun(image, "sh", "-c", "pwd; cat file; touch /x 2>/dev/null || echo cannot", env=env) == \
        "/mnt\ntea\ncannot\n"


@pytest.mark.profiles("user")
def test_what_needs_a_container_that_stays_is_refused(slurm, image):
    done = slurm.call("srun", image, "true", env={"PYXIS_CONTAINER_NAME": "web"})
    assert done.returncode == 125, done
    assert ("berth: a container of --container ends with its task: it cannot be named or saved; try: unset "
            "PYXIS_CONTAINER_NAME PYXIS_CONTAINER_SAVE, or --container-image of spank_berth.so\n") in done.stderr


def test_a_step_has_the_gpus_that_slurm_gave_it(slurm, image, driver_tree):
    """Under the numbers that the container has them by."""
    beside = slurm.spawn("srun", "--nodelist=n1", "--gpus=2", "sh", "-c", "echo up; exec sleep 100")
    assert beside.stdout.readline() == "up\n"
    ask = ("--nodelist=n1", "--gpus=3")
    assert slurm.srun(*ask, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES") == "2,3,4\n"
    out = slurm.srun(*ask, image, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; ls /dev | grep '^nvidia[0-9]'",
                     env={"TEST_TREE": driver_tree("eight")})
    slurm.call("scancel", "--user", slurm.berth.account.name)
    beside.communicate(timeout=30)
    # By PCI address, which is not the order of the minors.
    assert out.splitlines() == ["0,1,2", "nvidia0", "nvidia1", "nvidia7"]


def test_a_rank_finds_the_server_of_pmix(slurm, image):
    need_mpi("pmix")
    out = slurm.srun("--mpi=pmix", image, "sh", "-c",
                     "echo rank $PMIX_RANK; test -d $PMIX_SERVER_TMPDIR && echo there")
    assert out == "rank 0\nthere\n"


TRAP = "trap 'echo caught; exit 7' USR1; echo up; while :; do sleep 0.1; done"


def test_a_signal_reaches_the_task(slurm, image):
    """From Slurm, which sends it to all processes of a step, and from berth."""
    step = slurm.spawn("srun", image, "sh", "-c", TRAP)
    assert step.stdout.readline() == "up\n"
    slurm.call("scancel", "--signal=USR1", "--user", slurm.berth.account.name)
    out, _ = step.communicate(timeout=30)
    assert step.returncode == 7 and out in ("caught\n", "caught\n" * 2)


def test_a_signal_for_the_batch_script_alone_reaches_it(slurm, image):
    script = slurm.berth.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH {image} --output=out\n{TRAP}\n")
    job = slurm.call("sbatch", "--parsable", str(script)).stdout.strip()
    wait_until(lambda: outputs(slurm) == ["up\n"])
    slurm.call("scancel", "--batch", "--signal=USR1", job)
    wait_until(lambda: outputs(slurm) == ["up\ncaught\n"])


def test_a_step_that_is_cancelled_leaves_nothing(slurm, image):
    step = slurm.spawn("srun", image, "sh", "-c", "echo up; exec sleep 3335")
    assert step.stdout.readline() == "up\n"
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    assert step.returncode != 0
    wait_until(lambda: not matching(rb"sleep\x003335|slurm\0step"))
    slurm.srun(image, "true")  # sweeps what killed owners have left
    assert slurm.containers() == []


def test_what_a_killed_slurmstepd_has_left_goes_with_the_job(slurm, image):
    job = slurm.spawn("srun", image, "sh", "-c", "echo up; exec sleep 3336")
    assert job.stdout.readline() == "up\n"
    kill_each(matching(rb"^slurmstepd: \[\d+\.0\]"))
    assert len(tasks_of(slurm.cluster)) == 1
    kill_each(matching(rb"sleep\x003336|slurm\0step"))
    slurm.call("scancel", "--user", slurm.berth.account.name)
    job.kill()
    job.communicate()
    wait_until(lambda: slurm.cluster.is_idle() and not directories_of_jobs(slurm.cluster))
    slurm.srun(image, "true")  # sweeps what berth, which was killed, has left


# ---- jobs ---------------------------------------------------------------------------------------

def submit(slurm, text, *words):
    script = slurm.berth.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n{text}")
    done = slurm.call("sbatch", "--wait", *words, str(script))
    assert done.returncode == 0, (done, outputs(slurm), slurm.cluster.logs())
    return outputs(slurm)


def outputs(slurm):
    return [path.read_text() for path in sorted(slurm.berth.directory.glob("out*"))]


def test_a_batch_script_runs_in_the_image(slurm, image):
    out, = submit(slurm, f"#SBATCH {image} --output=out\n"
                  "ls /usr/bin/srun 2>/dev/null || echo no srun; id -u; echo $SLURM_JOB_NUM_NODES $1\n",
                  "--nodes=2")
    assert out == f"no srun\n{slurm.berth.account.uid}\n2\n"


def test_each_step_of_a_job_names_its_own_image(slurm, image, push):
    other = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "FLAVOUR=mint"]}))
    out, = submit(slurm, "#SBATCH --output=out --error=/dev/null --nodes=2\n"
                  f"srun --nodes=2 {image} sh -c 'echo ${{FLAVOUR-plain}} $SLURM_STEP_ID'\n"
                  f"srun --nodes=2 --container={other} sh -c 'echo ${{FLAVOUR-plain}} $SLURM_STEP_ID'\n"
                  "srun --nodes=1 --ntasks=1 ls /usr/bin/srun\n")
    assert out.splitlines() == ["plain 0"] * 2 + ["mint 1"] * 2 + ["/usr/bin/srun"]


def test_each_job_of_an_array_has_its_container(slurm, image):
    assert submit(slurm, f"#SBATCH {image} --array=1-3 --output=out-%a\n"
                  "ls /usr/bin/srun 2>/dev/null || echo no srun, $SLURM_ARRAY_TASK_ID\n") == \
        [f"no srun, {number}\n" for number in (1, 2, 3)]


@pytest.mark.profiles("user")
def test_a_job_that_is_requeued_has_its_container_again(slurm, image):
    script = slurm.berth.directory / "again.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --requeue --open-mode=append {image} --output=out\n"
                      "ls /usr/bin/srun 2>/dev/null || echo no srun, ${SLURM_RESTART_COUNT-first}\n"
                      "[ -n \"$SLURM_RESTART_COUNT\" ] || exec sleep 100\n")
    job = slurm.call("sbatch", "--parsable", str(script)).stdout.strip()
    wait_until(lambda: outputs(slurm) == ["no srun, first\n"])
    assert slurm.call("scontrol", "requeue", job).returncode == 0
    wait_until(lambda: "\nno srun, 1\n" in "".join(outputs(slurm)), timeout=40)


@pytest.mark.profiles("user")
def test_the_shell_of_an_allocation_is_in_the_image(slurm, image):
    done = slurm.call("script", "--quiet", "--return", "--command", f"salloc {image}", "/dev/null",
                      input="ls /usr/bin/srun || echo no $((40 + 2))\nexit\n", env={"SHELL": "/bin/sh"})
    assert "no 42" in done.stdout, done


def test_users_with_the_same_image_do_not_meet(slurm, image, busybox, programs, accounts, work):
    other = "user" if slurm.berth.account.kind != "user" else "single_id"
    berth = Berth(programs, accounts[other], work / "other")
    both = [slurm, Submitter(slurm.cluster, berth)]
    ask = ("--nodes=1", "sh", "-c", "echo up; id -u; sleep 1")
    steps = [one.spawn("srun", ask[0], f"--container={busybox}", *ask[1:]) for one in both]
    for one, step in zip(both, steps, strict=True):
        out, err = step.communicate(timeout=60)
        assert (step.returncode, out) == (0, f"up\n{one.berth.account.uid}\n"), err
    berth.close()


def test_what_slurm_shows_and_writes_of_a_task(slurm, image):
    step = slurm.spawn("srun", image, "sh", "-c", "echo up; exec sleep 100")
    assert step.stdout.readline() == "up\n"
    task, = tasks_of(slurm.cluster)
    newer = version() >= (23, 2)
    ours = slurm.cluster.spool / task.relative_to(slurm.cluster.spool).parts[0]
    status = ours.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (slurm.berth.account.uid, 0o700 if newer else 0o750)
    job = ours.name.split(".")[1]
    told = slurm.call("scontrol", "show", "job", job).stdout
    assert f"Container={slurm.cluster.spool}/image/1/../2/../7/../dot/../" in told, told
    # Where others make nothing: slurmstepd of 22.05 follows as root what lies there.
    status = slurm.cluster.spool.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o755)
    files = [str(path.relative_to(task)) for path in task.rglob("*") if path.is_file()]
    assert files == ([] if newer else ["config.json"])
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)


def test_tasks_of_one_node_have_containers_of_their_own(slurm, image):
    done = slurm.call("srun", "--nodes=1", "--ntasks=2", image, "sh", "-c", "echo $SLURM_LOCALID")
    if version() >= (23, 2):
        assert sorted(done.stdout.splitlines()) == ["0", "1"], done
    else:
        assert done.returncode != 0, done
        pytest.skip("Slurm 22.05 does not have it")


@pytest.mark.profiles("user", "single_id")
def test_a_link_of_the_user_leads_slurm_to_no_file_of_another(slurm, image, work):
    """Without DisableCleanup slurmstepd would remove as root what it takes for a task's config.json; Debian's
    follows no link there any more."""
    (work / "config.json").write_text("{}")
    spool = slurm.cluster.spool
    said, = submit(slurm, "#SBATCH --output=out --error=/dev/null\n"
           f"srun {image} sh -c 'echo up; exec sleep 100' >up &\nuntil [ -s up ]; do sleep 0.1; done\n"
           f"for task in {spool}/*.$SLURM_JOB_ID/0/0 {spool}/*.$SLURM_JOB_ID.0.0; do\n"
           f"  [ ! -d $task ] || {{ mv $task $task.away && ln -s {work} $task && echo led; }}\ndone\n"
           "scancel $SLURM_JOB_ID.0\nwait\n"
           "while pgrep -f \"^slurmstepd: .$SLURM_JOB_ID[.]0\"; do sleep 0.1; done >/dev/null\n")
    assert said == ("led\n" if version() >= (23, 2) else "")
    assert (work / "config.json").read_text() == "{}"


# ---- names --------------------------------------------------------------------------------------

HOSTILE = ["a;touch x", "a b", "$(touch x)", "a'b", 'a"b', "a\nb", "a%s", "a\\b", "ä", "-", "a" * 257, "a*"]


@pytest.mark.parametrize("command", ["srun", "sbatch"])
@pytest.mark.profiles("user")
def test_a_text_that_is_no_name_is_refused_when_it_is_submitted(slurm, command):
    for name in HOSTILE:
        words = ["--wrap=true"] if command == "sbatch" else ["true"]
        done = slurm.call(command, f"--container={name}", *words)
        assert done.returncode != 0, name
        assert (f"lua: --container: '{name}' is neither the name of an image nor the path of a bundle, which "
                "begins with "
                "'/' or '.'\n") in done.stderr, done


@pytest.mark.parametrize("name, said", [
    ("a/../../../etc", "a/../../../etc"), ("a@b", "a@b"), ("A/B", "A/B"), ("a//b", "a//b"), ("a" * 256, "aaa")])
@pytest.mark.profiles("user")
def test_a_name_that_no_image_can_have_fails_the_step(slurm, name, said):
    done = slurm.call("srun", f"--container={name}", "true")
    assert done.returncode == 125, done
    errors = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert len(errors) == 1 and said in errors[0], done


def test_an_image_that_cannot_be_had_fails_the_job_and_no_node(slurm, image, registry):
    missing = f"--container={registry.address}/no/such:1"
    done = slurm.call("srun", missing, "true")
    assert done.returncode == 125, done
    errors = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert len(errors) == 1 and "no/such" in errors[0], done
    script = slurm.berth.directory / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH {missing} --output=out\ntrue\n")
    assert slurm.call("sbatch", "--wait", str(script)).returncode == 125
    out, = outputs(slurm)
    assert len(out.splitlines()) == 1 and "no/such" in out
    assert slurm.srun("--nodes=2", "--ntasks=2", image, "echo", "tea") == "tea\n" * 2


@pytest.mark.profiles("user")
def test_a_prolog_that_can_make_nothing_fails_the_step_and_no_node(slurm, image):
    spool = slurm.cluster.spool
    aside = spool.with_name("aside")
    if spool.exists():
        spool.rename(aside)
    spool.write_text("not a directory")
    try:
        assert slurm.call("srun", image, "true").returncode != 0
        wait_until(slurm.cluster.is_idle)
    finally:
        spool.unlink()
        if aside.exists():
            aside.rename(spool)
    assert slurm.srun(image, "echo", "tea") == "tea\n"


# ---- bundles ------------------------------------------------------------------------------------

def test_the_path_of_a_bundle_stays_as_it_is(slurm):
    account = slurm.berth.account
    bundle = Bundle(slurm.berth.directory / "bundle")
    if account.kind != "root":
        linux = bundle.config["linux"]
        linux["namespaces"] = [{"type": name} for name in ("user", "pid", "ipc", "uts", "mount")]
        linux["uidMappings"] = [{"containerID": 0, "hostID": account.uid, "size": 1}]
        linux["gidMappings"] = [{"containerID": 0, "hostID": account.gid, "size": 1}]
        linux["resources"] = {}
        bundle.config["mounts"] = [one for one in bundle.config["mounts"]
                                   if one["destination"] in ("/proc", "/dev", "/dev/shm")]
    bundle.write()
    subprocess.run(["chown", "-R", f"{account.uid}:{account.gid}", bundle.directory], check=True)
    assert slurm.srun(f"--container={bundle.directory}", "/bin/sh", "-c", "hostname; id -u") == "berth-test\n0\n"
    out, = submit(slurm, f"#SBATCH --container={bundle.directory} --output=out\nhostname\n")
    assert out == "berth-test\n"


@pytest.mark.profiles("user")
def test_a_directory_that_is_no_bundle_is_said(berth):
    assert berth.fail("slurm", "bundle", "x", "/no/such") == \
        "berth: cannot read the bundle: open '/no/such': No such file or directory"
    bundle = berth.account.own(berth.directory / "bundle")
    (bundle / "config.json").write_text(json.dumps({
        "ociVersion": "1.0.2", "root": {"path": "/x/../a/rootfs"}, "process": {"cwd": "/"},
        "annotations": {"dev.berth.slurm.images": "/x"}}))
    assert berth.fail("slurm", "bundle", "x", bundle) == (
        "berth: cannot run --container: the path '/x/../a/rootfs' names no image; try: srun --container IMAGE, "
        "where cli_filter.lua is set up")


# ---- where Slurm confines tasks -----------------------------------------------------------------

@pytest.fixture(scope="module")
def confining(session_directory, programs, accounts, driver_tree):
    if not os.path.exists(DEVICES / "devices.deny"):
        pytest.skip("no device cgroup of version 1 is mounted")
    tree = driver_tree("eight")
    # As `berth slurm features --gres-conf` has them: by PCI address, which is not by minor.
    gpus = [f"{tree}/dev/nvidia{minor}" for minor in (2, 5, 0, 7, 1, 4, 3, 6)]
    made = with_images(session_directory / "slurm-confining", programs, gpus=gpus, constrained=True)
    with made.running() as running:
        running.tree = tree
        yield running


def test_a_container_is_in_its_tasks_cgroups_and_opens_its_gpus_alone(confining, berth, busybox):
    slurm = Submitter(confining, berth)
    berth.ok("pull", "--quiet", busybox)
    look = ("for node in /dev/nvidia[0-9]*; do echo $(dd if=$node of=/dev/null count=1 2>&1 | tail -n 1); done;"
            "echo up; exec sleep 3337")
    step = slurm.spawn("srun", "--gpus=2", f"--container={busybox}", "sh", "-c", look,
                       env={"TEST_TREE": confining.tree})
    said = list(iter(step.stdout.readline, "up\n"))
    # It may open them, and there is no device behind them.
    assert len(said) == 2 and all("No such device or address" in line for line in said), said
    task, = wait_until(lambda: matching(rb"^sleep\x003337"))
    places = dict(line.split(":", 2)[1:] for line in open(f"/proc/{task}/cgroup", encoding="utf-8"))
    slurm.call("scancel", "--user", berth.account.name)
    step.communicate(timeout=30)
    assert "/step_0" in places["freezer"] and "/task_0" in places["devices"], places
    wait_until(confining.is_idle)
