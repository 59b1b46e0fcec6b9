# SPDX-License-Identifier: Apache-2.0
"""The site's variables, which count more than what a job says."""

import os

import pytest

from support.slurm_containers import with_plugin


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-environment"
    directory.mkdir()
    with with_plugin(directory, programs, nodes=2, arguments=["execute_entrypoint=1"]).running() as running:
        yield running


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
