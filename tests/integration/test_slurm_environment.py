# SPDX-License-Identifier: Apache-2.0
"""Environment definition files under Slurm: --environment as CSCS's users type it. And the site's
variables, which count more than what a job says."""

import os
import shutil

import pytest

from support import images
from support.slurm_containers import with_plugin


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-environment"
    directory.mkdir()
    with with_plugin(directory, programs, nodes=2, arguments=["execute_entrypoint=1"]).running() as running:
        yield running


class Files:
    """Environment files of the test, in a directory of EDF_PATH."""

    def __init__(self, slurm, reference):
        self.slurm, self.reference = slurm, reference
        self.directory = slurm.berth.account.own(slurm.berth.directory / "edf")
        self.variables = {"EDF_PATH": str(self.directory)}

    def write(self, name, *lines, image=True, directory=None):
        """A file of these lines, with the busybox image unless told otherwise; gives its path."""
        path = (directory or self.directory) / f"{name}.toml"
        path.write_text("".join(f"{line}\n" for line in ([f'image = "{self.reference}"'] if image else [])
                                + list(lines)))
        return path

    def srun(self, name, *words, env=None):
        return self.slurm.srun(f"--environment={name}", *words, env={**self.variables, **(env or {})})

    def refused(self, name, *words):
        return self.slurm.refused(f"--environment={name}", *words, env=self.variables)


@pytest.fixture
def edf(slurm, busybox):
    slurm.berth.ok("pull", "--quiet", busybox)
    return Files(slurm, busybox)


NO_SRUN = ("sh", "-c", "ls /usr/bin/srun 2>/dev/null || echo in the image")
INSIDE = "in the image\n"


# ---- which file ---------------------------------------------------------------------------------

def test_a_file_is_named_as_cscs_has_it(slurm, edf):
    edf.write("box")
    beside = edf.write("beside", directory=slurm.berth.directory)
    assert edf.srun("box", *NO_SRUN) == INSIDE
    assert slurm.srun("--environment=./beside.toml", *NO_SRUN) == INSIDE
    assert slurm.srun(f"--environment={beside}", *NO_SRUN) == INSIDE


def test_without_a_path_the_home_directory_has_the_files(slurm, edf):
    place = slurm.berth.account.home / ".edf"
    slurm.berth.account.own(place)
    try:
        edf.write("home", directory=place)
        assert slurm.srun("--environment=home", *NO_SRUN) == INSIDE
    finally:
        shutil.rmtree(place)


def test_a_batch_script_names_its_environment(slurm, edf):
    edf.write("box")
    script, out = slurm.berth.directory / "job.sh", slurm.berth.directory / "out"
    script.write_text(f"#!/bin/sh\n#SBATCH --environment=box --output={out}\n{NO_SRUN[2]}\n")
    done = slurm.call("sbatch", "--wait", script, env=edf.variables)
    assert done.returncode == 0, (done, slurm.cluster.logs())
    assert out.read_text() == INSIDE


def test_steps_of_an_allocation_have_environments_of_their_own(slurm, edf):
    edf.write("one", "[env]", 'COLOUR = "green"')
    edf.write("two", "[env]", 'COLOUR = "blue"')
    steps = "; ".join(f"srun --environment={name} sh -c 'echo $COLOUR'" for name in ("one", "two"))
    done = slurm.call("salloc", "--quiet", "sh", "-c", steps, env=edf.variables)
    assert done.stdout == "green\nblue\n", done


def test_the_image_is_pulled_when_it_is_not_there(slurm, push):
    image = images.build([images.busybox_layer(), images.layer([images.file("told", "tea\n")])])
    registry, _, path = push(image).partition("/")
    (slurm.berth.directory / "new.toml").write_text(f'image = "{registry}#{path}"\n')
    assert slurm.srun("--environment=new.toml", "cat", "/told") == "tea\n"


def test_an_image_may_be_a_file(slurm, edf):
    slurm.berth.ok("save", "--format", "sqsh", "-o", slurm.berth.directory / "box.sqsh", edf.reference)
    edf.write("file", 'image = "./box.sqsh"', image=False)
    assert edf.srun("file", *NO_SRUN) == INSIDE


