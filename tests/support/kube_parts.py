#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes from Debian's source package: the kubelet, the API server, the scheduler, the controller manager and
kubectl, built once and kept (250 MB). Debian 12 is the last suite with the sources of all of them.

usage: kube_parts.py          builds what is missing and prints a table; needs root and Debian's mirror.
                              It takes a quarter of an hour, and 3 GB of disk meanwhile

    parts = kube_parts.get()
    parts.program("kubelet")      # a static program
    parts.version                 # "1.20.2"
"""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, kept

RECIPE = "1"  # change it with the recipe below
SUITE = "bookworm"
PROGRAMS = ("kubelet", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
NAME = f"kubernetes-{SUITE}-{RECIPE}"

SOURCE = pathlib.Path("go/src/k8s.io/kubernetes")  # below the root of the build
OPENAPI = "pkg/generated/openapi"
# 'providerless' leaves out the clouds: the compiler needs minutes for one package of Google's.
TAGS = "providerless"
# The vendored version of this is not for Go 1.18 and newer: the API server crashed when it wrote a custom resource.
REFLECT = "github.com/modern-go/reflect2"
PACKAGES = ("golang-go", "gcc", "libc6-dev", "dpkg-dev", "golang-github-modern-go-reflect2-dev")
# Each kubelet would wait for Docker for five seconds at its start.
WAITING = "github.com/google/cadvisor/container/docker/factory.go"
# Where Kubernetes looks for its version, as its hack/lib/version.sh says.
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


class Unavailable(Exception):
    """Why Kubernetes cannot be built here."""


@dataclasses.dataclass(frozen=True)
class Parts:
    """The kept programs."""
    directory: pathlib.Path
    version: str
    package: str  # the version of Debian's package

    def program(self, name):
        return self.directory / name

    @property
    def minor(self):
        """20 of "1.20.2"."""
        return int(self.version.split(".")[1])


@contextlib.contextmanager
def _timed(what):
    started = time.monotonic()
    yield
    print(f"{what} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)


class Build:
    """A Debian 12 with Go and the sources, in the directory `root`."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def prepare(self):
        debian.make_root(SUITE, self.root, PACKAGES)
        with open(self.root / "etc/apt/sources.list", "a", encoding="utf-8") as sources:
            sources.write(f"deb-src {debian.mirror()} {SUITE} main\n")
        debian.apt(self.root, "update")
        debian.apt(self.root, "source", "--download-only", "kubernetes")
        (description,) = self.root.glob("kubernetes_*.dsc")
        (self.root / SOURCE.parent).mkdir(parents=True)
        self._run("/", "dpkg-source", "--no-check", "-x", f"/{description.name}", f"/{SOURCE}")
        self._change_sources(self.root / SOURCE / "vendor")

    def _change_sources(self, vendor):
        shutil.rmtree(vendor / REFLECT)
        shutil.copytree(self.root / "usr/share/gocode/src" / REFLECT, vendor / REFLECT)
        waiting = (vendor / WAITING).read_text()
        (vendor / WAITING).write_text(waiting.replace("const rootDirRetries = 5", "const rootDirRetries = 0"))

    def package(self):
        """The version of the source package."""
        (description,) = self.root.glob("kubernetes_*.dsc")
        return re.search(r"^Version: (\S+)$", description.read_text(), re.M)[1]

    def version(self):
        """'1.20.2' of '1.20.5+really1.20.2-1.1+deb12u1'."""
        return re.search(r"(?:.*really)?(\d+\.\d+\.\d+)", self.package())[1]

    def _run(self, place, *words, **variables):
        """Runs a program of the root in its directory `place`; its output goes to the log."""
        inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -c \'cd "$0" && exec "$@"\' "$@"'
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "GOPATH": "/go", "GO111MODULE": "off",
                       "GOCACHE": "/go/cache", "CGO_ENABLED": "0", "LC_ALL": "C.UTF-8",
                       "GOFLAGS": os.environ.get("GOFLAGS", ""), **variables}
        with open(self.root / "build.log", "ab") as log:
            done = subprocess.run(["unshare", "--mount", "sh", "-c", inside, self.root, place, *words], check=False,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        if done.returncode:
            told = (self.root / "build.log").read_text(errors="replace").splitlines()[-20:]
            raise Unavailable(f"'{' '.join(words)[:200]}' ended with {done.returncode}:\n" + "\n".join(told))

    def stamp(self):
        """The linker's words for the version."""
        major, minor, _ = self.version().split(".")
        values = {"gitMajor": major, "gitMinor": minor, "gitVersion": f"v{self.version()}", "gitTreeState": "archive",
                  "gitCommit": "0" * 40, "buildDate": "1970-01-01T00:00:00Z"}
        packages = [f"k8s.io/kubernetes/vendor/{name}" for name in VERSION_PACKAGES]
        return " ".join(["-s", "-w", *(f"-X {package}.{name}={value}" for name, value in values.items()
                                       for package in packages)])

    def go(self, *words, **variables):
        self._run(f"/{SOURCE}", "go", *words, **variables)

    def openapi_packages(self):
        """The packages with types that the API server describes: those with the comment '+k8s:openapi-gen'. As the
        variable KUBE_OPENAPI_DIRS of Kubernetes' Makefile.generated_files."""
        source = self.root / SOURCE
        found = set()
        for top in ("pkg", "vendor/k8s.io"):
            # os.walk() does not follow the links of vendor/k8s.io to staging/.
            for start in [source / top, *(path for path in (source / top).iterdir() if path.is_symlink())]:
                for directory, _, files in os.walk(start):
                    if any(_describes(os.path.join(directory, name)) for name in files if name.endswith(".go")):
                        found.add(os.path.relpath(directory, source))
        left_out = ("vendor/k8s.io/code-generator/", "vendor/k8s.io/sample-apiserver/")
        return sorted(f"k8s.io/kubernetes/{name}" for name in found if not name.startswith(left_out)
                      and "/testdata/" not in name and "/test/" not in name)

    def generate_openapi(self):
        """The file that Debian's package lacks: kube-apiserver needs its GetOpenAPIDefinitions()."""
        self.go("build", "-o", "/go/openapi-gen", "./vendor/k8s.io/kube-openapi/cmd/openapi-gen")
        self._run(f"/{SOURCE}", "/go/openapi-gen", "-i", ",".join(self.openapi_packages()),
                  "-p", f"k8s.io/kubernetes/{OPENAPI}", "-O", "zz_generated.openapi",
                  "-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt", "-r", "/go/violations")

    def build(self, program, place):
        self.go("build", "-tags", TAGS, "-ldflags", self.stamp(), "-o", f"/go/{program}", f"./cmd/{program}")
        shutil.copy2(self.root / "go" / program, place / program)

    def build_pause(self, place):
        """The program that holds the namespaces of a pod, which is in C."""
        self._run(f"/{SOURCE}/build/pause", "gcc", "-Os", "-Wall", "-static", "-DVERSION=3.2", "-o", "/go/pause",
                  "linux/pause.c")
        shutil.copy2(self.root / "go/pause", place / "pause")


def _describes(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return bool(re.search(r"^\s*// *\+k8s:openapi-gen=", file.read(), re.M))


def _make(path):
    build = Build(path.with_name("root"))
    path.mkdir()
    with _timed("Debian 12 with Go and the sources of Kubernetes is there"):
        build.prepare()
    with _timed("the description of the API is generated"):
        build.generate_openapi()
    build.build_pause(path)
    for program in PROGRAMS:
        with _timed(f"{program} is built"):
            build.build(program, path)
    (path / "parts.json").write_text(json.dumps({"version": build.version(), "package": build.package()}))


@functools.cache
def get():
    """The Parts, built unless they are there. Errors: Unavailable."""
    if not (kept.cache() / NAME).exists() and os.geteuid() != 0:
        raise Unavailable("Kubernetes has not been built here; that needs root")
    try:
        place = kept.directory(NAME, _make)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{error}: {(error.output or '')[-2000:]}") from error
    return Parts(place, **json.loads((place / "parts.json").read_text()))


def _main():
    os.nice(10)
    try:
        parts = get()
    except Unavailable as error:
        print(f"Kubernetes: skipped: {error}")
        return 0
    print(f"Kubernetes {parts.version} of Debian's {parts.package}: {parts.directory}")
    for name in (*PROGRAMS, "pause"):
        print(f"  {name:24} {parts.program(name).stat().st_size / 1e6:6.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
