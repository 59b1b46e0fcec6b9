# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry: plain, with a password, with TLS; images of other people's tools."""

import json
import pathlib
import stat
import subprocess

import pytest

from support import images
from support.registry import running
from support.store_listing import store_listing
from support.transfer import PROGRAMS, Transfer

pytestmark = pytest.mark.profiles("root")  # of berth-transfer, which knows no users

USERS = {"sailor": "pass:word"}


@pytest.fixture
def transfer(work):
    return Transfer(work / "store", {"HOME": str(work), "XDG_RUNTIME_DIR": "",
                                         "REGISTRY_AUTH_FILE": ""})


@pytest.fixture
def image():
    return images.build([images.layer([images.file("hello", "hi\n")])])


@pytest.fixture(scope="module")
def locked(session_directory):
    with running(session_directory / "locked", users=USERS) as server:
        yield server


@pytest.fixture(scope="module")
def secure(session_directory):
    with running(session_directory / "secure", tls=True) as server:
        yield server


def unpacked(transfer, image, layer=0):
    """Where the files of the layer lie."""
    (found,) = (transfer.root / "layers").glob(
        image.diff_ids[layer].removeprefix("sha256:") + "*/fs")
    return found


# ---- what comes down ----------------------------------------------------------------------------

@pytest.mark.parametrize("flavour", ["oci", "docker"])
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_pulls_every_kind_of_layer(registry, transfer, flavour, compression):
    image = images.build([images.layer([images.file("hello", "hi\n")]),
                          images.layer([images.file("there", "ho\n")])],
                         compression=compression, flavour=flavour)
    image.push(registry, f"kinds/{flavour}-{compression}")
    outcome = transfer.pull(f"{registry.address}/kinds/{flavour}-{compression}:latest")
    assert outcome.result == {
        "event": "result", "reference": f"{registry.address}/kinds/{flavour}-{compression}:latest",
        "digest": image.digest, "image_id": image.id, "status": "downloaded"}
    assert (unpacked(transfer, image, 0) / "hello").read_text() == "hi\n"
    assert (unpacked(transfer, image, 1) / "there").read_text() == "ho\n"


def test_takes_this_machines_entry_of_an_index(registry, transfer):
    layers = [images.layer([images.file("x", "x")])]
    ours = images.build(layers)
    other = images.build(layers, architecture="s390x")
    digest = images.push_index(registry, "indexes/two", "latest", [other, ours])
    result = transfer.pull(f"{registry.address}/indexes/two").result
    assert (result["digest"], result["image_id"]) == (digest, ours.id)


def test_says_when_there_is_nothing_new(registry, transfer, image):
    image.push(registry, "again/app")
    assert transfer.pull(f"{registry.address}/again/app").result["status"] == "downloaded"
    before = store_listing(transfer.root)
    again = transfer.pull(f"{registry.address}/again/app")
    assert again.result["status"] == "up_to_date"
    assert store_listing(transfer.root) == before

    newer = images.build([images.layer([images.file("hello", "hi\n")])], config={"Env": ["A=1"]})
    newer.push(registry, "again/app")
    outcome = transfer.pull(f"{registry.address}/again/app")
    assert outcome.result["status"] == "downloaded"
    assert outcome.phases(newer.layer_digests[0]) == ["waiting", "exists"]


def test_pulls_by_digest(registry, transfer, image):
    image.push(registry, "digests/app", "1")
    result = transfer.pull(f"{registry.address}/digests/app@{image.digest}").result
    assert result["reference"] == f"{registry.address}/digests/app@{image.digest}"
    assert result["digest"] == image.digest


def test_unpacks_what_the_store_holds_without_a_registry(session_directory, transfer, image):
    with running(session_directory / "short-lived") as server:
        image.push(server, "local/app")
        reference = f"{server.address}/local/app:latest"
        transfer.pull(reference, keep_blobs=True).result
    again = transfer.pull(reference, local=True, ownership="single", overlay_xattr="user")
    assert again.result["image_id"] == image.id
    found = list((transfer.root / "layers").glob("*/fs/hello"))
    assert len(found) == 2


# ---- how the registry is reached ----------------------------------------------------------------

def test_needs_the_registrys_ca(secure, transfer, image):
    image.push(secure, "tls/app")
    reference = f"{secure.address}/tls/app:latest"
    kind, line = transfer.pull(reference).error
    assert kind == "denied"
    assert line == (
        f"cannot pull '{reference}': verify the certificate of '{secure.address}': SSL certificate "
        f"problem: self-signed certificate; try: --tls-ca FILE with the registry's CA, or "
        f"--insecure-registry {secure.address}")
    assert transfer.pull(reference, tls_ca=str(secure.certificate)).result["digest"] == image.digest


