# SPDX-License-Identifier: Apache-2.0
"""This machine's Slurm with Berth, by the tests that there are of it. docs/slurm.md has what was seen, a
column for each release with which this ran.

BERTH_ACCEPT=1 writes this machine's column there."""

import pathlib
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from support import tables
from support.slurm import version

TESTS = pathlib.Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs/slurm.md"
RELEASES = "test_slurm_releases.py::"
ROWS = {
    "`--container-image` and the other options of pyxis": "test_slurm_containers.py",
    "`--environment`": "test_slurm_environment.py",
    "GPUs that a step was given, `ConstrainDevices=yes`": "test_slurm_devices.py",
    "`AutoDetect=nvidia`": RELEASES + "test_gpus_that_slurm_finds_by_itself_are_those_of_the_container",
    "MPI through PMIx": "test_slurm_mpi.py -k 'openmpi and ranks'",
    "MPI through PMI2": "test_slurm_mpi.py -k 'mpich and ranks'",
    "`job_container/tmpfs`": "test_slurm_private_tmp.py",
    "nothing is left when a job has ended": "test_slurm_ends.py",
    "failures on a node": "test_slurm_faults.py",
    "`--container` with an image's name or a bundle": "test_slurm_images.py",
    "`--container`, several tasks of a node":
        "test_slurm_images.py::test_tasks_of_one_node_have_containers_of_their_own",
    "`scrun`": RELEASES + "test_scrun_runs_a_bundle_by_berth_runtime",
    "`--json` of `squeue` and `scontrol`": RELEASES + "test_the_json_of_squeue_and_scontrol_has_the_image",
    "a plugin of another release is refused":
        RELEASES + "test_a_plugin_of_another_slurm_is_refused_with_the_one_it_is_for",
}


def outcome(test, report):
    """"works", or "not available" where Slurm lacks what a test is of; (that, what pytest said)."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
                           f"--junit-xml={report}", *shlex.split(f"integration/{test}")], cwd=TESTS, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "fails", done.stdout[-3000:]
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    return ("not available" if all(case.find("skipped") is not None for case in cases) else "works"), ""


def parse(text):
    """{release: {row: cell}}"""
    head, _, *lines = ([cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in text.splitlines())
    return {release: {line[0]: line[column] for line in lines} for column, release in enumerate(head[1:], 1)}


def table(found):
    releases = sorted(found)
    lines = [["", *releases], ["---"] * (1 + len(releases))]
    lines += [[row, *(found[release].get(row, "") for release in releases)] for row in ROWS]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@pytest.mark.profiles()
def test_what_works_with_this_slurm(tmp_path):
    release = "Slurm {}.{:02}".format(*version())
    seen, failed = {}, []
    for row, test in ROWS.items():
        seen[row], said = outcome(test, tmp_path / "report.xml")
        if said:
            failed.append(f"{row}: {said}")
    print(table({release: seen}))
    assert not failed, "\n".join(failed)
    tables.compare(PAGE, lambda kept: parse(kept).get(release), lambda kept: table(parse(kept) | {release: seen}), seen)
