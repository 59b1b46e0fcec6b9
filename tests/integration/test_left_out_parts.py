# SPDX-License-Identifier: Apache-2.0
"""A build may leave programs out (CMake's BERTH_HUB, BERTH_NETWORK, BERTH_EROFS_FUSE, BERTH_SYSTEMD). What needs
one of them says so, and the rest goes on."""

import pytest


@pytest.fixture
def without(programs, work):
    """without(name…) → the environment in which Berth's programs are all but these."""
    def make(*names):
        directory = work / "-".join(["without", *names])
        directory.mkdir()
        for program in programs.iterdir():
            if program.name not in names:
                (directory / program.name).symlink_to(program)
        return {"BERTH_LIBEXEC_DIR": str(directory)}
    return make


def no_program(env, name, switch):
    return (f"this installation has no {name} in '{env['BERTH_LIBEXEC_DIR']}'; "
            f"try: a build of Berth with {switch}=ON, or set BERTH_LIBEXEC_DIR")


def test_the_hub_is_not_there(berth, without):
    env = without("berth-hub")
    assert berth.fail("hub", "--upstream", "127.0.0.1:1", "--repository", "*", status=1, env=env) == (
        "berth: " + no_program(env, "berth-hub", "BERTH_HUB"))


def test_the_nodes_program_is_not_there(berth, without):
    env = without("berth-node")
    assert berth.fail("node", "run", status=1, env=env) == "berth: " + no_program(env, "berth-node", "BERTH_NODE")


def test_a_network_is_not_there_and_no_container_is_left(berth, busybox, without, listing):
    assert berth.ok("run", "--rm", busybox, "true") == ""
    before = listing()
    env = without("berth-network")
    for words in (["--network", "bridge"], ["--publish", "8080:80"]):
        assert no_program(env, "berth-network", "BERTH_NETWORK") in berth.fail(
            "run", "--rm", *words, busybox, "true", env=env)
    assert listing() == before
    assert berth.ok("run", "--rm", busybox, "echo", "tea", env=env) == "tea\n"


@pytest.mark.profiles("user")
def test_layers_that_are_images_are_not_mounted(berth, busybox, without):
    berth.ok("pull", "--quiet", busybox, env={"BERTH_LAYER_FORMAT": "erofs"})
    env = without("berth-erofs")
    assert no_program(env, "berth-erofs", "BERTH_EROFS_FUSE") in berth.fail(
        "run", "--rm", busybox, "true", env=env)


def test_doctor_names_what_is_left_out(berth, without):
    env = without("berth-hub", "berth-network", "berth-erofs", "berth-scope")
    told = berth.run("doctor", env=env).stdout
    assert ("berth-hub, berth-network, berth-erofs, berth-scope are missing in "
            f"'{env['BERTH_LIBEXEC_DIR']}', which this build may have left out") in " ".join(told.split())
