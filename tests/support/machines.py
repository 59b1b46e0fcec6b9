# SPDX-License-Identifier: Apache-2.0
"""Several machines on this one: each has its own network, host name, System V IPC, mounts, /tmp and /dev/shm,
and knows the others by name. Processes, users and all other files are this machine's.

    with machines.joined(["n1", "n2"], keep=directory) as (front, nodes):
        subprocess.run(nodes["n1"].command("ping", "-c1", nodes["n2"].address))

`front` has only its own network, from which all others can be reached, but not the network of this
machine."""

import contextlib
import dataclasses
import pathlib
import shlex
import socket
import subprocess

from support.registry import die_with_parent

NETWORK = "198.51.100."  # for documentation: unassigned

# A private network, and the other namespaces; ends with its standard input.
HOLD = "ip link set lo up; {more} echo ready; read -r end"

# Keeps a `keep` in /tmp reachable: a handle still reaches a mount that is hidden.
OWN_FILES = """
hostname {name}; exec 9<{keep}
mount -t tmpfs -o mode=1777 tmpfs /tmp; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -p {keep}; mount --no-canonicalize --rbind /proc/self/fd/9 {keep}; exec 9<&-
printf '{hosts}' >/dev/shm/hosts; mount --bind /dev/shm/hosts /etc/hosts; rm /dev/shm/hosts;
"""


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    address: str
    pid: int  # of the process that holds its namespaces
    spaces: tuple

    def command(self, *words):
        """`words` as a command on that machine, in the same directory if only the network differs."""
        return ["nsenter", f"--target={self.pid}", *(f"--{space}" for space in self.spaces), *words]

    def ok(self, *words):
        subprocess.run(self.command(*words), check=True, stdin=subprocess.DEVNULL, timeout=60)


@contextlib.contextmanager
def _held(name, address, spaces, more=""):
    process = subprocess.Popen(
        ["unshare", *(f"--{space}" for space in spaces), "sh", "-euc", HOLD.format(more=more)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    try:
        assert process.stdout.readline() == "ready\n", f"machine {name} does not start"
        yield Machine(name, address, process.pid, spaces)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def joined(names, keep):
    """The front and {name: Machine}. The directory `keep` has the same path on all of them."""
    keep = pathlib.Path(keep).resolve()
    with contextlib.ExitStack() as stack:
        front = stack.enter_context(_held("front", f"{NETWORK}1", ("net",)))
        front.ok("ip", "link", "add", "bridge", "type", "bridge")
        front.ok("ip", "address", "add", f"{front.address}/24", "dev", "bridge")
        front.ok("ip", "link", "set", "bridge", "up")
        nodes = {}
        addresses = {name: f"{NETWORK}{number}" for number, name in enumerate(names, start=11)}
        known = {"localhost": "127.0.0.1", socket.gethostname(): front.address, **addresses}
        hosts = "".join(f"{address} {name}\\n" for name, address in known.items())
        for name, address in addresses.items():
            files = OWN_FILES.format(name=name, keep=shlex.quote(str(keep)), hosts=hosts)
            node = stack.enter_context(_held(name, address, ("net", "mount", "uts", "ipc"), files))
            front.ok("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns",
                     str(node.pid))
            front.ok("ip", "link", "set", name, "master", "bridge", "up")
            node.ok("ip", "address", "add", f"{node.address}/24", "dev", "eth0")
            node.ok("ip", "link", "set", "eth0", "up")
            nodes[name] = node
        yield front, nodes
