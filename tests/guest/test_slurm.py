# SPDX-License-Identifier: Apache-2.0
"""Slurm's steps with containers on a machine that has cgroup v2 alone, where what a task may open is
a program of the kernel's and not a list."""

import pytest
from support import debian, guest

# Slurm's own and a registry, and what berth-transfer links: by packages that every Debian calls the same.
PACKAGES = ("ca-certificates", "docker-registry", "slurm-client", "slurmctld", "slurmd",
            "libarchive-dev", "libcurl4-openssl-dev", "libisal-dev", "libzydis-dev")

# Slurm looks for the node by its name, and finds no name without an address beside loopback.
NETWORK = """
hostname guest
echo 127.0.0.1 localhost guest >/etc/hosts
modprobe dummy
ip link add eth0 type dummy
ip address add 192.0.2.3/24 dev eth0
ip link set eth0 up
"""


@pytest.mark.skipif(guest.SUITE != debian.own_suite(), reason="berth-transfer needs the libraries that it was linked with")
def test_each_task_opens_its_own_gpus_with_cgroup_v2_alone(run_tests):
    run_tests(["integration/test_slurm_devices.py"],
              lambda script, machine: guest.without_init(NETWORK + script, machine))
