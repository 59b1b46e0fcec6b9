# SPDX-License-Identifier: Apache-2.0
"""Images go through skopeo, buildah and docker and come back: the image's id is always the same,
the manifest's digest wherever the tool keeps the manifest, a layer's bytes wherever it keeps them."""

import json
import os
import subprocess
import tarfile

import pytest

from support import debian_images, images

pytestmark = pytest.mark.profiles("root")  # what others read and write has nothing to do with users

FORMATS = [("oci", "gzip"), ("oci", "zstd"), ("oci", "none"), ("docker", "gzip")]
# Debian's skopeo finds no manifest of Docker's type in an OCI layout, whoever wrote it.
of_oci = pytest.mark.parametrize("image", FORMATS[:3], ids="-".join, indirect=True)
of_docker = pytest.mark.parametrize("image", [("docker", "gzip"), ("oci", "gzip"), ("oci", "none")],
                                    ids="-".join, indirect=True)  # docker 20.10 knows no zstd

CONFIG = {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["cat /greeting"], "User": "1000:1000",
          "WorkingDir": "/home/sailor", "Env": ["PATH=/bin", "SHIP=boat"], "StopSignal": "SIGUSR1",
          "ExposedPorts": {"80/tcp": {}}, "Volumes": {"/cargo": {}},
          "Labels": {"org.example.ship": "boat", "org.example.odd": "ü \"quoted\" \\ text"}}
HISTORY = [{"created": "2026-01-02T03:04:05.123456789Z", "created_by": "ADD busybox /"},
           {"created": "2026-01-02T03:04:06Z", "created_by": "ENV SHIP=boat", "empty_layer": True},
           {"created": "2026-01-02T03:04:07Z", "created_by": "COPY greeting /", "comment": "a ship",
            "author": "A. Sailor"}]


def make(flavour="oci", compression="gzip"):
    upper = images.layer([images.file("greeting", "hello\n"), images.whiteout("usr/bin"),
                          images.hardlink("greeting-too", "greeting")])
    return images.build([images.busybox_layer(), upper], CONFIG, flavour=flavour,
                        compression=compression, history=HISTORY)


@pytest.fixture(params=FORMATS, ids="-".join)
def image(request):
    return make(*request.param)


def tool(*words, env=None):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, (words, done.stderr, done.stdout)
    return done.stdout.strip()


PLAIN = ("--src-tls-verify=false", "--dest-tls-verify=false")


def skopeo_copy(source, target, *flags):
    """Untouched where the target can hold that; else it packs layers that are not packed."""
    if not target.startswith("docker-archive:"):
        flags += ("--preserve-digests",)
    tool("skopeo", "copy", "-q", *PLAIN, *flags, source, target)


@pytest.fixture
def buildah(work):
    """buildah(word…): with a store of the test's own."""
    def call(*words):
        return tool("buildah", "--root", work / "buildah", "--runroot", work / "buildah-run",
                    "--storage-driver", "vfs", *words, env={**os.environ, "TMPDIR": str(work)})
    return call


@pytest.fixture(scope="module")
def docker(session_directory):
    """docker(word…): with a dockerd of this module's own."""
    place = session_directory / "docker"
    place.mkdir()
    with debian_images.docker_engine(place) as client:
        yield lambda *words: tool(*client, *words, env={**os.environ, "HOME": str(place)})


def put(image, registry, name):
    image.push(registry, name)
    return f"{registry.address}/{name}:latest"


