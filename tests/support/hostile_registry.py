# SPDX-License-Identifier: Apache-2.0
"""A registry on loopback that serves one image, with the faults that a test requests.

    with hostile_registry.running(image, blobs=[dropped(after=1000, times=1)]) as registry:
        transfer.pull(registry.reference)
        registry.requests   # what came, with its headers

A fault is called with the exchange before the registry's answer. It answers and returns True, or returns
False, and the registry answers normally.
"""

import base64
import contextlib
import http.server
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse

from support import images

LONGEST_STALL = 30  # seconds that a slow answer may hold its thread


class Exchange(http.server.BaseHTTPRequestHandler):
    """One request. `content`: the registry's normal answer: (media type, bytes) or None."""

    protocol_version = "HTTP/1.1"
    content = None

    def log_message(self, format, *arguments):
        pass

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        headers = dict(headers or {})
        headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(body)
        return True

    def hang_up(self):
        with contextlib.suppress(OSError):
            self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)
        return True

    def do_GET(self):
        server = self.server
        server.note(self)
        if self.path.startswith("/v2/token"):
            server.answer_token(self)
            return
        kind, self.content = server.find(self.path)
        if server.token and not server.is_authorized(self):
            self.answer(401, images_error("UNAUTHORIZED", "authentication required"),
                        {"WWW-Authenticate": server.challenge(self)})
            return
        for fault in server.faults.get(kind, []):
            if fault(self):
                return
        if kind == "version":
            self.answer(200, b"{}")
        elif self.content is None:
            code = "MANIFEST_UNKNOWN" if kind == "manifests" else "BLOB_UNKNOWN"
            self.answer(404, images_error(code, f"{kind[:-1]} unknown"))
        else:
            self.answer(200, self.content[1], {"Content-Type": self.content[0]})

    def do_POST(self):
        """Uploads are a test's own: they have no normal answer here."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    do_HEAD = do_GET
    do_PUT = do_POST


def images_error(code, message):
    """The body of a refusal, as in the distribution-spec."""
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


class HostileRegistry(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, image, manifests=(), blobs=(), version=(), token=None, users=None,
                 certificate=None, listening=None):
        if listening:  # a socket, possibly from another network namespace
            super().__init__(listening.getsockname(), Exchange, bind_and_activate=False)
            self.socket.close()
            self.socket, self.server_address = listening, listening.getsockname()
        else:
            super().__init__(("127.0.0.1", 0), Exchange)
        if certificate:  # (certificate, key), from support.registry
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        self.address = f"{self.server_address[0]}:{self.port}"
        self.reference = f"{self.address}/app:latest"
        self.image = image
        self.faults = {"manifests": list(manifests), "blobs": list(blobs), "version": list(version)}
        self.token = token
        self.users = users or {}
        self.requests = []
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        pass  # the client hung up, as many tests expect

    def note(self, exchange):
        with self.lock:
            self.requests.append((exchange.command, exchange.path, dict(exchange.headers)))

    def seen(self, part):
        """The headers of the requests with `part` in their paths, in order."""
        return [headers for _, path, headers in self.requests if part in path]

    def find(self, path):
        path = urllib.parse.urlsplit(path).path
        if path == "/v2/":
            return "version", None
        match = re.fullmatch(r"/v2/app/(manifests|blobs)/([^/]+)", path)
        if not match:
            return "blobs", None
        kind, name = match.groups()
        if kind == "blobs":
            data = self.image.blobs.get(name)
            return kind, data and ("application/octet-stream", data)
        if name in ("latest", self.image.digest):
            return kind, (self.image.media_type, self.image.manifest)
        return kind, None

    # ---- bearer tokens ---------------------------------------------------------------------

    def challenge(self, exchange):
        return (f'Bearer realm="http://{self.address}/v2/token",service="test",'
                f'scope="repository:app:pull"')

    def is_authorized(self, exchange):
        return exchange.headers.get("Authorization") == f"Bearer {self.token}"

    def answer_token(self, exchange):
        given = exchange.headers.get("Authorization", "")
        allowed = [f"Basic {base64.b64encode(f'{n}:{p}'.encode()).decode()}"
                   for n, p in self.users.items()]
        if self.users and given not in allowed:
            exchange.answer(401, images_error("UNAUTHORIZED", "wrong password"))
        else:
            exchange.answer(200, json.dumps({"token": self.token, "expires_in": 300}).encode())


@contextlib.contextmanager
def running(image, **faults):
    registry = HostileRegistry(image, **faults)
    thread = threading.Thread(target=registry.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.shutdown()
        registry.server_close()
        thread.join()


# ---- faults -------------------------------------------------------------------------------------

def first(times, fault):
    """The fault for the first `times` requests; later ones get normal answers."""
    left = [times]

    def bounded(exchange):
        left[0] -= 1
        return left[0] >= 0 and fault(exchange)
    return bounded


def only(name, fault):
    """The fault for the blob or manifest with that name."""
    return lambda exchange: exchange.path.endswith("/" + name) and fault(exchange)


def refused(status, code="", message="", headers=None):
    body = images_error(code, message) if code else b"<html>trouble</html>"
    return lambda exchange: exchange.answer(status, body, headers)


def replaced(body, media_type="application/octet-stream"):
    """Other bytes than the digest's, or another type than the bytes have."""
    return lambda exchange: exchange.answer(200, body, {"Content-Type": media_type})


