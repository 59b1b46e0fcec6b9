# SPDX-License-Identifier: Apache-2.0
"""Slurm on this machine: a controller and as many nodes as a test asks for, without munge.

    with Cluster(directory, nodes=2).running() as slurm:
        slurm.ok("srun", "--nodes", "2", "hostname")

With `apart` each node is like a separate machine (support/machines.py), and the controller and the submitters
share another one. They start in a second, in a room too. A job of sbatch starts up to three seconds later,
one of srun at once. A program has the variables of its submitter; an OCI runtime has slurmd's.
"""

import contextlib
import functools
import socket
import subprocess
from pathlib import Path

import pytest

from support import machines, processes
from support.registry import die_with_parent, free_port
from support.users import PATH
from support.waiting import wait_until

PATIENCE = 60  # seconds after which a call counts as hung
PLUGINS = Path("/usr/lib/x86_64-linux-gnu/slurm-wlm")
V2_ALONE = Path("/sys/fs/cgroup/cgroup.controllers")

# With auth/none each client's claimed identity is accepted, in networks without outside access. KillWait is
# at least five seconds: that long a process survives that ignores SIGTERM.
CONFIGURATION = """\
ClusterName=berth
SlurmctldHost={host}({address})
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmdSpoolDir={directory}/%n
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/{tracked}
TaskPlugin=task/{tasks}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=5
GresTypes=gpu
PartitionName=all Nodes=ALL Default=YES
"""


@functools.cache
def version():
    """The installed Slurm's version: (24, 11)."""
    text = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in text.split()[-1].split(".")[:2])


def has_mpi(name):
    """Whether the plugin for srun --mpi=NAME is installed: Debian's Slurm 26.05 lacks the one for pmix."""
    return (PLUGINS / f"mpi_{name}.so").exists()


def need_mpi(name):
    if not has_mpi(name):
        pytest.skip("Slurm {}.{:02} has no plugin for {} here".format(*version(), name))


class Cluster:
    """`inside`: the command that enters the daemons' view of the machine. `gpus`: the device files that each
    node has for jobs, or how many slurmd will find; `constrained` restricts each task to its own by cgroups
    of this machine's version; `lines` are added to slurm.conf."""

    def __init__(self, directory, nodes=1, inside=(), gpus=(), lines=(), constrained=False, apart=False):
        self.directory, self.inside, self.gpus, self.lines = Path(directory), inside, gpus, lines
        self.constrained, self.apart = constrained, apart
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.environment = {"PATH": PATH, "HOME": "/root",
                            "SLURM_CONF": str(self.directory / "slurm.conf")}

    def write(self, name, *lines):
        """Writes a configuration file beside slurm.conf: oci.conf, plugstack.conf, …"""
        (self.directory / name).write_text("".join(f"{line}\n" for line in lines))

    def _machines(self, stack):
        """(the controller's address, {node: (host name, address, the command that enters it)})"""
        if not self.apart:
            host = socket.gethostname().split(".")[0]
            return "127.0.0.1", {node: (host, "127.0.0.1", self.inside) for node in self.nodes}
        front, nodes = stack.enter_context(machines.joined(self.nodes, keep=self.directory.parent))
        self.inside = front.command()
        return front.address, {node: (node, one.address, one.command()) for node, one in nodes.items()}

    def _configure(self, controller, places):
        found = isinstance(self.gpus, int)
        gres = f" Gres=gpu:{self.gpus if found else len(self.gpus)}" if self.gpus else ""
        nodes = [f"NodeName={node} NodeHostname={host} NodeAddr={address} Port={free_port()} CPUs=64"
                 + gres for node, (host, address, _) in places.items()]
        text = CONFIGURATION.format(host=socket.gethostname().split(".")[0], address=controller,
                                    port=free_port(), directory=self.directory,
                                    tracked="cgroup" if self.constrained else "linuxproc",
                                    tasks="cgroup" if self.constrained else "none")
        self.write("slurm.conf", text, *nodes, *self.lines)
        self.write("gres.conf", *(["AutoDetect=nvidia"] if found else
                                  [f"Name=gpu File={file}" for file in self.gpus]))
        version = "v2" if V2_ALONE.exists() else "v1"
        confined = [f"CgroupPlugin=cgroup/{version}", "ConstrainDevices=yes"] if self.constrained else []
        alone = []
        if version == "v2":  # and no systemd runs in tests
            alone = ["IgnoreSystemd=yes"]
            (V2_ALONE.parent / "system.slice").mkdir(exist_ok=True)
        self.write("cgroup.conf", *confined, *alone)
        (self.directory / "state").mkdir()

    @contextlib.contextmanager
    def _daemon(self, name, inside, *argv):
        """Starts a daemon that ends with the block, or with this process."""
        with open(self.directory / f"{name}.out", "ab") as log:
            process = subprocess.Popen([*inside, *argv], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=self.environment, preexec_fn=die_with_parent)
        try:
            yield process
        finally:
            processes.end(process)

    @contextlib.contextmanager
    def running(self):
        """Runs the cluster; no job may be left at the end."""
        with contextlib.ExitStack() as stack:
            controller, places = self._machines(stack)
            self._configure(controller, places)
            daemons = [stack.enter_context(self._daemon("slurmctld", self.inside, "slurmctld", "-D"))]
            self._start = lambda node: stack.enter_context(
                self._daemon(node, places[node][2], "slurmd", "-D", "-N", node))
            self._slurmd = {node: self._start(node) for node in places}
            daemons += self._slurmd.values()
            wait_until(lambda: self.is_idle() or any(one.poll() is not None for one in daemons),
                       tell=self.logs)
            assert self.is_idle(), self.logs()
            try:
                yield self
            finally:
                self.cancel_all()

    def restart(self, node):
        """Kills slurmd of a node, and starts it again; its slurmstepds keep running."""
        self._slurmd[node].kill()
        self._slurmd[node].wait()
        self._slurmd[node] = self._start(node)

    def is_idle(self):
        """For every node: its jobs and their processes have ended."""
        states = self.call("sinfo", "--noheader", "--Node", "--format", "%T").stdout.split()
        # A planned node is idle, but has a pending job.
        return len(states) == len(self.nodes) and set(states) <= {"idle", "planned"}

    def call(self, *words):
        """srun, sbatch, squeue, …"""
        return subprocess.run([*self.inside, *map(str, words)], env=self.environment, text=True,
                              capture_output=True, check=False, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL)

    def ok(self, *words):
        done = self.call(*words)
        assert done.returncode == 0, (done, self.logs())
        return done.stdout

    def cancel_all(self):
        self.ok("scancel", "--partition=all")
        wait_until(self.is_idle)

    def logs(self):
        """The logs of the daemons, and of Slurm's epilogs: newer versions write those only to these files."""
        found = sorted(self.directory.glob("*.log")) or sorted(self.directory.glob("*.out"))
        return "".join(path.read_text() for path in found)
