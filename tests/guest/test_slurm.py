# SPDX-License-Identifier: Apache-2.0
"""Slurm's steps with containers on a machine that has cgroup v2 alone, where what a task may open is
a program of the kernel's and not a list."""

from support import guest

# Slurm's own and a registry, and what berth-transfer links.
PACKAGES = ("ca-certificates", "docker-registry", "slurm-client", "slurmctld", "slurmd",
            "libarchive13", "libcurl4", "libisal2", "libzydis4.0")

# Slurm looks for the node by its name, and finds no name without an address beside loopback.
NETWORK = """
hostname guest
echo 127.0.0.1 localhost guest >/etc/hosts
modprobe dummy
ip link add eth0 type dummy
ip address add 192.0.2.3/24 dev eth0
ip link set eth0 up
"""


def test_each_task_opens_its_own_gpus_with_cgroup_v2_alone(run_tests):
    run_tests(["integration/test_slurm_devices.py"],
              lambda script, machine: guest.without_init(NETWORK + script, machine))
