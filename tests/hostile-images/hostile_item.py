# SPDX-License-Identifier: Apache-2.0
"""What an item of the corpus is, and the bytes that items are made of."""

import dataclasses
import hashlib
import json
import pathlib
import sys
import typing

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

from support import images  # noqa: E402

CANARY = "/tmp/berth-tests-canary"  # what attacks reach for; it must stay as it is
UP = "../" * 40
NAME = "localhost/hostile:latest"


@dataclasses.dataclass
class Item:
    """`expect` is "refused" or "contained": taken, and nothing outside of it happens."""
    name: str
    attack: str
    make: typing.Callable  # → Layout
    kind: str  # the module that it is in: paths, kinds, sizes, documents, running
    expect: str = "refused"
    says: str = ""           # the end of Berth's line, where it is refused; * is anything
    run: tuple = ()          # a command in a container of it, where it is contained
    prints: str = ""         # what that prints
    run_says: str = ""       # the end of the line with which that is refused
    user_says: str = ""      # where only an ordinary user is refused
    why: str = ""            # where it is refused and another program contains it
    lie: bool = False        # who takes it has not looked: it says what it is not
    harm: typing.Callable | None = None  # (tree) → what harm the unpacked tree holds, or nothing
    environment: dict = dataclasses.field(default_factory=dict)  # of berth
    faults: dict = dataclasses.field(default_factory=dict)  # of the registry that has to serve it


ITEMS = []


def item(name, attack, make, **more):
    module = sys._getframe(1).f_globals["__name__"]
    ITEMS.append(Item(name, attack, make, module.removeprefix("hostile_"), **more))


# ---- tar members that no library would write ----------------------------------------------------

END = bytes(1024)


def record(name, kind=b"0", link="", content=b"", *, size=None, mode=b"0000644\0",
           uid=b"0000000\0", magic=b"ustar\x0000", major=0, minor=0, patch=()):
    """One member. Numbers are written as they are given; `patch` is [(offset, bytes)]."""
    header = bytearray(512)

    def put(offset, data):
        header[offset:offset + len(data)] = data

    put(0, name.encode() if isinstance(name, str) else name)
    put(100, mode + uid + b"0000000\0")
    put(124, size if size is not None else b"%011o\0" % len(content))
    put(136, b"14524670000\0")
    put(156, kind)
    put(157, link.encode() if isinstance(link, str) else link)
    put(257, magic)
    put(329, b"%07o\0" % major + b"%07o\0" % minor)
    for offset, data in patch:
        put(offset, data)
    put(148, b" " * 8)
    put(148, b"%06o\0 " % sum(header))
    return bytes(header) + content + bytes(-len(content) % 512)


def pax(*records):
    """An extended header of "key=value" for the next member."""
    text = b""
    for key, value in records:
        value = value.encode() if isinstance(value, str) else value
        body = b" " + key.encode() + b"=" + value + b"\n"
        length = len(body) + 1
        while len(b"%d" % length) + len(body) != length:
            length += 1
        text += b"%d" % length + body
    return record("pax", b"x", content=text)


def tar(*members):
    """Members (bytes) and entries of support.images, in their order."""
    return b"".join(m if isinstance(m, bytes) else images.layer([m])[:-10240] or b""
                    for m in members) + END


def entries(*members):
    return images.layer(list(members))


# ---- layouts ------------------------------------------------------------------------------------

class Repeated:
    """A blob that is one piece many times, and never whole in memory."""

    def __init__(self, head, piece, times, tail=b""):
        self.head, self.piece, self.times, self.tail = head, piece, times, tail
        self.size = len(head) + len(piece) * times + len(tail)
        sha = hashlib.sha256(head)
        for _ in range(times):
            sha.update(piece)
        sha.update(tail)
        self.digest = "sha256:" + sha.hexdigest()

    def write(self, file):
        file.write(self.head)
        for _ in range(self.times):
            file.write(self.piece)
        file.write(self.tail)


@dataclasses.dataclass
class Layout:
    image: images.Image
    entry: dict = dataclasses.field(default_factory=dict)  # changes of the index's entry
    blobs: dict = dataclasses.field(default_factory=dict)  # more of them: digest → bytes, Repeated
    index: bytes | None = None

    def index_bytes(self):
        entry = {"mediaType": self.image.media_type, "digest": self.image.digest,
                 "size": len(self.image.manifest),
                 "platform": {"os": "linux", "architecture": "amd64"},
                 "annotations": {"org.opencontainers.image.ref.name": "latest",
                                 "io.containerd.image.name": NAME}, **self.entry}
        return self.index or json.dumps({"schemaVersion": 2, "mediaType": images.OCI["index"],
                                         "manifests": [entry]}).encode()

    def write(self, directory):
        store = directory / "blobs/sha256"
        store.mkdir(parents=True)
        (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (directory / "index.json").write_bytes(self.index_bytes())
        for digest, data in {**self.image.blobs, self.image.digest: self.image.manifest,
                             **self.blobs}.items():
            with (store / digest.removeprefix("sha256:")).open("wb") as file:
                data.write(file) if isinstance(data, Repeated) else file.write(data)


def layout(*layers, base=False, config=None, **more):
    """Of the tar bytes in `layers`; `base`: over busybox, so that it can run."""
    every = ([images.busybox_layer()] if base else []) + list(layers)
    return Layout(images.build(every, config, **more))


def of_entries(*members, **more):
    return lambda: layout(entries(*members), **more)


def of_tar(*members, **more):
    return lambda: layout(tar(*members), **more)


def of_blob(blob, kind="gzip", diff_id=None):
    """One layer whose compressed bytes are `blob`, bytes or Repeated."""
    is_lazy = isinstance(blob, Repeated)
    digest = blob.digest if is_lazy else images.digest_of(blob)
    image = changed(images.build([b""], diff_ids=[diff_id or "sha256:" + "0" * 64]),
                    lambda m: m["layers"][0].update(
                        mediaType=images.OCI[kind], digest=digest,
                        size=blob.size if is_lazy else len(blob)))
    return Layout(image, blobs={digest: blob})


def changed(image, edit):
    """The image with another manifest."""
    manifest = json.loads(image.manifest)
    edit(manifest)
    image.manifest = json.dumps(manifest).encode()
    return image


def changed_config(image, edit):
    """The image with another config, and the manifest that names it."""
    config = json.loads(image.config)
    edit(config)
    data = json.dumps(config).encode()
    image.blobs.pop(images.digest_of(image.config), None)
    image.config = data
    image.blobs[images.digest_of(data)] = data
    return changed(image, lambda m: m["config"].update(digest=images.digest_of(data),
                                                       size=len(data)))
