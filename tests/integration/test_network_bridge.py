# SPDX-License-Identifier: Apache-2.0
"""berth-network as root: a bridge, published ports, and what it keeps apart, in network namespaces
of the test's own."""

import errno
import ipaddress
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support.netlab import HOST, WORLD, Lab, end_server, publish

PROGRAMS = Path(os.environ["BERTH_TEST_PROGRAMS"])


@pytest.fixture
def lab():
    place = Path(tempfile.mkdtemp(prefix="berth-tests-net-"))
    made = Lab(PROGRAMS / "berth-network", place / "network")
    before = made.state()
    yield made
    for name in made.leases():
        made.detach(name)
    assert made.state() == before  # whatever the test did: links, tables, forwarding
    assert made.leases() == set()
    made.end()
    shutil.rmtree(place)


def reaches(source, destination, port, at=None, **ask):
    """What `source` hears of a server of `destination`, and whom that has seen."""
    address, host_port = at or (None, port)
    server = destination.serve(port)
    said = source.ask(address, host_port, **ask)
    return said, end_server(server)


def test_a_container_reaches_the_world_under_the_hosts_address(lab):
    c1 = lab.container()
    lease = lab.attach("c1", c1)
    assert reaches(c1, lab.world, 99, (WORLD, 99)) == ("hello", HOST)
    assert reaches(c1, lab.host, 98, (lease["gateway"], 98)) == ("hello", lease["address"])


def test_a_published_port_is_reached_from_everywhere(lab):
    c1, c2 = lab.container(), lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    other = lab.attach("c2", c2)
    for source, address in ((lab.world, HOST), (lab.host, "127.0.0.1"), (lab.host, HOST), (c1, HOST),
                            (c2, HOST), (c2, other["gateway"])):
        said, seen = reaches(source, c1, 80, (address, 8080))
        assert said == "hello", address
        if source is lab.world:
            assert seen == WORLD  # a server's log says who it was


def test_a_port_published_at_one_address_is_not_at_others(lab):
    c1 = lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80, address="127.0.0.1")])
    assert reaches(lab.host, c1, 80, ("127.0.0.1", 8080))[0] == "hello"
    assert reaches(lab.world, c1, 80, (HOST, 8080))[0] == "refused"


def test_udp_is_published(lab):
    c1 = lab.container()
    lab.attach("c1", c1, ports=[publish(5353, 53, "udp")])
    echo = subprocess.Popen(c1.command("python3", "-c", """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 53)); print("ready", flush=True)
for _ in range(2):
    text, peer = s.recvfrom(100); s.sendto(text.upper(), peer)
"""), stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert echo.stdout.readline() == "ready\n"
    for source, address in ((lab.world, HOST), (lab.host, "127.0.0.1")):
        assert source.ok("python3", "-c", """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
s.sendto(b"port", (sys.argv[1], 5353)); print(s.recv(100).decode())
""", address) == "PORT\n"
    end_server(echo)


def test_what_is_not_published_is_not_reached_by_neighbours_of_the_host(lab):
    c1 = lab.container()
    lease = lab.attach("c1", c1, ports=[publish(8080, 80)])
    lab.world.ok("ip", "route", "add", lease["address"], "via", HOST)
    assert reaches(lab.world, c1, 81, (lease["address"], 81), patience=1)[0] == "silence"
    assert reaches(lab.host, c1, 81, (lease["address"], 81))[0] == "hello"


def test_the_bridge_carries_loopback_only_while_a_port_is_published_there(lab):
    """What keeps containers from it is a rule, which a firewall that is loaded anew takes away."""
    def loopback():
        bridge = json.loads(lab.host.ok("ip", "-j", "link", "show", "type", "bridge"))[0]["ifname"]
        return lab.host.ok("cat", f"/proc/sys/net/ipv4/conf/{bridge}/route_localnet").strip()

    c1, c2, c3 = lab.container(), lab.container(), lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80, address=HOST)])
    assert loopback() == "0"
    lab.attach("c2", c2, ports=[publish(8081, 80, address="127.0.0.1")])
    assert loopback() == "1"
    lab.detach("c2")
    assert loopback() == "0"
    lab.attach("c3", c3, ports=[publish(8082, 80)])  # on all addresses, 127.0.0.1 among them
    assert loopback() == "1"
    lab.detach("c3")
    assert loopback() == "0"


def test_a_container_cannot_reach_loopback_of_the_host(lab):
    c1 = lab.container()
    lease = lab.attach("c1", c1, ports=[publish(8080, 80, address="127.0.0.1")])
    # What root of a container with CAP_NET_ADMIN may do there.
    c1.ok("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet")
    c1.ok("ip", "addr", "del", "127.0.0.1/8", "dev", "lo")
    c1.ok("ip", "route", "add", "127.0.0.1/32", "via", lease["gateway"], "src", lease["address"])
    server = lab.host.serve(7000, "127.0.0.1")
    assert c1.ask("127.0.0.1", 7000, patience=1) == "silence"
    assert end_server(server) == ""