def layout_of(berth, name, count=iter(range(100))):
    """An OCI layout of the image as Berth saves it: (the descriptor in its index, directory)."""
    layout = berth.directory / f"layout-{next(count)}"
    berth.ok("save", "--format", "oci", "-o", layout, name)
    (entry,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    return entry, layout


def read(layout, digest):
    data = (layout / "blobs" / digest.replace(":", "/")).read_bytes()
    assert images.digest_of(data) == digest
    return data


def assert_same_image(berth, name, image, *, manifest=True):
    """`name` in Berth's store is `image`: id, config and diff ids; and the very manifest and layer
    bytes, where nobody on the way packs anew."""
    entry, layout = layout_of(berth, name)
    found = json.loads(read(layout, entry["digest"]))
    assert found["config"]["digest"] == image.id
    assert read(layout, image.id) == image.config
    if manifest:
        assert entry["digest"] == image.digest
        assert [layer["digest"] for layer in found["layers"]] == image.layer_digests
        for digest in image.layer_digests:
            assert read(layout, digest) == image.blobs[digest]
    assert berth.ok("run", "--rm", name) == "hello\n"


def fresh(berth, *names):
    """Nothing of the images is left in Berth's store: what is there next came back."""
    berth.ok("rmi", "-f", *names)
    assert berth.ok("images", "-q") == ""
    assert not list((berth.root / "layers").iterdir())


# ---- registry to registry -----------------------------------------------------------------------

def test_a_registry_copy_by_berth_is_the_same_for_skopeo(berth, push, image, start_registry):
    reference, target = push(image), f"{start_registry().address}/copy/app:1"
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, target)
    berth.ok("push", "-q", target)
    raw = tool("skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{target}")
    assert images.digest_of(raw.encode()) == image.digest
    skopeo_copy(f"docker://{target}", f"dir:{berth.directory}/copy")
    for digest in image.layer_digests:
        kept = berth.directory / "copy" / digest.removeprefix("sha256:")
        assert kept.read_bytes() == image.blobs[digest]


def test_berth_skopeo_berth_through_registries(berth, push, image, start_registry):
    reference = push(image)
    there, back = (f"{start_registry().address}/{name}/app:1" for name in ("there", "back"))
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, there)
    berth.ok("push", "-q", there)
    skopeo_copy(f"docker://{there}", f"docker://{back}")
    fresh(berth, reference, there)
    assert f"Digest: {image.digest}\n" in berth.ok("pull", back)
    assert_same_image(berth, back, image)


def test_buildah_berth_buildah_through_registries(berth, push, image, registry, buildah):
    name = f"test/buildah-{image.digest[7:19]}"
    first = buildah("pull", "--tls-verify=false", push(image))
    buildah("push", "-q", "--tls-verify=false", first, f"docker://{registry.address}/{name}:1")
    berth.ok("pull", "-q", f"{registry.address}/{name}:1")
    assert_same_image(berth, f"{registry.address}/{name}:1", image, manifest=False)
    given = registry.manifest(name, "1")[0]
    berth.ok("tag", f"{registry.address}/{name}:1", f"{registry.address}/{name}:2")
    berth.ok("push", "-q", f"{registry.address}/{name}:2")
    assert registry.manifest(name, "2")[0] == given
    buildah("rmi", "-a", "-f")
    again = buildah("pull", "--tls-verify=false", f"{registry.address}/{name}:2")
    assert again == first == image.id.removeprefix("sha256:")


@of_docker
def test_docker_berth_docker_through_registries(berth, push, image, registry, docker):
    name = f"test/docker-{image.digest[7:19]}"
    reference, target = push(image), f"{registry.address}/{name}:1"
    docker("pull", "-q", reference)
    docker("tag", reference, target)
    docker("push", "-q", target)
    docker("rmi", "-f", reference, target)
    berth.ok("pull", "-q", target)
    assert_same_image(berth, target, image, manifest=False)
    given = registry.manifest(name, "1")[0]
    berth.ok("tag", target, f"{registry.address}/{name}:2")
    berth.ok("push", "-q", f"{registry.address}/{name}:2")
    assert registry.manifest(name, "2")[0] == given
    docker("pull", "-q", f"{registry.address}/{name}:2")
    shown = json.loads(docker("inspect", f"{registry.address}/{name}:2"))[0]
    docker("rmi", "-f", f"{registry.address}/{name}:2")
    assert shown["Id"] == image.id
    assert shown["Config"]["Labels"] == CONFIG["Labels"]
    assert shown["RepoDigests"] == [f"{registry.address}/{name}@{given}"]


# ---- files --------------------------------------------------------------------------------------

@pytest.fixture
def pulled(berth, push, image):
    """The image in Berth's store as boat:1 and example.com/fleet/boat:2."""
    reference = push(image)
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, "boat:1")
    berth.ok("tag", reference, "example.com/fleet/boat:2")
    berth.ok("rmi", reference)
    return image


