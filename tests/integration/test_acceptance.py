# SPDX-License-Identifier: Apache-2.0
"""The main job on images that other people's programs built: a whole Debian by buildah, by Docker
and with zstd layers, pulled from docker-registry and run by each kind of user."""

import pytest

from support import debian_images, images
from support import registry as registries


@pytest.fixture(scope="module")
def debian_registry(session_directory):
    storage = debian_images.kept_storage()
    with registries.running(session_directory / "debian-registry", storage=storage) as server:
        yield server


@pytest.fixture(params=list(debian_images.IMAGES))
def debian(request, debian_registry):
    """A reference to Debian as this builder made it."""
    return f"{debian_registry.address}/{debian_images.IMAGES[request.param]}"


def test_debian_is_pulled_and_its_programs_run(berth, debian, debian_registry, profile):
    pulled = berth.ok("pull", debian, timeout=300).splitlines()
    _, _, rest = debian.partition("/")
    digest, _ = debian_registry.manifest(*rest.rsplit(":", 1))
    assert pulled[-3:-1] == [f"Digest: {digest}", f"Status: Downloaded newer image for {debian}"]

    packages = berth.ok("run", "--rm", debian, "dpkg", "-l")
    installed = [line.split()[1] for line in packages.splitlines() if line.startswith("ii")]
    assert {"base-files", "bash", "dpkg", "libc6:amd64"} <= set(installed)

    assert berth.ok("run", "--rm", debian, "id").startswith("uid=0(root) gid=0(root)")

    mounts = berth.ok("run", "--rm", debian, "mount").splitlines()
    assert mounts[0].startswith("overlay on / type overlay (")
    assert any(line.startswith("proc on /proc type proc (") for line in mounts)

    shadow_group = berth.ok("run", "--rm", debian, "stat", "-c", "%g", "/etc/shadow")
    assert shadow_group == ("0\n" if profile.kind == "single_id" else "42\n")


def test_a_shell_in_a_terminal(berth, debian):
    berth.ok("pull", "--quiet", debian, timeout=300)
    shell = berth.terminal("run", "--rm", "-it", debian, rows=33, columns=99)
    shell.expect("# ")
    shell.send("stty size; tty\r")
    shell.expect("33 99\r\n")
    shell.expect("/dev/pts/0\r\n")
    shell.expect("# ")
    shell.resize(44, 111)
    shell.send("stty size\r")
    shell.expect("44 111\r\n")
    shell.expect("# ")
    shell.send("exit 7\r")
    assert shell.wait() == 7


def test_a_second_pull_says_that_the_image_is_up_to_date(berth, busybox, registry):
    berth.ok("pull", busybox)
    again = berth.ok("pull", busybox).splitlines()
    assert again[-3:-1] == [f"Digest: {images.busybox().digest}",
                          f"Status: Image is up to date for {busybox}"]


def test_a_quiet_pull_prints_one_line(berth, busybox):
    assert len(berth.ok("pull", "--quiet", busybox).splitlines()) == 1


def test_run_pulls_what_is_missing(berth, busybox):
    assert berth.ok("run", "--rm", busybox, "echo", "aboard").splitlines()[-1] == "aboard"


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
@pytest.mark.parametrize("flavour", ["oci", "docker"])
def test_every_kind_of_layer_runs(berth, push, compression, flavour):
    reference = push(images.busybox(compression, flavour))
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, "cat", "/home/sailor/owned") == "by 1000\n"


@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_the_exit_status_is_the_containers(berth, busybox, status):
    assert berth.run("run", "--rm", busybox, "sh", "-c", f"exit {status}").returncode == status


def test_nothing_stays_of_a_container_that_removes_itself(berth, busybox, listing):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "--rm", busybox, "true")
    before = listing()
    berth.ok("run", "--rm", busybox, "sh", "-c", "echo hi >/written")
    assert listing() == before