def test_takes_any_certificate_of_an_insecure_registry(secure, transfer, image):
    image.push(secure, "tls/any")
    assert transfer.pull(f"{secure.address}/tls/any", insecure_registries=[secure.address]).result


def test_a_machine_without_authorities_speaks_with_a_registry_in_plain_http(
        start_registry, secure, image, work):
    hidden = ("unshare", "--mount", "sh", "-ec", 'mount -t tmpfs none /etc/ssl/certs; exec "$@"', "sh")
    transfer = Transfer(work / "store", {"HOME": str(work)}, hidden)
    plain = start_registry()
    image.push(plain, "bare/app")
    assert transfer.pull(f"{plain.address}/bare/app").result["digest"] == image.digest
    image.push(secure, "tls/app")
    kind, line = transfer.pull(f"{secure.address}/tls/app").error
    assert kind == "denied" and "; try: install ca-certificates, --tls-ca FILE" in line


def test_says_that_the_ca_file_is_missing(secure, transfer):
    kind, line = transfer.pull(f"{secure.address}/tls/app", tls_ca="/nowhere/ca.pem").error
    assert kind == "usage"
    assert line.startswith(f"cannot pull '{secure.address}/tls/app': read the CA file for "
                           f"'{secure.address}': ")


# ---- passwords ----------------------------------------------------------------------------------

def test_logs_in_and_out_as_docker_does(locked, transfer, image, work):
    image.push(locked, "private/app")
    reference = f"{locked.address}/private/app:latest"
    assert transfer.pull(reference).error == (
        "denied", f"cannot pull '{reference}': cannot read manifest 'private/app:latest' at "
        f"registry '{locked.address}': log in to '{locked.address}': 401 Unauthorized: no "
        f"credentials; try: berth login {locked.address}")

    wrong = transfer("login", registry=locked.address, username="sailor", password="wrong")
    assert wrong.error == (
        "denied", f"cannot log in to '{locked.address}': log in to registry '{locked.address}': "
        "401 Unauthorized: wrong user name or password")
    file = work / ".docker/config.json"
    assert not file.exists()

    outcome = transfer("login", registry=locked.address, username="sailor", password="pass:word")
    assert outcome.result["status"] == "Login Succeeded"
    assert "pass:word" not in outcome.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(json.loads(file.read_text())["auths"]) == [locked.address]
    assert transfer.pull(reference).result["status"] == "downloaded"

    assert transfer("logout", registry=locked.address).result["status"] == (
        f"Removing login credentials for {locked.address}")
    assert transfer("logout", registry=locked.address).result["status"] == (
        f"Not logged in to {locked.address}")
    assert transfer.pull(reference).error[0] == "denied"


def test_honours_registry_auth_file(locked, transfer, image, work):
    image.push(locked, "private/app")
    auth = work / "elsewhere.json"
    transfer.environment["REGISTRY_AUTH_FILE"] = str(auth)
    transfer("login", registry=locked.address, username="sailor", password="pass:word").result
    assert auth.exists() and not (work / ".docker").exists()
    assert transfer.pull(f"{locked.address}/private/app").result


def test_uses_what_skopeo_login_wrote(locked, transfer, image, work):
    image.push(locked, "private/app")
    auth = work / "skopeo.json"
    subprocess.run(["skopeo", "login", "--tls-verify=false", "--authfile", auth, "-u", "sailor",
                    "--password-stdin", locked.address], input=b"pass:word", check=True,
                   capture_output=True)
    assert transfer.pull(f"{locked.address}/private/app", auth_files=[str(auth)]).result


def test_keeps_the_password_off_every_command_line(locked, transfer, image, work):
    """The credential helper is the only program that berth-transfer starts."""
    image.push(locked, "private/app")
    helper = work / "docker-credential-test"
    helper.write_text("#!/bin/sh\n"
                      f"tr '\\0' ' ' </proc/$PPID/cmdline >>{work}/seen\n"
                      f"echo \"$@\" >>{work}/seen\n"
                      f"env >>{work}/seen\n"
                      "cat >/dev/null\n"
                      'echo \'{"ServerURL":"","Username":"sailor","Secret":"pass:word"}\'\n')
    helper.chmod(0o755)
    auth = work / "auth.json"
    auth.write_text(json.dumps({"credHelpers": {locked.address: "test"}}))
    transfer.environment["PATH"] = f"{work}:{transfer.environment['PATH']}"
    outcome = transfer.pull(f"{locked.address}/private/app", auth_files=[str(auth)])
    assert outcome.result["status"] == "downloaded"
    assert "get" in (work / "seen").read_text()
    assert "pass:word" not in (work / "seen").read_text() + outcome.output


# ---- push ---------------------------------------------------------------------------------------