def test_a_container_cannot_take_the_address_of_another(lab):
    c1, c2 = lab.container(), lab.container()
    one, two = lab.attach("c1", c1), lab.attach("c2", c2)
    assert c2.ok("ip", "neigh") == ""
    for change in (("ip", "addr", "del", two["address"] + "/16", "dev", "eth0"),
                   ("ip", "addr", "add", one["address"] + "/16", "dev", "eth0"),
                   ("ip", "route", "replace", "default", "via", one["gateway"])):
        c2.ok(*change)
    assert reaches(c2, lab.host, 98, (one["gateway"], 98), patience=1) == ("silence", "")
    c2.ok("ip", "link", "set", "eth0", "address", one["mac"])
    assert reaches(c2, lab.host, 98, (one["gateway"], 98), patience=1) == ("silence", "")
    assert reaches(c1, lab.host, 98, (one["gateway"], 98)) == ("hello", one["address"])


def test_a_port_in_use_is_one_clear_error_and_leaves_nothing(lab):
    c1, c2 = lab.container(), lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    before = lab.state()
    failure = lab.try_attach("c2", c2, ports=[publish(8080, 80)])
    assert failure["kind"] == "busy"
    assert failure["what"] == "publish 0.0.0.0:8080/tcp: container 'c1' has this port"
    failure = lab.try_attach("c2", c2, ports=[publish(8080, 80, address="127.0.0.1")])
    assert failure["what"] == "publish 127.0.0.1:8080/tcp: container 'c1' has this port"
    server = lab.host.serve(8081)
    failure = lab.try_attach("c2", c2, ports=[publish(8081, 80)])
    assert failure["kind"] == "busy"
    assert (failure["what"], failure["errno"]) == ("bind 0.0.0.0:8081/tcp", errno.EADDRINUSE)
    assert failure["context"] == ["cannot publish a port"]
    end_server(server)
    failure = lab.try_attach("c2", c2, ports=[publish(80, 80, address="203.0.113.7")])
    assert failure["kind"] == "not_found"
    assert lab.state() == before and lab.leases() == {"c1"}
    assert "eth0" not in c2.ok("ip", "link")
    lab.attach("c2", c2, ports=[publish(8080, 80, "udp"), publish(8082, 80)])


def test_of_two_that_want_one_port_at_once_one_gets_it(lab):
    for _ in range(5):
        spaces = [lab.container() for _ in range(4)]
        tries = [lab.start_attach(f"c{i}", space, ports=[publish(8080, 80)])
                 for i, space in enumerate(spaces)]
        ends = [process.communicate(timeout=60)[1] for process in tries]
        assert sorted(bool(error) for error in ends) == [False, True, True, True]
        assert len(lab.leases()) == 1
        for name in lab.leases():
            lab.detach(name)


def test_any_free_port_is_one_that_nobody_has(lab):
    ports = set()
    for i in range(3):
        lease = lab.attach(f"c{i}", lab.container(), ports=[publish(0, 80, count=3)])
        got = [(port["host_port"], port["container_port"]) for port in lease["ports"]]
        assert [inside for _, inside in got] == [80, 81, 82]
        assert all(49153 <= outside <= 65535 for outside, _ in got)
        ports |= {outside for outside, _ in got}
    assert len(ports) == 9


def test_one_of_a_range_is_the_first_that_is_free(lab):
    wish = {"host_first": 8000, "host_last": 8002, "container_first": 80, "count": 1,
            "protocol": "tcp"}
    server = lab.host.serve(8001)
    got = [lab.attach(f"c{i}", lab.container(), ports=[wish])["ports"][0]["host_port"]
           for i in range(2)]
    assert got == [8000, 8002]
    assert lab.try_attach("c9", lab.container(), ports=[wish])["kind"] == "busy"
    end_server(server)


def test_fifty_at_once_get_fifty_addresses(lab):
    spaces = {f"c{i}": lab.container() for i in range(50)}
    tries = [lab.start_attach(name, space, ports=[publish(0, 80)]) for name, space in spaces.items()]
    assert {process.communicate(timeout=120)[1] for process in tries} == {""}
    leases = [lab.lease(name) for name in spaces]
    assert len({lease["address"] for lease in leases}) == 50
    assert len({lease["ports"][0]["host_port"] for lease in leases}) == 50
    last = leases[-1]
    assert reaches(spaces["c0"], spaces["c49"], 80, (last["address"], 80))[0] == "hello"


