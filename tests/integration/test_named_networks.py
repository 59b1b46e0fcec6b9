# SPDX-License-Identifier: Apache-2.0
"""Networks with names: containers in one find each other, those in different ones do not."""

import json
import pathlib
import re
import stat

import pytest
from support.netlab import Lab
from support.processes import command_lines, kill_each, matching
from support.waiting import wait_until

ROOT = pytest.mark.profiles("root")
USERS = pytest.mark.profiles("user", "single_id")
EVERYBODY = pytest.mark.profiles("root", "user", "single_id")
TUN = pathlib.Path("/dev/net/tun")


@pytest.fixture
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture(autouse=True)
def tun():
    """What the helpers of ordinary users open; a site opens it to them once."""
    before = stat.S_IMODE(TUN.stat().st_mode)
    TUN.chmod(0o666)
    yield
    TUN.chmod(before)


def holders(berth):
    """Processes of the networks of this store's containers."""
    return [pid for pid, line in command_lines().items()
            if line.split(b"\0")[0].endswith((b"berth-network", b"slirp4netns", b"pasta")) and (
                bytes(berth.state) in line or b"holder.sock" in line)]


@pytest.fixture
def lab(berth, image, programs):
    """From here on `berth` runs on the host of the lab."""
    made = Lab(pathlib.Path(programs) / "berth-network", berth.state / "network")
    usual, before = berth.argv, made.state()
    berth.argv = lambda *words: made.host.command(*usual(*words))
    yield made
    for name in berth.ok("ps", "-aq").split():
        berth.run("rm", "-f", name)
    wait_until(lambda: not made.leases() and not holders(berth))
    assert made.state() == before  # links, tables, forwarding
    made.end()


def said_by(berth, *words):
    return berth.ok(*words).strip()


def serve(berth, image, name, *flags):
    said_by(berth, "run", "-d", "--name", name, *flags, image, "sh", "-c",
            f"while true; do echo {name} | nc -l -p 8000; done")


GET = "n=0; while [ $n -lt 6 ]; do w=$(echo | nc -w 2 $1 8000 2>/dev/null); " \
      "[ -n \"$w\" ] && echo $w && exit; n=$((n+1)); sleep 0.2; done; exit 1"


def ask(berth, image, network, server, *flags):
    """What `server` says to somebody in `network`; busybox's server takes a moment."""
    return berth.run("run", "--rm", "--network", network, *flags, image, "sh", "-c", GET, "-",
                     server)


@EVERYBODY
def test_containers_of_a_network_find_each_other_by_name_alias_and_short_id(berth, image, lab):
    assert re.fullmatch("[0-9a-f]{64}", said_by(berth, "network", "create", "app"))
    serve(berth, image, "server", "--network", "app", "--network-alias", "web")
    short = said_by(berth, "ps", "-q")
    for name in ("server", "web", short):
        assert ask(berth, image, "app", name).stdout == "server\n", name
    assert said_by(berth, "exec", "server", "sh", "-c", GET, "-", "server") == "server"


@EVERYBODY
def test_a_network_is_closed_to_others_but_for_published_ports(berth, image, lab):
    said_by(berth, "network", "create", "one")
    said_by(berth, "network", "create", "two")
    serve(berth, image, "s1", "--network", "one", "-p", "8000:8000")
    serve(berth, image, "s2", "--network", "two")
    there = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    assert ask(berth, image, "two", "s1").returncode != 0
    assert ask(berth, image, "two", said_by(berth, "inspect", "-f", there, "s1")).returncode != 0
    gate = said_by(berth, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", "two")
    assert ask(berth, image, "two", gate).stdout == "s1\n"
    said = berth.run("run", "--rm", "--network", "two", "-p", "8000:1", image, "true")
    assert said.returncode == 125 and "has this port" in said.stderr


@EVERYBODY
def test_an_internal_network_has_no_way_out(berth, image, lab):
    said_by(berth, "network", "create", "--internal", "quiet")
    serve(berth, image, "inside", "--network", "quiet")
    assert ask(berth, image, "quiet", "inside").stdout == "inside\n"
    assert "default" not in said_by(berth, "exec", "inside", "ip", "route")


@EVERYBODY
def test_an_address_that_was_asked_for_is_had(berth, image, lab):
    said_by(berth, "network", "create", "--subnet", "10.77.0.0/24", "--gateway", "10.77.0.9", "app")
    assert "10.77.0.50/24" in said_by(berth, "run", "--rm", "--network", "app", "--ip", "10.77.0.50",
                                       image, "ip", "-4", "addr")
    said = berth.run("run", "--rm", "--network", "app", "--ip", "10.78.0.1", image, "true")
    assert said.returncode == 125 and "network 'app' has 10.77.0.0/24" in said.stderr


@EVERYBODY
def test_a_running_container_is_connected_and_disconnected(berth, image, lab):
    said_by(berth, "network", "create", "one")
    said_by(berth, "network", "create", "two")
    serve(berth, image, "ship", "--network", "one")
    said_by(berth, "network", "connect", "--alias", "db", "two", "ship")
    assert ask(berth, image, "two", "db").stdout == "ship\n"
    assert ask(berth, image, "one", "ship").stdout == "ship\n"
    assert set(json.loads(said_by(berth, "inspect", "ship"))[0]["NetworkSettings"]["Networks"]) == {
        "one", "two"}
    assert said_by(berth, "ps", "-q", "--filter", "network=two") == said_by(berth, "ps", "-q")
    said_by(berth, "network", "disconnect", "one", "ship")
    assert ask(berth, image, "one", "ship").returncode != 0
    assert "default via" in said_by(berth, "exec", "ship", "ip", "route")
    said_by(berth, "restart", "-t", "0", "ship")
    assert ask(berth, image, "two", "db").stdout == "ship\n"


@EVERYBODY
def test_a_network_is_removed_when_nobody_runs_in_it(berth, image, lab):
    identity = said_by(berth, "network", "create", "app")
    serve(berth, image, "ship", "--network", "app")
    said = berth.run("network", "rm", "app")
    assert said.returncode == 1
    assert f"network app id {identity} has active endpoints" in said.stderr
    said_by(berth, "rm", "-f", "ship")
    assert said_by(berth, "network", "rm", "app") == "app"
    said = berth.run("run", "--rm", "--network", "app", image, "true")
    assert said.returncode == 125
    assert "network app not found" in said.stderr and "berth network create app" in said.stderr


@ROOT
def test_what_a_kill_leaves_is_put_right_by_the_next(berth, image, lab):
    said_by(berth, "network", "create", "app")
    said_by(berth, "network", "create", "other")
    said_by(berth, "run", "-d", "--network", "app", image, "sleep", "98765")
    kill_each([pid for pid, line in command_lines().items()
               if bytes(berth.root) in line or b"98765" in line])
    wait_until(lambda: not matching(rb"98765"))
    said_by(berth, "run", "--rm", "--network", "other", image, "true")
    assert not [link for link in lab.state()[0] if link.startswith(("bn", "berthn"))]


@EVERYBODY
def test_a_hosts_file_that_its_container_has_filled_harms_no_other(berth, image, lab):
    said_by(berth, "network", "create", "app")
    serve(berth, image, "evil", "--network", "app")
    serve(berth, image, "good", "--network", "app")
    said_by(berth, "exec", "evil", "sh", "-c", "head -c 6000000 /dev/zero > /etc/hosts")
    serve(berth, image, "late", "--network", "app")
    assert said_by(berth, "exec", "good", "sh", "-c", GET, "-", "late") == "late"