def truncated(size):
    """Only the first bytes, in an answer that claims to be complete."""
    return lambda exchange: exchange.answer(200, exchange.content[1][:size])


def dropped(after):
    """Closes the connection after `after` bytes of an answer that announces all."""
    def drop(exchange):
        data = exchange.content[1]
        exchange.answer(200, data[:after], {"Content-Length": str(len(data))})
        return exchange.hang_up()
    return drop


def away(after, seconds):
    """The same, and then refuses connections for `seconds`."""
    def leave(exchange):
        server, data = exchange.server, exchange.content[1]
        exchange.answer(200, data[:after], {"Content-Length": str(len(data))})
        server.shutdown()
        server.socket.close()
        exchange.hang_up()
        time.sleep(seconds)
        server.socket = socket.create_server(server.server_address)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return True
    return leave


def range_of(exchange):
    """(start, end) of the requested Range, without the end itself; nothing without one."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", exchange.headers.get("Range", ""))
    if not match:
        return None
    return int(match[1]), int(match[2]) + 1 if match[2] else len(exchange.content[1])


def dropped_range(exchange, after):
    """The same for a requested Range."""
    start, end = range_of(exchange)
    data = exchange.content[1]
    exchange.answer(206, data[start:start + after], {
        "Content-Length": str(end - start),
        "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})
    return exchange.hang_up()


def ranges(exchange):
    """Not a fault: this registry supports Range."""
    asked = range_of(exchange)
    if not asked:
        return False
    data, (start, end) = exchange.content[1], asked
    return exchange.answer(206, data[start:end], {
        "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})


def wrong_ranges(exchange):
    """Answers a Range with another piece than requested."""
    if "Range" not in exchange.headers:
        return False
    data = exchange.content[1]
    return exchange.answer(206, data, {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}"})


def redirected(target):
    """Redirects to the same path at another host."""
    return lambda exchange: exchange.answer(307, b"", {"Location": target + exchange.path})


def uploads_at(target):
    """Redirects uploads to another host."""
    def answer(exchange):
        if exchange.command != "POST":
            return exchange.command == "HEAD" and exchange.answer(404)
        return exchange.answer(202, b"", {"Location": target + exchange.path + "?state=1"})
    return answer


def redirected_to_itself(exchange):
    return exchange.answer(307, b"", {"Location": exchange.path})


def slow(exchange):
    """A few bytes, then nothing until the client gives up."""
    data = exchange.content[1]
    exchange.answer(200, data[:10], {"Content-Length": str(len(data))})
    with contextlib.suppress(OSError):
        exchange.wfile.flush()
        exchange.connection.settimeout(LONGEST_STALL)
        exchange.connection.recv(1)
    return exchange.hang_up()


def dripping(exchange):
    """Enough bytes not to be a stall, with an end far away."""
    exchange.answer(200, b"{", {"Content-Length": str(1 << 20)})
    until = time.monotonic() + LONGEST_STALL
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            exchange.wfile.write(b" " * 400)
            exchange.wfile.flush()
            time.sleep(0.1)
    return exchange.hang_up()


def paced(seconds, pieces=20):
    """The whole answer, spread over `seconds`."""
    def pace(exchange):
        data = exchange.content[1]
        step = max(1, len(data) // pieces)
        exchange.answer(200, data[:step], {"Content-Length": str(len(data))})
        for start in range(step, len(data), step):
            time.sleep(seconds / pieces)
            try:
                exchange.wfile.write(data[start:start + step])
                exchange.wfile.flush()
            except OSError:
                return exchange.hang_up()
        return True
    return pace
