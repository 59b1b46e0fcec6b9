# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node on loopback: etcd, the API server, the scheduler, the controller manager and a node
(kube_node.py), with certificates made by openssl.

    with kube_node.own_directories(), kube_cluster.Cluster(place, parts, {"berth": program}).running() as cluster:
        cluster.api.create(kube_node.pod("p", "exit 3"))

`cluster.api` is the administrator's client (kube_api.py), `cluster.node` the node, `cluster.kubectl(…)` the program.
`cluster.times` has the seconds that each part took to start.
"""

import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import time

from support import kube_api, kube_node
from support.kube_node import ADDRESS, NAME, Daemon, Node, http_status
from support.waiting import wait_until

PORT, ETCD_PORT = 6443, 2379
SERVER = f"https://{ADDRESS}:{PORT}"
SERVICES = "10.96.0.0/24"
ALTERNATIVES = f"IP:{ADDRESS},IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc"
# {file: (user, group)} of clients with a certificate.
CLIENTS = {"kubelet": (f"system:node:{NAME}", "system:nodes"), "scheduler": ("system:kube-scheduler", None),
           "controller-manager": ("system:kube-controller-manager", None),
           "apiserver-to-kubelet": ("berth-tests", "system:masters")}


class Authority:
    """Keys and certificates in a directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.certificate = self.directory / "ca.crt"

    def _openssl(self, *words, **options):
        return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **options).stdout

    def found(self):
        self._openssl("req", "-x509", *self._key("ca"), "-days", "30", "-subj", "/CN=berth-tests",
                      "-out", self.certificate)

    def _key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                self.directory / f"{name}.key"]

    def issue(self, name, user, group=None, alternatives=None):
        """NAME.crt and NAME.key for this user."""
        subject = f"{f'/O={group}' if group else ''}/CN={user}"
        request = self._openssl("req", "-new", *self._key(name), "-subj", subject)
        extensions = self.directory / f"{name}.ext"
        extensions.write_text("extendedKeyUsage=serverAuth,clientAuth\n"
                              + (f"subjectAltName={alternatives}\n" if alternatives else ""))
        self._openssl("x509", "-req", "-CA", self.certificate, "-CAkey", self.directory / "ca.key", "-CAcreateserial",
                      "-days", "30", "-extfile", extensions, "-out", self.directory / f"{name}.crt", input=request)


