# SPDX-License-Identifier: Apache-2.0
"""An image as large as those of machine learning, made of real programs and libraries: Debian's packages,
unpacked into six layers. A second one shares all layers but its last, and a third has only that last layer.
They are built once per machine, into the kept storage of a registry.

usage: large_image.py        builds what is missing and prints the storage's directory
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import debian, debian_images, kept, registry
from support.images import OCI

VERSION = "large-1"  # change it with the recipe below
SUITE = "bookworm"  # on all machines, so that a bench pulls the same image everywhere
REPOSITORY = "bench/large"
FIRST, SECOND, ALONE = "first", "second", "alone"  # tags
PACKAGES = {  # layer: the packages that are unpacked into it; the base is debootstrap's
    "programs": """
        chromium chromium-common firefox-esr thunderbird coq racket openjdk-17-jdk-headless
        openjdk-17-jre-headless golang-1.19-go libreoffice-core inkscape blender
        libwebkit2gtk-4.0-37 libwebkitgtk-6.0-4 libqt6webenginecore6 libtorch1.13 qemu-system-misc
        libstd-rust-1.63 libstd-rust-dev libllvm14 gcc-12 g++-12 cpp-12 gfortran-12
        qemu-user-static libllvm15 libllvm16 valgrind""",
    "headers": "libboost1.74-dev llvm-14-dev libclang-14-dev libssl-dev libicu-dev",
    "python": """
        ansible ansible-core python3-numpy python3-scipy python3-pandas python3-sympy
        python3-matplotlib python3-sklearn python3-sklearn-lib python3-statsmodels python3-astropy
        python3-django python3-botocore python-babel-localedata python3-twisted python3-torch
        python3-pip libpython3.11-stdlib libopenblas0-pthread""",
    "texts": """
        golang-1.19-src texlive-latex-extra texlive-latex-recommended perl-modules-5.36 vim-runtime
        emacs-el""",
    "mariadb": "mariadb-server-core",
    "postgresql": "postgresql-15",
}
SHARED = ["base", "programs", "headers", "python", "texts"]
IMAGES = {FIRST: [*SHARED, "mariadb"], SECOND: [*SHARED, "postgresql"], ALONE: ["postgresql"]}
LEAST = {"unpacked bytes": 4_000_000_000, "files": 80_000,
         "compressed bytes of the largest layer": 1_500_000_000}
CHUNK = 1 << 20


@dataclasses.dataclass
class Layer:
    """One layer in the registry: `entries` of all kinds, `files` with content."""
    name: str
    digest: str
    diff_id: str
    size: int
    unpacked: int
    entries: int
    files: int


def say(text):
    print(f"== large image: {text}", file=sys.stderr, flush=True)


def run(*argv, **options):
    return debian_images.run(*argv, **options)


# ---- layers --------------------------------------------------------------------------------------

def apt(place):
    """The apt command with separate lists at `place`, those of the base's suite."""
    (place / "lists/partial").mkdir(parents=True)
    (place / "sources.list").write_text(f"deb {debian.mirror()} {SUITE} main\n")
    options = {"Dir::Etc::SourceList": place / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
               "Dir::State::Lists": place / "lists", "Dir::State::Status": "/dev/null", "Dir::Cache": place,
               "APT::Sandbox::User": "root"}
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]


def download(packages, directory):
    """With apt, from the base's suite even if the machine has another."""
    command = apt(directory)
    run(*command, "update")
    run(*command, "download", *packages, cwd=directory)
    return sorted(directory.glob("*.deb"))


def unpack(packages, scratch):
    """The directory with the files of the packages, laid out as by dpkg."""
    tree = scratch / "tree"
    tree.mkdir()
    for package in download(packages, scratch / "packages"):
        run("dpkg-deb", "--extract", package, tree)
        package.unlink()
    for name in ("bin", "lib", "lib64", "sbin"):  # links to usr/… in the base
        if (tree / name).is_dir():
            run("cp", "-a", "--link", f"{tree / name}/.", tree / "usr" / name)
            shutil.rmtree(tree / name)
    return tree


def counted(tree):
    """(entries, files with content) below a directory."""
    entries = files = 0
    for directory, directories, names in os.walk(tree):
        entries += len(directories) + len(names)
        files += sum(not os.path.islink(os.path.join(directory, name)) for name in names)
    return entries, files


