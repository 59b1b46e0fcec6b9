# SPDX-License-Identifier: Apache-2.0
"""`berth hub` on free ports of the loopback interface, and requests to it."""

import base64
import contextlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

from support.bcrypt import bcrypt
from support.registry import die_with_parent, make_certificate

EVERY_TYPE = ", ".join(["application/vnd.oci.image.index.v1+json",
                        "application/vnd.oci.image.manifest.v1+json",
                        "application/vnd.docker.distribution.manifest.list.v2+json",
                        "application/vnd.docker.distribution.manifest.v2+json"])


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def htpasswd(**users):
    """The text of a file with these names and passwords."""
    return "".join(f"{name}:{bcrypt(word)}\n" for name, word in users.items())


def toml(value):
    """A TOML document of scalars, lists, tables and lists of tables."""
    lines, tables = [], []
    for key, one in value.items():
        if isinstance(one, dict):
            tables.append(f"[{key}]\n{toml(one)}")
        elif isinstance(one, list) and one and isinstance(one[0], dict):
            tables.extend(f"[[{key}]]\n{toml(entry)}" for entry in one)
        else:
            lines.append(f"{key} = {json.dumps(one)}")
    return "\n".join(lines + tables) + "\n"


class Hub:
    """A running hub. `address`: host:port; `certificate`: the CA file if it has TLS."""

    def __init__(self, program, directory, config, *, tls=False, users=None, env=None, prefix=()):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        config = {"listen": ["127.0.0.1:0"], **config}
        self.certificate = None
        if tls:
            self.certificate, key = make_certificate(self.directory)
            config.update({"tls-certificate": str(self.certificate), "tls-key": str(key)})
        if users:
            (self.directory / "htpasswd").write_text(htpasswd(**users))
            config["htpasswd"] = str(self.directory / "htpasswd")
        self.config = self.directory / "hub.toml"
        self.config.write_text(toml(config))
        self.settings = config
        self.out, self.err = self.directory / "out", self.directory / "err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [*prefix, program, "hub", "--config", self.config], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, cwd=self.directory, env=env, preexec_fn=die_with_parent)
        self.url = self._await_url()
        self.address = self.url.split("//")[1]
        self.port = int(self.address.rpartition(":")[2])

    def _await_url(self):
        deadline = time.monotonic() + 20
        while not (found := re.search(r"listening at (\S+)\n", self.out.read_text())):
            ended = self.process.poll() is not None or time.monotonic() > deadline
            assert not ended, self.err.read_text()
            time.sleep(0.02)
        return found.group(1)

    def lines(self):
        """The log lines of requests."""
        return self.out.read_text().splitlines()[1:]

    def await_line(self, *words):
        """The first line with all `words`."""
        deadline = time.monotonic() + 10
        while True:
            for line in self.lines():
                if all(word in line for word in words):
                    return line
            assert time.monotonic() < deadline, (words, self.lines(), self.err.read_text())
            time.sleep(0.02)

    def peak_memory(self):
        """Its maximum resident memory, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024

    def reload(self, config=None, *, told="the configuration was read again"):
        """Sends SIGHUP, with another hub.toml if given; waits until `told` is logged again."""
        def said():
            return (self.out.read_text() + self.err.read_text()).count(told)

        if config is not None:
            self.config.write_text(config if isinstance(config, str) else toml(config))
        before, deadline = said(), time.monotonic() + 10
        self.process.send_signal(signal.SIGHUP)
        while said() == before:
            assert time.monotonic() < deadline, (self.lines(), self.err.read_text())
            time.sleep(0.02)

    def connect(self):
        if not self.certificate:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        context = ssl.create_default_context(cafile=self.certificate)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)

    def request(self, path, *, method="GET", user=None, node=None, headers=None, body=None):
        """(status, headers, body); for a refusal the body is its first error."""
        sent = {"Accept": EVERY_TYPE, **(headers or {})}
        if user:
            sent["Authorization"] = basic(*user)
        if node:
            sent["Berth-Node"] = node
        connection = self.connect()
        with contextlib.closing(connection):
            connection.request(method, path, headers=sent, body=body)
            response = connection.getresponse()
            data = response.read()
        if response.status >= 400 and data:
            data = json.loads(data)["errors"][0]
        return response.status, response.headers, data

    def digest(self, name, tag="latest", **who):
        """The digest that a manifest's name has for this caller."""
        status, headers, body = self.request(f"/v2/{name}/manifests/{tag}", **who)
        assert status == 200, body
        return headers["Docker-Content-Digest"]

    def raw(self, data, *, then=b"", wait=0.0):
        """The complete answer to these bytes, until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(data)
            if then:
                time.sleep(wait)
                with contextlib.suppress(OSError):
                    client.sendall(then)
            out = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(65536):
                    out += piece
            return out

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        return self.process.returncode
