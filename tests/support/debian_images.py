# SPDX-License-Identifier: Apache-2.0
"""One Debian root file system as images of three builders: buildah, Docker, and buildah with zstd layers; and
a package that can be installed in them. They are made once per machine and kept: the images in the storage of
a registry.

usage: debian_images.py      makes what is missing and prints the storage's directory
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import kept, processes, registry
from support.registry import die_with_parent

VERSION = "bookworm-1"  # change it with the recipe below
IMAGES = {"buildah": "debian/buildah:12", "docker": "debian/docker:12", "zstd": "debian/zstd:12"}


def run(*argv, **options):
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout.strip()


def make_root(scratch):
    """The tar of a minimal Debian (206 MB), device nodes included as debootstrap makes them."""
    root, archive = scratch / "root", scratch / "root.tar"
    run("debootstrap", "--variant=minbase", "bookworm", root)
    run("tar", "--numeric-owner", "-C", root, "-cf", archive, ".")
    return archive


def push_by_buildah(archive, address, scratch):
    """One container, pushed with gzip and with zstd layers. ('buildah copy' of a directory would make root
    the owner of all files.)"""
    env = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(scratch)}
    base = ["buildah", "--root", scratch / "buildah", "--runroot", scratch / "buildah-run",
            "--storage-driver", "vfs"]
    container = run(*base, "from", "scratch", env=env)
    run(*base, "add", container, archive, "/", env=env)
    run(*base, "config", "--cmd", "/bin/bash", "--label", "berth.test=debian", container, env=env)
    run(*base, "commit", container, "debian", env=env)
    run(*base, "push", "--tls-verify=false", "debian", f"docker://{address}/{IMAGES['buildah']}",
        env=env)
    layout = scratch / "zstd"
    run(*base, "push", "debian", f"oci:{scratch / 'plain'}:12", env=env)
    run("skopeo", "copy", "--dest-compress-format", "zstd", f"oci:{scratch / 'plain'}:12",
        f"oci:{layout}:12")
    run("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:12",
        f"docker://{address}/{IMAGES['zstd']}")
    run(*base, "rm", "--all", env=env)


@contextlib.contextmanager
def docker_engine(scratch, driver="vfs"):
    """dockerd without its own network; yields a client's argv."""
    socket = scratch / "docker.sock"
    log = scratch / "dockerd.log"
    config = scratch / "dockerd.json"  # otherwise it leaves a key in /etc/docker
    config.write_text(json.dumps({"deprecated-key-path": str(scratch / "docker-key.json")}))
    with open(log, "wb") as output:
        process = subprocess.Popen(
            ["dockerd", "--config-file", config, "--data-root", scratch / "docker",
             "--exec-root", scratch / "docker-run", "--pidfile", scratch / "docker.pid", "-H", f"unix://{socket}", "--bridge=none",
             "--iptables=false", "--ip6tables=false", f"--storage-driver={driver}"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=die_with_parent)
    client = ["docker", "--host", f"unix://{socket}"]
    try:
        deadline = time.monotonic() + 60
        while subprocess.run([*client, "version"], capture_output=True, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd does not answer: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield client
    finally:
        processes.end(process)
        # Docker 26 leaves it mounted on itself.
        subprocess.run(["umount", "--lazy", scratch / "docker"], check=False, capture_output=True)


def push_by_docker(archive, address, scratch):
    name = f"{address}/{IMAGES['docker']}"
    with docker_engine(scratch) as client:
        run(*client, "import", "--change", 'CMD ["/bin/bash"]', archive, name)
        run(*client, "push", name)


def build(storage):
    scratch = storage.parent
    archive = make_root(scratch)
    with registry.running(scratch / "registry", storage=storage) as server:
        push_by_buildah(archive, server.address, scratch)
        push_by_docker(archive, server.address, scratch)


def kept_storage():
    """The directory of a registry's storage with the three images; builds it the first time (about a minute;
    downloads Debian's base)."""
    return kept.directory(f"registry-{VERSION}", build)


PACKAGE = "libxml2"
LIBRARIES = ("libxml2.so.2", "libicuuc.so.72")  # its own, and one of a dependency


def make_archive(directory):
    root = directory.parent / "root"
    run("debootstrap", "--variant=minbase", "--download-only", f"--include={PACKAGE}", "bookworm", root)
    directory.mkdir()
    for package in (PACKAGE, "libicu72"):
        deb, = (root / "var/cache/apt/archives").glob(f"{package}_*.deb")
        shutil.copy(deb, directory)
    packages = run("dpkg-scanpackages", "--multiversion", ".", cwd=directory)
    (directory / "Packages").write_text(packages + "\n", encoding="utf-8")


def kept_archive():
    """A directory from which apt installs packages, with PACKAGE and its dependencies that the images lack;
    makes it the first time (half a minute; downloads them)."""
    return kept.directory("archive-bookworm-1", make_archive)


def unpack(server, image, directory):
    """Extracts the image's single layer with tar, as root."""
    name, _, tag = image.partition(":")
    _, manifest = server.manifest(name, tag)
    (layer,) = json.loads(manifest)["layers"]
    _, _, blob = server.request("GET", f"/v2/{name}/blobs/{layer['digest']}")
    directory.mkdir()
    archive = directory.with_suffix(".tar.gz")
    archive.write_bytes(blob)
    run("tar", "--numeric-owner", "-C", directory, "-xzpf", archive)
    archive.unlink()


if __name__ == "__main__":
    kept_archive()
    print(kept_storage())