def pack(name, tree, blob):
    """tar
    pigz -6, one gzip member as builders write it; hashes both sides."""
    archive = subprocess.Popen(
        ["tar", "--numeric-owner", "--owner=0", "--group=0", "--sort=name", "-C", tree, "-cf", "-",
         "."], stdout=subprocess.PIPE)
    packed = subprocess.Popen(["pigz", "-6", "--no-name"], stdin=subprocess.PIPE,
                              stdout=open(blob, "wb"))
    plain, unpacked = hashlib.sha256(), 0
    while data := archive.stdout.read(CHUNK):
        plain.update(data)
        packed.stdin.write(data)
        unpacked += len(data)
        if sys.stderr.isatty() and unpacked % (100 * CHUNK) == 0:
            print(f"\r   {unpacked / 1e9:.1f} GB", end="\r", file=sys.stderr, flush=True)
    packed.stdin.close()
    if archive.wait() or packed.wait():
        raise RuntimeError(f"layer {name}: tar {archive.returncode}, pigz {packed.returncode}")
    with open(blob, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Layer(name, f"sha256:{digest}", f"sha256:{plain.hexdigest()}", blob.stat().st_size,
                 unpacked, *counted(tree))


def make_tree(name, scratch):
    if name == "base":
        root = scratch / "tree"
        run("debootstrap", "--variant=minbase", SUITE, root, debian.mirror())
        shutil.rmtree(root / "dev")  # the runtime's own
        (root / "dev").mkdir()
        return root
    return unpack(PACKAGES[name].split(), scratch)


def push_layer(name, server, scratch):
    started = time.monotonic()
    say(f"{name}: {len(PACKAGES.get(name, '').split()) or 'debootstrap and its'} packages …")
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=scratch) as place:
        place = pathlib.Path(place)
        layer = pack(name, make_tree(name, place), place / "blob")
        with open(place / "blob", "rb") as stream:
            server.put_blob(REPOSITORY, layer.digest, stream)
    say(f"{name}: {layer.files:,} files, {layer.unpacked / 1e6:,.0f} MB, packed "
        f"{layer.size / 1e6:,.0f} MB, in {time.monotonic() - started:.0f} s")
    return layer


# ---- images --------------------------------------------------------------------------------------

def push_image(tag, layers, server):
    config = json.dumps({
        "created": "2026-01-02T03:04:05Z", "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["/bin/bash"]},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": "2026-01-02T03:04:05Z", "created_by": layer.name}
                    for layer in layers]}).encode()
    digest = "sha256:" + hashlib.sha256(config).hexdigest()
    server.put_blob(REPOSITORY, digest, config)
    server.put_manifest(REPOSITORY, tag, OCI["manifest"], json.dumps({
        "schemaVersion": 2, "mediaType": OCI["manifest"],
        "config": {"mediaType": OCI["config"], "digest": digest, "size": len(config)},
        "layers": [{"mediaType": OCI["gzip"], "digest": layer.digest, "size": layer.size}
                   for layer in layers]}).encode())


def check(layers):
    """Checks the first image's figures that the bench promises."""
    found = {"unpacked bytes": sum(layer.unpacked for layer in layers),
             "files": sum(layer.files for layer in layers),
             "compressed bytes of the largest layer": max(layer.size for layer in layers)}
    for name, least in LEAST.items():
        if found[name] < least:
            raise RuntimeError(f"large image: {found[name]:,} {name}, wanted {least:,}: Debian's "
                               f"packages have changed, see {__file__}")


def build(storage):
    scratch = storage.parent
    with registry.running(scratch / "registry", storage=storage) as server:
        made = {name: push_layer(name, server, scratch) for name in ["base", *PACKAGES]}
        for tag, names in IMAGES.items():
            push_image(tag, [made[name] for name in names], server)
    check([made[name] for name in IMAGES[FIRST]])
    (storage / "layers.json").write_text(
        json.dumps([dataclasses.asdict(layer) for layer in made.values()], indent=1))


def kept_storage():
    """The directory of a registry's storage with the images; builds it the first time (some minutes, 10 GB of
    temporary space, and 1.5 GB to download)."""
    return kept.directory(f"registry-{VERSION}", build)


def layers_of(storage, tag):
    """The layers of an image, lowest first."""
    listed = json.loads((storage / "layers.json").read_text())
    made = {layer["name"]: Layer(**layer) for layer in listed}
    return [made[name] for name in IMAGES[tag]]


def blob_path(storage, layer):
    """The path of a blob in the registry's storage."""
    text = layer.digest.removeprefix("sha256:")
    return storage / "docker/registry/v2/blobs/sha256" / text[:2] / text / "data"


if __name__ == "__main__":
    print(kept_storage())
