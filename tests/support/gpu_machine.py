# SPDX-License-Identifier: Apache-2.0
"""A user's command line on a machine with GPUs of a synthetic driver."""

import json
import pathlib
import re
import shutil
import subprocess

from support.bundle import PROGRAMS
from support.synthetic_drm import AMD_PCI

# A NVML that reports what drivers' files do not contain: memory, profiles of slices.
STUB = ("--nvml-stub", PROGRAMS.parent / "lib/libnvml_stub.so")
MINORS = [2, 5, 0, 7, 1, 4, 3, 6]  # of the eight GPUs in the order of their PCI addresses
SHOW = ("sh", "-c", "ls /dev | grep '^nvidia[0-9]'; true")
SLEEP = ("sleep", "1000")


class Machine:
    """One user's command line on a machine with eight GPUs."""

    def __init__(self, berth, tree, image, flags=()):
        self.berth, self.image = berth, image
        self.flags = ("--driver-root", tree, *flags)
        berth.ok("pull", "--quiet", image)
        berth.run(*self.flags, "gpu", "list")  # shows its one-time warnings now

    def words(self, *args):
        return (*self.flags, "run", *args[:-1], self.image, *args[-1])

    def start(self, name, *args):
        """Starts a detached container; returns the indices of its GPUs."""
        self.berth.ok(*self.flags, "run", "-d", "--name", name, "--stop-timeout", "0", *args,
                      self.image, *SLEEP)
        return self.gpus_of(name)

    def gpus_of(self, name):
        shown = self.berth.ok(*self.flags, "exec", name, *SHOW)
        return sorted(MINORS.index(int(line.removeprefix("nvidia"))) for line in shown.split())

    def refused(self, *args):
        """The error line, after any warnings."""
        done = self.berth.run(*self.flags, "run", "--rm", *args, self.image, "true")
        assert done.returncode == 125, done
        return done.stderr.splitlines()[-1]

    def runs(self, *args):
        return self.berth.ok(*self.flags, "run", "--rm", *args, self.image, *SHOW).split()

    def remove(self, *names):
        self.berth.ok(*self.flags, "rm", "--force", *names)

    def holders(self):
        """{container's name: indices} from `gpu list`."""
        listed = json.loads(self.berth.ok(*self.flags, "gpu", "list", "--format", "json"))
        return {lease["name"]: sorted(int(gpu) for gpu in lease["gpus"]) for lease in listed["leases"]}


def a_machine(berth, tree, busybox):
    made = Machine(berth, tree, busybox)
    yield made
    names = berth.ok("ps", "-aq").split()
    if names:
        made.remove(*names)


def told_anew(machines):
    """Resets NVML's values after a test, since all tests share the trees."""
    for machine in machines:
        facts = pathlib.Path(machine.flags[1]) / "nvml.facts"
        before = facts.read_text()
        yield machine
        facts.write_text(before)


def tell(machine, number, words):
    """Adds `words` to NVML's report of GPU `number`."""
    facts = pathlib.Path(machine.flags[1]) / "nvml.facts"
    lines = facts.read_text().splitlines()
    gpus = [at for at, line in enumerate(lines) if line.startswith("gpu ")]
    # NVML counts in another order than `gpu list`, which sorts by address.
    gpus.sort(key=lambda at: re.search(r"pci=(\S+)", lines[at])[1])
    at = gpus[number]
    lines[at] = lines[at].replace(" name=", f" {words} name=", 1)
    facts.write_text("\n".join(lines) + "\n")


def tell_amd(machine, number, figures, processes):
    """Makes the kernel report `figures`, {file: text}, of AMD's GPU `number`, and the memory of `processes`,
    {pid: bytes}, on it."""
    sysfs = pathlib.Path(machine.flags[1]) / "sys"
    kfd = sysfs / "class/kfd/kfd"
    for name, text in figures.items():
        (sysfs / "bus/pci/devices" / AMD_PCI[number] / name).write_text(f"{text}\n")
    node = (kfd / f"topology/nodes/{number + 1}/gpu_id").read_text().strip()
    for pid, used in processes.items():
        (kfd / f"proc/{pid}").mkdir(exist_ok=True)
        (kfd / f"proc/{pid}/vram_{node}").write_text(f"{used}\n")


def compute_on_amd(machine, node, pid):
    """Makes the kernel report a queue of process `pid` on node `node` of KFD, which counts GPUs or partitions
    from 1."""
    kfd = pathlib.Path(machine.flags[1]) / "sys/class/kfd/kfd"
    queue = kfd / f"proc/{pid}/queues/0"
    queue.mkdir(parents=True)
    (queue / "gpuid").write_text((kfd / f"topology/nodes/{node}/gpu_id").read_text().strip())


def amd_told_anew(machines):
    """As told_anew(), for the processes of AMD's GPUs."""
    for machine in machines:
        yield machine
        for process in (pathlib.Path(machine.flags[1]) / "sys/class/kfd/kfd/proc").iterdir():
            shutil.rmtree(process)


def pid_of(machine, name):
    """The pid of the container's first process."""
    return json.loads(machine.berth.ok("inspect", name))[0]["State"]["Pid"]


def a_stranger():
    """A process outside of all containers, for NVML to report."""
    process = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()