@of_oci
@pytest.mark.parametrize("kept", ["fetched again", "kept"])
@pytest.mark.parametrize("transport", ["oci-archive:{}/b.tar:boat:1", "oci:{}/b:boat:1"])
def test_berth_skopeo_berth_as_an_oci_layout(berth, pulled, work, transport, kept, push):
    if kept == "kept":
        berth.ok("pull", "-q", "--keep-blobs", push(pulled))
    berth.ok("save", "-o", work / "saved.tar", "boat:1")
    _, layout = layout_of(berth, "boat:1")
    target = transport.format(work)
    for source in (f"oci-archive:{work}/saved.tar:boat:1", f"oci:{layout}:boat:1"):
        berth.run("rmi", "-f", pulled.id)
        skopeo_copy(source, target)
        path = work / target.split(":")[1].rpartition("/")[2]
        assert berth.ok("load", "-i", path) == "Loaded image: boat:1\n"
        assert_same_image(berth, "boat:1", pulled)
        tool("rm", "-rf", path)


def test_berth_skopeo_berth_as_a_docker_archive(berth, pulled, work):
    berth.ok("save", "-o", work / "saved.tar", "boat:1")
    fresh(berth, pulled.id)
    skopeo_copy(f"docker-archive:{work}/saved.tar:boat:1", f"docker-archive:{work}/b.tar:boat:1")
    assert berth.ok("load", "-i", work / "b.tar") == "Loaded image: boat:1\n"
    assert_same_image(berth, "boat:1", pulled, manifest=False)


def file_trips(image):
    """The transports that hold such an image: Debian's skopeo finds no manifest of Docker's type in
    an OCI layout, whoever wrote it, and it and docker 20.10 know no zstd in a docker-archive."""
    flavour, compression = image
    transports = ["oci-archive", "oci"] if flavour == "oci" else []
    return transports + (["docker-archive"] if compression != "zstd" else [])


each_trip = pytest.mark.parametrize(
    "image,transport", [(image, transport) for image in FORMATS for transport in file_trips(image)],
    ids=lambda value: value if isinstance(value, str) else "-".join(value), indirect=["image"])


@each_trip
def test_skopeo_berth_skopeo_as_files(berth, push, image, work, transport):
    skopeo_copy(f"docker://{push(image)}", f"{transport}:{work}/b.tar:boat:1")
    assert berth.ok("load", "-i", work / "b.tar") == "Loaded image: boat:1\n"
    entry, layout = layout_of(berth, "boat:1")
    if transport != "docker-archive":
        assert entry["digest"] == image.digest
    berth.ok("save", "-o", work / "saved.tar", "boat:1")
    for source in (f"oci:{layout}:boat:1", f"oci-archive:{work}/saved.tar:boat:1",
                   f"docker-archive:{work}/saved.tar:boat:1"):
        config = tool("skopeo", "inspect", "--config", "--raw", source)
        assert images.digest_of(config.encode()) == image.id, source
        raw = tool("skopeo", "inspect", "--raw", source)
        if not source.startswith("docker-archive"):
            assert images.digest_of(raw.encode()) == entry["digest"]


@each_trip
def test_berth_buildah_berth_as_files(berth, pulled, work, buildah, transport):
    berth.ok("save", "-o", work / "saved.tar", "boat:1", "example.com/fleet/boat:2")
    fresh(berth, pulled.id)
    source = "docker-archive" if transport == "docker-archive" else "oci-archive"
    got = buildah("pull", f"{source}:{work}/saved.tar:boat:1")
    assert got == pulled.id.removeprefix("sha256:")
    format_flags = () if transport == "docker-archive" else ("--format", "oci")
    buildah("push", "-q", *format_flags, got, f"{transport}:{work}/b.tar:boat:1")
    assert berth.ok("load", "-i", work / "b.tar") == "Loaded image: boat:1\n"
    assert_same_image(berth, "boat:1", pulled, manifest=False)