class Cluster:
    """`apiserver`, `kubelet`: more words for these programs."""

    def __init__(self, directory, parts, runtimes, apiserver=(), kubelet=()):
        self.directory, self.parts = pathlib.Path(directory), parts
        self.token = secrets.token_hex(16)
        self.authority = Authority(self.directory)
        self.ca, self.times = self.authority.certificate, {}
        self.more = apiserver
        self.node = Node(self.directory, parts, runtimes, kubeconfig=self.directory / "kubelet.conf", kubelet=kubelet)
        self.etcd = Daemon("etcd", self._etcd_words(), self.directory)
        self.apiserver = Daemon("kube-apiserver", self._apiserver_words(), self.directory)
        self.scheduler = Daemon("kube-scheduler", self._client_words("scheduler"), self.directory)
        self.controller_manager = Daemon("kube-controller-manager", [
            *self._client_words("controller-manager"), f"--root-ca-file={self.ca}", "--node-monitor-period=1s",
            "--use-service-account-credentials", f"--flex-volume-plugin-dir={self.directory}/volume-plugins",
            f"--service-account-private-key-file={self.directory}/accounts.key"], self.directory)
        self.daemons = [self.etcd, self.apiserver, self.scheduler, self.controller_manager, *self.node.daemons]
        self.api = None

    # -- configuration

    def _etcd_words(self):
        return ["etcd", "--name=tests", f"--data-dir={self.directory}/etcd", "--log-level=warn", "--logger=zap",
                f"--listen-client-urls=http://127.0.0.1:{ETCD_PORT}",
                f"--advertise-client-urls=http://127.0.0.1:{ETCD_PORT}", "--listen-peer-urls=http://127.0.0.1:2380"]

    def _apiserver_words(self):
        place = self.directory
        return [self.parts.program("kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
                "--bind-address=0.0.0.0", f"--advertise-address={ADDRESS}", f"--secure-port={PORT}",
                f"--tls-cert-file={place}/apiserver.crt", f"--tls-private-key-file={place}/apiserver.key",
                f"--client-ca-file={self.ca}", f"--token-auth-file={place}/tokens.csv", "--allow-privileged=true",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                f"--service-cluster-ip-range={SERVICES}", f"--cert-dir={place}/apiserver",
                f"--kubelet-client-certificate={place}/apiserver-to-kubelet.crt",
                f"--kubelet-client-key={place}/apiserver-to-kubelet.key",
                "--kubelet-preferred-address-types=InternalIP",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={place}/accounts.crt",
                f"--service-account-signing-key-file={place}/accounts.key", *self.more]

    def _client_words(self, name):
        return [self.parts.program(f"kube-{name}"), f"--kubeconfig={self.directory}/{name}.conf",
                "--leader-elect=false", "--bind-address=127.0.0.1", f"--cert-dir={self.directory}/{name}"]

    def kubeconfig(self, name, user):
        """The file NAME.conf for a user {"token": …} or {"client-certificate": …, "client-key": …}."""
        path = self.directory / f"{name}.conf"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": {"server": SERVER, "certificate-authority": str(self.ca)}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}]}))
        return path

    def _write_configuration(self):
        self.authority.found()
        self.authority.issue("apiserver", "kube-apiserver", alternatives=ALTERNATIVES)
        self.authority.issue("accounts", "accounts")  # its key signs the tokens of service accounts
        for name, (user, group) in CLIENTS.items():
            self.authority.issue(name, user, group)
            self.kubeconfig(name, {"client-certificate": f"{self.directory}/{name}.crt",
                                   "client-key": f"{self.directory}/{name}.key"})
        (self.directory / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        self.kubeconfig("admin", {"token": self.token})

    # -- start and end

    @contextlib.contextmanager
    def running(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._timed("certificates"):
            self._write_configuration()
        with contextlib.ExitStack() as stack:
            for daemon in (self.etcd, self.apiserver, self.scheduler, self.controller_manager):
                stack.callback(daemon.stop)
            self.etcd.start(lambda: http_status(ETCD_PORT, "/health") == 200)
            self.api = kube_api.Api(SERVER, self.ca, token=self.token)
            self.apiserver.start(self.is_ready)
            # These wait for each other.
            self.scheduler.start()
            self.controller_manager.start()
            stack.enter_context(self.node.running())
            with self._timed("node is ready"):
                self.api.wait("Node", NAME, self.is_node_ready)
            with self._timed("service account"):
                # Until 1.24 a pod needs the secret with the account's token.
                self.api.wait("ServiceAccount", "default", lambda one: one.get("secrets") or self.parts.minor >= 24)
            self.times |= {daemon.name: daemon.took for daemon in self.daemons}
            yield self

    @contextlib.contextmanager
    def _timed(self, what):
        started = time.monotonic()
        yield
        self.times[what] = time.monotonic() - started

    def is_ready(self):
        try:
            return self.api.text("GET", "/readyz") == "ok"
        except (OSError, kube_api.Refused):
            return False

    @staticmethod
    def is_node_ready(node):
        """The kubelet says so, and the controller manager permits pods."""
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", []))
        return ready and not node["spec"].get("taints")

    # -- clients

    def kubectl(self, *words, **options):
        """The standard output of kubectl as the administrator. Errors: CalledProcessError."""
        return subprocess.run([self.parts.program("kubectl"), f"--kubeconfig={self.directory}/admin.conf", *words],
                              check=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={**os.environ, "HOME": str(self.directory)}, **options).stdout

    def service_account(self, name, *rules, namespace="default"):
        """The token of a new service account that may do this in the whole cluster. A rule: {"apiGroups": […],
        "resources": […], "verbs": […]}."""
        self.api.create({"apiVersion": "v1", "kind": "ServiceAccount",
                         "metadata": {"name": name, "namespace": namespace}})
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
        self.api.create({**role, "kind": "ClusterRole", "rules": list(rules)})
        self.api.create({**role, "kind": "ClusterRoleBinding",
                         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                         "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600}}
        path = f"{self.api.path('ServiceAccount', name, namespace)}/token"
        return self.api.call("POST", path, request)["status"]["token"]

    # -- pods

    def run(self, made, timeout=60):
        """Creates a pod, waits for its end, and returns (the exit status of 'main', its log)."""
        name = made["metadata"]["name"]
        self.api.create(made)
        found = self.wait_ended(name, timeout)
        return kube_node.exit_codes(found).get("main"), self.api.log(name)

    def wait_running(self, name, timeout=60):
        return self.api.wait("Pod", name, kube_node.is_running, timeout)

    def wait_ended(self, name, timeout=60):
        return self.api.wait("Pod", name, lambda one: one["status"]["phase"] in ("Succeeded", "Failed"), timeout)

    def remove(self, name, timeout=60):
        """Deletes a pod and waits until the API server has forgotten it."""
        self.api.delete("Pod", name)
        self.api.wait_gone("Pod", name, timeout)

    def wait_capacity(self, resource, count, timeout=30):
        """Until the node has so many of a resource to give."""
        def has(node):
            return node["status"].get("allocatable", {}).get(resource) == str(count)
        self.api.wait("Node", NAME, has, timeout)

    def remove_pods(self):
        for one in self.api.list("Pod"):
            with contextlib.suppress(kube_api.Refused):
                self.api.delete("Pod", one["metadata"]["name"], gracePeriodSeconds=0)
        wait_until(lambda: not self.api.list("Pod"), 60)
