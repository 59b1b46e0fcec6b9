# SPDX-License-Identifier: Apache-2.0
"""Launchers on the host with containers as their ranks: mpirun of Open MPI and of MPICH, and srun
without the plugin, with the image's MPI and with the host's in its place.

Of an ordinary user each 'berth run' is a user namespace of its own, whose ranks cannot read each
other's memory; with 'berth exec' all ranks of a node are in one container."""

import shlex
import subprocess

import pytest

from support import mpi
from support.registry import die_with_parent
from support.slurm import Cluster, need_mpi
from support.slurm_containers import Submitter
from support.waiting import wait_until

# What launchers tell their ranks: 'berth exec' passes it on when it is told to.
EXEC = """\
#!/bin/sh
told=$(mktemp -p {directory})
env | grep -E '^(OMPI|PMIX|PMI|HYDI|MPI)[A-Z]*_' >$told
exec {berth} exec --env-file $told "$@"
"""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
MODES = ("image", "host")
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
# Ranks of MPICH before 4.2 leave without MPI_Finalize (mpi_ranks.c), which Hydra takes for a crash:
# it then ends what is left of the other node, sometimes before that has told how it ended.
OVER_NODES = {"openmpi": ["--map-by", "node"],
              "mpich": ["-bootstrap", "slurm", "-ppn", "1", "-disable-auto-cleanup"]}


@pytest.fixture(scope="module")
def references(registry):
    return mpi.push_all(registry)


@pytest.fixture(scope="module")
def cluster(session_directory):
    directory = session_directory / "slurm-plain"
    directory.mkdir()
    with Cluster(directory, nodes=2, apart=True).running() as running:
        yield running


class Launcher:
    """mpirun of one kind of MPI, as the user of `berth`."""

    def __init__(self, berth, kind, image):
        self.berth, self.kind, self.image = berth, kind, image
        self.program = [*berth.argv()[-5:]]

    def container(self, *words):
        """The command of a rank."""
        return [*map(str, self.program), "run", "--rm", *words, self.image]

    def start(self, ranks, *rank):
        account = self.berth.account
        command = account.command([*LAUNCHERS[self.kind], "-n", ranks, *rank])
        return subprocess.Popen(command, env=account.environment(**AS_ROOT), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.berth.directory,
                                preexec_fn=die_with_parent)

    def launch(self, ranks, *rank):
        """(exit status, standard output, standard error)"""
        process = self.start(ranks, *rank)
        try:
            out, said = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        return process.returncode, out, said

    def world(self, ranks, *rank, whose="image"):
        """What the only world of ranks says of itself, and what is complained of."""
        status, out, said = self.launch(ranks, *rank)
        assert status == 0, (out, said)
        return mpi.the_world(self.kind, out, whose), said


@pytest.fixture(params=mpi.KINDS)
def mpirun(request, berth, references):
    berth.ok("pull", "--quiet", references[request.param])
    return Launcher(berth, request.param, references[request.param])


only_openmpi = pytest.mark.parametrize("mpirun", ["openmpi"], indirect=True)


# ---- mpirun -------------------------------------------------------------------------------------

@pytest.mark.profiles("root")
@pytest.mark.parametrize("whose", MODES)
def test_a_container_for_each_rank(mpirun, whose):
    found = mpirun.world(4, *mpirun.container("--mpi", whose), "/ranks", whose=whose)
    assert found == (mpi.works_here(mpirun.kind, 4, nodes=1), "")


@pytest.mark.profiles("user", "single_id")
@pytest.mark.parametrize("whose", MODES)
def test_a_container_for_each_rank_of_an_ordinary_user(mpirun, whose):
    world, said = mpirun.world(4, *mpirun.container("--mpi", whose), "/ranks", whose=whose)
    assert world == {**mpi.works_here(mpirun.kind, 4, nodes=1), "cma": False}
    assert said.count("\n") == said.count("process_vm_readv: Operation not permitted") == 4, said


