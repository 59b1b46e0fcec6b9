# SPDX-License-Identifier: Apache-2.0
"""mpirun on the host with containers as its ranks, by the flags that docs/mpi.md names. Either each
rank is a container, or all ranks of a node are in one, by 'berth exec'; for an ordinary user a
container each means a user namespace each, and then ranks cannot read each other's memory."""

import shlex
import subprocess

import pytest

from support import mpi
from support.registry import die_with_parent
from support.slurm import Cluster
from support.slurm_containers import Submitter
from support.waiting import wait_until

# What launchers tell their ranks, and a container gets; the first word is the verb.
RANK = """\
#!/bin/sh
told=$(mktemp -p {directory})
env | grep -E '^(OMPI|PMIX|PMI|HYDI|MPI)[A-Z]*_' >$told
verb=$1
shift
exec {berth} $verb --env-file $told "$@"
"""
SHARED = ["--network=host", "--ipc=host", "--pid=host"]
SLURM = {"openmpi": ["--map-by", "node"], "mpich": ["-bootstrap", "slurm", "-ppn", "1"]}
# Root may; and what a rank needs the flags say here, not --mpi.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1, "BERTH_MPI": "none"}
# UCX opens POSIX shared memory by /proc of the other rank, which another user namespace forbids.
APART = {"openmpi": ["--env=OMPI_MCA_btl_vader_single_copy_mechanism=none"],
         "mpich": ["--env=UCX_TLS=sysv,self"]}


@pytest.fixture(scope="module")
def references(registry):
    return mpi.push_all(registry)


class Launcher:
    """mpirun of one kind of MPI, as the user of `berth`."""

    def __init__(self, berth, kind, image):
        self.berth, self.kind, self.image = berth, kind, image
        self.rank = berth.directory / "rank"
        self.rank.write_text(RANK.format(directory=berth.account.own(berth.directory / "told"),
                                         berth=" ".join(map(str, berth.argv()[-5:]))))
        self.rank.chmod(0o755)
        # Where Open MPI's launcher and ranks meet; MPICH's talk by TCP instead of a descriptor.
        self.session = berth.account.own(berth.directory / "session")
        self.launcher = {
            "openmpi": ["mpirun.openmpi", "--oversubscribe", "--mca", "orte_tmpdir_base", self.session],
            "mpich": ["mpirun.mpich", "-pmi-port"]}[kind]
        self.flags = list(SHARED)
        if kind == "openmpi":
            self.flags.append(f"--volume={self.session}:{self.session}")
        if berth.account.kind != "root":
            self.flags.append("--userns=keep-id")

    def command(self, ranks, *words):
        return [str(word) for word in (*self.launcher, "-n", ranks, self.rank, *words)]

    def start(self, ranks, *words):
        account = self.berth.account
        return subprocess.Popen(
            account.command(self.command(ranks, *words)), env=account.environment(**AS_ROOT),
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.berth.directory, preexec_fn=die_with_parent)

    def launch(self, ranks, *words):
        """(exit status, standard output, standard error)"""
        process = self.start(ranks, *words)
        try:
            out, said = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        return process.returncode, out, said

    def world(self, ranks, *words):
        """What the only world of ranks says of itself, and what is complained of."""
        status, out, said = self.launch(ranks, *words)
        assert status == 0, (out, said)
        return mpi.the_world(self.kind, out), said


@pytest.fixture(params=mpi.KINDS)
def mpirun(request, berth, references):
    berth.ok("pull", "--quiet", references[request.param])
    return Launcher(berth, request.param, references[request.param])


@pytest.mark.profiles("root")
def test_a_container_for_each_rank(mpirun):
    found = mpirun.world(4, "run", "--rm", *mpirun.flags, mpirun.image, "/ranks")
    assert found == (mpi.works(4, nodes=1), "")


@pytest.mark.profiles("user", "single_id")
def test_a_container_for_each_rank_of_an_ordinary_user(mpirun):
    world, said = mpirun.world(4, "run", "--rm", *mpirun.flags, *APART[mpirun.kind], mpirun.image,
                               "/ranks")
    assert world == {**mpi.works(4, nodes=1), "cma": False}
    assert said.count("process_vm_readv: Operation not permitted") == 4


def test_one_container_for_the_ranks_of_a_node(mpirun):
    mpirun.berth.ok("run", "--detach", "--name=node", *mpirun.flags, mpirun.image, "sleep", "600")
    try:
        assert mpirun.world(4, "exec", "node", "/ranks") == (mpi.works(4, nodes=1), "")
    finally:
        mpirun.berth.ok("rm", "--force", "node")


@pytest.fixture(scope="module")
def cluster(session_directory):
    directory = session_directory / "slurm"
    directory.mkdir()
    with Cluster(directory, nodes=2, apart=True).running() as running:
        yield running


@pytest.mark.profiles("root", "user")
def test_a_container_for_each_rank_on_two_nodes(mpirun, cluster):
    """In a job of Slurm mpirun starts what it needs on the other node by srun."""
    berth = mpirun.berth
    mpirun.launcher += SLURM[mpirun.kind]
    script, out = berth.directory / "job", berth.directory / "out"
    command = mpirun.command(2, "run", "--rm", *mpirun.flags, mpirun.image, "/ranks")
    script.write_text(f"#!/bin/sh\n{shlex.join(command)}\necho end $?\n")
    submitter = Submitter(cluster, berth)
    submitter.call("sbatch", "--nodes=2", "--ntasks=2", f"--output={out}", script, env=AS_ROOT)
    wait_until(lambda: out.exists() and "end " in out.read_text(), timeout=60)
    wait_until(cluster.is_idle)
    assert mpi.the_world(mpirun.kind, out.read_text()) == mpi.works(2, nodes=2)
    assert out.read_text().endswith("end 0\n")


@pytest.mark.profiles("user")
@pytest.mark.parametrize("mpirun", ["openmpi"], indirect=True)  # MPICH's waits for the others
def test_a_rank_that_fails_ends_all(mpirun):
    status, _, said = mpirun.launch(2, "run", "--rm", *mpirun.flags, mpirun.image, "sh", "-c",
                                    "[ $OMPI_COMM_WORLD_RANK = 0 ] && exit 3; sleep 100")
    assert status == 3, said
    assert mpirun.berth.ok("ps", "--all", "--quiet") == ""


@pytest.mark.profiles("root", "user")
def test_containers_end_with_mpirun(mpirun):
    process = mpirun.start(2, "run", "--rm", *mpirun.flags, mpirun.image, "sleep", "100")
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
