# SPDX-License-Identifier: Apache-2.0
"""Networks of containers: a bridge for root, pasta or slirp4netns for ordinary users. The host is a
network namespace of the test's own, with a machine beyond it that serves HTTP and names."""

import json
import os
import pathlib
import signal
import time

import pytest
from support import images
from support.netlab import HOST, WORLD, end_server
from support.processes import command_lines, kill_each
from support.user_networks import ANSWER, TUN, berth_on_the_host_of_a_lab, helpers, open_tun
from support.waiting import wait_until

USERS = pytest.mark.profiles("user", "single_id")


def each_mode(*pairs):
    """Once with each kind of network that each kind of user has."""
    def mark(test):
        return pytest.mark.profiles()(
            pytest.mark.parametrize("profile, mode", pairs, indirect=["profile"])(test))
    return mark


OF_USERS = [(user, mode) for user in ("user", "single_id") for mode in ("pasta", "slirp4netns")]
ALL_MODES = each_mode(("root", "bridge"), ("user", "bridge"), *OF_USERS)
USERS_MODES = each_mode(*OF_USERS)

# Answers HTTP on port 8000, and every question for a name with 203.0.113.80 on port 53.
OUTSIDE = ANSWER + """
import http.server, socket, threading
class Cargo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"cargo\\n")
    def log_message(self, *words): pass
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("0.0.0.0", 53))
threading.Thread(target=answer, args=(names,), daemon=True).start()
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Cargo)
print("ready", flush=True)
server.serve_forever()
"""


@pytest.fixture
def tun():
    with open_tun():
        yield


@pytest.fixture
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.fixture
def lab(berth, image, programs, work):
    with berth_on_the_host_of_a_lab(berth, programs, work, WORLD) as made:
        outside = made.world.start("python3", "-c", OUTSIDE)
        yield made
        end_server(outside)


def get(address, port):
    return ("wget", "-q", "-O", "-", f"http://{address}:{port}/")


SERVE = ("sh", "-c", "while true; do echo ship | nc -l -p 80; done")


def ask(space, address, port, say="hello\n"):
    """What SERVE says; busybox's server takes a moment between two calls."""
    return wait_until(lambda: (said := space.ask(address, port, 2, say)) == "ship" and said)


@pytest.fixture(autouse=True)
def opened(tun):
    return tun


@ALL_MODES
def test_a_container_reaches_the_world_and_resolves_names(berth, image, lab, mode):
    run = ("run", "--rm", "--network", mode, image)
    assert berth.ok(*run, *get(WORLD, 8000)) == "cargo\n"
    assert "203.0.113.80" in berth.ok(*run, "nslookup", "ship.example.org")
    resolver = berth.ok(*run, "cat", "/etc/resolv.conf")
    assert "search example.org\n" in resolver and resolver.count("nameserver") == 1
    # Nothing of it is left, although nobody called for that.
    wait_until(lambda: not lab.leases() and not helpers(berth))


@ALL_MODES
def test_the_host_is_reached_by_a_name_when_asked(berth, image, lab, mode):
    server = lab.host.serve(8123, when="heard")
    out = berth.ok("run", "--rm", "--network", mode, "--add-host",
                   "host.docker.internal:host-gateway", image, "sh", "-c",
                   "(echo ship; sleep 0.5) | nc -w 5 host.docker.internal 8123")
    end_server(server)
    assert out == "hello\n"


@each_mode(("root", "bridge"), ("user", "bridge"), ("single_id", "slirp4netns"))  # 0092
def test_who_has_said_all_hears_the_rest(berth, image, lab, mode):
    server = lab.host.serve(8123, when="end")
    out = berth.ok("run", "--rm", "--network", mode, image, "sh", "-c",
                   f"echo ship | nc {HOST} 8123")
    end_server(server)
    assert out == "hello\n"


@USERS_MODES
def test_who_keeps_his_id_reaches_the_world(berth, image, lab, mode, profile):
    out = berth.ok("run", "--rm", "--userns", "keep-id", "--network", mode, image, "sh", "-c",
                   f"id -u; wget -q -O - http://{WORLD}:8000/")
    assert out == f"{profile.uid}\ncargo\n"