@of_docker
def test_berth_docker_berth_as_an_archive(berth, pulled, work, docker):
    berth.ok("save", "-o", work / "saved.tar", "boat:1", "example.com/fleet/boat:2")
    fresh(berth, pulled.id)
    try:
        loaded = docker("load", "-i", work / "saved.tar")
        assert sorted(loaded.splitlines()) == ["Loaded image: boat:1",
                                               "Loaded image: example.com/fleet/boat:2"]
        shown = json.loads(docker("inspect", "boat:1"))[0]
        assert shown["Id"] == pulled.id
        assert shown["Config"]["Entrypoint"] == CONFIG["Entrypoint"]
        assert shown["Config"]["StopSignal"] == "SIGUSR1"
        docker("save", "-o", work / "b.tar", "boat:1", "example.com/fleet/boat:2")
    finally:
        docker("rmi", "-f", pulled.id)
    assert sorted(berth.ok("load", "-i", work / "b.tar").splitlines()) == [
        "Loaded image: boat:1", "Loaded image: example.com/fleet/boat:2"]
    assert_same_image(berth, "boat:1", pulled, manifest=False)


def test_docker_berth_docker_as_an_archive(berth, work, docker):
    """An image that docker itself made, with a config in docker's own words."""
    root = work / "root.tar"
    root.write_bytes(images.busybox_layer())
    made = docker("import", "--change", 'CMD ["/bin/sh"]', "--change", "LABEL a=b", root, "own:1")
    try:
        docker("save", "-o", work / "a.tar", "own:1")
        docker("rmi", "-f", made)
        assert berth.ok("load", "-i", work / "a.tar") == "Loaded image: own:1\n"
        berth.ok("save", "-o", work / "b.tar", "own:1")
        assert docker("load", "-i", work / "b.tar") == "Loaded image: own:1"
        assert json.loads(docker("inspect", "own:1"))[0]["Id"] == made
        with tarfile.open(work / "b.tar") as archive:
            (entry,) = json.load(archive.extractfile("manifest.json"))
        assert "sha256:" + entry["Config"].removesuffix(".json").rpartition("/")[2] == made
    finally:
        docker("rmi", "-f", made)


def test_the_history_is_told_as_it_was(berth, pulled, work):
    berth.ok("save", "-o", work / "saved.tar", "boat:1")
    fresh(berth, pulled.id)
    berth.ok("load", "-i", work / "saved.tar")
    shown = berth.ok("history", "--no-trunc", "boat:1")
    for step in HISTORY:
        assert step["created_by"] in shown
    assert "a ship" in shown


# ---- several platforms --------------------------------------------------------------------------

def fleet():
    amd = make()
    arm = images.build([images.layer([images.file("arm", "arm\n")])], architecture="arm64")
    return amd, arm


def test_an_index_goes_through_skopeo_and_has_its_digest_still(berth, registry, start_registry):
    amd, arm = fleet()
    digest = images.push_index(registry, "test/fleet", "1", [amd, arm])
    target = f"{start_registry().address}/copied/fleet:1"
    skopeo_copy(f"docker://{registry.address}/test/fleet:1", f"docker://{target}", "--all")
    assert f"Digest: {digest}\n" in berth.ok("pull", target)
    assert_same_image(berth, target, amd)
    berth.ok("pull", "-q", "--platform", "linux/arm64", target)
    entry, _ = layout_of(berth, target)
    assert entry["digest"] == arm.digest


@pytest.mark.parametrize("transport", ["oci:{}/fleet:fleet:1", "oci-archive:{}/fleet:fleet:1"])
@pytest.mark.parametrize("number,platform", [(0, "linux/amd64"), (1, "linux/arm64")])
def test_a_platform_is_loaded_out_of_an_index_that_skopeo_wrote(berth, registry, work, transport,
                                                                number, platform):
    both = fleet()
    images.push_index(registry, "test/fleet-files", "1", both)
    skopeo_copy(f"docker://{registry.address}/test/fleet-files:1", transport.format(work), "--all")
    assert berth.ok("load", "--platform", platform, "-i", work / "fleet") == (
        "Loaded image: fleet:1\n")
    entry, layout = layout_of(berth, "fleet:1")
    assert entry["digest"] == both[number].digest
    assert read(layout, both[number].id) == both[number].config


def test_one_platform_that_berth_pushes_is_what_the_index_named(berth, registry):
    amd, arm = fleet()
    images.push_index(registry, "test/fleet-one", "1", [amd, arm])
    reference = f"{registry.address}/test/fleet-one:1"
    berth.ok("pull", "-q", reference)
    berth.ok("tag", reference, f"{registry.address}/test/fleet-one:amd64")
    berth.ok("push", "-q", f"{registry.address}/test/fleet-one:amd64")
    assert registry.manifest("test/fleet-one", "amd64")[0] == amd.digest
