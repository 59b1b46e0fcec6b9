# SPDX-License-Identifier: Apache-2.0
"""This machine's launchers with images that have other versions of MPI, and other MPIs: ranks become one
world, or are refused before one of them starts. docs/mpi.md has what was seen, a table of all machines on
which this ran.

BERTH_ACCEPT=1 writes this machine's rows there."""

import pathlib
import re
import subprocess

import pytest

from support import mpi, suite_mpi, tables
from support.slurm import Cluster, has_mpi, version
from support.slurm_containers import Submitter

RANKS = 4
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/mpi.md"
HEAD = "| Launcher | Image | `--mpi image` | `--mpi host` |\n| --- | --- | --- | --- |\n"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
MPIRUN = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}


def launchers():
    """{what it is called in the table: (kind, by srun)} of those that this machine has."""
    found = {f"mpirun of {NAMES[kind]} {mpi.version(kind)}": (kind, False) for kind in mpi.KINDS}
    return found | {f"srun --mpi={mpi.KINDS[kind].slurm} of Slurm {version()[0]}.{version()[1]:02}": (kind, True)
                    for kind in mpi.KINDS if has_mpi(mpi.KINDS[kind].slurm)}


@pytest.fixture(scope="module")
def cluster(session_directory):
    directory = session_directory / "slurm-versions"
    directory.mkdir()
    with Cluster(directory, nodes=1, apart=True).running() as running:
        yield running


def run(berth, cluster, kind, by_srun, words):
    """(exit status, standard output, standard error)"""
    command = [*berth.argv()[-5:], *words]
    if by_srun:
        done = Submitter(cluster, berth).call("srun", f"--mpi={mpi.KINDS[kind].slurm}", f"--ntasks={RANKS}",
                                              "--overcommit", *command, env=AS_ROOT)
        return done.returncode, done.stdout, done.stderr
    account = berth.account
    done = subprocess.run(account.command([*MPIRUN[kind], "-n", RANKS, *command]), check=False, timeout=120,
                          env=account.environment(**AS_ROOT), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, cwd=berth.directory)
    return done.returncode, done.stdout, done.stderr


def outcome(status, out, said, whose):
    """"works", what is odd of it, or "refused: " and why. All else fails the test."""
    refused = re.findall(r"^(?:srun: .*|\d+: )?berth: .*?--mpi(?: host)?: (?:.* stays: )?(.*?)(?:; try: .*)?$", said, re.M)
    if status != 0 and refused and not mpi.worlds(out):
        takes = re.search(r" takes (.*), and this \w+ has (.*)", refused[0])
        return f"refused: takes {takes[1]}, finds {takes[2]}" if takes else f"refused: {refused[0]}"
    worlds = mpi.worlds(out)
    assert status == 0 and len(worlds) == 1, f"{status}, {len(worlds)} worlds: {out}{said}"
    (world,) = worlds
    file = world.pop("file")
    assert (file.startswith(mpi.BROUGHT)) == (whose == "host"), file
    apart = world["nodes"] == RANKS  # MPICH 5, see works_here()
    assert {**world, **mpi.works(RANKS, nodes=RANKS if apart else 1)} == world
    return "works, each rank as a node of its own" if apart else "works"


def rows(text):
    """{(launcher, image): (with the image's, with the host's)} of a table."""
    found = {}
    for line in text.splitlines()[2:]:
        launcher, image, *cells = (cell.strip() for cell in line.strip().strip("|").split(" | "))
        found[launcher, image] = tuple(cells)
    return found


def table(found):
    return HEAD + "".join(f"| {' | '.join((*key, *cells))} |\n" for key, cells in sorted(found.items()))


@pytest.mark.profiles("root")
def test_ranks_become_one_world_or_are_refused(berth, cluster, registry):
    seen = {}
    failed = []
    for suite in suite_mpi.SUITES:
        for image_kind in mpi.KINDS:
            reference = suite_mpi.push(registry, suite, image_kind)
            berth.ok("pull", "--quiet", reference)
            named = f"{NAMES[image_kind]} {suite_mpi.version(suite, image_kind)}"
            for launcher, (kind, by_srun) in launchers().items():
                cells = []
                for whose in ("image", "host"):
                    words = ["run", "--rm", "--mpi", whose, reference, "/ranks"]
                    try:
                        cells.append(outcome(*run(berth, cluster, kind, by_srun, words), whose))
                    except (AssertionError, subprocess.TimeoutExpired) as error:
                        failed.append(f"{launcher}, {named}, {whose}: {str(error)[:3000]}")
                        cells.append("fails")
                seen[launcher, named] = tuple(cells)
    print(table(seen))
    assert not failed, "\n".join(failed)
    tables.compare(PAGE, lambda kept: {key: cells for key, cells in rows(kept).items() if key[0] in launchers()},
                   lambda kept: table({key: cells for key, cells in rows(kept).items()
                                       if key[0] not in launchers()} | seen), seen)
