# SPDX-License-Identifier: Apache-2.0
"""What people and scripts expect of every container, and names, flags and verbs as they type them."""

import re

import pytest

from support import images


@pytest.fixture
def pulled(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


@pytest.mark.parametrize("flags", [(), ("--read-only",)])
def test_programs_can_tell_that_they_are_in_a_container(berth, pulled, flags):
    out = berth.ok("run", "--name", "box", *flags, pulled, "sh", "-c", "ls /.dockerenv; cat /run/.containerenv")
    assert out == '/.dockerenv\nengine="berth"\n'
    assert berth.ok("diff", "box") == ""
    berth.ok("commit", "box", "kept")
    assert " 0B " in berth.ok("history", "kept").splitlines()[1] + " "
    berth.ok("rm", "box")


def test_what_an_image_has_of_these_files_stays(berth, push):
    image = push(images.build([images.busybox_layer(), images.layer([
        images.file(".dockerenv", b"own\n"), images.directory("var"), images.directory("var/run"),
        images.symlink("run", "var/run")])], {"Env": ["PATH=/bin"]}))
    assert berth.ok("run", "--rm", image, "sh", "-c", "cat /.dockerenv; ls -A /run/") == "own\n"


def test_every_group_may_ping(berth, pulled, profile):
    last = {"root": "2147483647", "user": "65536", "single_id": "0"}[profile.kind]
    assert berth.ok("run", "--rm", pulled, "cat", "/proc/sys/net/ipv4/ping_group_range").split() == ["0", last]
    assert berth.ok("run", "--rm", "--sysctl", "net.ipv4.ping_group_range=0 0", pulled, "cat",
                    "/proc/sys/net/ipv4/ping_group_range").split() == ["0", "0"]


def test_dev_core_is_there(berth, pulled):
    assert berth.ok("run", "--rm", pulled, "readlink", "/dev/core") == "/proc/kcore\n"


def test_a_working_directory_that_is_missing_is_made(berth, pulled):
    assert berth.ok("run", "--rm", "-w", "/rapids/notebooks", pulled, "pwd") == "/rapids/notebooks\n"
    assert berth.ok("run", "--rm", "--read-only", "-w", "/rapids/notebooks", pulled, "pwd") == "/rapids/notebooks\n"


def test_names_as_podman_apptainer_and_enroot_spell_them(berth, busybox):
    registry, _, name = busybox.partition("/")
    berth.ok("pull", "--quiet", f"docker://{busybox}")
    for spelled in (f"docker://{busybox}", f"{registry}#{name}", f"docker://{registry}#{name}"):
        assert berth.ok("run", "--rm", "--pull", "never", spelled, "echo", "fine") == "fine\n"
        assert berth.run("image", "exists", spelled).returncode == 0


@pytest.mark.parametrize("name", ["runc", "crun", "berth", "nvidia"])
def test_the_name_of_another_runtime_is_taken(berth, pulled, name):
    assert berth.ok("run", "--rm", "--runtime", name, pulled, "echo", "fine") == "fine\n"


def test_the_runtime_of_nvidia_gives_what_variables_ask_for(berth, pulled, driver_tree):
    tree = driver_tree("one")
    berth.run("--driver-root", tree, "gpu", "list")  # warns
    ask = ("-e", "NVIDIA_VISIBLE_DEVICES=0", pulled, "sh", "-c", "ls /dev/nvidia0 2>/dev/null || echo none")
    assert berth.ok("--driver-root", tree, "run", "--rm", *ask) == "none\n"
    assert berth.ok("--driver-root", tree, "run", "--rm", "--runtime=nvidia", *ask) == "/dev/nvidia0\n"


def test_scripts_ask_whether_something_exists(berth, pulled):
    berth.ok("create", "--name", "box", pulled, "true")
    berth.ok("volume", "create", "data")
    for kind, name in (("image", pulled), ("container", "box"), ("volume", "data")):
        there, not_there = berth.run(kind, "exists", name), berth.run(kind, "exists", "nosuch")
        assert (there.returncode, there.stdout, there.stderr) == (0, "", "")
        assert (not_there.returncode, not_there.stdout, not_there.stderr) == (1, "", "")
    berth.ok("rm", "box")
    berth.ok("volume", "rm", "data")


@pytest.mark.parametrize("words, line", [
    (("compose", "up", "-d"),
     "berth has no verb 'compose': Compose files are not supported; try: docker compose or podman-compose "
     "with berth-runtime as their runtime"),
    (("pod", "create"), "berth has no verb 'pod': there are no pods; try: --network container:NAME --ipc container:NAME"),
    (("shell", "--nv", "x.sif"),
     "berth has no verb 'shell': a shell is a command like any other; try: berth run --rm -it IMAGE sh")])
def test_a_verb_of_another_engine_is_answered_with_what_to_type(berth, words, line):
    assert berth.fail(*words) == f"berth: {line}"


BOTH = ("sh", "-c", "echo out; echo err >&2")


@pytest.mark.parametrize("flags, out, err", [
    ((), "out\n", "err\n"), (("-a", "stdout"), "out\n", ""), (("-a", "stderr"), "", "err\n"),
    (("-a", "stdout", "-a", "stderr"), "out\n", "err\n"), (("-a", "stdin"), "ID\n", "")])
@pytest.mark.parametrize("remove", [True, False])
def test_only_the_streams_that_were_asked_for_are_attached(berth, pulled, flags, out, err, remove):
    done = berth.run("run", "--name", "box", *(["--rm"] if remove else []), *flags, pulled, *BOTH)
    printed = re.sub("^[0-9a-f]{64}$", "ID", done.stdout, flags=re.MULTILINE)
    assert (done.returncode, printed, done.stderr) == (0, out, err)
    if not remove:
        assert berth.run("logs", "box").stdout == "out\n"
        berth.ok("rm", "box")
