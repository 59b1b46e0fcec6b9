# SPDX-License-Identifier: Apache-2.0
"""Checks whether a store is consistent, without any of Berth's programs.

    assert store_check.wrong(berth.root) == []
    assert store_check.trees(berth.root) == store_check.trees(other.root)
"""

import json
import pathlib

from support.kept import sha256_of
from support.store_listing import store_listing


def _read(path, wrong):
    """The JSON of a file; reports other content as wrong."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        wrong.append(f"{path.name}: {error}")
        return None


def _wrong_image(root, record, wrong):
    """An image with a record must have everything that its documents name."""
    documents = {}
    for member in ("digest", "manifest", "config"):
        name = record[member].removeprefix("sha256:")
        path = root / "blobs/sha256" / name
        documents[member] = _read(path, wrong) if path.exists() else None
        if documents[member] is None:
            wrong.append(f"image {record['reference']}: no {member} {name}")
            return
    if documents["manifest"]["config"]["digest"] != record["config"]:
        wrong.append(f"image {record['reference']}: the manifest names another config")
    for diff_id in documents["config"]["rootfs"]["diff_ids"]:
        name = diff_id.removeprefix("sha256:")
        if not any((root / "layers" / (name + flavour)).exists()
                   for flavour in ("", "-mapped", "-single")):
            wrong.append(f"image {record['reference']}: no layer {name}")


def wrong(root):
    """One line for each inconsistency in the store. Ignores tmp/, which belongs to running processes."""
    root, found = pathlib.Path(root), []
    for blob in (root / "blobs/sha256").glob("*"):
        if sha256_of(blob) != blob.name:
            found.append(f"blob {blob.name}: its bytes have another digest")
    for path in (root / "images").glob("*.json"):
        if record := _read(path, found):
            _wrong_image(root, record, found)
    for layer in (root / "layers").glob("*"):
        record = _read(layer / "layer.json", found)
        trees = [name for name in ("fs", "fs.erofs") if (layer / name).exists()]
        if record and (record["diff_id"].removeprefix("sha256:") != layer.name.partition("-")[0]
                       or len(trees) != 1):
            found.append(f"layer {layer.name}: {record['diff_id']} with {trees}")
    return found


def trees(root):
    """{name of a layer's directory: its contents}. Without the record of unpacking: it has times, such as
    those of directories that no entry names, which differ from pull to pull."""
    listings = {layer.name: store_listing(layer)
                for layer in (pathlib.Path(root) / "layers").glob("*")}
    for listing in listings.values():
        listing.pop("tree", None)
    return listings
