# SPDX-License-Identifier: Apache-2.0
"""A small world of network namespaces: a host with an uplink, a machine beyond it, and containers. It never
changes the network of this machine."""

import json
import subprocess
import time
from pathlib import Path

HOST, WORLD = "192.0.2.1", "192.0.2.9"
HOST6, WORLD6 = "2001:db8::1", "2001:db8::9"

# The third word: whether it replies "first", once it has "heard" something, or at the "end" of the client's
# data.
SERVER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], int(sys.argv[2])), family=family) as server:
    print("ready", flush=True)
    peer, address = server.accept()
    if sys.argv[3] != "first":
        while peer.recv(4096) and sys.argv[3] == "end":
            pass
    peer.sendall(b"hello\\n")
    print(address[0], flush=True)
"""
CLIENT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])) as s:
        s.sendall(sys.argv[4].encode())
        print(s.recv(100).decode().strip())
except OSError as error:
    print("refused" if isinstance(error, ConnectionRefusedError) else "silence")
"""


class Space:
    """A network namespace, held open by a process in it."""

    def __init__(self):
        # Not in our own session, so that a terminal key does not end it.
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "600"],
                                       stdin=subprocess.DEVNULL)
        self.pid = self.holder.pid
        own = Path("/proc/self/ns/net").readlink()
        deadline = time.monotonic() + 10
        while Path(f"/proc/{self.pid}/ns/net").readlink() == own:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        self.ok("ip", "link", "set", "lo", "up")

    def command(self, *words):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *words]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60,
                              check=False, **options)

    def ok(self, *words, **options):
        done = self.run(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), (words, done)
        return done.stdout

    def serve(self, port, address="0.0.0.0", when="first"):
        """Answers one connection; ask(…) elsewhere returns the answer."""
        return self.start("python3", "-c", SERVER, address, str(port), when)

    def start(self, *words):
        """Starts a server that prints "ready"; see end_server()."""
        server = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, text=True,
                                  stdin=subprocess.DEVNULL)
        assert server.stdout.readline() == "ready\n"
        return server

    def ask(self, address, port, patience=3, say=""):
        """A server's first answer, after `say` was sent."""
        return self.ok("python3", "-c", CLIENT, address, str(port), str(patience), say).strip()

    def end(self):
        self.holder.kill()
        self.holder.wait()


def end_server(server):
    """The address of the client that it has served, or nothing."""
    server.kill()
    said = server.stdout.read().strip()
    server.wait()
    server.stdout.close()
    return said


class Lab:
    def __init__(self, program, directory, ipv4=True, ipv6=False):
        self.program = program
        self.directory = Path(directory)
        self.host, self.world = Space(), Space()
        self.spaces = [self.host, self.world]
        self.host.ok("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns",
                     str(self.world.pid))
        for space, name, four, six in ((self.host, "up0", HOST, HOST6),
                                       (self.world, "eth0", WORLD, WORLD6)):
            space.ok("ip", "link", "set", name, "up")
            if ipv4:
                space.ok("ip", "addr", "add", f"{four}/24", "dev", name)
            if ipv6:
                space.ok("ip", "addr", "add", f"{six}/64", "dev", name, "nodad")
        if ipv4:
            self.host.ok("ip", "route", "add", "default", "via", WORLD)
        if ipv6:
            self.host.ok("ip", "-6", "route", "add", "default", "via", WORLD6)

    def container(self):
        self.spaces.append(Space())
        return self.spaces[-1]

    def words(self, verb, *more):
        return self.host.command(str(self.program), verb, str(self.directory), *more)

    def start_attach(self, name, space, **request):
        process = subprocess.Popen(
            self.words("attach", json.dumps({"mode": "bridge"} | request)),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            process.stdin.write(json.dumps({"id": name, "pid": space.pid}))
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdin = None
        return process

    def attach(self, name, space, **request):
        done = self.try_attach(name, space, **request)
        assert done is None, done
        return self.lease(name)

    def try_attach(self, name, space, **request):
        """The failure, or None."""
        process = self.start_attach(name, space, **request)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode == 0) == (errors == ""), errors
        return json.loads(errors) if errors else None

    def detach(self, name):
        done = subprocess.run(self.words("detach"), input=json.dumps({"id": name, "pid": 0}),
                              capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def lease(self, name):
        return json.loads((self.directory / f"{name}.json").read_text(encoding="utf-8"))

    def leases(self):
        return {path.stem for path in self.directory.glob("*.json")}

    def state(self):
        """Everything that berth-network could leave on the host."""
        links = [line["ifname"] for line in json.loads(self.host.ok("ip", "-j", "link"))]
        switches = self.host.ok("sh", "-c", "grep . /proc/sys/net/ipv4/conf/[!bv]*/forwarding")
        return sorted(links), self.host.ok("nft", "list", "tables"), switches

    def end(self):
        for space in self.spaces:
            space.end()


def publish(host, container, protocol="tcp", address="", count=1):
    return {"host_address": address, "host_first": host, "host_last": host + count - 1 if host else 0,
            "container_first": container, "count": count, "protocol": protocol}
