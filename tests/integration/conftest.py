# SPDX-License-Identifier: Apache-2.0
import pytest

from support.oci_fixtures import pytest_collection_modifyitems  # noqa: F401
from support.slurm_containers import Submitter
from support.waiting import wait_until


@pytest.fixture
def slurm(cluster, berth):
    """Who submits to the `cluster` of the file."""
    yield Submitter(cluster, berth)
    try:
        wait_until(cluster.is_idle)
    except AssertionError:
        cluster.cancel_all()  # the next test has nothing to do with it
        raise


@pytest.fixture
def image(slurm, busybox):
    """The option for an image that is there."""
    slurm.berth.ok("pull", "--quiet", busybox)
    return f"--container-image={busybox}"
