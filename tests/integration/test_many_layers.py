# SPDX-License-Identifier: Apache-2.0
"""Images of more layers than an overlay takes at once, and than one page of mount(2) has names for."""

import pytest

from support import images

SHOW = ("sh", "-c", "ls /d | wc -l; cat /d/f1 /d/last; ls /o; touch /d/new && ls /d/new; "
        "cat /d/f3 2>/dev/null || echo gone")


def many(count):
    """Each layer adds a file; the last ones take away, replace and hide what the first ones have."""
    layers = [images.busybox_layer(), images.layer([images.directory("o"), images.file("o/old", b"old\n")])]
    first = [images.directory("d")]
    for number in range(count - 3):
        layers.append(images.layer(first + [images.file(f"d/f{number}", b"%d\n" % number)]))
        first = []
    layers.append(images.layer([images.file("d/.wh.f3"), images.file("d/f1", b"replaced\n"),
                                images.file("d/last", b"last\n"), images.directory("o"),
                                images.file("o/.wh..wh..opq"), images.file("o/young", b"")]))
    assert len(layers) == count
    return images.build(layers, {"Env": ["PATH=/bin"]})


@pytest.mark.parametrize("count", [130, 402, 500])
def test_an_image_of_many_layers_runs(berth, push, count):
    reference = push(many(count))
    berth.ok("pull", "--quiet", reference)
    assert berth.ok("run", "--rm", reference, *SHOW).split() == [
        str(count - 3), "replaced", "last", "young", "/d/new", "gone"]
    assert berth.ok("run", "--rm", "--read-only", reference, "cat", "/d/f7") == "7\n"


def test_a_container_of_many_layers_has_a_driver_and_is_committed(berth, push, driver_tree):
    reference = push(many(450))
    berth.ok("pull", "--quiet", reference)
    tree = driver_tree("one")
    berth.run("--driver-root", tree, "gpu", "list")  # warns
    out = berth.ok("--driver-root", tree, "run", "--name", "box", "--gpus", "all", reference, "sh", "-c",
                   "ls /usr/local/nvidia/lib64 | grep -c libcuda; echo x >/d/f2; rm /d/f4")
    assert int(out) > 0
    assert berth.ok("diff", "box").split("\n")[:3] == ["C /d", "C /d/f2", "D /d/f4"]
    berth.ok("commit", "box", "kept")
    berth.ok("rm", "box")
    assert berth.ok("run", "--rm", "kept", "sh", "-c", "cat /d/f2; ls /d/f4 2>/dev/null || echo gone") == "x\ngone\n"


@pytest.mark.long
def test_more_layers_than_any_engine_takes_are_refused(berth, push, listing):
    berth.ok("images")
    before = listing()
    assert berth.fail("pull", "--quiet", push(many(501)), status=1).endswith(
        "501 layers, more than the 500 allowed")
    assert listing() == before
