# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on a free port of the loopback interface."""

import contextlib
import ctypes
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from support.bcrypt import bcrypt

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """For preexec_fn: ends the server when a test session is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(directory, names="IP:127.0.0.1,DNS:localhost"):
    """(certificate, key) from a throw-away authority for `names`."""
    certificate, key = directory / "ca.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=berth test registry", "-addext",
         f"subjectAltName={names}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


class Registry:
    """A running registry. `address`: host:port; `certificate`: the CA file if it has TLS. With
    `known_clients` it serves only clients that present this certificate, with its `key`."""

    def __init__(self, directory, *, tls=False, users=None, storage=None, known_clients=False):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.storage = pathlib.Path(storage or self.directory / "storage")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.users = users or {}
        self.certificate, self.key = make_certificate(self.directory) if tls else (None, None)
        self.known_clients = known_clients
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self.log = self.directory / "registry.log"
        self._process = None

    def _configuration(self):
        config = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self.storage)},
                        "delete": {"enabled": True}},
            "http": {"addr": self.address, "secret": "loopback"},
        }
        if self.certificate:
            config["http"]["tls"] = {"certificate": str(self.certificate), "key": str(self.key)}
            if self.known_clients:
                config["http"]["tls"]["clientcas"] = [str(self.certificate)]
        if self.users:
            htpasswd = self.directory / "htpasswd"
            htpasswd.write_text("".join(f"{name}:{bcrypt(word)}\n" for name, word in self.users.items()))
            config["auth"] = {"htpasswd": {"realm": "berth", "path": str(htpasswd)}}
        return json.dumps(config)  # JSON is YAML

    def start(self):
        config = self.directory / "config.yml"
        config.write_text(self._configuration())
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                ["docker-registry", "serve", config], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.directory, preexec_fn=die_with_parent)
        deadline = time.monotonic() + 60  # long enough for an emulated guest
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"docker-registry does not answer: {self.log.read_text()}")
            time.sleep(0.02)
        return self

    def _answers(self):
        try:
            self.request("GET", "/v2/")
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError:
            return False
        return True

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def request(self, method, path, data=None, headers=None):
        """Sends an HTTP request to this registry; `path` may be a whole URL. Returns (status, headers,
        body)."""
        url = path if path.startswith("http") else self.url + path
        request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
        if self.users:
            name, password = next(iter(self.users.items()))
            handler = urllib.request.HTTPPasswordMgrWithPriorAuth()
            handler.add_password(None, self.url, name, password, is_authenticated=True)
            auth = [urllib.request.HTTPBasicAuthHandler(handler)]
        else:
            auth = []
        if self.certificate:
            context = ssl.create_default_context(cafile=self.certificate)
            if self.known_clients:
                context.load_cert_chain(self.certificate, self.key)
            auth.append(urllib.request.HTTPSHandler(context=context))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *auth)
        with opener.open(request, timeout=60) as response:
            return response.status, response.headers, response.read()

    def has_blob(self, name, digest):
        try:
            self.request("HEAD", f"/v2/{name}/blobs/{digest}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return False
            raise
        return True

    def put_blob(self, name, digest, data):
        if self.has_blob(name, digest):
            return
        _, headers, _ = self.request("POST", f"/v2/{name}/blobs/uploads/", data=b"")
        location = headers["Location"]
        mark = "&" if "?" in location else "?"
        self.request("PUT", f"{location}{mark}digest={digest}", data=data,
                     headers={"Content-Type": "application/octet-stream"})

    def put_manifest(self, name, tag, media_type, data):
        """Stores a manifest or index and returns the digest that the registry gives it."""
        _, headers, _ = self.request("PUT", f"/v2/{name}/manifests/{tag}", data=data,
                                     headers={"Content-Type": media_type})
        return headers["Docker-Content-Digest"]

    def manifest(self, name, tag):
        """(digest, bytes) of the manifest with this name."""
        accept = ", ".join(["application/vnd.oci.image.index.v1+json",
                            "application/vnd.oci.image.manifest.v1+json",
                            "application/vnd.docker.distribution.manifest.list.v2+json",
                            "application/vnd.docker.distribution.manifest.v2+json"])
        _, headers, body = self.request("GET", f"/v2/{name}/manifests/{tag}",
                                        headers={"Accept": accept})
        return headers["Docker-Content-Digest"], body


@contextlib.contextmanager
def running(directory, **options):
    registry = Registry(directory, **options)
    try:
        yield registry.start()
    finally:
        registry.remove()