def test_whenever_it_is_killed_the_next_call_repairs(lab):
    random.seed(7)
    c0 = lab.container()
    for i in range(25):
        space = lab.container()
        killed = lab.start_attach("victim", space, ports=[publish(8080, 80)])
        time.sleep(random.random() * 0.05)
        killed.kill()
        killed.communicate()
        space.end()
        lab.spaces.remove(space)
        lab.attach("c0", c0, ports=[publish(8080, 80)])
        assert lab.leases() == {"c0"}
        if i % 5 == 0:
            assert reaches(lab.world, c0, 80, (HOST, 8080))[0] == "hello"
        lab.detach("c0")
        assert not [name for name in lab.state()[0] if name.startswith(("b", "bv"))]


def test_a_container_that_ended_unseen_is_forgotten(lab):
    gone = lab.container()
    lease = lab.attach("gone", gone, ports=[publish(8080, 80)])
    gone.end()
    new = lab.attach("new", lab.container(), ports=[publish(8080, 80)])
    assert new["address"] == lease["address"] and lab.leases() == {"new"}


def test_rules_that_somebody_flushed_come_back(lab):
    c1 = lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    lab.host.ok("nft", "flush", "ruleset")
    assert reaches(lab.world, c1, 80, (HOST, 8080))[0] == "refused"
    lab.attach("c2", lab.container())
    assert reaches(lab.world, c1, 80, (HOST, 8080))[0] == "hello"


def forward_chain(lab, *rules):
    """As Docker and ufw have it: the kernel asks this one too, and it drops what no rule accepts."""
    lab.host.ok("nft", "-f", "-", input="table ip filter { chain FORWARD { type filter hook forward "
                "priority filter; policy drop; " + "".join(f"{rule}; " for rule in rules) + "}; }")
    return lambda: lab.host.ok("nft", "list", "table", "ip", "filter")


def test_containers_pass_a_chain_of_others_that_drops(lab):
    show = forward_chain(lab)
    before = show()
    c1, c2 = lab.container(), lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    lab.attach("c2", c2)
    assert show().count(" accept") == 2  # one of a kind, however many containers
    assert reaches(c1, lab.world, 99, (WORLD, 99))[0] == "hello"
    assert reaches(lab.world, c1, 80, (HOST, 8080))[0] == "hello"
    lab.detach("c1")
    lab.detach("c2")
    assert show() == before
    lab.host.ok("nft", "delete", "table", "ip", "filter")


def test_what_a_site_refuses_to_forward_stays_refused(lab):
    forward_chain(lab, f"ip daddr {WORLD} drop")
    c1 = lab.container()
    lab.attach("c1", c1)
    assert reaches(c1, lab.world, 99, (WORLD, 99), patience=1)[0] == "silence"
    lab.host.ok("nft", "delete", "table", "ip", "filter")


def test_the_end_of_a_chain_of_others_is_no_fault(lab):
    forward_chain(lab)
    lab.attach("c1", lab.container())
    lab.host.ok("nft", "delete", "table", "ip", "filter")
    lab.detach("c1")


def test_rules_of_others_stay(lab):
    foreign = "table inet site {\n\tchain forward {\n\t\tip saddr 203.0.113.1 drop\n\t}\n}\n"
    lab.host.ok("nft", "-f", "-", input=foreign)
    lab.attach("c1", lab.container(), ports=[publish(8080, 80)])
    lab.detach("c1")
    assert lab.host.ok("nft", "list", "table", "inet", "site") == foreign
    lab.host.ok("nft", "delete", "table", "inet", "site")


def test_the_subnet_is_none_that_the_host_has_a_way_to(lab):
    for route in ("10.0.0.0/8", "172.16.0.0/13"):
        lab.host.ok("ip", "route", "add", route, "via", WORLD)
    first = lab.attach("c1", lab.container())
    assert first["address"].startswith("172.") and int(first["address"].split(".")[1]) >= 24
    lab.detach("c1")
    lab.host.ok("ip", "route", "add", "172.24.0.0/13", "via", WORLD)
    assert lab.attach("c1", lab.container())["address"].startswith("192.168.")
    lab.detach("c1")
    lab.host.ok("ip", "route", "add", "192.168.0.0/16", "via", WORLD)
    failure = lab.try_attach("c1", lab.container())
    assert failure["what"] == "find a private subnet that overlaps no route of this host"


