# SPDX-License-Identifier: Apache-2.0
"""linux.netDevices: interfaces that are moved into the container. Each test has a network namespace
of its own for the runtime, so that nothing of the machine's is touched."""

import json
import os
import subprocess
import sys

import pytest

from support.oci_fixtures import bundle, place  # noqa: F401
from support.oci_fixtures import assert_nothing_is_left, own_user_namespace
from support.bundle import Runtime

RUN = "cannot run container 'c1': "
FAILED = RUN + "cannot move network interface '{}' into the container: "


class Network:
    """A network namespace that a process holds."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        while os.readlink(self.path) == os.readlink("/proc/self/ns/net"):
            assert self.holder.poll() is None

    @property
    def path(self):
        return f"/proc/{self.holder.pid}/ns/net"

    def ip(self, *words):
        return subprocess.run(["nsenter", f"--net={self.path}", "ip", *words], check=True,
                              capture_output=True, text=True).stdout

    def add(self, name):
        """A veth; its other end stays, and nobody looks at it."""
        self.ip("link", "add", name, "type", "veth", "peer", "name", f"peer-{name}")

    def links(self):
        names = {link["ifname"] for link in json.loads(self.ip("-j", "link"))}
        return {name for name in names if not name.startswith("peer-")}

    def addresses(self, name):
        link = json.loads(self.ip("-j", "address", "show", "dev", name))[0]
        return [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"]
                if one["scope"] == "global"]

    def end(self):
        self.holder.kill()
        self.holder.wait()


@pytest.fixture
def network():
    """The runtime's network namespace, with an interface 'veth0'."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = Network()
    try:
        made.add("veth0")
        yield made
    finally:
        made.end()


@pytest.fixture
def runtime(place, network):
    made = Runtime(place / "state", ("nsenter", f"--net={network.path}"))
    yield made
    assert_nothing_is_left(place, made)


def interfaces(runtime, bundle):
    """{name: text of 'ip address'} in the container."""
    out = runtime.out(bundle.shell("ip -o link; ip -o address"))
    found = {}
    for line in out.splitlines():
        name = line.split()[1].rstrip(":").partition("@")[0]
        found[name] = found.get(name, "") + line + "\n"
    return found


def test_moves_an_interface_and_brings_it_up(runtime, network, bundle):
    bundle.linux["netDevices"] = {"veth0": {}}
    found = interfaces(runtime, bundle)
    assert found.keys() == {"lo", "veth0"} and ",UP" in found["veth0"]
    assert network.links() == {"lo"}


def test_gives_it_another_name(runtime, network, bundle):
    network.add("veth1")
    bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}, "veth1": {"name": "veth0"}}
    assert interfaces(runtime, bundle).keys() == {"lo", "eth0", "veth0"}


def test_takes_the_first_free_number_of_a_pattern(runtime, network, bundle):
    for number in (1, 2):
        network.add(f"veth{number}")
    bundle.linux["netDevices"] = {"veth0": {"name": "eth%d"}, "veth1": {"name": "eth%d"},
                                  "veth2": {"name": "lan%d"}}
    assert interfaces(runtime, bundle).keys() == {"lo", "eth0", "eth1", "lan0"}


def test_keeps_permanent_global_addresses(runtime, network, bundle):
    network.ip("link", "set", "veth0", "up")
    for address in ("10.20.30.40/24", "10.20.30.41/24", "fd00:1::2/64"):
        network.ip("address", "add", address, "dev", "veth0")
    network.ip("address", "add", "169.254.9.9/16", "scope", "link", "dev", "veth0")
    network.ip("address", "add", "10.99.0.1/24", "valid_lft", "600", "preferred_lft", "600", "dev",
               "veth0")
    bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}}
    text = interfaces(runtime, bundle)["eth0"]
    for address in ("10.20.30.40/24", "10.20.30.41/24", "fd00:1::2/64"):
        assert address in text
    assert "169.254.9.9" not in text and "10.99.0.1" not in text


def test_keeps_the_other_end_of_a_veth(runtime, network, bundle):
    network.add("in0")
    network.ip("address", "add", "192.0.2.1", "peer", "192.0.2.2/32", "dev", "in0")
    bundle.linux["netDevices"] = {"in0": {}}
    assert "192.0.2.1 peer 192.0.2.2/32" in interfaces(runtime, bundle)["in0"]


def test_a_sysctl_may_name_it(runtime, network, bundle):
    bundle.linux["netDevices"] = {"veth0": {"name": "lan0"}}
    bundle.linux["sysctl"] = {"net.ipv4.conf.lan0.forwarding": "1"}
    assert runtime.out(bundle.args("/bin/cat", "/proc/sys/net/ipv4/conf/lan0/forwarding")) == "1\n"