@ALL_MODES
def test_beside_the_processes_of_another_it_has_a_network_of_its_own(berth, image, lab, mode):
    other = berth.ok("run", "-d", image, "sleep", "60").strip()
    listed = berth.ok("run", "--rm", "--network", mode, "--pid", f"container:{other}", image,
                      "sh", "-c", "ps; ip -o addr show")
    assert "sleep 60" in listed and "inet " in listed.replace("inet 127.0.0.1", "")
    # Neither the helper nor what started it is a process of that container.
    kept = berth.ok("run", "-d", "--network", mode, "--pid", f"container:{other}", image,
                    "sleep", "61").strip()
    inside = berth.ok("exec", other, "ps")
    assert "sleep 61" in inside and not any(
        name in inside for name in ("slirp4netns", "pasta", "berth-network"))
    berth.ok("rm", "-f", kept, other)
    wait_until(lambda: not helpers(berth))


@ALL_MODES
def test_its_own_name_is_its_address(berth, image, lab, mode):
    out = berth.ok("run", "--rm", "--network", mode, "-h", "tug", image, "sh", "-c",
                   "hostname -i; ip -4 -o addr show eth0; ip route; cat /etc/hosts")
    address = out.splitlines()[0]
    assert f"inet {address}/" in out and "default via" in out
    assert f"{address}\ttug\n" in out and "127.0.1.1" not in out


@ALL_MODES
def test_a_published_port_leads_to_the_container(berth, image, lab, mode):
    berth.ok("run", "-d", "--name", "tug", "--network", mode, "-p", "18080:80", "-p",
             "127.0.0.1:18081:80", image, *SERVE)
    assert ask(lab.world, HOST, 18080) == "ship"
    assert ask(lab.host, "127.0.0.1", 18080) == "ship"
    assert ask(lab.host, "127.0.0.1", 18081) == "ship"
    assert lab.world.ask(HOST, 18081) == "refused"
    assert berth.ok("port", "tug") == "80/tcp -> 0.0.0.0:18080\n80/tcp -> 127.0.0.1:18081\n"
    assert berth.ok("port", "tug", "80") == "0.0.0.0:18080\n127.0.0.1:18081\n"
    assert berth.fail("port", "tug", "81/udp", status=1) == (
        "berth: No public port '81/udp' published for tug")
    berth.ok("rm", "-f", "tug")
    assert not lab.leases()
    wait_until(lambda: not helpers(berth))
    assert lab.host.ask("127.0.0.1", 18080) == "refused"


@ALL_MODES
def test_lists_and_documents_tell_the_network(berth, image, lab, mode):
    berth.ok("run", "-d", "--name", "tug", "--network", mode, "-p", "18080:80", "-p",
             "127.0.0.1:18081:81/udp", "--expose", "90-91", image, "sleep", "1000")
    berth.ok("run", "-d", "--name", "buoy", "--network", "container:tug", image, "sleep", "1000")
    ports = "90-91/tcp, 0.0.0.0:18080->80/tcp, 127.0.0.1:18081->81/udp"
    listed = dict(line.split("|") for line in
                  berth.ok("ps", "--format", "{{.Names}}|{{.Ports}}").splitlines())
    assert listed == {"tug": ports, "buoy": ""}
    assert ports in berth.ok("ps", "--filter", "name=tug")
    for text, found in (("publish=18080", "tug\n"), ("publish=80", ""), ("publish=18081", ""),
                        ("publish=18000-18090/udp", "tug\n"), ("expose=80", "tug\n"),
                        ("expose=91", "tug\n"), ("expose=92", "")):
        assert berth.ok("ps", "--format", "{{.Names}}", "--filter", text) == found, text

    tug = json.loads(berth.ok("inspect", "tug"))[0]
    settings = tug["NetworkSettings"]
    interface = berth.ok("exec", "tug", "ip", "addr", "show", "eth0")
    assert f"inet {settings['IPAddress']}/{settings['IPPrefixLen']}" in interface
    assert settings["MacAddress"] in interface and bool(settings["MacAddress"]) == (
        berth.account.kind == "root")
    assert f"default via {settings['Gateway']}" in berth.ok("exec", "tug", "ip", "route")
    assert settings["Ports"] == {
        "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "18080"}],
        "81/udp": [{"HostIp": "127.0.0.1", "HostPort": "18081"}], "90/tcp": None, "91/tcp": None}
    assert list(settings["Networks"]) == [mode] == [tug["HostConfig"]["NetworkMode"]]
    assert settings["Networks"][mode]["IPAddress"] == settings["IPAddress"]
    assert tug["HostConfig"]["PortBindings"] == {
        "80/tcp": [{"HostIp": "", "HostPort": "18080"}],
        "81/udp": [{"HostIp": "127.0.0.1", "HostPort": "18081"}]}
    assert list(tug["Config"]["ExposedPorts"]) == ["80/tcp", "81/udp", "90/tcp", "91/tcp"]
    buoy = json.loads(berth.ok("inspect", "buoy"))[0]
    assert buoy["HostConfig"]["NetworkMode"] == f"container:{tug['Id']}"
    assert buoy["NetworkSettings"]["Ports"] == buoy["NetworkSettings"]["Networks"] == {}

    berth.ok("rm", "-f", "buoy")
    berth.ok("stop", "-t", "0", "tug")
    stopped = json.loads(berth.ok("inspect", "tug"))[0]
    assert stopped["NetworkSettings"]["Ports"] == {}
    assert stopped["NetworkSettings"]["IPAddress"] == ""
    assert stopped["HostConfig"]["PortBindings"] == tug["HostConfig"]["PortBindings"]
    assert berth.ok("ps", "-a", "--format", "{{.Ports}}") == "\n"


