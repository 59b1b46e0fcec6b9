# SPDX-License-Identifier: Apache-2.0
"""Writes images, valid and hostile ones, byte by byte as a test requests.

    layer = images.layer([images.file("hello", b"hi\\n"), images.whiteout("gone")])
    image = images.build([images.busybox_layer(), layer], config={"Cmd": ["/bin/sh"]})
    digest = image.push(registry, "some/name", "tag")
"""

import dataclasses
import functools
import gzip
import hashlib
import io
import json
import subprocess
import tarfile

OCI = {
    "manifest": "application/vnd.oci.image.manifest.v1+json",
    "index": "application/vnd.oci.image.index.v1+json",
    "config": "application/vnd.oci.image.config.v1+json",
    "none": "application/vnd.oci.image.layer.v1.tar",
    "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
    "zstd": "application/vnd.oci.image.layer.v1.tar+zstd",
}
DOCKER = {
    "manifest": "application/vnd.docker.distribution.manifest.v2+json",
    "index": "application/vnd.docker.distribution.manifest.list.v2+json",
    "config": "application/vnd.docker.container.image.v1+json",
    "none": "application/vnd.docker.image.rootfs.diff.tar",
    "gzip": "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "zstd": "application/vnd.docker.image.rootfs.diff.tar.zstd",
}
FLAVOURS = {"oci": OCI, "docker": DOCKER}
EPOCH = 1700000000


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


# ---- entries of a layer: (TarInfo, content) ----------------------------------------------------

def _entry(path, kind, mode, uid, gid, content=None, **more):
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.uid, info.gid, info.mtime = kind, mode, uid, gid, EPOCH
    for name, value in more.items():
        setattr(info, name, value)
    if content is not None:
        info.size = len(content)
    return info, content


def file(path, content=b"", mode=0o644, uid=0, gid=0, **more):
    content = content.encode() if isinstance(content, str) else content
    return _entry(path, tarfile.REGTYPE, mode, uid, gid, content, **more)


def directory(path, mode=0o755, uid=0, gid=0, **more):
    return _entry(path, tarfile.DIRTYPE, mode, uid, gid, **more)


def symlink(path, target, uid=0, gid=0):
    return _entry(path, tarfile.SYMTYPE, 0o777, uid, gid, linkname=target)


def hardlink(path, target):
    return _entry(path, tarfile.LNKTYPE, 0o644, 0, 0, linkname=target)


def character_device(path, major, minor, mode=0o666):
    return _entry(path, tarfile.CHRTYPE, mode, 0, 0, devmajor=major, devminor=minor)


def fifo(path, mode=0o644):
    return _entry(path, tarfile.FIFOTYPE, mode, 0, 0)


def whiteout(path):
    parent, _, name = path.rpartition("/")
    return file(f"{parent}/.wh.{name}" if parent else f".wh.{name}")


def opaque(path):
    return file(f"{path}/.wh..wh..opq")