def test_a_host_that_does_not_forward_becomes_no_router(lab):
    was = lab.host.ok("cat", "/proc/sys/net/ipv4/ip_forward").strip()
    lab.host.ok("sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")
    other = lab.container()  # beyond another interface of the host
    lab.host.ok("ip", "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns",
                str(other.pid))
    lab.host.ok("ip", "addr", "add", "198.51.100.1/24", "dev", "lan0")
    lab.host.ok("ip", "link", "set", "lan0", "up")
    other.ok("ip", "addr", "add", "198.51.100.9/24", "dev", "eth0")
    other.ok("ip", "link", "set", "eth0", "up")
    other.ok("ip", "route", "add", "default", "via", "198.51.100.1")
    lab.world.ok("ip", "route", "add", "198.51.100.0/24", "via", HOST)
    before = lab.state()
    c1 = lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    assert reaches(c1, lab.world, 99, (WORLD, 99))[0] == "hello"
    assert reaches(c1, other, 99, ("198.51.100.9", 99))[0] == "hello"
    assert reaches(other, c1, 80, ("198.51.100.1", 8080))[0] == "hello"
    assert reaches(other, lab.world, 99, (WORLD, 99), patience=1)[0] == "silence"
    lab.detach("c1")
    assert lab.state() == before
    lab.host.ok("ip", "link", "del", "lan0")
    lab.host.ok("sh", "-c", f"echo {was} > /proc/sys/net/ipv4/ip_forward")


def test_a_container_started_again_keeps_nothing_of_before(lab):
    c1 = lab.container()
    lab.attach("c1", c1, ports=[publish(8080, 80)])
    again = lab.container()
    lease = lab.attach("c1", again, ports=[publish(8081, 80)])
    assert lab.leases() == {"c1"} and lease["ports"][0]["host_port"] == 8081
    assert reaches(lab.world, again, 80, (HOST, 8081))[0] == "hello"
    assert reaches(lab.world, again, 80, (HOST, 8080))[0] == "refused"


def test_detaching_twice_or_what_never_was_is_fine(lab):
    lab.detach("never")
    lab.attach("c1", lab.container())
    lab.detach("c1")
    lab.detach("c1")


def test_names_and_ids_that_are_none_are_refused(lab):
    c1 = lab.container()
    for name in ("../x", "", ".", "a/b", "x" * 300):
        assert lab.try_attach(name, c1)["kind"] == "usage", name
    assert lab.try_attach("c1", lab.host)["what"] == "give the container a network: it shares ours"
    assert lab.try_attach("c1", c1, mode="teleport")["kind"] == "usage"


def test_a_damaged_lease_is_nobodys(lab):
    lab.attach("c1", lab.container())
    (lab.directory / "broken.json").write_text('{"id":')
    lab.attach("c2", lab.container())
    assert lab.leases() == {"c1", "c2"}


def forge(lab, lease, name, **changes):
    """A lease of a process that lives: nobody made it."""
    (lab.directory / f"{name}.json").write_text(json.dumps(lease | {"id": name, "endpoints": []} | changes))


def test_a_subnet_without_a_free_address_refuses_in_one_line_and_serves_on(lab):
    c1, last = lab.container(), lab.container()
    lease = lab.attach("c1", c1, ports=[publish(8080, 80)])
    net = ipaddress.ip_interface(f"{lease['address']}/{lease['prefix_length']}").network
    for address in net.hosts():
        if str(address) not in (lease["address"], lease["gateway"]):
            number = int(address) - int(net.network_address)
            forge(lab, lease, f"c-{number}", address=str(address), interface=f"none{number}", ports=[])
    said = lab.try_attach("last", last)
    assert (said["kind"], said["what"]) == ("busy", f"find an address in {net}: all are taken")
    assert "last" not in lab.leases()
    assert reaches(lab.world, c1, 80, (HOST, 8080))[0] == "hello"
    lab.detach("c-9")
    assert lab.attach("last", last)["address"] == str(net.network_address + 9)
    for path in lab.directory.glob("c-*.json"):  # nobody's: to detach each would take a minute
        path.unlink()


def test_the_containers_files_get_its_address_and_nameservers(lab):
    hosts, resolver = lab.directory.parent / "hosts", lab.directory.parent / "resolv.conf"
    hosts.write_text("127.0.0.1\tlocalhost\n127.0.1.1\tabc\nhost-gateway\thost.docker.internal\n")
    resolver.write_text("search example.org\nnameserver 127.0.0.53\n")
    lease = lab.attach("c1", lab.container(), hosts_file=str(hosts), resolver_file=str(resolver))
    assert hosts.read_text() == (f"127.0.0.1\tlocalhost\n{lease['address']}\tabc\n"
                                 f"{lease['gateway']}\thost.docker.internal\n")
    lines = resolver.read_text().splitlines()
    assert lines[0] == "search example.org" and lines[1].startswith("nameserver ")
    assert "127.0.0.53" not in resolver.read_text()