@pytest.fixture
def tag(transfer, work):
    """tag(old, new), by berth itself."""
    def run(old, new):
        subprocess.run([PROGRAMS / "berth", "--root", transfer.root, "--state", work / "state",
                        "tag", old, new], check=True)
    return run


def test_pushes_the_very_bytes_that_were_pulled(registry, session_directory, transfer, tag):
    image = images.build([images.layer([images.file("hello", "hi\n")]),
                          images.layer([images.file("there", "ho\n")])], compression="zstd")
    image.push(registry, "from/app")
    old = f"{registry.address}/from/app:latest"
    transfer.pull(old).result
    with running(session_directory / "empty") as target:
        new = f"{target.address}/to/app:v2"
        tag(old, new)
        outcome = transfer("push", reference=new)
        assert (outcome.result["digest"], outcome.result["size"]) == (
            image.digest, len(image.manifest))
        assert target.manifest("to/app", "v2") == (image.digest, image.manifest)
        for digest in image.layer_digests:
            assert outcome.phases(digest)[-1] == "done"
        again = transfer("push", reference=new)
        for digest in image.layer_digests:
            assert again.phases(digest) == ["waiting", "exists"]


def test_mounts_what_another_repository_has(registry, transfer, image, tag):
    image.push(registry, "mount/from")
    old = f"{registry.address}/mount/from:latest"
    new = f"{registry.address}/mount/to:latest"
    transfer.pull(old).result
    tag(old, new)
    outcome = transfer("push", reference=new)
    assert outcome.result["digest"] == image.digest
    short = image.layer_digests[0].removeprefix("sha256:")[:12]
    assert f"{short}: Mounted from mount/from" in [e["text"] for e in outcome.of("status")]
    assert "uploading" not in outcome.phases(image.layer_digests[0])


def test_pushes_with_a_password(locked, registry, transfer, image, tag):
    image.push(registry, "pw/app")
    transfer.pull(f"{registry.address}/pw/app:latest").result
    new = f"{locked.address}/pw/app:latest"
    tag(f"{registry.address}/pw/app:latest", new)
    kind, line = transfer("push", reference=new).error
    assert kind == "denied"
    assert line.startswith(f"cannot push '{new}': cannot look for blob 'sha256:")
    assert line.endswith(f": log in to '{locked.address}': 401 Unauthorized: no credentials; "
                         f"try: berth login {locked.address}")
    transfer("login", registry=locked.address, username="sailor", password="pass:word").result
    assert transfer("push", reference=new).result["digest"] == image.digest


def test_says_that_there_is_nothing_to_push(registry, transfer):
    kind, line = transfer("push", reference=f"{registry.address}/no/such").error
    assert kind == "not_found"
    assert line.startswith(f"cannot push '{registry.address}/no/such': ")


# ---- other people's tools -----------------------------------------------------------------------

@pytest.fixture
def program(work, request):
    """A large file that no other test has: registries and skopeo reuse the blobs they know."""
    path = work / "program"
    path.write_bytes(pathlib.Path("/bin/busybox").read_bytes() + request.node.name.encode())
    return path


def check_pulled(registry, transfer, name, compression, program):
    result = transfer.pull(f"{registry.address}/{name}").result
    digest, text = registry.manifest(name, "latest")
    assert result["digest"] == digest
    assert json.loads(text)["layers"][0]["mediaType"].endswith(compression)
    (found,) = (transfer.root / "layers").glob("*/fs/bin/program")
    assert found.read_bytes() == program.read_bytes()


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_pulls_what_umoci_made_and_skopeo_copied(registry, transfer, work, program,
                                                    compression):
    layout = work / "layout"
    for command in (["init", "--layout", layout], ["new", "--image", f"{layout}:x"],
                    ["insert", "--image", f"{layout}:x", program, "/bin/program"]):
        subprocess.run(["umoci", *command], check=True, capture_output=True)
    subprocess.run(["skopeo", "copy", "-q", "--dest-tls-verify=false", "--dest-compress-format",
                    compression, f"oci:{layout}:x",
                    f"docker://{registry.address}/skopeo/{compression}"], check=True)
    check_pulled(registry, transfer, f"skopeo/{compression}", compression, program)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_pulls_what_buildah_built_and_pushed(registry, transfer, work, program, compression):
    def buildah(*command):
        return subprocess.run(
            ["buildah", "--storage-driver", "vfs", "--root", work / "storage", "--runroot",
             work / "run", *command], check=True, capture_output=True, text=True).stdout.strip()
    container = buildah("from", "scratch")
    buildah("copy", container, program, "/bin/program")
    buildah("commit", "-q", container, "built")
    buildah("push", "-q", "--tls-verify=false", "--compression-format", compression, "built",
            f"docker://{registry.address}/buildah/{compression}")
    check_pulled(registry, transfer, f"buildah/{compression}", compression, program)
