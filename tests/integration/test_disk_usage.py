# SPDX-License-Identifier: Apache-2.0
"""'system df' says what 'du' says of the store: packed layers, manifests and records are in it."""

import json
import os
import subprocess

import pytest
from support import images

SIZE = 400_000
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def number(text):
    """"12.3MB (45%)" in bytes."""
    text = text.split()[0]
    digits = text.rstrip("kMGB")
    return float(digits) * UNITS[text[len(digits):]]


def usage(berth):
    rows = berth.ok("system", "df", "--format", "{{.Type}}|{{.Size}}|{{.Reclaimable}}")
    return {row.split("|")[0]: [number(text) for text in row.split("|")[1:]]
            for row in rows.splitlines()}


def total(berth):
    return sum(size for size, _ in usage(berth).values())


def du(berth):
    """All files of the store; directories take what the file system likes."""
    sizes = {}
    for path, _, names in os.walk(berth.root):
        for name in names:
            status = os.lstat(os.path.join(path, name))
            sizes[status.st_ino] = status.st_size
    out = subprocess.run(["du", "-s", "--apparent-size", "--block-size=1", berth.root], check=True,
                         capture_output=True, text=True).stdout
    assert sum(sizes.values()) <= int(out.split()[0])
    return sum(sizes.values())


def image(name):
    return images.build([images.busybox_layer(),
                         images.layer([images.file(name, os.urandom(SIZE))])])


@pytest.mark.parametrize("flags", [[], ["--keep-blobs"]])
def test_the_sum_of_the_table_is_what_du_says(berth, push, flags):
    references = [push(image(name)) for name in "ab"]
    for reference in references:
        berth.ok("pull", "-q", *flags, reference)
    assert abs(total(berth) - du(berth)) < 0.03 * du(berth)
    if not list(berth.root.glob("layers/*/fs.erofs")):
        berth.ok("system", "dedupe")
    berth.ok("run", "--name", "hold", references[0], "sh", "-c",
             f"head -c {SIZE} /dev/urandom > /written")
    assert abs(total(berth) - du(berth)) < 0.03 * du(berth)


def test_each_image_tells_its_packed_layers(berth, push):
    kept, other = image("a"), image("b")
    for made, flags in ((kept, ["--keep-blobs"]), (other, [])):
        berth.ok("pull", "-q", *flags, push(made))
    rows = {row["ID"]: row for row in
            json.loads(berth.ok("system", "df", "-v", "--format", "json"))["Images"]}
    packed = sum(len(kept.blobs[digest]) for digest in kept.layer_digests)
    documents = [len(made.manifest) + len(made.config) for made in (kept, other)]
    assert abs(number(rows[kept.id]["BlobSize"]) - packed - documents[0]) < 0.01 * packed
    assert abs(number(rows[other.id]["BlobSize"]) - packed) < packed  # the shared base layer's blob
    assert number(rows[other.id]["BlobSize"]) < packed
    assert "BLOB SIZE" in berth.ok("system", "df", "-v")


def test_a_prune_gives_back_what_was_said(berth, push):
    references = [push(image(name)) for name in "ab"]
    for reference in references:
        berth.ok("pull", "-q", "--keep-blobs", reference)
    berth.ok("create", "--name", "hold", references[0], "true")
    said = usage(berth)["Images"][1]
    assert SIZE * 2 < said < SIZE * 2.2
    before = du(berth)
    out = berth.ok("image", "prune", "-a", "-f").splitlines()[-1]
    given = number(out.removeprefix("Total reclaimed space: "))
    assert abs(given - said) < 0.02 * said
    assert abs(before - du(berth) - said) < 0.02 * said
    assert usage(berth)["Images"][1] == 0


def test_what_nothing_needs_is_reclaimable_and_goes(berth, push):
    reference = push(image("a"))
    berth.ok("pull", "-q", reference)
    [record] = (berth.root / "images").glob("*.json")
    record.unlink()
    assert usage(berth)["Images"][1] > SIZE
    assert number(berth.ok("image", "prune", "-f").split(": ")[1]) > SIZE
    assert list((berth.root / "layers").iterdir()) == []
    assert usage(berth)["Images"] == [0, 0]
