# SPDX-License-Identifier: Apache-2.0
"""What a container can make is in the image that is made of it, and in what is written of that image
and read again: generated trees (support/made_trees.py), entry by entry."""

import pytest

from support import images, made_trees

SEEDS = range(3)
ALL = pytest.mark.profiles("root", "user", "single_id", "erofs")
TOOL = "/bin/tree-maker"


def base():
    return images.build([images.busybox_layer(),
                         images.layer([images.file(TOOL[1:], made_trees.program(), mode=0o755)])],
                        {"Env": ["PATH=/bin"]})


@pytest.fixture
def start(berth, push):
    reference = push(base())
    berth.ok("pull", "--quiet", reference)
    return reference


def see(berth, image):
    """{path: all else} of the tree, as a container of the image sees it."""
    return seen(berth.ok("run", "--rm", "--network=none", image, TOOL, "show", made_trees.TOP))


def seen(text):
    return dict(line.split(" ", 1) for line in text.splitlines())


def same(found, wanted):
    unlike = [f"{path}: {found.get(path)}, made as {wanted.get(path)}" for path in sorted(found.keys() | wanted.keys())
              if found.get(path) != wanted.get(path)]
    assert not unlike, "\n".join(line[:1000] for line in unlike[:20])


def make(berth, image, step, name):
    """The container 'made', which has carried the step out, and what it sees of that when it is started again:
    overlay gives a file that has just got a second name two numbers until it is mounted anew."""
    script = f"[ -e /stepped-{name} ] && exec {TOOL} show {made_trees.TOP}; touch /stepped-{name} && exec {TOOL} make"
    berth.ok("run", "--name=made", "-i", "--network=none", image, "sh", "-c", script, input=step)
    return seen(berth.ok("start", "--attach", "made"))


@pytest.fixture
def grown(berth, start):
    """grown(seed) → (an image with a layer for each step of that seed, what its last container saw)."""
    def grow(seed):
        image = start
        for number, step in enumerate(made_trees.steps(seed)):
            wanted = make(berth, image, step, number)
            berth.ok("commit", "made", f"tree:{number}")
            berth.ok("rm", "made")
            image = f"tree:{number}"
            same(see(berth, image), wanted)
        return image, wanted
    return grow


@ALL
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_comes_back_from_a_commit_and_every_archive_of_it(berth, grown, work, seed):
    image, wanted = grown(seed)
    for form in ("archive", "oci"):
        berth.ok("save", "--format", form, "-o", work / form, image)
    berth.ok("create", "--name=whole", image)
    berth.ok("export", "-o", work / "exported", "whole")
    berth.ok("rm", "whole")
    berth.ok("rmi", "--force", *{line for line in berth.ok("images", "-q").split()})
    assert list((berth.root / "layers").iterdir()) == []
    for form in ("archive", "oci"):
        berth.ok("load", "--quiet", "-i", work / form)
        same(see(berth, image), wanted)
        berth.ok("rmi", "--force", image)
    berth.ok("import", work / "exported", "imported")
    same(see(berth, "imported"), wanted)


@ALL
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_comes_back_from_a_registry(berth, grown, registry, work, seed):
    image, wanted = grown(seed)
    target = f"{registry.address}/test/tree:{seed}"
    berth.ok("tag", image, target)
    berth.ok("push", "--quiet", target)
    berth.ok("rmi", "--force", *{line for line in berth.ok("images", "-q").split()})
    berth.ok("pull", "--quiet", target)
    same(see(berth, target), wanted)


@pytest.mark.profiles("root", "user")
def test_a_file_with_the_name_of_a_whiteout_hides_nothing_in_an_image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("run", "--name=made", busybox, "sh", "-c",
             "touch /.wh.bin; mkdir /d /d/.wh.e /d/f; echo x >/d/f/.wh..wh..opq; ln -s x /d/.wh.link; echo y >/d/y; echo x >/d/.wh.")
    done = berth.run("commit", "made", "image")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        "berth: warning: '/.wh.bin': no layer can have a file of such a name, ignoring",
        "berth: warning: 4 more such names, ignoring"]
    assert sorted(berth.ok("run", "--rm", "image", "find", "/d").split()) == ["/d", "/d/f", "/d/y"]
    berth.ok("rm", "made")