@ALL_MODES
def test_a_mac_address_that_was_asked_for_is_had(berth, image, lab, mode):
    mac = "02:42:ac:11:00:09"
    berth.ok("run", "-d", "--name", "tug", "--network", mode, "--mac-address", mac, image, *SERVE)
    assert berth.ok("exec", "tug", "cat", "/sys/class/net/eth0/address").strip() == mac
    assert berth.ok("exec", "tug", *get(WORLD, 8000)) == "cargo\n"
    document = json.loads(berth.ok("inspect", "tug"))[0]
    assert document["Config"]["MacAddress"] == document["NetworkSettings"]["MacAddress"] == mac
    berth.ok("restart", "-t", "0", "tug")
    assert berth.ok("exec", "tug", "cat", "/sys/class/net/eth0/address").strip() == mac


def test_a_damaged_lease_hides_no_container(berth, image, lab):
    identity = berth.ok("run", "-d", "--name", "tug", "-p", "18080:80", image, "sleep", "1000")
    lease = berth.state / "network" / f"{identity.strip()}.json"
    text = lease.read_text()
    lease.write_text("{")
    assert berth.ok("ps", "--format", "{{.Names}}|{{.Ports}}") == "tug|\n"
    assert berth.run("inspect", "tug").returncode == 1
    lease.write_text(text)
    assert berth.ok("ps", "--format", "{{.Names}}|{{.Ports}}") == "tug|0.0.0.0:18080->80/tcp\n"


def test_ports_alone_mean_a_network(berth, image, lab):
    berth.ok("run", "-d", "--name", "tug", "-p", "80", image, *SERVE)
    line = berth.ok("port", "tug", "80/tcp")
    port = int(line.removeprefix("0.0.0.0:"))
    # A server that speaks first, such as one of SSH: docs/decisions/0092.
    assert 49153 <= port <= 65535 and ask(lab.world, HOST, port, "") == "ship"
    assert berth.ok("stop", "-t", "0", "tug") and berth.ok("port", "tug") == ""


def test_all_that_the_image_exposes_is_published(berth, image, lab, push):
    exposing = push(images.build([images.busybox_layer()], config={
        "Cmd": ["/bin/sh"], "ExposedPorts": {"80/tcp": {}, "53/udp": {}, "nonsense": {}}}))
    usual = berth.argv
    berth.argv = type(berth).argv.__get__(berth)
    berth.ok("pull", "--quiet", exposing)
    berth.argv = usual
    berth.ok("run", "-d", "--name", "tug", "-P", "--expose", "90-91", "-p", "18080:80", exposing,
             "sleep", "100")
    inside = [line.split(" -> ")[0] for line in berth.ok("port", "tug").splitlines()]
    assert inside == ["53/udp", "80/tcp", "90/tcp", "91/tcp"]
    assert berth.ok("port", "tug", "80") == "0.0.0.0:18080\n"