# ---- what it says -------------------------------------------------------------------------------

def test_all_that_a_file_says_a_step_has(slurm, edf):
    place = slurm.berth.account.own(slurm.berth.directory / "place")
    (place / "file").write_text("tea\n")
    edf.write("whole", f'mounts = ["{place}:/mnt/x", "./place:/mnt/y:ro"]', 'workdir = "/etc"',
              "writable = false")
    out = edf.srun("whole", "--ntasks=2", "--nodes=2", "sh", "-c",
                   "pwd; cat /mnt/x/file; touch /mnt/x/$SLURM_PROCID; touch /mnt/y/no 2>&1; touch /new 2>&1; true")
    assert sorted(out.splitlines()) == sorted(2 * ["/etc", "tea", "touch: /mnt/y/no: Read-only file system",
                                                   "touch: /new: Read-only file system"])
    assert sorted(os.listdir(place)) == ["0", "1", "file"]


def test_a_file_is_laid_over_its_bases(slurm, edf):
    edf.write("common", 'workdir = "/etc"', "[env]", 'ONE = "base"', 'TWO = "base"')
    edf.write("mine", 'base_environment = "common"', "[env]", 'TWO = "mine"', image=False)
    assert edf.srun("mine", "sh", "-c", "pwd; echo $ONE $TWO") == "/etc\nbase mine\n"


def test_variables_of_a_file_count_before_those_of_image_and_job(slurm, edf, push):
    edf.reference = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "FLAVOUR=image"]}))
    edf.write("all", "[env]", 'FLAVOUR = "${FLAVOUR} and ${JOBS}"', 'PATH = "${PATH}:/more"', 'OTHER = "file"')
    out = edf.srun("all", "sh", "-c", "echo $FLAVOUR, $PATH, $OTHER, $PASSED",
                   env={"FLAVOUR": "job", "JOBS": "mine", "OTHER": "job", "PASSED": "job"})
    assert out == "image and mine, /bin:/more, file, job\n"


def test_an_empty_variable_is_taken_away_from_the_tasks_too(slurm, edf, push):
    edf.reference = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "FLAVOUR=image"]}))
    edf.write("empty", "[env]", 'FLAVOUR = ""', 'OTHER = ""')
    show = ("sh", "-c", "echo ${FLAVOUR-none} ${OTHER-none} $(env | grep -c BERTH_STEP)")
    job = {"FLAVOUR": "job", "OTHER": "job"}
    assert edf.srun("empty", "--ntasks=2", *show, env=job) == "none none 0\n" * 2
    assert edf.srun("empty", "--container-env=OTHER", *show, env=job) == "none job 0\n"


def test_an_entrypoint_runs_where_the_file_says_so(slurm, edf, push):
    entrypoint = ["/bin/sh", "-c", 'export BREWED=yes; exec "$@"', "entrypoint"]
    edf.reference = push(images.build([images.busybox_layer()], {"Entrypoint": entrypoint}))
    edf.write("silent")
    edf.write("with", "entrypoint = true")
    show = ("sh", "-c", "echo ${BREWED-no}")
    # The cluster's execute_entrypoint=1 is for steps without a file.
    assert slurm.srun(f"--container-image={edf.reference}", *show) == "yes\n"
    assert edf.srun("silent", *show) == "no\n"
    assert edf.srun("silent", "--container-entrypoint", *show) == "yes\n"
    assert edf.srun("with", *show) == "yes\n"
    assert edf.srun("with", "--no-container-entrypoint", *show) == "no\n"


def test_a_squashfs_is_mounted_as_a_directory(slurm, edf):
    slurm.berth.ok("save", "--format", "sqsh", "-o", slurm.berth.directory / "data.sqsh", edf.reference)
    edf.write("data", f'mounts = ["{slurm.berth.directory}/data.sqsh:/data:sqsh"]')
    assert edf.srun("data", "sh", "-c", "test -x /data/bin/busybox && echo there") == "there\n"


