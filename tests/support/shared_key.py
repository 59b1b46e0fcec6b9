# SPDX-License-Identifier: Apache-2.0
"""TLS with a shared key, as the nodes of a job speak it with each other: by openssl's own client,
since Python 3.11 has none of it."""

import http.client
import socket
import subprocess

from support.registry import die_with_parent


def client(address, key, *words):
    """The command that carries its standard input to `address` and the answer to its output; key
    None: without one."""
    psk = ["-psk_identity", "berth", "-psk", key.encode().hex()] if key else []
    return ["openssl", "s_client", "-quiet", "-tls1_3", *psk, *words, "-connect", address]


class Connection(http.client.HTTPConnection):
    """HTTP inside of it. Who is refused in the handshake is sent nothing: RemoteDisconnected."""

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
