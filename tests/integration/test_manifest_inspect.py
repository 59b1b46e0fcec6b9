# SPDX-License-Identifier: Apache-2.0
"""berth manifest inspect: what a registry has under a name, without pulling it."""

import hashlib
import json

import pytest
from support import images


@pytest.fixture
def index(registry):
    """(reference, the index as it was uploaded)"""
    built = [images.build([images.layer([images.file("arch", name.encode())])], architecture=name)
             for name in ("amd64", "arm64")]
    images.push_index(registry, "test/manifest-inspect", "latest", built, [{}, {}])
    address = f"{registry.address}/test/manifest-inspect:latest"
    return address, built


def test_an_index_is_shown_with_all_its_entries(berth, index):
    reference, built = index
    shown = json.loads(berth.ok("manifest", "inspect", reference))
    assert [entry["digest"] for entry in shown["manifests"]] == [one.digest for one in built]
    assert berth.ok("images", "-q") == ""


def test_a_manifest_is_shown(berth, push):
    image = images.build([images.busybox_layer()])
    reference = push(image)
    assert json.loads(berth.ok("manifest", "inspect", reference)) == json.loads(image.manifest)


def test_raw_bytes_are_those_of_the_digest(berth, push):
    image = images.build([images.busybox_layer()])
    reference = push(image)
    raw = berth.ok("manifest", "inspect", "--raw", reference, text=False)
    assert "sha256:" + hashlib.sha256(raw).hexdigest() == image.digest
    assert berth.ok("manifest", "inspect", "--raw", f"{reference.rpartition(':')[0]}@{image.digest}",
                    text=False) == raw


@pytest.mark.profiles("root")
def test_a_name_that_is_not_there_is_one_line(berth, registry):
    line = berth.fail("manifest", "inspect", f"{registry.address}/test/nothing-here:1", status=1)
    assert line.startswith(f"berth: cannot look up '{registry.address}/test/nothing-here:1': ")


@pytest.mark.profiles("root")
def test_a_document_that_is_long_is_shown_whole(berth, registry):
    """Longer than a line that the child of a transfer may print of anything else."""
    image = images.build([images.layer([images.file("a", b"a")])])
    long = json.dumps({**json.loads(image.manifest), "annotations": {"long": '"' * (1 << 20)}})
    for digest, data in image.blobs.items():
        registry.put_blob("test/manifest-long", digest, data)
    registry.put_manifest("test/manifest-long", "latest", image.media_type, long.encode())
    shown = berth.ok("manifest", "inspect", f"{registry.address}/test/manifest-long:latest")
    assert json.loads(shown) == json.loads(long)


@pytest.mark.profiles("root")
def test_other_verbs_of_manifests_say_what_to_type(berth):
    for verb in ("create", "push", "annotate"):
        assert berth.fail("manifest", verb, "x") == (
            f"berth: berth has no verb 'manifest {verb}': an index is created together with its images; "
            "try: berth bake, or buildah manifest")