@ALL_MODES
def test_a_port_in_use_is_one_clear_error_and_leaves_nothing(berth, image, lab, listing, mode):
    berth.ok("run", "--rm", image, "true")  # what the first one makes for all
    server = lab.host.serve(18080)
    before = listing(), lab.state()
    for flags in (("--rm",), ("-d",), ()):
        line = berth.fail("run", *flags, "--network", mode, "-p", "18080:80", image, "true")
        assert line == ("berth: cannot publish a port: bind 0.0.0.0:18080/tcp: Address already in "
                        "use; try: another host port, or none for any that is free")
        assert (listing(), lab.state()) == before
        assert not lab.leases() and not helpers(berth)
    end_server(server)


def test_a_port_of_another_container_is_told_with_its_name(berth, image, lab):
    identity = berth.ok("run", "-d", "--name", "tug", "-p", "18080:80", image, "sleep", "100")
    line = berth.fail("run", "-d", "-p", "18080:80", image, "true")
    assert line == (f"berth: publish 0.0.0.0:18080/tcp: container '{identity[:12]}' has this port; "
                    "try: another host port, or none for any that is free")
    assert berth.ok("ps", "-aq").split() == [identity[:12]]


@USERS
def test_a_low_port_is_refused_with_what_helps(berth, image, lab):
    assert berth.fail("run", "--rm", "-p", "80:80", image, "true") == (
        "berth: cannot publish a port: bind 0.0.0.0:80/tcp: Permission denied; try: a host port "
        "from 1024 on; or as root: sysctl net.ipv4.ip_unprivileged_port_start")


@USERS
def test_a_closed_tun_is_told_before_anything_is_made(berth, image, lab, listing):
    berth.ok("run", "--rm", image, "true")  # what the first one makes for all
    TUN.chmod(0o600)
    before = listing()
    for network in ("bridge", "pasta", "slirp4netns"):
        assert berth.fail("run", "--rm", "--network", network, image, "true") == (
            "berth: cannot give the container a network: open '/dev/net/tun': Permission denied; "
            "try: as root: chmod 666 /dev/net/tun; or --network host or none")
    assert listing() == before


@pytest.mark.profiles("user", "single_id")
@pytest.mark.parametrize("options, helper", [("--no-map-gw", "slirp4netns"), ("--map-guest-addr ADDR", "pasta")])
def test_pasta_is_taken_where_it_is_new(berth, image, lab, work, options, helper):
    program = work / "pasta"
    program.write_text(f"#!/bin/sh\n[ \"$1\" != --help ] || {{ echo '  {options}' >&2; exit; }}\nexec /usr/bin/pasta \"$@\"\n")
    program.chmod(0o755)
    berth.path = f"{work}:{os.environ['PATH']}"
    berth.ok("run", "--detach", "--network", "bridge", image, "sleep", "100")
    # slirp4netns has no word of the container among its own.
    assert ("pasta" in {name for _, name in helpers(berth)}) == (helper == "pasta")


@USERS
def test_without_a_helper_it_says_what_to_install(berth, image, lab, work):
    berth.path = str(work)
    network = ("run", "--rm", "--network")
    assert berth.fail(*network, "bridge", image, "true") == (
        "berth: cannot give the container a network: find 'slirp4netns' or 'pasta' in PATH; try: "
        "apt install slirp4netns, or passt of 2025 or later, or --network host or none")
    assert berth.fail(*network, "pasta", image, "true") == (
        "berth: cannot give the container a network: find 'pasta' in PATH; try: "
        "apt install passt, or --network host or none")
    # One of the two is enough.
    (work / "pasta").symlink_to("/usr/bin/pasta")
    assert berth.ok(*network, "bridge", image, *get(WORLD, 8000)) == "cargo\n"


@USERS_MODES
def test_loopback_of_the_host_is_out_of_reach(berth, image, lab, mode):
    server = lab.host.serve(7000, "127.0.0.1")
    out = berth.ok("run", "--rm", "--network", mode, image, "sh", "-c",
                   "for a in $(ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p') 127.0.0.1; "
                   "do nc -w 2 $a 7000 </dev/null; done; echo end")
    assert out == "end\n" and end_server(server) == ""


@pytest.mark.profiles("root")
def test_helpers_of_users_are_no_network_of_root(berth, image, lab):
    assert berth.fail("run", "--rm", "--network", "pasta", image, "true") == (
        "berth: network 'pasta' is for ordinary users; try: --network bridge")


