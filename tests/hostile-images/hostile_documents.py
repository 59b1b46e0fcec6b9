# SPDX-License-Identifier: Apache-2.0
"""Manifests, indexes and configs that lie, and registries that answer otherwise than asked."""

import json

from hostile_item import (CANARY, UP, changed, changed_config, entries, item, layout,
                          of_entries)
from support import hostile_registry, images
from support.images import file

HELLO = entries(file("hello", "hi\n"))
NOBODY = "sha256:" + "0" * 64


def edited(edit, **more):
    """An image whose manifest was edited."""
    def make():
        made = layout(HELLO)
        changed(made.image, edit)
        return made
    return make


def configured(edit):
    def make():
        made = layout(HELLO)
        changed_config(made.image, edit)
        return made
    return make


def with_index(edit):
    """An image whose entry in index.json was edited."""
    def make():
        made = layout(HELLO)
        edit(made)
        return made
    return make


def first_layer(**members):
    return edited(lambda m: m["layers"][0].update(**members))


def swapped():
    """The layer's blob is another one of the same size."""
    made = layout(HELLO)
    [digest] = made.image.layer_digests
    data = made.image.blobs[digest]
    made.image.blobs[digest] = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    return made


def nested(depth):
    """An index in an index in an index, the image in the last."""
    made = layout(HELLO)
    digest, size, kind = made.image.digest, len(made.image.manifest), made.image.media_type
    for _ in range(depth):
        data = json.dumps({"schemaVersion": 2, "mediaType": images.OCI["index"], "manifests": [
            {"mediaType": kind, "digest": digest, "size": size,
             "platform": {"os": "linux", "architecture": "amd64"}}]}).encode()
        digest, size, kind = images.digest_of(data), len(data), images.OCI["index"]
        made.blobs[digest] = data
    made.entry.update(digest=digest, size=size, mediaType=kind)
    return made


def loop():
    """An index whose entry is its own file: the digest cannot be right, who does not look goes on
    forever."""
    made = layout(HELLO)
    data = json.dumps({"schemaVersion": 2, "mediaType": images.OCI["index"], "manifests": [
        {"mediaType": images.OCI["index"], "digest": NOBODY, "size": 0,
         "platform": {"os": "linux", "architecture": "amd64"}}]})
    data = data.replace('"size": 0', f'"size": {len(data) + 2}').encode()
    made.blobs[NOBODY] = data
    made.entry.update(digest=NOBODY, size=len(data), mediaType=images.OCI["index"])
    return made


def both_kinds():
    """A manifest that is an index for who looks at its other half (CVE-2021-41190)."""
    made = layout(HELLO)
    changed(made.image, lambda m: (m.pop("mediaType"), m.update(manifests=[
        {"mediaType": images.OCI["manifest"], "digest": NOBODY, "size": 2}])))
    return made


def raw_manifest(data):
    made = layout(HELLO)
    made.image.manifest = data
    return made


# ---- digests and sizes ----
item("digest-of-the-layer-wrong", "a layer's blob with one bit flipped", swapped, lie=True,
     says="has digest sha256:* and 151 bytes instead of 151")
item("diff-id-wrong", "a diff id in the config that is not the unpacked layer's digest",
     lambda: layout(HELLO, diff_ids=[NOBODY]), lie=True,
     says="check the unpacked bytes: they have digest 'sha256:*', the config says 'sha256:0*0'")
item("diff-ids-swapped", "the diff ids of two layers, swapped",
     lambda: layout(HELLO, entries(file("b")), diff_ids=[
         images.digest_of(entries(file("b"))), images.digest_of(HELLO)]), lie=True,
     says="check the unpacked bytes: they have digest 'sha256:*', the config says 'sha256:*'")
item("diff-ids-too-few", "two layers, one diff id",
     lambda: layout(HELLO, entries(file("b")), diff_ids=[images.digest_of(HELLO)]), lie=True,
     says="the config lists 1 layers, the manifest 2")
item("diff-ids-too-many", "one layer, two diff ids",
     lambda: layout(HELLO, diff_ids=[images.digest_of(HELLO)] * 2), lie=True,
     says="the config lists 2 layers, the manifest 1")
item("size-of-the-layer-too-small", "a descriptor with a smaller size than the blob",
     first_layer(size=7), lie=True,
     says="and 151 bytes instead of 7")
item("size-of-the-layer-too-large", "a descriptor with a larger size than the blob",
     first_layer(size=1 << 40), lie=True,
     says="and 151 bytes instead of 1099511627776")
item("size-of-the-layer-negative", "a descriptor with a negative size", first_layer(size=-1),
     lie=True,
     says="layers[0].size: -1 is out of range")
item("size-of-the-manifest-wrong", "an index with a wrong size of the manifest",
     with_index(lambda made: made.entry.update(size=7)), lie=True,
     says="bytes instead of 7")
item("digest-is-a-path", "a digest that leads out of blobs/ (CVE-2024-3727)",
     first_layer(digest="sha256:" + f"{UP}{CANARY[1:]}/precious"),
     says="layers[0].digest: read digest 'sha256:../*': expected 'sha256:' and 64 "
          "hexadecimal digits")
item("digest-of-another-kind", "a digest of an algorithm that OCI does not register (md5)",
     first_layer(digest="md5:d41d8cd98f00b204e9800998ecf8427e"),
     says="layers[0].digest: read digest 'md5:*': expected 'sha256:' and 64 hexadecimal digits")

