# SPDX-License-Identifier: Apache-2.0
"""MPI programs as tasks of Slurm steps with containers, over nodes that are as machines of their own:
Open MPI through PMIx and MPICH through PMI2, each with the library of the image and with the host's
in its place."""

import pytest

from support import mpi
from support.slurm import need_mpi
from support.slurm_containers import with_plugin


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-mpi"
    directory.mkdir()
    with with_plugin(directory, programs, nodes=2, apart=True).running() as running:
        yield running


@pytest.fixture(scope="module")
def references(registry):
    return mpi.push_all(registry)


class Ranks:
    """The program of one kind of MPI, as steps of `slurm`."""

    def __init__(self, slurm, kind, reference):
        self.slurm, self.kind = slurm, kind
        self.words = [f"--mpi={mpi.KINDS[kind].slurm}", f"--container-image={reference}"]

    def run(self, *words, whose="image"):
        """What is printed."""
        return self.slurm.srun(*self.words, *words, "/ranks", env={"BERTH_MPI": whose})

    def world(self, nodes, tasks, *words, whose="image"):
        need_mpi(mpi.KINDS[self.kind].slurm)
        out = self.run(f"--nodes={nodes}", f"--ntasks={tasks}", *words, whose=whose)
        return mpi.the_world(self.kind, out, whose)


@pytest.fixture(params=mpi.KINDS)
def ranks(request, slurm, references):
    slurm.berth.ok("pull", "--quiet", references[request.param])
    return Ranks(slurm, request.param, references[request.param])


only_openmpi = pytest.mark.parametrize("ranks", ["openmpi"], indirect=True)
only_mpich = pytest.mark.parametrize("ranks", ["mpich"], indirect=True)


# ---- ranks --------------------------------------------------------------------------------------

def test_ranks_of_one_node(ranks):
    assert ranks.world(1, 4) == mpi.works_here(ranks.kind, 4, nodes=1)


def test_ranks_of_two_nodes(ranks):
    assert ranks.world(2, 2) == mpi.works_here(ranks.kind, 2, nodes=2)


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("nodes, tasks", [(1, 4), (2, 2)])
def test_ranks_with_the_hosts_library(ranks, nodes, tasks):
    assert ranks.world(nodes, tasks, whose="host") == mpi.works_here(ranks.kind, tasks, nodes)


def test_two_ranks_on_each_of_two_nodes(ranks):
    assert ranks.world(2, 4) == mpi.works_here(ranks.kind, 4, nodes=2)


@pytest.mark.profiles("root")
@pytest.mark.parametrize("kind", mpi.KINDS)
def test_ranks_without_a_container(cluster, session_directory, kind):
    """Where this fails it is not ours."""
    need_mpi(mpi.KINDS[kind].slurm)
    program = session_directory / f"ranks-{kind}"
    program.write_bytes(mpi.program(kind))
    program.chmod(0o755)
    (world,) = mpi.worlds(cluster.ok("srun", f"--mpi={mpi.KINDS[kind].slurm}", "--nodes=2", "--ntasks=2",
                                     program))
    assert {**world, **mpi.works_here(kind, 2, nodes=2)} == world


# ---- containers ---------------------------------------------------------------------------------

def test_a_container_that_is_read_only(ranks):
    assert ranks.world(1, 2, "--container-readonly") == mpi.works_here(ranks.kind, 2, nodes=1)


def test_a_container_with_a_name(ranks):
    try:
        for _ in range(2):
            assert ranks.world(1, 2, "--container-name=ranks") == mpi.works_here(ranks.kind, 2, nodes=1)
    finally:
        ranks.slurm.berth.run("rm", "--force", "pyxis_ranks")


@only_mpich
def test_ranks_that_are_root_inside(ranks):
    assert ranks.world(1, 2, "--container-remap-root") == mpi.works_here(ranks.kind, 2, nodes=1)


@only_openmpi
@pytest.mark.profiles("user", "single_id")
def test_pmix_wants_to_know_who_a_rank_is(ranks):
    need_mpi("pmix")
    said = ranks.slurm.refused(*ranks.words, "--container-remap-root", "--ntasks=2", "/ranks")
    assert "PMIx accepts no rank that is user 0 in its container and " in said
    assert "try: without --container-remap-root" in said


@only_openmpi
def test_a_pmix_step_has_its_own_directories_and_not_all_of_tmp(ranks):
    need_mpi("pmix")
    slurm = ranks.slurm
    where = [*ranks.words, "--nodelist=n1"]
    slurm.srun("--nodelist=n1", "touch", "/tmp/of-somebody")
    try:
        out = slurm.srun(*where, "sh", "-c", "ls /tmp; ls $PMIX_SERVER_TMPDIR; grep -c spmix_appdir "
                         "/proc/self/mountinfo; env | grep PMIX_MCA_psec")
        assert "of-somebody" not in out, out
        assert "pmix_dstor" in out or mpi.major("openmpi") >= 5, out  # whose PMIx has none
        assert out.endswith("1\nPMIX_MCA_psec=native\n"), out
    finally:
        slurm.srun("--nodelist=n1", "rm", "/tmp/of-somebody")


# ---- without a launcher -------------------------------------------------------------------------

@only_openmpi
@pytest.mark.parametrize("launcher", ["none", "pmi2"])
def test_open_mpi_does_not_start_without_pmix(ranks, launcher):
    """Since 5 it would be as many worlds of one rank."""
    said = ranks.slurm.refused(f"--mpi={launcher}", *ranks.words[1:], "--ntasks=2", "/ranks")
    assert "berth: --mpi: 2 ranks would not find each other: Open MPI" in said
    assert "try: srun --mpi=pmix, or BERTH_MPI=none, if that is intended" in said


@only_openmpi
@pytest.mark.profiles("root", "user")
def test_worlds_of_one_rank_are_started_where_that_is_meant(ranks):
    if mpi.major("openmpi") < 5:
        pytest.skip("Open MPI refuses before 5")
    worlds = mpi.worlds(ranks.run("--mpi=none", "--ntasks=2", whose="none"))
    assert [world["ranks"] for world in worlds] == [1, 1]


@only_mpich
def test_ranks_of_mpich_are_alone_without_pmi2(ranks):
    worlds = mpi.worlds(ranks.run("--mpi=none", "--ntasks=2"))
    assert [world["ranks"] for world in worlds] == [1, 1]
