# SPDX-License-Identifier: Apache-2.0
"""Slurm's steps with containers on a machine that has cgroup v2 alone, where what a task may open is
a program of the kernel's and not a list."""

from support import guest


def test_each_task_opens_its_own_gpus_with_cgroup_v2_alone(run_tests):
    run_tests("integration/test_slurm_devices.py", guest.without_init)
