# SPDX-License-Identifier: Apache-2.0
"""A pulled layer is kept unpacked alone; whoever wants its very bytes gets them from where it was
pulled, or from the store with --keep-blobs."""

import tarfile

import pytest

from support import images


@pytest.fixture(scope="module")
def image():
    return images.build([images.busybox_layer(), images.layer([images.file("hello", "hi\n")])])


def kept(berth, image):
    names = {path.name for path in (berth.root / "blobs/sha256").iterdir()}
    return [digest for digest in image.layer_digests if digest.removeprefix("sha256:") in names]


def test_the_packed_layers_are_not_kept(berth, push, image):
    berth.ok("pull", "-q", push(image))
    assert kept(berth, image) == []


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_the_packed_layers_are_kept_on_request(berth, push, image, how):
    reference = push(image)
    if how == "flag":
        berth.ok("pull", "-q", "--keep-blobs", reference)
    else:
        berth.ok("run", "--rm", reference, "true", env={"BERTH_KEEP_BLOBS": "1"})
    assert kept(berth, image) == image.layer_digests


def test_they_are_fetched_for_an_image_that_is_there(berth, push, image):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    assert "Downloaded newer image" in berth.ok("pull", "--keep-blobs", reference)
    assert kept(berth, image) == image.layer_digests
    assert "up to date" in berth.ok("pull", "--keep-blobs", reference)


def saved_layers(path):
    with tarfile.open(path) as tar:
        return {f"sha256:{member.name.rpartition('/')[2]}": tar.extractfile(member).read()
                for member in tar if member.name.startswith("blobs/sha256/") and member.isfile()}


def test_save_gives_the_very_bytes_of_the_registry(berth, push, image):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    output = berth.directory / "saved.tar"
    berth.ok("save", "--output", str(output), reference)
    saved = saved_layers(output)
    assert {image.digest, image.id, *image.layer_digests} == set(saved)
    assert all(images.digest_of(data) == digest for digest, data in saved.items())
    assert kept(berth, image) == []
    assert list((berth.root / "tmp").iterdir()) == []


def test_push_to_another_registry_gives_the_same_digest(berth, push, image, start_registry):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    target = f"{start_registry().address}/copy/app:1"
    berth.ok("tag", reference, target)
    berth.ok("push", "-q", target)
    berth.ok("rmi", reference, target)
    assert f"Digest: {image.digest}\n" in berth.ok("pull", target)


def test_push_within_a_registry_moves_no_bytes(berth, push, image, registry):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    target = f"{registry.address}/test/elsewhere-{berth.account.kind}:1"
    berth.ok("tag", reference, target)
    berth.ok("rmi", reference)  # its name is gone; where the layers came from is known
    output = berth.ok("push", target)
    assert output.count("Mounted from test/") == len(image.layer_digests)


def test_a_container_is_committed_and_pushed_without_the_layers_below(berth, push, image, registry):
    reference = push(image)
    berth.ok("run", "--name", "work", reference, "sh", "-c", "echo new > /new")
    target = f"{registry.address}/test/committed-{berth.account.kind}:1"
    berth.ok("commit", "work", target)
    berth.ok("push", "-q", target)
    berth.ok("rm", "work")
    berth.ok("rmi", reference, target)
    assert berth.ok("run", "--rm", target, "cat", "/new", "/hello") == "new\nhi\n"


def test_who_cannot_have_them_again_is_told_so(berth, image, start_registry):
    server = start_registry()
    image.push(server, "short/lived")
    reference = f"{server.address}/short/lived:latest"
    berth.ok("pull", "-q", reference)
    server.stop()
    output = berth.directory / "saved.tar"
    line = berth.fail("save", "--output", str(output), reference, status=1)
    assert line.startswith(f"berth: cannot save {reference}: cannot fetch again a layer that is only kept "
                           "unpacked in the store (berth pull --keep-blobs keeps it): connect to ")
    assert not output.exists()
    assert list((berth.root / "tmp").iterdir()) == []


def test_a_name_that_is_gone_from_the_registry_is_enough(berth, image, start_registry):
    """Layers are asked for by digest: that the tag means another image now does not matter."""
    server = start_registry()
    image.push(server, "moved/app")
    reference = f"{server.address}/moved/app:latest"
    berth.ok("pull", "-q", reference)
    images.build([images.layer([images.file("other", "o\n")])]).push(server, "moved/app")
    output = berth.directory / "saved.tar"
    berth.ok("save", "--output", str(output), reference)
    assert set(image.layer_digests) <= set(saved_layers(output))


def test_where_layers_came_from_is_forgotten_with_the_image(berth, push, image):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    assert len(list((berth.root / "origins").iterdir())) == 2
    berth.ok("rmi", reference)
    assert list((berth.root / "origins").iterdir()) == []


@pytest.mark.parametrize("size,why", [("1", "is too small"), ("much", "is not a size")])
def test_a_wrong_memory_budget_is_one_line(berth, size, why):
    line = berth.fail("pull", "--memory-budget", size, "localhost:1/x", status=1)
    assert line == f"berth: --memory-budget: '{size}' {why}; try: 512m; at least 32m"


def test_a_small_memory_budget_is_enough(berth, push, image):
    berth.ok("pull", "-q", "--memory-budget", "32m", push(image))
