# SPDX-License-Identifier: Apache-2.0
"""Manifests that name a blob beside the diff id of another one's contents. Diff ids of public images
are public, and those of private ones may be known to a stranger."""

import json
import subprocess

import pytest
from support import images

BUILDER = {"STORAGE_DRIVER": "vfs"}


def tampered(good, evil_layer):
    """The config of `good`, whose first layer is said to be packed in a blob of other contents."""
    blob = images.compress(evil_layer, "gzip")
    manifest = json.loads(good.manifest)
    manifest["layers"][0] |= {"digest": images.digest_of(blob), "size": len(blob)}
    blobs = {**good.blobs, images.digest_of(blob): blob}
    config = json.loads(good.config) | {"created": "2099-01-01T00:00:00Z"}
    text = json.dumps(config).encode()
    manifest["config"] |= {"digest": images.digest_of(text), "size": len(text)}
    return images.Image(good.flavour, good.architecture, text, json.dumps(manifest).encode(),
                        {**blobs, images.digest_of(text): text},
                        [layer["digest"] for layer in manifest["layers"]], good.diff_ids)


@pytest.fixture
def good():
    return images.busybox()


@pytest.fixture
def evil(good):
    return tampered(good, images.layer([images.file("bin/sh", b"evil", mode=0o755)]))


def test_a_layer_that_is_here_does_not_vouch_for_the_blob_that_a_manifest_names(
        berth, registry, good, evil):
    good.push(registry, "base")
    evil.push(registry, "evil")
    berth.ok("pull", f"{registry.address}/base")
    line = berth.fail("pull", f"{registry.address}/evil", status=1)
    assert "the config says" in line
    assert f"{registry.address}/evil" not in berth.ok("images", "--format", "{{.Repository}}")


@pytest.mark.profiles("root")
def test_what_is_built_on_an_image_is_published_with_that_images_layers(
        berth, registry, work, good, evil):
    good.push(registry, "built-on/base")
    evil.push(registry, "built-on/evil")
    base, app = f"{registry.address}/built-on/base", f"{registry.address}/built-on/app:1"
    berth.ok("pull", base)
    berth.run("pull", f"{registry.address}/built-on/evil")
    (work / "Containerfile").write_text(f"FROM {base}\nCOPY Containerfile /here\n")
    berth.ok("build", "-t", app, work, env=BUILDER, timeout=120)
    berth.ok("push", app)
    layers = json.loads(registry.manifest("built-on/app", "1")[1])["layers"]
    assert layers[0]["digest"] == json.loads(good.manifest)["layers"][0]["digest"]


def test_a_layer_in_another_packing_is_taken_once_it_was_unpacked(berth, registry, good):
    good.push(registry, "packed/gzip")
    images.busybox(compression="zstd").push(registry, "packed/zstd")
    berth.ok("pull", f"{registry.address}/packed/gzip")
    berth.ok("pull", f"{registry.address}/packed/zstd")
    layers = list(berth.root.glob("layers/*/layer.json"))
    assert len(layers) == len(good.diff_ids)
    assert {len(json.loads(file.read_text())["blobs"]) for file in layers} == {2}
    assert berth.ok("run", "--rm", f"{registry.address}/packed/zstd", "echo", "hello") == "hello\n"


@pytest.mark.profiles("root")
def test_images_that_name_a_blob_do_not_push_off_the_list_who_has_it(berth, registry, start_registry, work, good):
    """The blob of a layer that is here is not asked for: that a repository has it is its author's word."""
    liar = start_registry()
    good.push(registry, "origin/true")
    berth.ok("pull", "-q", f"{registry.address}/origin/true")
    for number in range(5):
        more = images.layer([images.file(f"more-{number}", b"x")])
        image = images.build([images.busybox_layer(), more])
        image.push(liar, f"liar/{number}")
        berth.ok("pull", "-q", f"{liar.address}/liar/{number}")
    liar.stop()
    assert berth.ok("save", "-o", work / "saved.tar", f"{registry.address}/origin/true") == ""


def test_an_archive_gives_no_layer_to_who_names_its_diff_id(berth, work, registry, good):
    """Its author may know the diff id of a layer whose contents are not for him."""
    good.push(registry, "private")
    berth.ok("pull", f"{registry.address}/private")
    layout = work / "layout"
    (layout / "blobs/sha256").mkdir(parents=True)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    manifest = json.loads(good.manifest)
    manifest["layers"][0] |= {"digest": images.digest_of(b"nothing"), "size": 7}
    text = json.dumps(manifest).encode()
    for data in (text, good.config):
        (layout / "blobs/sha256" / images.digest_of(data).split(":")[1]).write_bytes(data)
    entry = {"mediaType": manifest["mediaType"], "digest": images.digest_of(text), "size": len(text),
             "annotations": {"org.opencontainers.image.ref.name": "stolen:1"}}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    archive = work / "stolen.tar"
    subprocess.run(["tar", "-C", layout, "-cf", archive, "."], check=True)
    assert "blobs/sha256" in berth.fail("load", "-i", archive, status=1)
