# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's libraries and nvidia-smi say of a kernel module of another version, of a node that is not there and of
one that the user may not open: in the driver's root and in containers, and what Berth makes of it. The drivers are
real; the module is a synthetic one without a card (support/stand_in_card.c), proc, sys and dev are synthetic."""

import functools
import json
import os
import re
import stat

import pytest

from support import images, reachable_trees, stand_in_card, start_images

BRANCHES = ("390", "470", "535", "550")
MISMATCH = "18,Driver/library version mismatch"
DENIED = "4,Insufficient Permissions"
NOT_LOADED = "9,Driver Not Loaded"
SAID = ("cuInit", "nvmlInit_v2", "smi_says")
both = pytest.mark.profiles("root", "user")


@pytest.fixture(scope="module")
def trees(session_directory):
    with reachable_trees.trees(session_directory) as make:
        yield make


@pytest.fixture(scope="module")
def image(registry):
    images.build(start_images.debian_layers(), {"Env": ["PATH=/usr/sbin:/usr/bin"]}).push(registry, "test/stand-in")
    return f"{registry.address}/test/stand-in:latest"


@pytest.fixture(scope="session")
def program(session_directory):
    return stand_in_card.build(session_directory / "stand_in_card")


@pytest.fixture(scope="module")
def own_tree(trees):
    """own_tree(branch) → a tree of this file's tests, which they may change and mend."""
    return functools.cache(lambda branch: trees(branch, private=True))


@pytest.fixture(params=BRANCHES)
def node(request, berth, own_tree, program, image, work):
    """A machine with a driver, and its /dev/nvidiactl, which a test may change."""
    berth.ok("pull", "--quiet", image)
    made = Node(request.param, berth, own_tree(request.param), program, image, work)
    yield made
    made.change_node(0o666)


class Node:
    def __init__(self, branch, berth, tree, program, image, work):
        self.branch, self.berth, self.tree, self.image = branch, berth, tree, image
        self.card = stand_in_card.StandIn(program, tree.version, work / "stand-in.log")

    def cuda(self, code):
        """What cuInit gives where others give `code`: 390 has no code for it."""
        return "999" if self.branch == "390" else code

    def module_is(self, version):
        self.card.version = version

    def change_node(self, mode):
        """`mode` 0: there is no node."""
        table = self.tree.root / "dev/nodes"
        lines = [line for line in table.read_text().splitlines() if not line.startswith("/dev/nvidiactl ")]
        node = self.tree.root / "dev/nvidiactl"
        node.unlink(missing_ok=True)
        if mode:
            os.mknod(node, stat.S_IFCHR, os.makedev(195, 255))
            node.chmod(mode)
            lines.append(f"/dev/nvidiactl 195 255 {mode:03o}")
        table.write_text("".join(f"{line}\n" for line in lines))

    def bare(self):
        return picked(self.card.bare(self.tree.root, self.berth.account))

    def run(self, *words):
        return self.card.berth(self.berth, self.tree, "run", "--rm", "--gpus", "all", *words, self.image, "/start")

    def inside(self):
        done = self.run()
        assert done.returncode == 0, done
        return picked(start_images.answers(done.stdout))

    def nvml(self):
        """What `gpu list` says of it, which lists both GPUs all the same."""
        done = self.card.berth(self.berth, self.tree, "gpu", "list", "--format", "json")
        told = json.loads(done.stdout)
        assert done.returncode == 0 and len(told["gpus"]) == 2, done
        return told["nvml"]

    def problems(self):
        """{check: its text} of `doctor gpu`."""
        told = self.card.berth(self.berth, self.tree, "doctor", "gpu").stdout
        return dict(re.findall(r"^  problem  (\S+) +(.*)$", told, re.M))


def picked(answers):
    return {name: answers.get(name) for name in SAID}


@both
def test_a_module_of_this_version_is_asked_further(node):
    bare = node.bare()
    assert "ioctl 210 (0xd2) of 72 bytes: 0" in node.card.log()
    assert bare["nvmlInit_v2"] not in (NOT_LOADED, MISMATCH, DENIED)
    assert node.inside() == bare
    assert "ioctl 210 (0xd2) of 72 bytes: 0" in node.card.log()


@both
def test_a_module_of_another_version(node):
    node.module_is("999.99.99")
    bare = node.bare()
    assert (bare["nvmlInit_v2"], bare["cuInit"]) == (MISMATCH, node.cuda("803"))
    assert node.inside() == bare
    assert node.nvml() == "nvmlInit_v2: Driver/library version mismatch"
    assert node.problems()["nvml"] == "NVML fails: nvmlInit_v2: Driver/library version mismatch"


@pytest.mark.profiles("user")
def test_a_node_that_the_user_may_not_open(node):
    node.change_node(0o600)
    bare = node.bare()
    assert (bare["nvmlInit_v2"], bare["cuInit"]) == (DENIED, node.cuda("100"))
    assert node.inside() == bare
    assert node.nvml() == "nvmlInit_v2: Insufficient Permissions"
    problems = node.problems()
    assert problems["nvml"] == "NVML fails: nvmlInit_v2: Insufficient Permissions"
    assert problems["node-access"] == "this user may not open '/dev/nvidiactl' (mode 0600, group root)"


@pytest.mark.profiles("user")
def test_a_node_that_is_not_there(node):
    node.change_node(0)
    bare = node.bare()
    assert (bare["nvmlInit_v2"], bare["cuInit"]) == (NOT_LOADED, node.cuda("100"))
    done = node.run()
    assert done.returncode == 125 and done.stderr.splitlines()[-1] == (
        "berth: '/dev/nvidiactl' does not exist on this machine, and only root can make it; try: as root: "
        "mknod -m 666 /dev/nvidiactl c 195 255")
    assert node.nvml() == "nvmlInit_v2: Driver Not Loaded"
    assert node.problems()["nodes-missing"] == "'/dev/nvidiactl' is missing"


@pytest.mark.profiles("root")
def test_root_gives_the_container_a_node_that_the_machine_lacks(node):
    whole = node.inside()
    node.change_node(0)
    assert node.inside() == whole
    assert node.problems()["nodes-missing"] == "'/dev/nvidiactl' is missing"