def test_one_container_for_the_ranks_of_a_node(mpirun):
    berth = mpirun.berth
    account = berth.account
    rank = berth.directory / "rank"
    rank.write_text(EXEC.format(directory=account.own(berth.directory / "told"),
                                berth=shlex.join(map(str, mpirun.program))))
    rank.chmod(0o755)
    # Where Open MPI's launcher and ranks meet; MPICH's talk by TCP instead of a descriptor.
    session = account.own(berth.directory / "session")
    meet = {"openmpi": ["--mca", "orte_tmpdir_base", session], "mpich": ["-pmi-port"]}[mpirun.kind]
    who = [] if account.kind == "root" else ["--userns=keep-id"]
    berth.ok("run", "--detach", "--name=node", "--network=host", "--ipc=host", "--pid=host", *who,
             f"--volume={session}:{session}", mpirun.image, "sleep", "600")
    try:
        assert mpirun.world(4, *meet, rank, "node", "/ranks") == (mpi.works_here(mpirun.kind, 4, nodes=1), "")
    finally:
        berth.ok("rm", "--force", "node")


@pytest.mark.profiles("user")
@only_openmpi  # MPICH's waits for the others
def test_a_rank_that_fails_ends_all(mpirun):
    status, _, said = mpirun.launch(2, *mpirun.container("--mpi=image"), "sh", "-c",
                                    "[ $OMPI_COMM_WORLD_RANK = 0 ] && exit 3; sleep 100")
    assert status == 3, said
    assert mpirun.berth.ok("ps", "--quiet") == ""


@pytest.mark.profiles("root", "user")
def test_containers_end_with_mpirun(mpirun):
    process = mpirun.start(2, *mpirun.container("--mpi=image"), "sleep", "100")
    running = ("ps", "--quiet")
    try:
        wait_until(lambda: len(mpirun.berth.ok(*running).split()) == 2)
        process.terminate()
        process.wait(timeout=30)
        wait_until(lambda: mpirun.berth.ok(*running) == "")
    finally:
        process.kill()
        process.communicate()
    # Open MPI's asks berth to end and kills it at once; what that leaves the next one sweeps.
    mpirun.berth.ok("run", "--rm", mpirun.image, "true")
    assert mpirun.berth.ok("ps", "--all", "--quiet") == ""


# ---- over two nodes -----------------------------------------------------------------------------

@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("whose", MODES)
def test_mpirun_over_two_nodes(mpirun, cluster, whose):
    """In a job of Slurm it starts what it needs on the other node by srun."""
    berth = mpirun.berth
    command = [*LAUNCHERS[mpirun.kind], *OVER_NODES[mpirun.kind], "-n", "2",
               *mpirun.container("--mpi", whose), "/ranks"]
    script, out = berth.directory / "job", berth.directory / "out"
    script.write_text(f"#!/bin/sh\n{shlex.join(command)}\necho end $?\n")
    Submitter(cluster, berth).call("sbatch", "--nodes=2", "--ntasks=2", f"--output={out}", script,
                                   env=AS_ROOT)
    wait_until(lambda: out.exists() and "end " in out.read_text(), timeout=60)
    wait_until(cluster.is_idle)
    assert out.read_text().endswith("end 0\n"), out.read_text()
    assert mpi.the_world(mpirun.kind, out.read_text(), whose) == mpi.works_here(mpirun.kind, 2, nodes=2)


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("whose", MODES)
def test_srun_over_two_nodes(mpirun, cluster, whose):
    need_mpi(mpi.KINDS[mpirun.kind].slurm)
    out = Submitter(cluster, mpirun.berth).srun(
        f"--mpi={mpi.KINDS[mpirun.kind].slurm}", "--nodes=2", "--ntasks=2",
        *mpirun.container("--mpi", whose), "/ranks")
    assert mpi.the_world(mpirun.kind, out, whose) == mpi.works_here(mpirun.kind, 2, nodes=2)
    wait_until(cluster.is_idle)
