# SPDX-License-Identifier: Apache-2.0
"""Networks with names: containers in one find each other, those in different ones do not."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from support.netlab import HOST, WORLD, Lab, end_server
from support.processes import command_lines, kill_each, matching
from support.user_networks import open_tun
from support.waiting import wait_until

ROOT = pytest.mark.profiles("root")
USERS = pytest.mark.profiles("user", "single_id")
EVERYBODY = pytest.mark.profiles("root", "user", "single_id")


@pytest.fixture
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture(autouse=True)
def tun():
    with open_tun():
        yield


def helpers(berth, word=b""):
    """Processes of the networks of this store's containers; its holder has the word "hold"."""
    return [pid for pid, line in command_lines().items()
            if line.split(b"\0")[0].endswith((b"berth-network", b"slirp4netns", b"pasta")) and (
                bytes(berth.state) in line or b"holder.sock" in line) and
            (not word or word in line.split(b"\0"))]


@pytest.fixture
def lab(berth, image, programs):
    """From here on `berth` runs on the host of the lab."""
    made = Lab(pathlib.Path(programs) / "berth-network", berth.state / "network")
    usual, before = berth.argv, made.state()
    berth.argv = lambda *words: made.host.command(*usual(*words))
    yield made
    for name in berth.ok("ps", "-aq").split():
        berth.run("rm", "-f", name)
    wait_until(lambda: not made.leases() and not helpers(berth))
    assert made.state() == before  # links, tables, forwarding
    made.end()


def said_by(berth, *words):
    return berth.ok(*words).strip()


def serve(berth, image, name, *flags):
    said_by(berth, "run", "-d", "--name", name, *flags, image, "sh", "-c",
            f"while true; do echo {name} | nc -l -p 8000; done")


GET = "n=0; while [ $n -lt ${2:-6} ]; do w=$(echo | nc -w 2 $1 8000 2>/dev/null); " \
      "[ -n \"$w\" ] && echo $w && exit; n=$((n+1)); sleep 0.2; done; exit 1"


def ask(berth, image, network, server, *flags):
    """What `server` says to somebody in `network`; busybox's server takes a moment."""
    return berth.run("run", "--rm", "--network", network, *flags, image, "sh", "-c", GET, "-",
                     server)


