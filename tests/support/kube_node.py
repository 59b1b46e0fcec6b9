# SPDX-License-Identifier: Apache-2.0
"""A node of Kubernetes: containerd with berth-runtime, runc beside it, and the real kubelet. Alone it runs static
pods; with a kubeconfig it is a node of a cluster (kube_cluster.py). It needs a room (room.py), of whose network it has
the address.

    with kube_node.own_directories(), kube_node.Node(place, parts, {"berth": program}).running() as node:
        node.put(kube_node.pod("p", "echo hello"))
        node.wait_ended("p")
        assert node.log("p") == "hello\\n"

Everything runs as root. What a daemon printed is in PLACE/NAME.log; node.daemons has them all.
"""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import time
import uuid

from support import callers, images, mount_view, processes
from support.registry import die_with_parent
from support.waiting import wait_until

ADDRESS = "192.0.2.2"  # of a room
NAME = "node1"
IMAGE = "localhost/busybox:latest"
PAUSE = "localhost/pause:latest"
KUBELET = pathlib.Path("/var/lib/kubelet")  # also where device plugins must be
LOGS = pathlib.Path("/var/log/pods")
STATES = pathlib.Path("/run/containerd/runc/k8s.io")  # what the OCI runtime keeps
RUNC = "/usr/sbin/runc"
# What the kubelet wants: its pkg/util/sysctl/sysctl.go.
SETTINGS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
            "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
OVERLAID = ("/var/lib", "/var/log")
PATIENCE = 60


# ---- the machine --------------------------------------------------------------------------------

def _mount(*words):
    subprocess.run(["mount", *words], check=True, capture_output=True)


@contextlib.contextmanager
def own_directories():
    """/var/lib, /var/log, and cgroup hierarchies that are not mounted, for this process alone: the kubelet has fixed
    paths. It would also change settings of the kernel, which it finds changed here. Only in a room, which has its own
    mounts."""
    if b"room.py" not in pathlib.Path("/proc/1/cmdline").read_bytes():
        raise RuntimeError("not in a room; try: tests/support/room.py COMMAND")
    made = []
    try:
        for place in OVERLAID:
            upper = pathlib.Path("/run/berth-kube", place.lstrip("/"))
            for name in ("upper", "work"):
                (upper / name).mkdir(parents=True, exist_ok=True)
            _mount("-t", "overlay", "overlay", place, "-o",
                   f"lowerdir={place},upperdir={upper}/upper,workdir={upper}/work")
            made.append(place)
        for name, value in SETTINGS.items():
            place, shown = pathlib.Path("/proc/sys", name), pathlib.Path("/run/berth-kube", name.replace("/", "."))
            shown.write_text(f"{value}\n")
            _mount("--bind", shown, place)
            made.append(place)
        for names in mount_view.unmounted_hierarchies():
            place = pathlib.Path("/sys/fs/cgroup", names)
            place.mkdir(exist_ok=True)
            _mount("-t", "cgroup", "-o", names, names, place)
            made.append(place)
        yield
    finally:
        for place in reversed(made):
            subprocess.run(["umount", "--recursive", "--lazy", place], check=False)
            if pathlib.Path(place).parent.name == "cgroup":
                place.rmdir()
        subprocess.run(["rm", "-rf", "/run/berth-kube"], check=False)


def _hierarchies():
    """The cgroup v1 hierarchies, or the v2 one."""
    top = pathlib.Path("/sys/fs/cgroup")
    return [top] if (top / "cgroup.controllers").exists() else [path for path in top.iterdir() if path.is_dir()]


def _make_cgroup(name):
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / file).exists():
                (hierarchy / name / file).write_text((hierarchy / file).read_text())


# ---- daemons ------------------------------------------------------------------------------------

class Daemon:
    """A program that runs until it is stopped, and its log, which goes on when it is started again."""

    def __init__(self, name, argv, directory, **variables):
        self.name, self.argv, self.directory = name, [str(word) for word in argv], pathlib.Path(directory)
        self.environment = {**os.environ, **variables}
        self.process, self.took = None, None

    @property
    def log(self):
        return self.directory / f"{self.name}.log"

    def start(self, is_ready=lambda: True):
        """Starts it, and waits for is_ready()."""
        started = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.directory, env=self.environment, preexec_fn=die_with_parent)
        wait_until(lambda: self.process.poll() is not None or is_ready(), PATIENCE, 0.05,
                   lambda: f"{self.name} is not ready:\n{self.tail()}")
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"
        self.took = time.monotonic() - started

    def tail(self, lines=40):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def stop(self):
        if self.process:
            processes.end(self.process)

    def kill(self):
        self.process.kill()
        self.process.wait()


