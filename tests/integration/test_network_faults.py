# SPDX-License-Identifier: Apache-2.0
"""What lies between Berth and a registry breaks or lies: connections are reset, answers promise
what never comes, everybody is told to wait, a proxy cuts what goes through it."""

import contextlib
import hashlib
import os
import select
import socket
import struct
import threading

import pytest

from support import hostile_registry as hostile
from support import images
from support.registry import make_certificate
from support.store_listing import store_listing
from support.transfer import Transfer

pytestmark = pytest.mark.profiles("root")  # of berth-transfer, which knows no users


@pytest.fixture(scope="module")
def image():
    noise = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(16384))
    return images.build([images.layer([images.file("small", "a\n")]),
                         images.layer([images.file("large", noise)])])


@pytest.fixture
def transfer(work):
    transfer = Transfer(work / "store", {"HOME": str(work), "XDG_RUNTIME_DIR": ""})
    with hostile.running(images.build([images.layer([images.file("kept", "k\n")])])) as first:
        assert transfer.pull(first.reference).result["status"] == "downloaded"
    return transfer


def refusal(transfer, reference, **members):
    before = store_listing(transfer.root)
    kind, line = transfer.pull(reference, **members).error
    assert store_listing(transfer.root) == before
    assert "\n" not in line and line.startswith(f"cannot pull '{reference}': "), line
    return kind, line


def reset(after):
    """So many bytes, and then no end but a reset."""
    def answer(exchange):
        data = exchange.content[1]
        exchange.answer(200, data[:after], {"Content-Length": str(len(data))})
        exchange.wfile.flush()
        exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        exchange.close_connection = True
        os.close(exchange.connection.detach())  # shutdown() would end the stream first
        return True
    return answer


def promises(size):
    """A Content-Length that has nothing to do with what comes."""
    def answer(exchange):
        exchange.answer(200, exchange.content[1], {"Content-Length": str(size)})
        return exchange.hang_up()
    return answer


@pytest.mark.parametrize("after", [0, 1000])
def test_goes_on_after_a_reset(image, transfer, after):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(1, reset(after))),
                                       hostile.ranges]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        assert len(registry.seen(digest)) == 2


def test_gives_up_on_a_registry_that_always_resets(image, transfer):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, reset(10))]) as registry:
        kind, line = refusal(transfer, registry.reference)
        assert kind == "io" and "try: the same command again" in line
        assert len(registry.seen(digest)) == 5


@pytest.mark.parametrize("size", [1 << 40, 1 << 62])
def test_believes_the_descriptor_and_not_the_length_of_the_answer(image, transfer, size):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, promises(size))]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        assert len(registry.seen(digest)) == 1


def test_comes_through_a_storm_of_refusals(image, transfer):
    """Every request is refused twice, whatever it asks for."""
    counts = {}

    def busy(exchange):
        counts[exchange.path] = counts.get(exchange.path, 0) + 1
        return counts[exchange.path] <= 2 and hostile.refused(
            429, "TOOMANYREQUESTS", "slow", {"Retry-After": "0"})(exchange)
    with hostile.running(image, manifests=[busy], blobs=[busy]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
    assert max(counts.values()) == 3


def test_adds_nothing_to_a_storm_that_does_not_end(image, transfer):
    with hostile.running(image, blobs=[hostile.refused(
            429, "TOOMANYREQUESTS", "slow", {"Retry-After": "0"})]) as registry:
        kind, line = refusal(transfer, registry.reference)
        assert kind == "busy" and "429 Too Many Requests: slow" in line
        assert len(registry.seen("/blobs/")) <= 5 * len(image.blobs)


def test_what_another_host_gives_is_checked_as_well(image, transfer):
    """The registry sends us to a host that has other bytes."""
    digest = image.layer_digests[1]
    data = bytearray(image.blobs[digest])
    data[-1] ^= 1
    with hostile.running(image, blobs=[hostile.only(digest, hostile.replaced(
            bytes(data)))]) as other, hostile.running(
                image, blobs=[hostile.redirected(f"http://{other.address}")]) as registry:
        kind, line = refusal(transfer, registry.reference)
        assert kind == "corrupt" and "check its bytes: their digest is " in line


def test_believes_no_header_about_the_digest(image, transfer):
    """Docker-Content-Digest names what was asked for; the bytes are another manifest's."""
    other = images.build([images.layer([images.file("other", "o\n")])])
    with hostile.running(image, manifests=[lambda exchange: exchange.answer(
            200, other.manifest, {"Content-Type": image.media_type,
                                  "Docker-Content-Digest": image.digest})]) as registry:
        kind, line = refusal(transfer, f"{registry.address}/app@{image.digest}")
        assert kind == "corrupt" and line.endswith(f"its bytes have digest '{other.digest}'")


# ---- a proxy ------------------------------------------------------------------------------------

class Proxy:
    """CONNECT to one registry under whatever name. Of each connection that `cut` allows, so many
    bytes of what the registry says come through."""

    def __init__(self, target, most, cut):
        self.target, self.most, self.left = target, most, cut
        self.lock, self.connections = threading.Lock(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client):
        with client, socket.create_connection(self.target) as server, \
                contextlib.suppress(OSError):
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            passed = 0
            with self.lock:
                self.connections += 1
            while True:
                ready, _, _ = select.select([client, server], [], [], 30)
                if client in ready:
                    if not (data := client.recv(65536)):
                        return
                    server.sendall(data)
                if server in ready:
                    if not (data := server.recv(16384)):
                        return
                    client.sendall(data)
                    passed += len(data)
                if passed > self.most and self._may_cut():
                    return

    def _may_cut(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0


@contextlib.contextmanager
def proxied(image, transfer, work, most, cut, **faults):
    """(registry, proxy, what a pull through it is told)."""
    with hostile.running(image, certificate=make_certificate(work), **faults) as registry:
        proxy = Proxy(("127.0.0.1", registry.port), most, cut)
        transfer.environment |= {"https_proxy": proxy.url, "http_proxy": proxy.url, "no_proxy": ""}
        try:
            yield registry, proxy, {"reference": "registry.test:5000/app:latest",
                                    "insecure_registries": ["registry.test:5000"]}
        finally:
            proxy.listener.close()


def test_goes_on_behind_a_proxy_that_cuts_connections(image, transfer, work):
    with proxied(image, transfer, work, most=100_000, cut=3,
                 blobs=[hostile.ranges]) as (registry, proxy, words):
        assert transfer.pull(**words).result["status"] == "downloaded"
        assert proxy.connections >= 4
        assert any("Range" in headers for headers in registry.seen(image.layer_digests[1]))


def test_gives_up_on_a_proxy_that_cuts_everything(image, transfer, work):
    with proxied(image, transfer, work, most=20_000, cut=1000) as (_, proxy, words):
        before = store_listing(transfer.root)
        kind, line = transfer.pull(**words).error
        assert kind == "io" and f"cannot read blob '{image.layer_digests[1]}'" in line
        assert store_listing(transfer.root) == before
        assert proxy.connections <= 20
