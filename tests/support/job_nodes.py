# SPDX-License-Identifier: Apache-2.0
"""The nodes of one job on this machine, each with a separate store, and a registry that counts bytes.

    with MeteredRegistry(image) as registry, JobNodes(registry, work, count=8, arity=2) as nodes:
        outcomes = nodes.pull_all()
        registry.sent[digest]   # bytes of that blob
"""

import collections
import concurrent.futures
import contextlib
import http.server
import json
import os
import re
import secrets
import socket
import subprocess
import threading
import time

from support import shared_key
from support.registry import die_with_parent
from support.transfer import PROGRAMS, Transfer

CHUNK = 64 << 10


class Exchange(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *arguments):
        pass

    def refuse(self):
        body = b'{"errors":[{"code":"NOT_FOUND","message":"not here"}]}'
        self.send_response(404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        found = re.fullmatch(r"/v2/app/(manifests|blobs)/([^/?]+)", self.path)
        self.server.note(self.path)
        if self.path == "/v2/":
            kind, data, name = "application/json", b"{}", ""
        elif found and found[1] == "manifests" and found[2] in ("latest", self.server.image.digest):
            kind, data, name = self.server.image.media_type, self.server.image.manifest, "manifest"
        elif found and found[1] == "blobs" and found[2] in self.server.blobs:
            kind, data, name = "application/octet-stream", self.server.blobs[found[2]], found[2]
        else:
            self.refuse()
            return
        begin, end = 0, len(data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted:
            begin, end = int(wanted[1]), min(end, int(wanted[2] or end - 1) + 1)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        if self.command == "HEAD":
            return
        for at in range(begin, end, CHUNK):
            piece = data[at:min(at + CHUNK, end)]
            self.server.before_piece(name, at, len(piece))
            self.wfile.write(piece)

    do_HEAD = do_GET


class MeteredRegistry(http.server.ThreadingHTTPServer):
    """`rate`: bytes per second for all clients together; `latency`: seconds before each answer. `hold`:
    (digest, offset): a client that reaches this byte waits until `opened` is set; sets `reached`."""
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, image, rate=None, latency=0, hold=None):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.image, self.rate, self.latency, self.hold = image, rate, latency, hold
        self.blobs = dict(image.blobs)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.reference = f"{self.address}/app:latest"
        self.sent = collections.Counter()  # bytes by digest
        self.requests = []
        self.opened, self.reached = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._free = 0

    def handle_error(self, request, client_address):
        pass  # a killed client

    def note(self, path):
        with self._lock:
            self.requests.append(path)
        time.sleep(self.latency)

    def before_piece(self, name, at, size):
        if self.hold and name == self.hold[0] and at >= self.hold[1]:
            self.reached.set()
            self.opened.wait(120)
        with self._lock:
            self.sent[name] += size
            now = time.monotonic()
            start = max(self._free, now)
            self._free = start + (size / self.rate if self.rate else 0)
        if start > now:
            time.sleep(start - now)

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.opened.set()
        self.shutdown()
        self.server_close()
        self._thread.join()


class Front:
    """berth-hub --for-job on loopback. `above`: the addresses that it asks; `tell`: send its order at
    once."""

    def __init__(self, store, reference, key, above=(), tell=True, **more):
        self.reference, self.key = reference, key
        self._order = {"root": str(store), "reference": reference, "key": key, **more}
        if above:
            self._order["peers"] = peers(reference, above, key)
        secret = os.memfd_create("key")
        os.write(secret, key.encode())
        os.lseek(secret, 0, os.SEEK_SET)
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            self.address = f"127.0.0.1:{listener.getsockname()[1]}"
            files = (listener.fileno(), secret, 0)  # the order is sent to its standard input
            self.process = subprocess.Popen([PROGRAMS / "berth-hub", "--for-job", *map(str, files)],
                                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                            text=True, preexec_fn=die_with_parent,
                                            pass_fds=files[:2])
        os.close(secret)
        if tell:
            self.tell()

    def tell(self):
        self.process.stdin.write(json.dumps(self._order))
        self.process.stdin.close()

    def ask(self, path, headers=(), method="GET", read=True):
        """(status, headers, body), or with read=False (status, open answer)."""
        connection = shared_key.Connection(self.address, self.key, timeout=30)
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        if not read:
            answer.connection = connection  # otherwise closed with its last reference
            return answer.status, answer
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def kill(self):
        self.process.kill()
        self.process.wait()


def peers(reference, addresses, key):
    return {"reference": reference, "addresses": list(addresses), "key": key}


class JobNodes:
    """`count` nodes in a tree of `arity`; with arity 0 without a tree."""

    def __init__(self, registry, directory, count, arity=2, environment=None, **front_options):
        self.registry, self.count, self.arity = registry, count, arity
        self.key = secrets.token_hex(32)
        self.stores = [directory / f"node{number}" for number in range(count)]
        self.environment = environment or {}
        self.fronts = {}
        self.options = front_options

    def parent(self, node):
        return (node - 1) // self.arity

    def above(self, node):
        """The addresses that a node asks, the nearest first."""
        out = []
        while self.arity and node:
            node = self.parent(node)
            out.append(self.fronts[node].address)
        return out

    def __enter__(self):
        for node in range(self.count):
            if self.arity and node * self.arity + 1 < self.count:
                self.fronts[node] = Front(self.stores[node], self.registry.reference, self.key,
                                          self.above(node), **self.options)
        return self

    def __exit__(self, *_):
        for front in self.fronts.values():
            if front.process.returncode is None:
                front.kill()

    def transfer(self, node):
        return Transfer(self.stores[node], {"HOME": str(self.stores[node].parent),
                                            "XDG_RUNTIME_DIR": "", **self.environment})

    def request(self, node):
        own = [self.fronts[node].address] if node in self.fronts else []
        asked = own + self.above(node)
        return {"peers": peers(self.registry.reference, asked, self.key)} if asked else {}

    def pull(self, node, **more):
        return self.transfer(node).pull(self.registry.reference, **{**self.request(node), **more})

    def pull_all(self, **more):
        with concurrent.futures.ThreadPoolExecutor(self.count) as pool:
            return list(pool.map(lambda node: self.pull(node, **more), range(self.count)))

    def start(self, node, **more):
        return self.transfer(node).start("pull", reference=self.registry.reference,
                                         **{**self.request(node), **more})

    def layers(self, node):
        directory = self.stores[node] / "layers"
        return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


@contextlib.contextmanager
def tmpfs(path, size):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "berth-tests-node", path],
                   check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)
