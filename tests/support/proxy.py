# SPDX-License-Identifier: Apache-2.0
"""An HTTPS proxy on loopback."""

import contextlib
import select
import socket
import threading


class Proxy:
    """Forwards CONNECT; `seen` has the requested hosts. Passes at most `most` bytes of an answer. `leads_to`
    maps a "host:port" to its real address."""

    def __init__(self, most=None, leads_to=None):
        self.seen, self.most, self.leads_to = [], most, leads_to or {}
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self.server.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client):
        with contextlib.suppress(OSError, ValueError), client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            method, host, _ = head.split(b"\r\n")[0].decode().split()
            self.seen.append(host)
            if method != "CONNECT":
                client.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
                return
            name, _, port = self.leads_to.get(host, host).rpartition(":")
            with socket.create_connection((name, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                left = self.most
                while left is None or left > 0:
                    for ready in select.select([client, server], [], [], 10)[0]:
                        data = ready.recv(65536)
                        if not data:
                            return
                        if ready is server and left is not None:
                            data = data[:left]
                            left -= len(data)
                        (client if ready is server else server).sendall(data)
