# SPDX-License-Identifier: Apache-2.0
"""TLS with a shared key, as the nodes of a job use among each other: with openssl's client, since Python 3.11
does not support it."""

import http.client
import socket
import subprocess

from support.registry import die_with_parent


def client(address, key, *words):
    """The command that copies its standard input to `address` and the answer to its output; key None: without
    a key."""
    psk = ["-psk_identity", "berth", "-psk", key.encode().hex()] if key else []
    return ["openssl", "s_client", "-quiet", "-tls1_3", *psk, *words, "-connect", address]


class Connection(http.client.HTTPConnection):
    """HTTP over such a connection. A client that fails the handshake gets nothing: RemoteDisconnected."""

    def __init__(self, address, key, **options):
        super().__init__(address, **options)
        self._key = key

    def connect(self):
        self.sock, far = socket.socketpair()
        self.sock.settimeout(self.timeout)
        with far:
            self._client = subprocess.Popen(client(f"{self.host}:{self.port}", self._key), stdin=far,
                                            stdout=far, stderr=subprocess.DEVNULL,
                                            preexec_fn=die_with_parent)

    def close(self):
        super().close()
        if self._client:
            self._client.kill()
            self._client.wait()
            self._client = None

    _client = None