def test_none_and_host_pay_nothing(berth, image, lab):
    for network in ("none", "host"):
        berth.ok("run", "--rm", "--network", network, image, "true")
        berth.ok("run", "-d", "--name", network, "--network", network, image, "sleep", "100")
        config = next(berth.root.glob(f"containers/{berth.ok('ps', '-q', '--no-trunc').split()[0]}"
                                      "/bundle/config.json"), None)
        assert config is None or "berth-network" not in config.read_text()
        berth.ok("rm", "-f", network)
    assert not (berth.state / "network").exists()


@pytest.mark.parametrize("network", ["host", "none"])
def test_ports_that_cannot_be_published_are_told_to_be_discarded(berth, image, lab, network):
    done = berth.run("run", "--rm", "--network", network, "-p", "18080:80", image, "true")
    assert done.returncode == 0
    assert f"Published ports are discarded when using {network} network mode" in done.stderr


def test_a_mac_address_that_cannot_be_had_is_told(berth, image, lab, listing):
    before = listing()
    for network, mac, said in (
            ("host", "02:42:ac:11:00:09", "conflicting options: mac-address and the network mode"),
            ("bridge", "02:42:ac", "'02:42:ac' is not a valid mac address"),
            ("bridge", "01:42:ac:11:00:09", "it is one of a group")):
        assert said in berth.fail("run", "--network", network, "--mac-address", mac, image, "true",
                                  status=125)
    assert listing() == before
    done = berth.run("run", "--rm", "--network", "none", "--mac-address", "02:42:ac:11:00:09",
                     image, "true")
    assert done.returncode == 0
    assert "--mac-address is discarded when using none network mode" in done.stderr


def links_of(berth, image, *flags, **variables):
    """Those of a container but for its loopback; every variable that decides is named."""
    env = {"BERTH_NETWORK": "", **variables}
    out = berth.ok("run", "--rm", *flags, image, "cat", "/proc/net/dev", env=env)
    links = [line.split(":")[0].strip() for line in out.splitlines()[2:]]
    return [link for link in links if link != "lo"]


def test_a_container_has_a_network_unless_somebody_says_otherwise(berth, image, lab):
    assert links_of(berth, image) == ["eth0"]
    assert links_of(berth, image, "--network", "none") == []
    found = berth.ok("run", "--rm", image, "sh", "-c",
                     f"wget -qO- http://{WORLD}:8000/ && nslookup cargo.example",
                     env={"BERTH_NETWORK": ""})
    assert found.startswith("cargo\n") and "203.0.113.80" in found


def test_a_batch_job_has_the_network_of_its_node(berth, image, lab):
    job = {"SLURM_JOB_ID": "17"}
    assert links_of(berth, image, **job) == ["up0"]
    assert links_of(berth, image, "--network", "bridge", **job) == ["eth0"]
    assert links_of(berth, image, "-p", "18080:80", **job) == ["eth0"]


def test_a_site_names_another_default_network(berth, image, lab, work):
    site = work / "site"
    site.mkdir(mode=0o755)
    (site / "policy.toml").write_text('[network]\ndefault = "none"\n')
    berth.account.own(site)  # of the caller or of root
    berth.ok("--config-dir", site, "policy", "apply")

    def links(*flags, **variables):
        env = {"BERTH_NETWORK": "", **variables}
        out = berth.ok("--config-dir", site, "run", "--rm", *flags, image, "ls", "/sys/class/net",
                       env=env)
        return [link for link in out.split() if link != "lo"]

    assert links() == links(SLURM_JOB_ID="17") == []
    assert links("-p", "18080:80") == links(BERTH_NETWORK="bridge") == ["eth0"]
    told = {"env": {"BERTH_NETWORK": ""}}
    assert " Default Network: none\n" in berth.ok("--config-dir", site, "info", **told)
    assert berth.ok("--config-dir", site, "run", "--help", **told).endswith(
        "The default network here is 'none' (the policy of this machine).\n")


def test_a_variable_names_the_default_network(berth, image, lab):
    for name, seen in (("bridge", ["eth0"]), ("none", []), ("host", ["up0"])):
        assert links_of(berth, image, BERTH_NETWORK=name) == seen
    assert berth.fail("run", "--rm", image, "true", env={"BERTH_NETWORK": "warp"}) == (
        "berth: cannot use BERTH_NETWORK: network 'warp': expected none, host, bridge, pasta, "
        "slirp4netns or container:NAME; try: berth run --help")