def layer(entries, tar_format=tarfile.PAX_FORMAT):
    """The tar bytes of the entries, in this order, without corrections."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    return buffer.getvalue()


@functools.cache
def busybox_layer():
    """A root file system from busybox-static: a shell, its applets, and two users."""
    with open("/bin/busybox", "rb") as program:
        busybox = program.read()
    applets = subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True)
    entries = [directory(path) for path in
               ("bin", "dev", "etc", "home", "proc", "root", "sys", "usr", "usr/bin", "var")]
    entries += [
        directory("tmp", mode=0o1777),
        directory("home/sailor", mode=0o750, uid=1000, gid=1000),
        file("home/sailor/owned", "by 1000\n", uid=1000, gid=1000),
        file("bin/busybox", busybox, mode=0o755),
        file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                           "sailor:x:1000:1000:a sailor:/home/sailor:/bin/sh\n"
                           "nobody:x:65534:65534:nobody:/:/bin/false\n"),
        file("etc/group", "root:x:0:\nsailor:x:1000:\ncrew:x:2000:sailor\nnogroup:x:65534:\n"),
    ]
    entries += [symlink(f"bin/{name}", "busybox") for name in applets.stdout.split()
                if name != "busybox"]
    return layer(entries)


# ---- images -------------------------------------------------------------------------------------

def compress(data, compression):
    if compression == "gzip":
        return gzip.compress(data, compresslevel=1, mtime=0)
    if compression == "zstd":
        return subprocess.run(["zstd", "-q", "-3", "-c"], input=data, check=True,
                              capture_output=True).stdout
    return data


@dataclasses.dataclass
class Image:
    """A manifest with its blobs. A test may change the bytes before push() to make an invalid image."""
    flavour: str
    architecture: str
    config: bytes
    manifest: bytes
    blobs: dict  # digest: bytes, of the config and the layers
    layer_digests: list
    diff_ids: list

    @property
    def digest(self):
        return digest_of(self.manifest)

    @property
    def id(self):
        return digest_of(self.config)

    @property
    def media_type(self):
        return FLAVOURS[self.flavour]["manifest"]

    def push(self, registry, name, tag="latest"):
        """Uploads everything; returns the manifest's digest."""
        for digest, data in self.blobs.items():
            registry.put_blob(name, digest, data)
        return registry.put_manifest(name, tag, self.media_type, self.manifest)


def build(layers, config=None, *, compression="gzip", flavour="oci", architecture="amd64",
          history=None, diff_ids=None):
    """An image of the tar bytes in `layers`, lowest first. `config` is the image's own 'config'
    object: Env, Cmd, Entrypoint, User, WorkingDir …"""
    types = FLAVOURS[flavour]
    blobs = [compress(data, compression) for data in layers]
    diff_ids = diff_ids or [digest_of(data) for data in layers]
    config_bytes = json.dumps({
        "created": "2026-01-02T03:04:05Z",
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["/bin/sh"],
                   **(config or {})},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": history or [{"created": "2026-01-02T03:04:05Z", "created_by": f"layer {n}"}
                               for n in range(len(layers))],
    }).encode()
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": types["manifest"],
        "config": {"mediaType": types["config"], "digest": digest_of(config_bytes),
                   "size": len(config_bytes)},
        "layers": [{"mediaType": types[compression], "digest": digest_of(blob), "size": len(blob)}
                   for blob in blobs],
    }).encode()
    return Image(flavour, architecture, config_bytes, manifest,
                 {digest_of(data): data for data in (config_bytes, *blobs)},
                 [digest_of(blob) for blob in blobs], diff_ids)


def write_layout(place, named):
    """Writes an OCI layout of [(reference, Image)] to the directory `place`."""
    (place / "blobs/sha256").mkdir(parents=True)
    entries = []
    for reference, image in named:
        for digest, data in {**image.blobs, image.digest: image.manifest}.items():
            (place / "blobs/sha256" / digest.removeprefix("sha256:")).write_bytes(data)
        entries.append({"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest),
                        "annotations": {"io.containerd.image.name": reference}})
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def push_index(registry, name, tag, images, annotations=None):
    """Pushes an index (or Docker's list) of images for several architectures; returns its digest.
    `annotations`: a dict for each image."""
    types = FLAVOURS[images[0].flavour]
    entries = []
    for number, image in enumerate(images):
        image.push(registry, name, image.digest)
        entries.append({"mediaType": image.media_type, "digest": image.digest,
                        "size": len(image.manifest),
                        "platform": {"os": "linux", "architecture": image.architecture}})
        if annotations and annotations[number]:
            entries[-1]["annotations"] = annotations[number]
    data = json.dumps({"schemaVersion": 2, "mediaType": types["index"],
                       "manifests": entries}).encode()
    return registry.put_manifest(name, tag, types["index"], data)


@functools.cache
def busybox(compression="gzip", flavour="oci"):
    return build([busybox_layer()], compression=compression, flavour=flavour)
