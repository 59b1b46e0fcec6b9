# SPDX-License-Identifier: Apache-2.0
"""IPv6 of an ordinary user's container, by pasta: where the host has a way out by IPv6, the
container has one. The host is a network namespace of the test's own."""

import json
import pathlib
import shutil

import pytest
from support.netlab import HOST6, WORLD, WORLD6, end_server
from support.user_networks import ANSWER, berth_on_the_host_of_a_lab, open_tun
from support.waiting import wait_until

pytestmark = pytest.mark.profiles("user", "single_id")
INSIDE, GATEWAY, NAMESERVER = "fd00::100", "fd00::2", "fd00::3"

# Says one word to each who calls port 80 by IPv6; as soon as it is heard, for Debian 12's pasta.
SERVE = ("sh", "-c", "while true; do echo ship | nc -l -p 80 ::; done")

NAMES = ANSWER + """
import socket
names = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
names.bind(("::", 53))
print("ready", flush=True)
answer(names)
"""


@pytest.fixture(autouse=True)
def tun():
    with open_tun():
        yield


@pytest.fixture
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture
def lab(berth, image, programs, work, request):
    kind = getattr(request, "param", {"ipv6": True})
    nameserver = WORLD if kind.get("ipv4", True) else WORLD6
    with berth_on_the_host_of_a_lab(berth, programs, work, nameserver, **kind) as made:
        yield made


PASTA = ("--network", "pasta")


def ipv4_inside(out):
    """The address of IPv4 in what 'ip addr' says. On a host of IPv6 alone a pasta of 2026 gives one, and
    those before do not."""
    return "10.0.2.100" if "inet 10.0.2.100/" in out else ""


def settings_of(berth, name):
    return json.loads(berth.ok("inspect", name))[0]["NetworkSettings"]


def test_a_container_reaches_the_world_by_both_versions(berth, image, lab):
    for address, family in ((WORLD6, "6"), (WORLD, "4")):
        server = lab.world.serve(8000, address, when="heard")
        out = berth.ok("run", "--rm", *PASTA, image, "sh", "-c",
                       f"(echo ship; sleep 1) | nc -w 5 {address} 8000")
        assert (out, end_server(server) != "") == ("hello\n", True), family


def test_what_it_has_is_what_inspect_says(berth, image, lab):
    berth.ok("run", "-d", "--name", "tug", *PASTA, image, "sleep", "1000")
    settings = settings_of(berth, "tug")
    assert (settings["GlobalIPv6Address"], settings["GlobalIPv6PrefixLen"],
            settings["IPv6Gateway"]) == (INSIDE, 64, GATEWAY)
    assert settings["IPAddress"] == "10.0.2.100"
    assert settings["Networks"]["pasta"]["GlobalIPv6Address"] == INSIDE
    assert f"inet6 {INSIDE}/64" in berth.ok("exec", "tug", "ip", "addr", "show", "eth0")
    assert f"default via {GATEWAY}" in berth.ok("exec", "tug", "ip", "-6", "route")


@pytest.mark.parametrize("lab", [{"ipv6": False}], indirect=True)
def test_without_a_way_out_by_ipv6_it_has_ipv4_alone(berth, image, lab):
    berth.ok("run", "-d", "--name", "tug", *PASTA, image, "sleep", "1000")
    settings = settings_of(berth, "tug")
    assert settings["GlobalIPv6Address"] == settings["IPv6Gateway"] == ""
    assert "inet6 fd00" not in berth.ok("exec", "tug", "ip", "addr", "show", "eth0")
    assert berth.fail("run", "--rm", *PASTA, "-p", "[::1]:18080:80", image, "true") == (
        "berth: publish [::1]:18080: the container has no IPv6: this machine has no default route of "
        "it, or the container has it switched off; try: an IPv4 address")


@pytest.mark.parametrize("lab", [{"ipv4": False, "ipv6": True}], indirect=True)
def test_on_a_machine_of_ipv6_alone_it_reaches_the_world_and_resolves_names(berth, image, lab):
    server = lab.world.serve(8000, WORLD6, when="heard")
    names = lab.world.start("python3", "-c", NAMES)
    out = berth.ok("run", "--rm", *PASTA, "-h", "tug", image, "sh", "-c",
                   f"(echo ship; sleep 1) | nc -w 5 {WORLD6} 8000; cat /etc/resolv.conf /etc/hosts;"
                   " nslookup -type=a ship.example.org; ip addr")
    end_server(names)
    assert out.startswith("hello\n") and end_server(server) != ""
    assert f"nameserver {NAMESERVER}\n" in out and f"{ipv4_inside(out) or INSIDE}\ttug\n" in out
    assert "203.0.113.80" in out
    berth.ok("run", "-d", "--name", "tug", *PASTA, image, "sleep", "1000")
    assert settings_of(berth, "tug")["IPAddress"] == ipv4_inside(out)