# ---- beside options -----------------------------------------------------------------------------

def test_options_count_before_the_file(slurm, edf, push):
    other = push(images.build([images.busybox_layer(), images.layer([images.file("other", "tea\n")])]))
    one, two = (slurm.berth.account.own(slurm.berth.directory / name) for name in ("one", "two"))
    for place in (one, two):
        (place / "name").write_text(f"{place.name}\n")
    edf.write("mine", f'mounts = ["{one}:/mnt/x", "{one}:/mnt/y"]', 'workdir = "/etc"', "writable = false")
    assert edf.srun("mine", f"--container-image={other}", "cat", "/other") == "tea\n"
    assert edf.srun("mine", "--container-workdir=/tmp", "pwd") == "/tmp\n"
    edf.srun("mine", "--container-writable", "touch", "/new")
    assert "Read-only file system" in edf.refused("mine", "touch", "/new")
    out = edf.srun("mine", f"--container-mounts={two}:/mnt/x", "cat", "/mnt/x/name", "/mnt/y/name")
    assert out == "two\none\n"
    out = edf.srun("mine", "--container-mounts=umount:/mnt/y", "sh", "-c", "ls /mnt/x /mnt/y 2>/dev/null; true")
    assert out == "/mnt/x:\nname\n"


def test_a_named_container_is_made_of_a_file(slurm, edf):
    name = "--container-name=edf"
    try:
        edf.write("mine", "[env]", 'COLOUR = "green"')
        edf.write("bare", image=False)
        edf.srun("mine", name, "touch", "/kept")
        # Each step says anew how it is started, and what it is made of is there.
        assert edf.srun("bare", name, "sh", "-c", "ls /kept; echo ${COLOUR-none}") == "/kept\nnone\n"
        step = slurm.spawn("srun", name, "sh", "-c", "echo up; sleep 3")
        assert step.stdout.readline() == "up\n"
        done = slurm.call("srun", "--overlap", name, "--environment=mine", "ls", "/kept", env=edf.variables)
        assert done.stdout == "/kept\n" and done.stderr.count("--environment: container 'pyxis_edf'") == 1, done
        step.communicate(timeout=30)
    finally:
        slurm.berth.run("rm", "--force", "pyxis_edf")


# ---- what is wrong ------------------------------------------------------------------------------