def http_status(port, path="/healthz", host="127.0.0.1"):
    """The status of a GET with plain HTTP; None if nothing listens there."""
    try:
        return _get(port, path, host)[0]
    except (OSError, http.client.HTTPException):
        return None


def _get(port, path, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _identity(path):
    """What differs between a file and another one of the same name; None if there is none."""
    try:
        found = path.lstat()
        return found.st_ino, found.st_ctime_ns
    except FileNotFoundError:
        return None


# ---- pods ---------------------------------------------------------------------------------------

def container(script, name="main", image=IMAGE, limits=None, **more):
    """A container that runs `script` with busybox's shell."""
    return {"name": name, "image": image, "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", script],
            **({"resources": {"limits": limits}} if limits else {}), **more}


def pod(name, script=None, *, containers=None, limits=None, annotations=None, labels=None, **spec):
    """A pod with the container 'main', or with these containers, that is not started again."""
    metadata = {"name": name, **({"annotations": annotations} if annotations else {}),
                **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": containers or [container(script, limits=limits)], "restartPolicy": "Never",
                     "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                     "enableServiceLinks": False, **spec}}


def exit_codes(found):
    """{container: status} of those containers of a pod that have ended."""
    return {one["name"]: one["state"]["terminated"]["exitCode"]
            for one in found.get("status", {}).get("containerStatuses", []) if "terminated" in one.get("state", {})}


def is_running(found):
    """Whether each container of a pod runs."""
    statuses = found.get("status", {}).get("containerStatuses", [])
    return bool(statuses) and all("running" in one.get("state", {}) for one in statuses)


# ---- the node -----------------------------------------------------------------------------------

class Node:
    """`runtimes`: {handler: program}, to which 'runc' is added; the first is the one of pods that name none."""

    def __init__(self, directory, parts, runtimes, kubeconfig=None, kubelet=()):
        self.directory, self.parts = pathlib.Path(directory), parts
        self.runtimes = {**runtimes, "runc": RUNC}
        self.kubeconfig, self.more = kubeconfig, kubelet
        self.manifests = self.directory / "manifests"
        self.socket = self.directory / "containerd.sock"
        self.cgroup = f"berth-kube-{uuid.uuid4().hex[:8]}"
        self.containerd = Daemon("containerd", ["containerd", "--config", self.directory / "containerd.toml"],
                                 self.directory)
        self.kubelet = Daemon("kubelet", self._kubelet_words(), self.directory, AWS_EC2_METADATA_DISABLED="true")
        self.daemons = [self.containerd, self.kubelet]

    # -- configuration

    def _containerd_toml(self):
        lines = [f"""\
version = 2
root = "{self.directory}/root"
state = "{self.directory}/state"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{self.directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# A room may not have CAP_SYS_RESOURCE.
restrict_oom_score_adj = true
enable_cdi = true
cdi_spec_dirs = ["/etc/cdi", "/run/cdi"]
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{self.directory}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "{next(iter(self.runtimes))}"
"""]
        for name, program in self.runtimes.items():
            table = f'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}'
            lines.append(f'[{table}]\nruntime_type = "io.containerd.runc.v2"\n'
                         'container_annotations = ["cdi.k8s.io/*", "berth.dev/*"]\npod_annotations = ["berth.dev/*"]\n'
                         f'[{table}.options]\nBinaryName = "{program}"\n')
        return "".join(lines)

    def _cni(self):
        """A bridge without address translation: pods reach the node and each other."""
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "bridge", "bridge": "cni0", "isGateway": True,
             "ipam": {"type": "host-local", "dataDir": str(self.directory / "addresses"),
                      "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}

    def _kubelet_configuration(self):
        nothing = "0%"
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup}", "failSwapOn": False,
                "staticPodPath": str(self.manifests), "fileCheckFrequency": "1s",
                "volumePluginDir": str(self.directory / "volume-plugins"),
                "address": "0.0.0.0", "readOnlyPort": 10255, "healthzPort": 10248,
                "authentication": {"anonymous": {"enabled": not self.kubeconfig},
                                   "webhook": {"enabled": bool(self.kubeconfig)},
                                   "x509": {"clientCAFile": str(self.directory / "ca.crt") if self.kubeconfig else ""}},
                "authorization": {"mode": "Webhook" if self.kubeconfig else "AlwaysAllow"},
                "nodeStatusUpdateFrequency": "1s", "syncFrequency": "2s", "registerNode": True,
                "kubeAPIQPS": 50, "kubeAPIBurst": 100,
                # The machine's disk and memory are not this node's.
                "evictionHard": {"memory.available": nothing, "nodefs.available": nothing, "imagefs.available": nothing,
                                 "nodefs.inodesFree": nothing},
                "imageGCHighThresholdPercent": 100, "maxPods": 250, "podPidsLimit": -1}

    def _kubelet_words(self):
        words = [self.parts.program("kubelet"), f"--config={self.directory}/kubelet.json", f"--root-dir={KUBELET}",
                 *(["--container-runtime=remote"] if self.parts.minor < 27 else []),
                 f"--container-runtime-endpoint=unix://{self.socket}",
                 f"--hostname-override={NAME}", f"--node-ip={ADDRESS}", f"--cert-dir={self.directory}/pki", "--v=2"]
        return [*words, *([f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []), *self.more]

    def _write_configuration(self):
        for name in ("manifests", "cni"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        (self.directory / "containerd.toml").write_text(self._containerd_toml())
        (self.directory / "cni/pods.conflist").write_text(json.dumps(self._cni()))
        (self.directory / "kubelet.json").write_text(json.dumps(self._kubelet_configuration()))

    # -- start and end

    @contextlib.contextmanager
    def running(self):
        self._write_configuration()
        _make_cgroup(self.cgroup)
        try:
            self.start_containerd()
            self.start_kubelet()
            yield self
        finally:
            self.stop()

    def start_containerd(self):
        self.containerd.start(self.socket.exists)
        pause = images.build([images.layer([images.file("pause", self.parts.program("pause").read_bytes(), 0o755)])],
                             {"Cmd": ["/pause"], "Entrypoint": None})
        for name, image in ((IMAGE, images.busybox()), (PAUSE, pause)):
            self.add_image(name, image)

    def add_image(self, name, image):
        """An Image of images.py under the reference `name`."""
        path = self.directory / "image.tar"
        path.write_bytes(callers.layout_archive(image, name=name))
        self.ctr("images", "import", path)

    def start_kubelet(self):
        """Until plugins can register: the kubelet has then removed the sockets of an earlier one."""
        before = _identity(KUBELET / "device-plugins/kubelet.sock")
        self.kubelet.start(lambda: http_status(10248) == 200
                           and _identity(KUBELET / "device-plugins/kubelet.sock") not in (None, before))

    def restart_kubelet(self):
        """As an update does it: containers go on. It removes the sockets of device plugins."""
        self.kubelet.stop()
        self.start_kubelet()

    def stop(self):
        self.kubelet.stop()
        if self.containerd.process and self.containerd.process.poll() is None:
            for name in self.containers():
                with contextlib.suppress(subprocess.CalledProcessError):
                    self.ctr("tasks", "kill", "--signal", "9", "--all", name)
            with contextlib.suppress(AssertionError):
                wait_until(lambda: all(state != "RUNNING" for _, state in self.tasks().values()), 10)
        self.containerd.stop()
        processes.kill_each(processes.matching(re.escape(str(self.socket)).encode()))  # the shims
        wait_until(lambda: not processes.matching(re.escape(str(self.socket)).encode()), 10)
        self._unmount()
        callers.remove_cgroups(self.cgroup)
        subprocess.run(["ip", "link", "delete", "cni0"], check=False, capture_output=True)

    def _unmount(self):
        """What the kubelet, containerd and CNI mounted."""
        ours = (KUBELET, self.directory, pathlib.Path("/run/netns"), pathlib.Path("/run/containerd"))
        lines = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        for place in reversed([line.split()[4] for line in lines]):
            if any(pathlib.Path(place).is_relative_to(one) and place != str(one) for one in ours):
                subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", *KUBELET.glob("*"), *LOGS.glob("*"), "/run/netns", "/run/containerd"], check=False)

    # -- what is there

    def ctr(self, *words):
        done = subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *map(str, words)], check=False,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
        return done.stdout

    def containers(self):
        """The ids of all containers, those of sandboxes too."""
        return self.ctr("containers", "list", "--quiet").split()

    def runtime_of(self, name):
        """The OCI runtime that containerd calls for a container."""
        options = json.loads(self.ctr("containers", "info", name))["Runtime"]["Options"]["value"]
        return next(program for program in self.runtimes.values() if str(program).encode() in base64.b64decode(options))

    def tasks(self, uid=None):
        """{id of a container: (pid, "RUNNING")}, of a pod or of all."""
        found = {name: (int(pid), state) for name, pid, state in
                 map(str.split, self.ctr("tasks", "list").splitlines()[1:])}
        return {name: found[name] for name in self.containers_of(uid) if name in found} if uid else found

    def pods(self):
        """{name: pod} as the kubelet tells; a static pod has the node's name in its own."""
        status, told = _get(10255, "/pods")
        assert status == 200, told
        return {one["metadata"]["name"]: one for one in json.loads(told).get("items") or []}

    def devices(self):
        """{resource: {id of a device: the pod's uid that has it, or None}} as the kubelet's checkpoint has them."""
        try:
            data = json.loads((KUBELET / "device-plugins/kubelet_internal_checkpoint").read_text())["Data"]
        except OSError:
            return {}
        found = {name: dict.fromkeys(ids or []) for name, ids in (data["RegisteredDevices"] or {}).items()}
        for entry in data["PodDeviceEntries"] or []:  # also of a pod that has just ended
            ids = entry["DeviceIDs"]  # since 1.20 by NUMA node
            for one in ids if isinstance(ids, list) else [one for some in ids.values() for one in some]:
                if one in found.get(entry["ResourceName"], {}):
                    found[entry["ResourceName"]][one] = entry["PodUID"]
        return found

    def wait_devices(self, resource, count, timeout=PATIENCE):
        """Until the kubelet knows so many healthy devices of a plugin: a static pod before runs without."""
        wait_until(lambda: len(self.devices().get(resource, {})) == count, timeout, 0.05,
                   lambda: f"{resource}: {self.devices()}\n{self.kubelet.tail()}")

    # -- static pods

    def put(self, manifest):
        """Adds a static pod, or changes it."""
        staged = self.directory / "staged.json"  # the kubelet would read a file while it is being written
        staged.write_text(json.dumps(manifest))
        staged.rename(self.manifests / f"{manifest['metadata']['name']}.json")

    def remove(self, name):
        (self.manifests / f"{name}.json").unlink()

    def get(self, name):
        """The static pod of this name, or None."""
        return self.pods().get(f"{name}-{NAME}")

    def wait(self, name, condition, timeout=PATIENCE):
        """The static pod once condition(pod) is true."""
        def look():
            found = self.get(name)
            return found if found and condition(found) else None
        return wait_until(look, timeout, 0.1, lambda: f"{name}: {self.describe(name)}\n{self.kubelet.tail()}")

    def wait_running(self, name, timeout=PATIENCE):
        return self.wait(name, is_running, timeout)

    def wait_ended(self, name, timeout=PATIENCE):
        return self.wait(name, lambda one: one["status"].get("phase") in ("Succeeded", "Failed"), timeout)

    def describe(self, name):
        return json.dumps((self.get(name) or {}).get("status"), indent=1)

    def log(self, name, of="main"):
        """What a container of the static pod printed."""
        return self.log_of(self.get(name), of)

    @staticmethod
    def log_of(found, of="main"):
        """What a container of a pod has printed, of all its starts. Each line of the file is 'TIME STREAM P|F TEXT'."""
        metadata = found["metadata"]
        # A static pod's directory has the digest of its manifest instead of a uid.
        uid = metadata.get("annotations", {}).get("kubernetes.io/config.hash", metadata["uid"])
        place = LOGS / f"{metadata['namespace']}_{metadata['name']}_{uid}" / of
        out = ""
        for file in sorted(place.glob("*.log")):
            for line in file.read_text().splitlines():
                _, _, tag, text = line.split(" ", 3)
                out += text + ("\n" if tag == "F" else "")
        return out

    # -- what is left

    def left_of(self, uid):
        """What there still is of a pod: mounts, cgroups, processes, directories, containers and the runtime's states
        with the pod's uid, one line each."""
        found = [f"mount {line.split()[4]}" for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                 if uid in line]
        # Beside v1 hierarchies the kubelet leaves in the unified one what the OCI runtime made there, also runc.
        for hierarchy in (path for path in _hierarchies() if path.name != "unified"):
            found += [f"cgroup {path}" for path in hierarchy.glob(f"{self.cgroup}/**/pod{uid}")]
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if uid in (entry / "cgroup").read_text():
                    found.append(f"process {entry.name}: {(entry / 'comm').read_text().strip()}")
        found += [f"directory {path}" for path in [*(KUBELET / "pods").glob(uid), *LOGS.glob(f"*{uid}")]]
        return found + [f"container {name}" for name in self.containers_of(uid)]

    def containers_of(self, uid):
        """The ids of the containers of a pod."""
        found = self.ctr("containers", "list", "--quiet", f'labels."io.kubernetes.pod.uid"=={uid}')
        return found.split()