def test_moves_it_into_a_joined_namespace(runtime, network, bundle):
    other = Network()
    try:
        bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                      if space["type"] != "network"]
        bundle.linux["namespaces"].append({"type": "network", "path": other.path})
        bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}}
        assert "eth0" in interfaces(runtime, bundle)
        assert "eth0" in other.links()
    finally:
        other.end()


# Answers "Operation not permitted" to a process, as the kernel would, as soon as it listens.
FORGER = """
import socket, struct, sys
pid = int(sys.argv[1])
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
link.bind((0, 0))
print("ready", flush=True)
while True:
    try:
        for number in range(1, 20):
            link.sendto(struct.pack("=IHHIIi16x", 36, 2, 0, number, pid, -1), (pid, 0))
        break
    except ConnectionRefusedError:
        pass
"""


def test_believes_the_kernel_alone_in_a_joined_namespace(runtime, network, bundle, place):
    other = Network()
    bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                  if space["type"] != "network"]
    bundle.linux["namespaces"].append({"type": "network", "path": other.path})
    bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}}
    bundle.write()
    command = ["sh", "-c", 'read word; exec "$@"', "sh",
               *runtime.command("run", "-b", str(bundle.directory), "c1")]
    try:
        waiting = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        forger = subprocess.Popen(["nsenter", f"--net={other.path}", sys.executable, "-c", FORGER,
                                   str(waiting.pid)], stdout=subprocess.PIPE)
        assert forger.stdout.readline() == b"ready\n"
        assert waiting.communicate(b"go\n", timeout=60)[1] == b""
        assert "eth0" in other.links()
        assert forger.wait(timeout=10) == 0, "it has answered nothing"
    finally:
        forger.kill()
        forger.communicate()
        other.end()


def test_moves_it_into_the_network_of_a_user_namespace(runtime, network, bundle):
    own_user_namespace(bundle)
    bundle.linux["netDevices"] = {"veth0": {}}
    assert "veth0" in interfaces(runtime, bundle)


def test_refuses_a_name_that_is_taken_and_leaves_all_as_it_was(runtime, network, bundle):
    network.add("veth1")
    network.ip("link", "set", "veth0", "up")
    network.ip("address", "add", "10.20.30.40/24", "dev", "veth0")
    bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}, "veth1": {"name": "lo"}}
    assert runtime.error(bundle) == FAILED.format("veth1") + "'lo' exists there"
    assert network.links() == {"lo", "veth0", "veth1"}
    assert network.addresses("veth0") == ["10.20.30.40/24"]


def test_gives_back_what_cannot_be_settled(runtime, network, bundle):
    network.ip("link", "set", "veth0", "up")
    for address in ("10.20.30.40/24", "fd00:1::2/64"):
        network.ip("address", "add", address, "dev", "veth0")
    other = Network()
    try:
        subprocess.run(["nsenter", f"--net={other.path}", "sh", "-c",
                        "for i in all default; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6;"
                        "done"], check=True)
        bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                      if space["type"] != "network"]
        bundle.linux["namespaces"].append({"type": "network", "path": other.path})
        bundle.linux["netDevices"] = {"veth0": {"name": "eth0"}}
        assert runtime.error(bundle) == \
            FAILED.format("veth0") + "give it its address: Permission denied"
        assert other.links() == {"lo"}
    finally:
        other.end()
    assert network.addresses("veth0") == ["10.20.30.40/24", "fd00:1::2/64"]


def test_refuses_an_interface_that_does_not_exist(runtime, network, bundle):
    bundle.linux["netDevices"] = {"veth0": {}, "nosuch0": {}}
    assert runtime.error(bundle) == FAILED.format("nosuch0") + "no such interface"
    assert "veth0" in network.links()


def test_refuses_an_interface_that_belongs_to_its_namespace(runtime, bundle):
    bundle.linux["netDevices"] = {"lo": {"name": "lo1"}}
    assert runtime.error(bundle) == \
        FAILED.format("lo") + "move it to another network namespace: Invalid argument"


def test_refuses_the_runtimes_own_namespace(runtime, network, bundle):
    bundle.linux["netDevices"] = {"veth0": {}}
    for space in bundle.linux["namespaces"]:
        if space["type"] == "network":
            space["path"] = network.path
    assert runtime.error(bundle) == (
        f"{RUN}config.json: linux.netDevices: the container's network namespace is the one that "
        "the interfaces are in")


def test_refuses_a_container_without_a_network_namespace(runtime, bundle):
    bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                  if space["type"] != "network"]
    bundle.linux["netDevices"] = {"veth0": {}}
    assert runtime.error(bundle) == \
        f"{RUN}config.json: linux.netDevices: needs a network namespace"
