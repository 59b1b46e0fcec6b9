# SPDX-License-Identifier: Apache-2.0
"""A client of Kubernetes' API, in JSON over HTTPS.

    api = kube_api.Api("https://192.0.2.2:6443", ca="ca.crt", token="…")
    api.create(kube_node.pod("p", "exit 3"))
    found = api.wait("Pod", "p", lambda one: one["status"]["phase"] == "Failed")
    api.delete("Pod", "p")

A kind outside of v1 is named with its version: api.get("node.k8s.io/v1 RuntimeClass", "berth").
"""

import contextlib
import functools
import http.client
import json
import ssl
import urllib.parse

from support.waiting import wait_until


class Refused(Exception):
    """What the API server said instead: `status` is HTTP's."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class Api:
    """`certificate`: (its file, its key's file) of a client that has no token."""

    def __init__(self, server, ca, token=None, certificate=None, namespace="default"):
        self.server, self.token, self.namespace = urllib.parse.urlsplit(server), token, namespace
        self.context = ssl.create_default_context(cafile=str(ca))
        if certificate:
            self.context.load_cert_chain(*map(str, certificate))
        self.resources = functools.cache(self._resources)

    # -- calls

    def _open(self, method, path, body=None, kind="application/json", timeout=30):
        connection = http.client.HTTPSConnection(self.server.hostname, self.server.port, context=self.context,
                                                 timeout=timeout)
        headers = {"Accept": "application/json, */*"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = kind
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        return connection, connection.getresponse()

    def text(self, method, path, body=None, kind="application/json"):
        """The body of the answer. Errors: Refused, OSError."""
        connection, answer = self._open(method, path, body, kind)
        with contextlib.closing(connection):
            told = answer.read().decode()
        if answer.status >= 300:
            with contextlib.suppress(ValueError):
                told = json.loads(told)["message"]
            raise Refused(answer.status, told)
        return told

    def call(self, method, path, body=None, kind="application/json"):
        return json.loads(self.text(method, path, body, kind))

    # -- paths

    def _resources(self, version):
        """{kind: (plural, whether it is in a namespace)}."""
        told = self.call("GET", f"{'/api' if '/' not in version else '/apis'}/{version}")
        return {one["kind"]: (one["name"], one["namespaced"]) for one in told["resources"] if "/" not in one["name"]}

    def path(self, kind, name=None, namespace=None):
        version, _, kind = kind.rpartition(" ")
        version = version or "v1"
        plural, namespaced = self.resources(version)[kind]
        words = ["/api" if "/" not in version else "/apis", version]
        words += ["namespaces", namespace or self.namespace] if namespaced else []
        return "/".join([*words, plural, *([name] if name else [])])

    # -- objects

    def create(self, made):
        return self.call("POST", self._path_for(made), made)

    def apply(self, made, manager="berth-tests"):
        """Server-side apply: creates the object, or changes it."""
        return self.call("PATCH", f"{self._path_for(made, made['metadata']['name'])}?fieldManager={manager}&force=true",
                         made, "application/apply-patch+yaml")

    def _path_for(self, made, name=None):
        return self.path(f"{made['apiVersion']} {made['kind']}", name, made["metadata"].get("namespace"))

    def get(self, kind, name, namespace=None):
        """The object; None if there is none."""
        try:
            return self.call("GET", self.path(kind, name, namespace))
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind, namespace=None, query=""):
        return self.call("GET", self.path(kind, None, namespace) + query)["items"]

    def patch(self, kind, name, change, namespace=None, part=""):
        """A JSON merge patch of the object, or of its `part` "/status"."""
        return self.call("PATCH", self.path(kind, name, namespace) + part, change, "application/merge-patch+json")

    def delete(self, kind, name, namespace=None, **options):
        return self.call("DELETE", self.path(kind, name, namespace),
                         {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    def log(self, name, of="main", namespace=None):
        """What the API server gets of a container's log from the kubelet."""
        return self.text("GET", f"{self.path('Pod', name, namespace)}/log?container={of}")

    def events(self, name, namespace=None):
        """['REASON: MESSAGE'] about the object of this name."""
        found = self.list("Event", namespace, f"?fieldSelector=involvedObject.name={name}")
        return [f"{one['reason']}: {one['message']}" for one in found]

    def watch(self, kind, namespace=None, timeout=30):
        """The events of a watch, {"type": …, "object": …}, for so many seconds."""
        connection, answer = self._open("GET", f"{self.path(kind, None, namespace)}?watch=1&timeoutSeconds={timeout}",
                                        timeout=timeout + 10)
        with contextlib.closing(connection):
            for line in answer:
                yield json.loads(line)

    # -- waiting

    def wait(self, kind, name, condition, timeout=60, namespace=None):
        """The object once it is there and condition(object) is true."""
        last = [None]

        def look():
            last[0] = self.get(kind, name, namespace)
            return last[0] if last[0] and condition(last[0]) else None
        return wait_until(look, timeout, 0.1, lambda: f"{kind} {name}: {json.dumps((last[0] or {}).get('status'))}\n"
                          + "\n".join(self.events(name, namespace)))

    def wait_gone(self, kind, name, timeout=60, namespace=None):
        wait_until(lambda: self.get(kind, name, namespace) is None, timeout, 0.1,
                   lambda: f"{kind} {name} is still there")