@pytest.mark.parametrize("lab", [{"ipv4": False, "ipv6": True}], indirect=True)
def test_on_a_machine_of_ipv6_alone_with_systemd_resolved_it_asks_the_real_nameservers(
        berth, image, lab, work):
    (work / "resolv.conf").write_text("nameserver 127.0.0.53\n")
    real = pathlib.Path("/run/systemd/resolve/resolv.conf")
    real.parent.mkdir(parents=True)
    real.write_text(f"nameserver 192.0.2.53\nnameserver fe80::53%up0\nnameserver {WORLD6}\n")
    out = berth.ok("run", "--rm", *PASTA, image, "sh", "-c", "cat /etc/resolv.conf; ip addr")
    shutil.rmtree("/run/systemd")
    assert out.startswith(f"nameserver {'10.0.2.3' if ipv4_inside(out) else WORLD6}\n")


@pytest.mark.parametrize("network", ["pasta", "bridge"])
def test_a_port_is_published_at_an_address_of_ipv6(berth, image, lab, network):
    berth.ok("run", "-d", "--name", "tug", "--network", network, "-p", "[::]:18080:80", "-p",
             "[::1]:18081:80", image, *SERVE)
    for space, address, port in ((lab.world, HOST6, 18080), (lab.host, "::1", 18080),
                                 (lab.host, "::1", 18081)):
        assert wait_until(lambda s=space, a=address, p=port:
                          s.ask(a, p, 2, "hello\n") == "ship"), (address, port)
    assert lab.world.ask(HOST6, 18081) == "refused"
    assert lab.host.ask("127.0.0.1", 18080) == "refused"
    assert berth.ok("port", "tug") == "80/tcp -> [::]:18080\n80/tcp -> [::1]:18081\n"
    assert berth.ok("ps", "--format", "{{.Ports}}") == (
        "[::]:18080->80/tcp, [::1]:18081->80/tcp\n")
    assert settings_of(berth, "tug")["Ports"]["80/tcp"][0] == {"HostIp": "::", "HostPort": "18080"}
    # Another container has the same port of IPv4.
    berth.ok("run", "-d", "--name", "buoy", *PASTA, "-p", "18080:80", image, "sleep", "1000")
    assert "has this port" in berth.fail("run", "--rm", *PASTA, "-p", "[::1]:18080:80", image,
                                         "true")


def test_a_port_in_use_is_told(berth, image, lab, listing):
    berth.ok("run", "--rm", image, "true")  # what the first one makes for all
    before = listing()
    server = lab.host.serve(18080, "::1")
    assert berth.fail("run", "--rm", *PASTA, "-p", "[::1]:18080:80", image, "true") == (
        "berth: cannot publish a port: bind [::1]:18080/tcp: Address already in use; try: another "
        "host port, or none for any that is free")
    assert "Cannot assign requested address; try: an address of this machine" in berth.fail(
        "run", "--rm", *PASTA, "-p", "[2001:db8::77]:18080:80", image, "true")
    end_server(server)
    assert listing() == before


def test_another_network_says_that_it_has_ipv4_alone(berth, image, lab):
    berth.ok("network", "create", "fleet")
    for network, name in (("slirp4netns", "slirp4netns"), ("fleet", "bridge")):
        assert berth.fail("create", "--network", network, "-p", "[::1]:18080:80", image, "true") == (
            f"berth: publish at [::1]: network '{name}' has only IPv4; try: an IPv4 address, "
            "--network pasta (of ordinary users), or --network host")
    berth.ok("network", "rm", "fleet")


@pytest.mark.profiles("root")
def test_the_bridge_says_that_it_has_ipv4_alone(berth, image):
    assert "publish at [::1]: network 'bridge' has only IPv4" in berth.fail(
        "run", "--rm", "-p", "[::1]:18080:80", image, "true")


def test_a_host_that_has_the_usual_prefix_keeps_it(berth, image, lab):
    lab.host.ok("ip", "addr", "add", "fd00::7/64", "dev", "up0", "nodad")
    berth.ok("run", "-d", "--name", "tug", *PASTA, image, "sleep", "1000")
    assert settings_of(berth, "tug")["GlobalIPv6Address"] == "fd00:0:0:1::100"


def test_loopback_of_the_host_is_out_of_reach(berth, image, lab):
    server = lab.host.serve(7000, "::1")
    out = berth.ok("run", "--rm", *PASTA, image, "sh", "-c",
                   f"for a in {GATEWAY} ::1; do nc -w 2 $a 7000 </dev/null; done; echo end")
    assert out == "end\n" and end_server(server) == ""


def test_a_container_that_switches_ipv6_off_has_none(berth, image, lab):
    off = ("--sysctl", "net.ipv6.conf.all.disable_ipv6=1")
    out = berth.ok("run", "--rm", *PASTA, *off, image, "ip", "addr", "show", "eth0")
    assert "inet 10.0.2.100/24" in out and "inet6" not in out