WRONG = {
    "a file that is not there": ("nowhere", [], "cannot read environment 'nowhere': no 'nowhere.toml' in {edf}"),
    "an unknown key": ("wrong", ['mount = ["/a:/b"]'], "{edf}/wrong.toml:2: mount: unknown key; did you mean 'mounts'?"),
    "no TOML": ("wrong", ["mounts = ["], "{edf}/wrong.toml:"),
    "a loop": ("wrong", ['base_environment = "wrong"'],
               "base_environment is a loop: {edf}/wrong.toml -> {edf}/wrong.toml"),
    "a variable that is not set": ("wrong", ['workdir = "${NOT_THERE}"'], "the variable 'NOT_THERE' is not set"),
    "a variable that the image lacks": ("wrong", ["[env]", 'A = "${NOT_THERE}"'],
                                        "the variable 'NOT_THERE' is not set"),
    "a source that is not there": ("wrong", ['mounts = ["/no/such/place:/mnt"]'], "/no/such/place"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_once_and_fails_the_step(slurm, edf, what):
    name, lines, said = WRONG[what]
    edf.write("wrong", *lines)
    done = slurm.call("srun", "--ntasks=2", "--nodes=1", f"--environment={name}", "echo", "ran", env=edf.variables)
    assert (done.returncode, done.stdout) == (125, ""), done
    told = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
    assert len(told) == 1 and said.format(edf=edf.directory) in told[0], done.stderr
    assert not slurm.containers()


def test_a_file_without_an_image_never_runs_on_the_node(slurm, edf):
    edf.write("bare", image=False)
    done = slurm.call("srun", "--environment=bare", "echo", "ran", env=edf.variables)
    assert (done.returncode, done.stdout) == (125, ""), done
    assert "environment 'bare' names no image; try: --container-image, or 'image = ...' in its file" in done.stderr
    assert edf.srun("bare", f"--container-image={edf.reference}", *NO_SRUN) == INSIDE


def test_a_file_that_one_node_lacks_ends_the_step_on_all(slurm, edf):
    edf.write("here", 'base_environment = "of-${SLURMD_NODENAME}"')
    edf.write("of-n1")
    done = slurm.call("srun", "--nodes=2", "--ntasks=4", "--environment=here", "sleep", "100", env=edf.variables)
    assert done.returncode != 0
    assert done.stderr.count(f"no 'of-n2.toml' in {edf.directory}") == 1, done.stderr


@pytest.mark.profiles("user", "single_id")
def test_a_file_that_the_user_may_not_read_is_not_read_for_him(slurm, edf):
    path = edf.write("secret", "hidden = 1")
    os.chown(path, 0, 0)
    path.chmod(0o600)
    said = edf.refused("secret", "true")
    assert f"open '{path}': Permission denied" in said and "hidden" not in said


@pytest.mark.profiles("user")
def test_an_option_that_is_wrong_is_refused_before_anything_starts(slurm):
    assert "--environment: argument required" in slurm.refused("--environment=", "true")
    assert "--environment specified multiple times" in slurm.refused("--environment=a", "--environment=b", "true")


# ---- the site's variables -----------------------------------------------------------------------

FORCED = """\
[[rule]]
name = "licences"
env-force = { LICENCE = "site" }
"""


@pytest.fixture
def site(slurm):
    """Variables of who submits under a rule that forces LICENCE."""
    account = slurm.berth.account
    config = account.own(slurm.berth.directory / "site")
    rules = account.own(config / "policy.d")
    file = rules / "forced.toml"
    file.write_text(FORCED)
    os.chown(file, account.uid, account.gid)
    slurm.berth.ok("--config-dir", config, "policy", "apply")
    return {"TEST_CONFIG": str(config), "LICENCE": "job"}


def test_a_site_says_which_variables_stay_outside(slurm, image):
    account = slurm.berth.account
    config = account.own(slurm.berth.directory / "variables")
    file = config / "policy.toml"
    file.write_text('[slurm]\nnode-variables = ["SITE_HOME"]\n')
    os.chown(file, account.uid, account.gid)
    slurm.berth.ok("--config-dir", config, "policy", "apply")
    env = {"TEST_CONFIG": str(config), "SITE_HOME": "/soft/site", "PYTHONHOME": "/soft/python"}
    assert slurm.srun(image, "sh", "-c", "echo ${SITE_HOME-none} $PYTHONHOME", env=env) == "none /soft/python\n"


SHOW = ("sh", "-c", "echo $LICENCE")


def test_a_forced_variable_counts_before_that_of_a_job(slurm, image, site):
    assert slurm.srun(image, *SHOW, env=site) == "site\n"
    assert slurm.srun(image, "--container-env=LICENCE", "--ntasks=2", *SHOW, env=site) == "site\n" * 2
    without = {"LICENCE": "job"}
    assert slurm.srun(image, "--container-env=LICENCE", *SHOW, env=without) == "job\n"


def test_a_forced_variable_counts_in_a_container_that_is_joined(slurm, image, site):
    name = "--container-name=forced"
    try:
        step = slurm.spawn("srun", image, name, "sh", "-c", "echo up; sleep 3", env=site)
        assert step.stdout.readline() == "up\n"
        assert slurm.srun("--overlap", name, "--container-env=LICENCE,OTHER", "sh", "-c", "echo $LICENCE $OTHER",
                          env={**site, "OTHER": "job"}) == "site job\n"
        step.communicate(timeout=30)
    finally:
        slurm.berth.run("rm", "--force", "pyxis_forced")


def test_a_forced_variable_counts_before_that_of_a_file(slurm, edf, site):
    edf.write("mine", "[env]", 'LICENCE = "file"')
    assert edf.srun("mine", *SHOW, env=site) == "site\n"
