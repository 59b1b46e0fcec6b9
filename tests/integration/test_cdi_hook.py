# SPDX-License-Identifier: Apache-2.0
"""berth-cdi-hook as an engine runs it: as root, in the container's mount namespace, with the volumes
mounted and the root not entered. What lies in a volume is not the image's, whatever its links say."""

import json
import os
import subprocess

import pytest

from support.bundle import PROGRAMS
from support.oci_fixtures import place  # noqa: F401
from support.synthetic_elf import loader_cache

MUSL = f"ld-musl-{os.uname().machine}"
ENTRY = ["--loader-entry", "libcuda.so.1::/usr/local/nvidia/lib64/libcuda.so.1::771"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Container:
    """A root with volumes, in which the hook is run; `shows` is what a command prints there after it."""

    def __init__(self, base):
        self.root, self.volume, self.mounts = base / "root", base / "volume", []
        self.bundle = base
        for directory in ("etc", "lib", "data"):
            (self.root / directory).mkdir(parents=True)
        self.volume.mkdir()
        (self.root / f"lib/{MUSL}.so.1").write_text("")
        (base / "config.json").write_text(json.dumps(
            {"ociVersion": "1.0.2", "root": {"path": "root"}, "process": {"cwd": "/"}}))

    def mount(self, destination):
        self.mounts.append(f"mount --bind {self.volume} {self.root}{destination}")

    def run(self, *words, shows="true"):
        state = json.dumps({"ociVersion": "1.0.2", "id": "c1", "status": "creating", "bundle": str(self.bundle)})
        script = "\n".join(["set -e", *self.mounts, '"$@"', f"cd {self.root}", shows])
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", PROGRAMS / "berth-cdi-hook", *words],
                              input=state, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture(name="container")
def container_with_a_volume(place):  # noqa: F811
    return Container(place)


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_no_link_of_the_image_leads_the_loaders_files_into_a_volume(container):
    container.mount("/data")
    (container.root / "etc").rmdir()
    (container.root / "etc").symlink_to("data")
    (container.volume / "ld.so.cache").write_bytes(loader_cache([], False))
    before = content(container.volume)
    done = container.run(*ENTRY)
    assert done.returncode != 0 and done.stderr.endswith("'/etc/ld.so.cache' is in another mount\n"), done
    assert content(container.volume) == before


def test_no_link_of_the_image_leads_a_link_into_a_volume(container):
    container.mount("/data")
    (container.root / "usr").symlink_to("data")
    for path in ("/usr/evil", "/data/evil", "/usr/lib/evil", "/usr/local/nvidia/lib/evil"):
        done = container.run("--link", f"target::{path}")
        assert done.returncode != 0 and "another mount" in done.stderr, done
    assert os.listdir(container.volume) == []


@pytest.mark.parametrize("where", ["volume", "root"])
def test_no_user_of_the_container_is_given_to_read_what_only_root_may(container, where):
    container.mount("/data")
    directory = container.volume if where == "volume" else container.root
    (directory / "key").write_text("the secret\n")
    (directory / "key").chmod(0o600 if where == "root" else 0o644)
    (container.root / f"etc/{MUSL}.path").symlink_to("/data/key" if where == "volume" else "/key")
    done = container.run(*ENTRY, shows=f"cat etc/{MUSL}.path")
    assert done.returncode == 0 and "/usr/local/nvidia/lib64" in done.stdout, done
    assert "the secret" not in done.stdout


def test_a_volume_in_the_place_of_etc_keeps_its_files(container):
    container.mount("/etc")
    (container.volume / "ld.so.cache").write_bytes(loader_cache([("liba.so.1", "/opt/liba.so.1", 0x303)], False))
    (container.volume / f"{MUSL}.path").write_text("/opt/of-volume\n")
    before = content(container.volume)
    both = "grep -q libcuda etc/ld.so.cache && grep -q liba.so.1 etc/ld.so.cache && echo both"
    done = container.run(*ENTRY, shows=f"cat etc/{MUSL}.path; {both}")
    assert done.returncode == 0 and "/opt/of-volume" in done.stdout and done.stdout.endswith("both\n"), done
    assert content(container.volume) == before


def test_links_are_made_in_the_containers_own_dev(container):
    (container.root / "dev").mkdir()
    container.mounts.append(f"mount -t tmpfs tmpfs {container.root}/dev")
    done = container.run("--link", "../card0::/dev/dri/by-path/card", shows="readlink dev/dri/by-path/card")
    assert (done.returncode, done.stdout) == (0, "../card0\n"), done