@pytest.mark.parametrize("flag, why", [
    ("80:x", "Invalid containerPort: x"), ("x:80", "Invalid hostPort: x"),
    ("1.2.3.4.5:80:80", "Invalid ip address: 1.2.3.4.5"), ("80/icmp", "Invalid proto: icmp"),
    ("$(reboot):80", "Invalid hostPort: $(reboot)"),
    ("1-2:3-5", "Invalid ranges specified for container and host Ports: 3-5 and 1-2")])
@pytest.mark.profiles("root")
def test_ports_that_are_none_are_told_by_their_part(berth, image, flag, why):
    assert berth.fail("run", "--rm", "-p", flag, image, "true") == (
        f"berth: publish '{flag}': {why}; try: -p [ADDRESS:][HOST-PORT:]CONTAINER-PORT[/udp]")


@ALL_MODES
def test_nothing_stays_when_the_containers_first_process_is_killed(berth, image, lab, mode):
    berth.ok("run", "-d", "--name", "tug", "--network", mode, "-p", "18080:80", image, *SERVE)
    holder = lab.lease(lab.leases().pop())["holder"]["pid"]
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: not lab.leases() and not helpers(berth))
    assert lab.host.ask("127.0.0.1", 18080) == "refused"


@ALL_MODES
def test_nothing_stays_when_all_of_berth_is_killed_at_once(berth, image, lab, mode):
    """Not at once for root, whose network has no process: with the next container."""
    process = berth.spawn("run", "--rm", "--network", mode, "-p", "18080:80", image, *SERVE)
    wait_until(lambda: lab.leases())
    assert ask(lab.host, "127.0.0.1", 18080) == "ship"
    name = lab.leases().pop()
    holder = lab.lease(name)["holder"]["pid"]
    kill_each([pid for pid, line in command_lines().items()
               if line.startswith((b"berth\0", b"berth-runtime\0")) and bytes(berth.state) in line or
               line.startswith(b"berth-runtime\0") and name.encode() in line])
    process.kill()
    process.communicate()
    wait_until(lambda: not pathlib.Path(f"/proc/{holder}").exists())
    if mode == "bridge" and berth.account.kind == "root":
        berth.ok("run", "--rm", "-p", "18080:80", image, "true")
    wait_until(lambda: not lab.leases() and not helpers(berth))
    assert lab.host.ask("127.0.0.1", 18080) == "refused"


@USERS_MODES
def test_a_killed_helper_takes_nothing_along(berth, image, lab, mode):
    berth.ok("run", "-d", "--name", "tug", "--network", mode, image, "sleep", "100")
    helper = lab.lease(lab.leases().pop())["helper"]["pid"]
    os.kill(helper, signal.SIGKILL)
    time.sleep(0.1)
    assert json.loads(berth.ok("inspect", "tug"))[0]["State"]["Running"] is True
    berth.ok("rm", "-f", "tug")
    wait_until(lambda: not lab.leases() and not helpers(berth))


@USERS_MODES
def test_a_killed_keeper_is_not_needed(berth, image, lab, mode):
    berth.ok("run", "-d", "--name", "tug", "--network", mode, image, "sleep", "100")
    keeper, = [pid for pid, name in wait_until(lambda: helpers(berth)) if name == "berth-network"]
    os.kill(keeper, signal.SIGKILL)
    berth.ok("rm", "-f", "tug")
    wait_until(lambda: not lab.leases() and not helpers(berth))


def test_ten_at_once_get_ten_networks(berth, image, lab):
    runs = [berth.spawn("run", "--rm", "-p", "80", image, *get(WORLD, 8000)) for _ in range(10)]
    assert [run.communicate(timeout=60) for run in runs] == [("cargo\n", "")] * 10


def test_what_a_container_is_called_gets_into_no_rule(berth, image, lab):
    berth.ok("run", "-d", "--name", "drop.accept-0", "-h", "flush-ruleset", "-p", "18080:80", image,
             *SERVE)
    assert ask(lab.host, "127.0.0.1", 18080) == "ship"
    if berth.account.kind == "root":
        rules = lab.host.ok("nft", "list", "ruleset")
        assert "flush" not in rules and "drop.accept" not in rules