def is_closed(berth, image, network, server):
    """Whether a server that answers others says nothing to somebody in `network`."""
    return berth.run("run", "--rm", "--network", network, image, "sh", "-c", GET, "-", server,
                     "1").returncode != 0


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
    gate = said_by(berth, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", "two")
    assert ask(berth, image, "two", gate).stdout == "s1\n"
    for address in ("s1", said_by(berth, "inspect", "-f", there, "s1")):
        assert is_closed(berth, image, "two", address), address
    said = berth.run("run", "--rm", "--network", "two", "-p", "8000:1", image, "true")
    assert said.returncode == 125 and "has this port" in said.stderr


@EVERYBODY
def test_a_port_of_the_hosts_loopback_is_not_open_to_another_network(berth, image, lab):
    said_by(berth, "network", "create", "one")
    said_by(berth, "network", "create", "two")
    serve(berth, image, "s1", "--network", "one", "-p", "127.0.0.1:8000:8000")
    wait_until(lambda: lab.host.ask("127.0.0.1", 8000, 2, "hello\n") == "s1")
    gate = said_by(berth, "network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", "two")
    for address in (gate, "10.0.2.100"):  # that of slirp4netns, where there is one
        assert is_closed(berth, image, "two", address), address


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
def test_a_mac_address_that_was_asked_for_is_had(berth, image, lab):
    said_by(berth, "network", "create", "app")
    asked = {"one": ("--network", "app", "--mac-address", "02:42:AC:11:00:09"),
             "two": ("--network", "name=app,mac-address=0242.ac11.000a")}
    for name, flags in asked.items():
        serve(berth, image, name, *flags)
    for name, mac in (("one", "02:42:ac:11:00:09"), ("two", "02:42:ac:11:00:0a")):
        assert said_by(berth, "exec", name, "cat", "/sys/class/net/eth0/address") == mac
        document = json.loads(said_by(berth, "inspect", name))[0]
        assert document["NetworkSettings"]["Networks"]["app"]["MacAddress"] == mac
        assert document["Config"]["MacAddress"] == mac
        # Others that claim another one than theirs are not heard.
        assert ask(berth, image, "app", name).stdout == f"{name}\n"
    said_by(berth, "restart", "-t", "0", "one")
    assert said_by(berth, "exec", "one", "cat", "/sys/class/net/eth0/address") == (
        "02:42:ac:11:00:09")


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
    assert is_closed(berth, image, "one", "ship")
    assert "default via" in said_by(berth, "exec", "ship", "ip", "route")
    said_by(berth, "restart", "-t", "0", "ship")
    assert ask(berth, image, "two", "db").stdout == "ship\n"


@EVERYBODY
def test_published_ports_come_and_go_with_the_way_out(berth, image, lab):
    for name in ("app", "other"):
        said_by(berth, "network", "create", name)
    said_by(berth, "network", "create", "--internal", "quiet")
    ask_it = answers(lab.world, HOST, 18080)
    serve(berth, image, "ship", "--network", "quiet", "-p", "18080:8000")
    assert ask_it() == "refused" and said_by(berth, "port", "ship") == ""
    said_by(berth, "network", "connect", "app", "ship")
    wait_until(lambda: ask_it() == "ship")
    said_by(berth, "network", "connect", "other", "ship")
    said_by(berth, "network", "disconnect", "app", "ship")
    wait_until(lambda: ask_it() == "ship")
    said_by(berth, "network", "disconnect", "other", "ship")
    wait_until(lambda: ask_it() == "refused")
    assert said_by(berth, "port", "ship") == ""
    # Others may have it now, and then it cannot come back.
    serve(berth, image, "rival", "--network", "app", "-p", "18080:8000")
    wait_until(lambda: ask_it() == "rival")
    said = berth.fail("network", "connect", "app", "ship", status=1)
    assert "has this port" in said
    assert "app" not in json.loads(said_by(berth, "inspect", "ship"))[0]["NetworkSettings"]["Networks"]
    assert said_by(berth, "exec", "ship", "ip", "route").count("eth") == 1
    assert ask_it() == "rival"
    said_by(berth, "rm", "-f", "rival")
    said_by(berth, "network", "connect", "app", "ship")
    wait_until(lambda: ask_it() == "ship")
    assert said_by(berth, "port", "ship") == "8000/tcp -> 0.0.0.0:18080"


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


@EVERYBODY
def test_addresses_come_from_the_range_that_was_asked_for(berth, image, lab):
    said_by(berth, "network", "create", "--subnet", "10.77.0.0/24", "--ip-range", "10.77.0.64/31",
            "app")
    assert said_by(berth, "network", "inspect", "-f", "{{(index .IPAM.Config 0).IPRange}}",
                   "app") == "10.77.0.64/31"
    for last in (64, 65):
        said_by(berth, "run", "-d", "--network", "app", image, "sleep", "600")
        assert f"10.77.0.{last}/24" in said_by(berth, "network", "inspect", "app")
    said = berth.run("run", "--rm", "--network", "app", image, "true")
    assert said.returncode == 125 and "find an address in 10.77.0.64/31" in said.stderr
    assert "10.77.0.9/24" in said_by(berth, "run", "--rm", "--network", "app", "--ip", "10.77.0.9",
                                     image, "ip", "-4", "addr")
    assert berth.fail("network", "create", "--subnet", "10.78.0.0/24", "--ip-range", "10.79.0.0/25",
                      "wrong", status=1) == (
        "berth: no matching subnet for range '10.79.0.0/25'; try: a part of 10.78.0.0/24")


@EVERYBODY
def test_a_record_that_cannot_be_read_is_told(berth):
    said_by(berth, "network", "create", "app")
    record = berth.root / "networks/app.json"
    record.write_text("{")
    said = berth.run("network", "ls", "--format", "{{.Name}}")
    assert said.returncode == 0 and said.stdout == "bridge\nhost\nnone\n"
    assert "cannot read a network: " in said.stderr and said.stderr.count("network 'app'") == 1
    said = berth.fail("network", "create", "other", status=1)
    assert "cannot choose a subnet: that of another network is not known" in said
    assert f"remove that file of {berth.root}/networks" in said
    said_by(berth, "network", "create", "--subnet", "10.77.0.0/24", "other")


# ---- ordinary users alone ------------------------------------------------------------------------

def answers(space, address, port):
    return lambda: space.ask(address, port, 2, "hello\n")


@USERS
def test_a_users_network_leads_out_and_its_ports_are_the_hosts(berth, image, lab):
    said_by(berth, "network", "create", "app")
    server = lab.world.serve(8123, when="heard")
    assert said_by(berth, "run", "--rm", "--network", "app", image, "sh", "-c",
                   f"(echo ship; sleep 0.5) | nc -w 5 {WORLD} 8123") == "hello"
    assert end_server(server) == HOST
    serve(berth, image, "ship", "--network", "app", "-p", "18080:8000", "-p",
          "127.0.0.1:18081:8000")
    wait_until(lambda: answers(lab.world, HOST, 18080)() == "ship")
    wait_until(lambda: answers(lab.host, "127.0.0.1", 18081)() == "ship")
    assert lab.world.ask(HOST, 18081) == "refused"
    # One port of two addresses is that of two containers.
    serve(berth, image, "near", "--network", "app", "-p", "127.0.0.1:18082:8000")
    serve(berth, image, "far", "--network", "app", "-p", f"{HOST}:18082:8000")
    wait_until(lambda: answers(lab.host, "127.0.0.1", 18082)() == "near")
    wait_until(lambda: answers(lab.world, HOST, 18082)() == "far")
    said_by(berth, "rm", "-f", "far")
    assert lab.world.ask(HOST, 18082) == "refused"
    wait_until(lambda: answers(lab.host, "127.0.0.1", 18082)() == "near")


@USERS
def test_a_users_networks_and_their_way_out_share_no_address(berth, image, lab):
    # The way out takes 10.0.2.0/24 where nobody else has it.
    said_by(berth, "network", "create", "--subnet", "10.0.2.0/24", "app")
    said_by(berth, "network", "create", "other")
    said_by(berth, "run", "-d", "--name", "first", "--network", "other", image, "sleep", "600")
    server = lab.world.serve(8123, when="heard")
    assert said_by(berth, "run", "--rm", "--network", "app", image, "sh", "-c",
                   f"(echo ship; sleep 0.5) | nc -w 5 {WORLD} 8123") == "hello"
    end_server(server)
    way = json.loads((berth.state / "network/holder").read_text())["subnet"]
    assert way != "10.0.2.0/24"
    said = berth.fail("network", "create", "--subnet", way, "late", status=1)
    assert f"with {way}, the way out of your networks while one runs" in said
    said_by(berth, "rm", "-f", "first")
    wait_until(lambda: not helpers(berth))
    said_by(berth, "network", "create", "--subnet", way, "late")


@USERS
def test_two_first_starts_make_one_holder(berth, image, lab):
    said_by(berth, "network", "create", "app")
    starts = [berth.spawn("run", "-d", "--name", name, "--network", "app", image, "sleep", "600")
              for name in ("one", "two")]
    for start in starts:
        assert start.wait(60) == 0, start.stderr.read()
    assert len(helpers(berth, b"hold")) == 1
    assert said_by(berth, "exec", "one", "ping", "-c", "1", "-W", "5", "two")
    assert said_by(berth, "exec", "two", "ping", "-c", "1", "-W", "5", "one")
    said_by(berth, "rm", "-f", "one")
    assert len(helpers(berth, b"hold")) == 1
    said_by(berth, "rm", "-f", "two")
    wait_until(lambda: not helpers(berth))


@USERS
def test_the_holder_ends_with_containers_that_are_killed(berth, image, lab):
    said_by(berth, "network", "create", "app")
    said_by(berth, "run", "-d", "--network", "app", "-p", "18080:80", image, "sleep", "98765")
    ours = helpers(berth)
    kill_each([pid for pid, line in command_lines().items() if pid not in ours and (
        bytes(berth.root) in line or b"98765" in line)])
    wait_until(lambda: not helpers(berth))
    assert lab.host.ask("127.0.0.1", 18080) == "refused"


@USERS
def test_what_a_killed_holder_had_is_made_anew_by_the_next_start(berth, image, lab):
    said_by(berth, "network", "create", "app")
    serve(berth, image, "ship", "--network", "app", "-p", "18080:8000")
    kill_each(helpers(berth, b"hold"))
    wait_until(lambda: not helpers(berth))
    said = berth.run("network", "connect", "app", "ship")
    assert "already exists in network" in said.stderr
    said_by(berth, "network", "create", "other")
    said = berth.run("network", "connect", "other", "ship")
    assert said.returncode == 1 and "their holder was killed" in said.stderr
    assert "try: berth restart" in said.stderr
    said = ask(berth, image, "app", "ship")
    assert said.stdout == "ship\n"
    assert said.stderr.count("the holder of the networks was killed") == 1
    wait_until(lambda: answers(lab.world, HOST, 18080)() == "ship")
    assert "default via" in said_by(berth, "exec", "ship", "ip", "route")


@USERS
def test_a_killed_slirp4netns_is_started_again_with_its_ports(berth, image, lab):
    said_by(berth, "network", "create", "app")
    serve(berth, image, "ship", "--network", "app", "-p", "18080:8000")
    kill_each([pid for pid in helpers(berth) if pid not in helpers(berth, b"hold")])
    wait_until(lambda: answers(lab.world, HOST, 18080)() == "ship")
    assert ask(berth, image, "app", "ship").stdout == "ship\n"


@USERS
def test_a_container_that_is_restarted_stays_in_its_network(berth, image, lab):
    said_by(berth, "network", "create", "app")
    said_by(berth, "run", "-d", "--name", "ship", "--restart", "always", "--network", "app", image,
            "sh", "-c", "hostname -i; sleep 0.2")
    wait_until(lambda: said_by(berth, "logs", "ship").count("10.") > 2)
    said = said_by(berth, "inspect", "-f", "{{.State.Status}} {{.State.Error}}", "ship")
    assert said.strip() in ("running", "restarting")


@USERS
def test_who_keeps_his_id_is_in_the_network(berth, image, lab, profile):
    said_by(berth, "network", "create", "app")
    serve(berth, image, "ship", "--network", "app")
    said = ask(berth, image, "app", "ship", "--userns", "keep-id")
    assert said.stdout == "ship\n", said.stderr


@USERS
def test_a_container_without_a_named_network_is_connected_for_its_next_start(berth, image, lab):
    said_by(berth, "network", "create", "app")
    serve(berth, image, "ship", "--network", "bridge")
    said = berth.fail("network", "connect", "app", "ship", status=1)
    assert said == ("berth: connect container 'ship': it was started without a named network, and cannot get "
                    "one while it runs; try: berth stop ship, berth network connect app ship, "
                    "berth start ship")
    said_by(berth, "stop", "-t", "0", "ship")
    said_by(berth, "network", "connect", "app", "ship")
    said_by(berth, "start", "ship")
    assert ask(berth, image, "app", "ship").stdout == "ship\n"
    said_by(berth, "stop", "-t", "0", "ship")
    said_by(berth, "network", "disconnect", "app", "ship")
    said_by(berth, "start", "ship")
    assert "10.0.2." in said_by(berth, "exec", "ship", "ip", "-4", "addr")


@USERS
def test_without_slirp4netns_pasta_serves_all_but_ports(berth, image, lab, work):
    tools = berth.account.own(work / "tools")
    usual = berth.argv
    program = str(berth.programs / "berth")

    def argv(*words):
        command = usual(*words)
        at = command.index(program)
        return [*command[:at], "/usr/bin/env", f"PATH={tools}", *command[at:]]
    berth.argv = argv
    said_by(berth, "network", "create", "app")
    said = berth.fail("run", "--rm", "--network", "app", image, "true")
    assert said == ("berth: cannot give the container a network: find 'slirp4netns' or 'pasta' in "
                    "PATH; try: apt install slirp4netns, or passt of 2025 or later, or --network host or none")
    os.symlink("/usr/bin/pasta", tools / "pasta")
    serve(berth, image, "ship", "--network", "app")
    assert ask(berth, image, "app", "ship").stdout == "ship\n"
    server = lab.world.serve(8123, when="heard")
    assert said_by(berth, "exec", "ship", "sh", "-c",
                   f"(echo ship; sleep 0.5) | nc -w 5 {WORLD} 8123") == "hello"
    end_server(server)
    said = berth.run("run", "--rm", "--network", "app", "-p", "18080:80", image, "true")
    assert said.returncode == 125 and "pasta cannot do it; try: apt install slirp4netns" in said.stderr
    # It does not end with a holder that is killed, but with the next one's start.
    [before] = [pid for pid in helpers(berth) if pid not in helpers(berth, b"hold")]
    kill_each(helpers(berth, b"hold"))
    assert ask(berth, image, "app", "ship").stdout == "ship\n"
    assert before not in helpers(berth)
    berth.argv = usual


@USERS
def test_what_is_started_beside_a_container_without_a_network_has_its_own(berth, image, lab):
    said_by(berth, "network", "create", "app")
    said_by(berth, "run", "-d", "--name", "first", "--network", "app", image, "sleep", "600")
    said_by(berth, "run", "-d", "--name", "alone", image, "sleep", "600")
    said_by(berth, "create", "--name", "ship", "--network", "app", image, "sleep", "600")
    assert said_by(berth, "start", "alone", "ship") == "alone\nship"
    assert said_by(berth, "exec", "ship", "ping", "-c", "1", "-W", "5", "ship")


@pytest.mark.profiles("single_id")
def test_root_of_a_namespace_of_others_has_networks_in_it(berth, image, lab):
    berth_line = " ".join(map(str, (berth.programs / "berth", "--root", berth.root, "--state",
                                    berth.state)))
    script = f"""set -e; B="{berth_line}"
        $B network create app >/dev/null
        $B run -d --name ship --network app {image} sh -c 'while true; do echo ship | nc -l -p 8000; done' >/dev/null
        $B run --rm --network app {image} sh -c '{GET}' - ship
        $B rm -f ship"""
    usual = berth.argv()
    at = usual.index(str(berth.programs / "berth"))
    done = subprocess.run([*usual[:at], "unshare", "-r", "sh", "-c", script + "; sleep 1.5; "
                           "grep -lz '^hold$' /proc/[0-9]*/cmdline 2>/dev/null || echo none"],
                          capture_output=True, text=True, timeout=60, check=False,
                          **berth._options(None))
    assert done.stdout == "ship\nship\nnone\n", done


@USERS
def test_beside_a_container_of_another_namespace_one_line_says_so(berth, image, lab):
    said_by(berth, "network", "create", "app")
    said_by(berth, "run", "-d", "--name", "far", image, "sleep", "600")
    serve(berth, image, "ship", "--network", "app")
    said = berth.fail("run", "--rm", "--network", "app", "--pid", "container:far", image, "true")
    assert "others in them are in another user namespace; try: no --pid" in said
    said = ask(berth, image, "app", "ship", "--pid", "container:ship")
    assert said.stdout == "ship\n", said.stderr


@USERS
def test_a_holder_that_is_not_ours_is_not_joined(berth, image, lab):
    """The number of another process in a record, and a record that others may write to."""
    said_by(berth, "network", "create", "app")
    berth.account.own(berth.state / "network")
    record = berth.state / "network/holder"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    start = int(pathlib.Path("/proc/1/stat").read_text().rsplit(")", 1)[1].split()[19])
    for pid, at in ((1, start + 1), (1, start)):
        record.write_text(json.dumps({
            "boot_id": boot, "process": {"pid": pid, "start_time": at}, "space": 3,
            "outside": "slirp4netns", "subnet": "10.0.2.0/24"}))
        os.chown(record, berth.account.uid, berth.account.gid)
        said = berth.run("run", "--rm", "--network", "app", image, "hostname", "-i")
        if at == start:
            assert said.returncode == 125 and said.stderr == (
                "berth: cannot join the user namespace of the networks: open '/proc/1/ns/user': "
                "Permission denied\n")
            record.chmod(0o666)
            assert berth.fail("run", "--rm", "--network", "app", image, "true") == (
                "berth: cannot trust the record of the networks' holder in "
                f"{berth.state}/network: read 'holder': it is writable by others; try: a "
                "copy in its place, which nobody else has open: cp holder COPY")
            record.unlink()
        else:
            assert said.stdout.startswith("10.128."), said
            wait_until(lambda: not helpers(berth))