# ---- documents ----
item("index-nested-1000", "a thousand indexes, each inside the one before", lambda: nested(1000),
     says="indexes inside indexes",
     why="indexes in registries are at most two deep, and each level costs a request")
item("index-that-is-its-own-entry", "an index that lists itself", loop,
     says="has digest sha256:* and 301 bytes instead of 301")
item("manifest-is-also-an-index", "one document that is both a manifest and an index (CVE-2021-41190)", both_kinds,
     lie=True,
     says="it is an index and a manifest at once, so its meaning would depend on the reader")
item("manifest-of-20-mb", "a manifest of 20 MB",
     lambda: raw_manifest(b'{"schemaVersion": 2, "x": "' + b"x" * 20_000_000 + b'"}'),
     says="larger than 4194304 bytes")
item("manifest-of-100000-brackets", "JSON with a hundred thousand nested brackets",
     lambda: raw_manifest(b"[" * 100_000 + b"]" * 100_000),
     says="nested too deeply")
item("manifest-with-100000-layers", "the same layer, listed a hundred thousand times", edited(
    lambda m: m.update(layers=m["layers"] * 100_000)),
     says="larger than 4194304 bytes")
item("config-of-20-mb", "a config of 20 MB",
     configured(lambda c: c["config"].update(Labels={"x": "x" * 20_000_000})),
     says="its config is larger than the 4 MiB allowed",
     why="the whole config is read at every start; the largest ones in registries have some hundred kilobytes")
item("config-says-it-is-a-layer", "a config with the media type of a layer", edited(
    lambda m: m["config"].update(mediaType=images.OCI["gzip"])), lie=True,
     says="it is not a container image but an artifact of type "
          "'application/vnd.oci.image.layer.v1.tar+gzip'; try: the tool for such artifacts, such as helm or oras")
item("layer-says-it-is-a-config", "a layer with the media type of a config",
     first_layer(mediaType=images.OCI["config"]), lie=True,
     says="layer media type 'application/vnd.oci.image.config.v1+json' is unknown; tar, "
          "tar+gzip and tar+zstd can be unpacked")
item("layer-of-an-unknown-kind", "a layer of an unknown media type",
     first_layer(mediaType="application/x-evil"), lie=True,
     says="layer media type 'application/x-evil' is unknown; tar, tar+gzip and tar+zstd "
          "can be unpacked")
item("layer-elsewhere", "a foreign layer, to be fetched from the address it names (CVE-2020-15157)",
     first_layer(mediaType="application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
                 digest=NOBODY, urls=["http://169.254.169.254/latest/meta-data"]),
     says="it has no 'blobs/sha256/0*0'")
item("name-is-a-path", "an image name in the layout that is a path out of the store",
     with_index(lambda made: made.entry["annotations"].update({
         "io.containerd.image.name": f"{UP}{CANARY[1:]}/made"})
         if "annotations" in made.entry else made.entry.update(annotations={
             "org.opencontainers.image.ref.name": "latest",
             "io.containerd.image.name": f"{UP}{CANARY[1:]}/made"})), expect="contained")
item("label-with-escape", "a label with control sequences for the terminal",
     configured(lambda c: c["config"].update(Labels={"x": "\x1b[2J\nberth: all is well"})),
     expect="contained")
item("label-asks-the-engine", "labels and annotations that other engines obeyed (CVE-2026-53488)",
     lambda: layout(HELLO, base=True, config={"Labels": {
         "containerd.io/restart.loguri": f"binary:///bin/sh?-c=touch%20{CANARY}/made",
         "io.podman.annotations.privileged": "TRUE", "run.oci.hooks.stderr": f"{CANARY}/made"}}),
     expect="contained", run=("sh", "-c", "grep CapEff /proc/self/status | grep -c ffffffff; true"),
     prints="0")

# ---- registries ----
PULLED = of_entries(file("hello", "hi\n"))


def larger(exchange):
    """More bytes than the descriptor says, and no end in sight."""
    return exchange.answer(200, exchange.content[1] + b"x" * (1 << 20))


item("registry-sends-other-bytes", "the registry sends other bytes than the blob's, of the same size", PULLED, lie=True,
     faults={"blobs": [lambda e: e.answer(200, b"x" * len(e.content[1]))]},
     says="its bytes have digest 'sha256:*'")
item("registry-sends-more", "the registry sends more bytes than the blob has", PULLED, lie=True,
     faults={"blobs": [larger]},
     says="the answer is longer than * bytes")
item("registry-cuts-a-blob",
     "the registry sends only the start of a blob, in an answer that is complete for HTTP", PULLED,
     lie=True, faults={"blobs": [hostile_registry.truncated(50)]},
     says="50 of * bytes arrived")
item("registry-redirects-forever", "the registry redirects a blob's address to itself", PULLED,
     faults={"blobs": [hostile_registry.redirected_to_itself]},
     says="more than 10 redirects")
item("registry-sends-a-manifest-of-20-mb", "a manifest of 20 MB", PULLED,
     faults={"manifests": [hostile_registry.replaced(b" " * 20_000_000, images.OCI["manifest"])]},
     says="the answer is longer than 4194304 bytes")
item("registry-lies-about-the-type",
     "the answer's Content-Type says index, the document's mediaType says manifest", PULLED,
     lie=True, faults={"manifests": [lambda e: e.answer(
         200, e.content[1], {"Content-Type": images.OCI["index"]})]},
     says="it was announced as 'application/vnd.oci.image.index.v1+json' but calls itself "
          "'application/vnd.oci.image.manifest.v1+json'")
