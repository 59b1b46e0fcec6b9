# SPDX-License-Identifier: Apache-2.0
"""What berth says to a registry that misbehaves: one line, a hint, and a store as it was."""

import gzip
import hashlib
import json
import os
import random
import signal
import socket
import subprocess

import pytest

from support import hostile_registry as hostile
from support import images
from support.registry import make_certificate
from support.store_listing import store_listing
from support.transfer import Transfer

pytestmark = pytest.mark.profiles("root")  # of berth-transfer, which knows no users

BIG = bytes(range(256)) * 4096 + hashlib.sha256(b"berth").digest()


def build(**options):
    """Two layers, so that one can be complete when the other fails."""
    noise = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(8192))
    return images.build([images.layer([images.file("small", "a\n")]),
                         images.layer([images.file("large", noise)])], **options)


@pytest.fixture(scope="module")
def image():
    return build()


@pytest.fixture
def transfer(work, registry):
    """berth-transfer with a store that holds an image already."""
    transfer = Transfer(work / "store", {"HOME": str(work), "XDG_RUNTIME_DIR": ""})
    images.build([images.layer([images.file("kept", "kept\n")])]).push(registry, "test/kept")
    assert transfer.pull(f"{registry.address}/test/kept").result["status"] == "downloaded"
    return transfer


@pytest.fixture
def refused(transfer):
    """refused(registry) → (kind, line) of a pull that fails and leaves the store as it was."""
    def pull(registry, **members):
        before = store_listing(transfer.root)
        kind, line = transfer.pull(registry.reference, **members).error
        assert store_listing(transfer.root) == before
        start = f"cannot pull '{registry.reference}': "
        assert line.startswith(start), line
        return kind, line[len(start):]
    return pull


def manifest(registry):
    return f"manifest 'app:latest' at registry '{registry.address}'"


def blob(registry, digest):
    return f"blob '{digest}' at registry '{registry.address}'"


# ---- the manifest -------------------------------------------------------------------------------

def test_says_that_the_image_is_not_there(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            404, "MANIFEST_UNKNOWN", "manifest unknown")]) as registry:
        assert refused(registry) == (
            "not_found", f"read {manifest(registry)}: 404 Not Found: manifest unknown; "
            "try: another name or tag; the registry does not have it")


def test_says_that_a_login_is_needed(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            401, "UNAUTHORIZED", "who are you?",
            {"WWW-Authenticate": 'Basic realm="r"'})]) as registry:
        assert refused(registry) == (
            "denied", f"cannot read {manifest(registry)}: log in to '{registry.address}': "
            f"401 Unauthorized: no credentials; try: berth login {registry.address}")


def test_says_that_the_account_may_not(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            403, "DENIED", "requested access to the resource is denied")]) as registry:
        assert refused(registry) == (
            "denied", f"read {manifest(registry)}: 403 Forbidden: requested access to the resource "
            f"is denied; try: berth login {registry.address} with an account that may do this")


def test_does_not_wait_an_hour_for_a_busy_registry(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            429, "TOOMANYREQUESTS", "slow down", {"Retry-After": "3600"})]) as registry:
        assert refused(registry) == (
            "busy", f"read {manifest(registry)}: 429 Too Many Requests: slow down; "
            f"try: again in 3600 s, or berth login {registry.address} for a higher limit")
        assert len(registry.seen("/manifests/")) == 1


def test_gives_up_on_a_registry_that_stays_busy(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            503, headers={"Retry-After": "0"})]) as registry:
        assert refused(registry) == (
            "io", f"read {manifest(registry)}: 503 Service Unavailable; "
            "try: again later; the registry reports an internal error")
        assert len(registry.seen("/manifests/")) == 5


def test_does_not_repeat_what_the_registry_cannot_do(image, refused):
    with hostile.running(image, manifests=[hostile.refused(500, "UNKNOWN", "boom")]) as registry:
        assert refused(registry) == (
            "io", f"read {manifest(registry)}: 500 Internal Server Error: boom; "
            "try: again later; the registry reports an internal error")
        assert len(registry.seen("/manifests/")) == 1


def test_escapes_what_the_registry_says(image, refused):
    with hostile.running(image, manifests=[hostile.refused(
            400, "X", "\x1b[2Jgone\nberth: all is well")]) as registry:
        kind, line = refused(registry)
        assert kind == "io"
        assert line == (f"read {manifest(registry)}: 400 Bad Request: "
                        "\x1b[2Jgone\nberth: all is well")  # to_line() escapes; the event is JSON


@pytest.mark.parametrize("claim", [True, False], ids=["said before", "found out"])
def test_refuses_a_manifest_above_4_MiB(image, refused, claim):
    body = image.manifest + b" " * (4 << 20)

    def endless(exchange):
        headers = {"Content-Type": image.media_type}
        if not claim:
            headers |= {"Content-Length": str(1 << 40)}
        return exchange.answer(200, body, headers)
    with hostile.running(image, manifests=[endless]) as registry:
        url = f"http://{registry.address}/v2/app/manifests/latest"
        assert refused(registry) == (
            "corrupt", f"cannot read {manifest(registry)}: read '{url}': the answer is longer than 4194304 bytes")


def test_refuses_endless_headers(image, refused):
    many = {f"X-{n}": "x" * 1000 for n in range(90)}  # Python's server has no limit of its own

    def endless(exchange):
        exchange.send_response(200)
        for _ in range(4):
            for name, value in many.items():
                exchange.send_header(name, value)
        exchange.end_headers()
        return exchange.hang_up()
    with hostile.running(image, manifests=[endless]) as registry:
        url = f"http://{registry.address}/v2/app/manifests/latest"
        assert refused(registry) == (
            "corrupt", f"cannot read {manifest(registry)}: read '{url}': headers of more than 256 KiB")


def test_refuses_schema_1_with_the_reason(image, refused):
    body = json.dumps({"schemaVersion": 1, "name": "app", "tag": "latest", "fsLayers": []}).encode()
    with hostile.running(image, manifests=[hostile.replaced(
            body, "application/vnd.docker.distribution.manifest.v1+prettyjws")]) as registry:
        kind, line = refused(registry)
        assert kind == "unsupported"
        assert "schema 1" in line and "\n" not in line


@pytest.mark.parametrize("members, kind", (
    ({"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json"}},
     "application/vnd.cncf.helm.config.v1+json"),
    ({"artifactType": "application/spdx+json",
      "config": {"mediaType": "application/vnd.oci.empty.v1+json"}}, "application/spdx+json")))
def test_says_what_it_is_where_it_is_no_image(refused, members, kind):
    """Told by the manifest alone: its config and layers are not fetched."""
    artifact = build()
    manifest_of = json.loads(artifact.manifest)
    manifest_of["config"] |= members.pop("config")
    artifact.manifest = json.dumps(manifest_of | members).encode()
    with hostile.running(artifact) as registry:
        assert refused(registry) == (
            "unsupported", f"it is not a container image but an artifact of type '{kind}'; try: the tool for "
                           "such artifacts, such as helm or oras")
        assert registry.seen("/blobs/") == []


def test_says_that_a_web_page_came(image, refused):
    page = hostile.replaced(b"<html>sign in</html>", "text/html; charset=utf-8")
    with hostile.running(image, manifests=[page]) as registry:
        kind, line = refused(registry)
        assert (kind, line.partition(";")[0]) == (
            "corrupt", f"read {manifest(registry)}: the answer is a web page, not a manifest")


def test_pushes_to_a_registry_that_does_not_answer_head(image, transfer):
    def answers(exchange):
        if exchange.command == "HEAD":
            return exchange.answer(405)
        if exchange.command == "POST":
            return exchange.answer(202, b"", {"Location": exchange.path + "1"})
        return exchange.command == "PUT" and exchange.answer(201)
    with hostile.running(image, blobs=[answers], manifests=[
            lambda e: e.command == "PUT" and e.answer(201)]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        assert transfer("push", reference=registry.reference).result
        sent = [path for command, path, _ in registry.requests if command == "PUT"]
        assert len(sent) == 4  # two layers, the config, the manifest


def test_refuses_an_unknown_media_type(image, refused):
    with hostile.running(image, manifests=[hostile.replaced(
            b'{"schemaVersion": 2}', "application/vnd.example.box.v9+json")]) as registry:
        kind, line = refused(registry)
        assert kind == "unsupported"
        assert "application/vnd.example.box.v9+json" in line


def test_refuses_a_manifest_that_is_not_what_its_digest_says(image, refused, transfer):
    other = build(config={"Env": ["X=1"]})
    with hostile.running(image, manifests=[hostile.replaced(
            other.manifest, image.media_type)]) as registry:
        before = store_listing(transfer.root)
        reference = f"{registry.address}/app@{image.digest}"
        assert transfer.pull(reference).error == (
            "corrupt", f"cannot pull '{reference}': read manifest 'app@{image.digest}' at registry "
            f"'{registry.address}': its bytes have digest '{other.digest}'")
        assert store_listing(transfer.root) == before


def index_of(image, **platform):
    return json.dumps({
        "schemaVersion": 2, "mediaType": images.OCI["index"],
        "manifests": [{"mediaType": image.media_type, "digest": image.digest,
                       "size": len(image.manifest), "platform": platform}]}).encode()


def test_says_which_platforms_there_are(image, refused):
    index = index_of(image, os="linux", architecture="s390x")
    with hostile.running(image, manifests=[hostile.only("latest", hostile.replaced(
            index, images.OCI["index"]))]) as registry:
        kind, line = refused(registry)
        assert kind == "not_found"
        assert "linux/s390x" in line and "linux/amd64" in line


def test_takes_the_entry_that_was_asked_for(transfer):
    image = build(architecture="s390x")
    index = index_of(image, os="linux", architecture="s390x")
    with hostile.running(image, manifests=[hostile.only("latest", hostile.replaced(
            index, images.OCI["index"]))]) as registry:
        result = transfer.pull(registry.reference, platform="linux/s390x").result
        assert result["digest"] == images.digest_of(index)
        assert result["image_id"] == image.id


# ---- layers -------------------------------------------------------------------------------------

def test_refuses_a_blob_with_the_wrong_digest(image, refused):
    digest = image.layer_digests[1]
    data = bytearray(image.blobs[digest])
    data[-1] ^= 1
    with hostile.running(image, blobs=[hostile.only(digest, hostile.replaced(
            bytes(data)))]) as registry:
        kind, line = refused(registry)
        assert kind == "corrupt"
        assert line == (f"cannot read {blob(registry, digest)}: check its bytes: "
                        f"their digest is \'{images.digest_of(bytes(data))}'")


def test_refuses_a_truncated_blob(image, refused):
    digest = image.layer_digests[1]
    size = len(image.blobs[digest])
    with hostile.running(image, blobs=[hostile.only(digest, hostile.truncated(1000))]) as registry:
        assert refused(registry) == (
            "corrupt", f"cannot read {blob(registry, digest)}: check its size: 1000 of {size} "
            "bytes arrived")


def test_refuses_a_blob_that_is_too_long(image, refused):
    digest = image.layer_digests[0]
    data = image.blobs[digest]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.replaced(
            data + b"more"))]) as registry:
        assert refused(registry) == (
            "corrupt", f"cannot read {blob(registry, digest)}: check its size: more than the "
            f"{len(data)} bytes of its descriptor")


def test_says_that_a_blob_is_not_there(image, refused):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.refused(
            404, "BLOB_UNKNOWN", "blob unknown to registry"))]) as registry:
        assert refused(registry) == (
            "not_found", f"read {blob(registry, digest)}: 404 Not Found: blob unknown to registry; "
            "try: another name or tag; the registry does not have it")


def test_refuses_a_config_that_is_not_what_its_digest_says(image, refused):
    with hostile.running(image, blobs=[hostile.only(image.id, hostile.replaced(
            image.config.replace(b"linux", b"linuX")))]) as registry:
        wrong = images.digest_of(image.config.replace(b"linux", b"linuX"))
        assert refused(registry) == (
            "corrupt", f"read {blob(registry, image.id)}: its bytes have digest '{wrong}'")


def test_refuses_a_layer_whose_unpacked_bytes_are_not_the_configs(refused):
    layer = images.layer([images.file("x", "x\n")])
    lie = images.digest_of(b"something else")
    image = images.build([layer], diff_ids=[lie])
    with hostile.running(image) as registry:
        assert refused(registry) == (
            "corrupt", f"cannot unpack layer '{image.layer_digests[0]}': check the unpacked bytes: "
            f"they have digest '{images.digest_of(layer)}', the config says '{lie}'")


def test_refuses_an_unknown_layer_type(image, refused):
    manifest_bytes = image.manifest.replace(b"layer.v1.tar+gzip", b"layer.v1.tar+lzip")
    odd = images.Image(image.flavour, image.architecture, image.config, manifest_bytes, image.blobs,
                       image.layer_digests, image.diff_ids)
    with hostile.running(odd) as registry:
        kind, line = refused(registry)
        assert kind == "unsupported"
        assert "application/vnd.oci.image.layer.v1.tar+lzip" in line


def test_says_that_the_disk_is_full(registry, work):
    image = images.build([images.layer([images.file("large", BIG)])], compression="none")
    root = work / "small"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", root], check=True)
    try:
        transfer = Transfer(root / "store")
        images.build([images.layer([images.file("kept", "kept\n")])]).push(registry, "test/kept")
        assert transfer.pull(f"{registry.address}/test/kept").status == 0
        before = store_listing(transfer.root)
        with hostile.running(image) as server:
            kind, line = transfer.pull(server.reference).error
        assert kind == "io"
        digest = image.layer_digests[0]
        assert line == (f"cannot pull '{server.reference}': cannot unpack layer '{digest}': "
                        "cannot unpack 'large': write 'large': No space left on device; try: free space on the "
                        "store's file system, or another --root")
        assert store_listing(transfer.root) == before
    finally:
        subprocess.run(["umount", root], check=True)


@pytest.fixture
def limited(work):
    """limited(count) → berth-transfer of a user who may have so many threads."""
    # Nobody's: the limit counts a user's threads on all of the machine, those of other runs too.
    uid = random.randrange(10**9, 2 * 10**9)
    store = work / "limited"
    store.mkdir()
    os.chown(store, uid, uid)

    def limit(count):
        return Transfer(store, {"HOME": str(store), "XDG_RUNTIME_DIR": ""}, [
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
            "prlimit", f"--nproc={count}"])
    return limit


OF_A_USER = {"ownership": "single", "overlay_xattr": "user"}


@pytest.mark.parametrize("count", range(2, 8))
def test_makes_do_with_the_threads_it_gets(image, limited, count):
    # One watches for signals, four bring two layers, and two more unpack each of them.
    with hostile.running(image) as registry:
        result = limited(count).pull(registry.reference, **OF_A_USER).result
        assert result["status"] == "downloaded"


def test_says_that_there_are_no_threads(image, limited):
    with hostile.running(image) as registry:
        assert limited(1).pull(registry.reference, **OF_A_USER).error == (
            "busy", "start a thread: the limit of processes is reached; "
            "try: a higher one (ulimit -u, or pids.max of the control group)")


# ---- connections --------------------------------------------------------------------------------

def test_goes_on_by_range_after_a_lost_connection(image, transfer):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            2, lambda e: hostile.dropped(100000)(e) if "Range" not in e.headers
            else hostile.dropped_range(e, 50000))), hostile.ranges]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        ranges = [headers.get("Range") for headers in registry.seen(digest)]
        assert ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_starts_anew_where_the_registry_knows_no_range(image, transfer):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.dropped(100000)))]) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        assert len(registry.seen(digest)) == 2


def test_waits_for_a_registry_that_comes_back(transfer):
    image = images.build([images.layer([images.file("large", BIG)])], compression="none")
    (digest,) = image.layer_digests
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.away(100000, seconds=1))), hostile.ranges]) as registry:
        outcome = transfer.pull(registry.reference)
        assert outcome.result["status"] == "downloaded"
        ranges = [headers.get("Range") for headers in registry.seen(digest)]
        assert ranges == [None, "bytes=100000-"]
    size = len(image.blobs[digest])
    lost = f"connection lost after 100000 of {size} bytes, trying again"
    assert len([event for event in outcome.of("status") if lost in event["text"]]) >= 2


def test_gives_up_after_a_few_lost_connections(image, refused):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.dropped(1000))]) as registry:
        kind, line = refused(registry)
        assert kind == "io"
        assert line == (f"cannot read {blob(registry, digest)}: read "
                        f"'http://{registry.address}/v2/app/blobs/{digest}': the connection was "
                        "closed before the end; try: the same command again, when the network works")
        assert len(registry.seen(digest)) == 5


def test_refuses_another_piece_than_it_asked_for(image, refused):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.dropped(1000))), hostile.wrong_ranges]) as registry:
        assert refused(registry) == (
            "corrupt", f"cannot read {blob(registry, digest)}: check its range: the registry sent another part "
                       "than requested")


def test_does_not_trust_pieces_it_has_glued(image, refused):
    digest = image.layer_digests[1]

    def other_rest(exchange):
        if "Range" not in exchange.headers:
            return False
        data = exchange.content[1]
        return exchange.answer(206, b"\0" * (len(data) - 1000), {
            "Content-Range": f"bytes 1000-{len(data) - 1}/{len(data)}"})
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.dropped(1000))), other_rest]) as registry:
        kind, line = refused(registry)
        assert kind == "corrupt"
        glued = images.digest_of(image.blobs[digest][:1000]
                                 + b"\0" * (len(image.blobs[digest]) - 1000))
        assert line == (f"cannot read {blob(registry, digest)}: check its bytes: "
                        f"their digest is \'{glued}'")


def test_retries_after_the_time_that_the_registry_asks_for(image, transfer):
    digest = image.layer_digests[0]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.refused(429, headers={"Retry-After": "1"})))]) as registry:
        outcome = transfer.pull(registry.reference)
        assert outcome.result["status"] == "downloaded"
        assert len(registry.seen(digest)) == 2
        assert f"registry '{registry.address}': 429, waiting 1 s" in [
            event["text"] for event in outcome.of("status")]


def test_hangs_up_on_a_registry_that_stands_still(image, transfer):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.first(
            1, hostile.slow)), hostile.ranges]) as registry:
        outcome = transfer.pull(registry.reference, stall_seconds=1)
        assert outcome.result["status"] == "downloaded"
        assert [headers.get("Range") for headers in registry.seen(digest)] == [None, "bytes=10-"]
        size = len(image.blobs[digest])
        assert (f"{digest.removeprefix('sha256:')[:12]}: connection lost after 10 of {size} bytes, "
                "trying again") in [event["text"] for event in outcome.of("status")]


def test_hangs_up_on_a_registry_that_drips_a_document(image, transfer):
    with hostile.running(image, manifests=[hostile.first(1, hostile.dripping)]) as registry:
        outcome = transfer.pull(registry.reference, stall_seconds=1)
        assert outcome.result["status"] == "downloaded"
        assert f"registry '{registry.address}': connection lost, waiting 0.5 s" in [
            event["text"] for event in outcome.of("status")]


def test_says_that_nobody_listens(transfer):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    before = store_listing(transfer.root)
    assert transfer.pull(f"{address}/app").error == (
        "io", f"cannot pull '{address}/app': connect to '{address}': Connection refused; "
        "try: check that the registry runs and that its port is right")
    assert store_listing(transfer.root) == before


def test_says_that_there_is_no_such_host(transfer):
    before = store_listing(transfer.root)
    assert transfer.pull("no-such-host.invalid/app").error == (
        "not_found", "cannot pull 'no-such-host.invalid/app': cannot read manifest 'app:latest' at "
        "registry 'no-such-host.invalid': find host 'no-such-host.invalid': no such name; "
        "try: check the registry's name and this machine's network")
    assert store_listing(transfer.root) == before


# ---- redirects and credentials ------------------------------------------------------------------

def test_leaves_the_credential_behind_when_the_host_changes(image, transfer, work):
    auth = work / "auth.json"
    with hostile.running(image) as store, hostile.running(
            image, token="secret-token", users={"u": "p"},
            blobs=[hostile.redirected(f"http://{store.address}")]) as registry:
        auth.write_text(json.dumps({"auths": {registry.address: {"auth": "dTpw"}}}))
        outcome = transfer.pull(registry.reference, auth_files=[str(auth)])
        assert outcome.result["status"] == "downloaded"
        assert all(headers["Authorization"] == "Bearer secret-token"
                   for headers in registry.seen("/blobs/"))
        assert len(store.requests) == 3
        assert all("Authorization" not in headers for _, _, headers in store.requests)
        for secret in ("secret-token", "dTpw", '"p"'):
            assert secret not in outcome.output


CREDENTIALS = {"password": {"auth": "dTpTRUNSRVQ="},
               "identity token": {"identitytoken": "SECRET"}}
SECRETS = ("dTpTRUNSRVQ=", "SECRET", "secret-token")


def basic(exchange):
    return exchange.answer(401, b"", {"WWW-Authenticate": 'Basic realm="r"'})


@pytest.fixture(params=("http", "https"))
def two_hosts(request, work):
    """(scheme, options of a registry, members of a request) for two servers of one scheme."""
    if request.param == "http":
        return "http", {}, {}
    certificate = make_certificate(work)
    return "https", {"certificate": certificate}, {"tls_ca": str(certificate[0])}


@pytest.mark.parametrize("what", ("manifests", "blobs"))
@pytest.mark.parametrize("scheme", ("bearer", "basic"))
@pytest.mark.parametrize("login", CREDENTIALS)
def test_answers_no_challenge_of_a_host_that_the_registry_redirects_to(
        image, refused, work, two_hosts, what, scheme, login):
    protocol, server, members = two_hosts
    auth = work / "auth.json"
    # The thief's realm and tokens are his own; the registry asks for nothing, or for its token.
    thief = {"token": "evil"} if scheme == "bearer" else {"manifests": [basic], "blobs": [basic]}
    with hostile.running(image, **thief, **server) as foreign, hostile.running(
            image, **{what: [hostile.redirected(f"{protocol}://{foreign.address}")]},
            **server) as registry:
        auth.write_text(json.dumps({"auths": {registry.address: CREDENTIALS[login]}}))
        kind, line = refused(registry, auth_files=[str(auth)], **members)
        assert kind == "denied"
        words = ": authentication required" if scheme == "bearer" else ""
        assert line.endswith(
            f": '{protocol}://{foreign.address}', to which the registry redirects: 401 Unauthorized"
            f"{words}; try: again later: a signed address may have expired, and a login is never sent "
            "there"), line
        assert foreign.requests and not foreign.seen("/v2/token")
        sent = json.dumps([*foreign.requests, *registry.requests])
        assert not [secret for secret in SECRETS if secret in sent], sent


def test_answers_no_challenge_of_a_host_that_takes_an_upload(image, transfer, work):
    auth = work / "auth.json"
    with hostile.running(image, token="evil") as foreign, hostile.running(
            image, blobs=[hostile.uploads_at(f"http://{foreign.address}")]) as registry:
        auth.write_text(json.dumps({"auths": {registry.address: CREDENTIALS["password"]}}))
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        kind, line = transfer("push", reference=registry.reference, auth_files=[str(auth)]).error
        assert kind == "denied" and f"'http://{foreign.address}', to which the registry redirects" in line
        assert foreign.seen("/uploads/") and not foreign.seen("/v2/token")
        sent = json.dumps([*foreign.requests, *registry.requests])
        assert not [secret for secret in SECRETS if secret in sent], sent


def test_ends_a_redirect_loop(image, refused):
    with hostile.running(image, manifests=[hostile.redirected_to_itself]) as registry:
        url = f"http://{registry.address}/v2/app/manifests/latest"
        assert refused(registry) == (
            "corrupt", f"cannot read {manifest(registry)}: read '{url}': more than 10 redirects")
        assert len(registry.seen("/manifests/")) == 11


def test_follows_no_redirect_to_another_scheme(image, refused):
    with hostile.running(image, manifests=[
            lambda e: e.answer(302, b"", {"Location": "file:///etc/passwd"})]) as registry:
        url = f"http://{registry.address}/v2/app/manifests/latest"
        assert refused(registry) == (
            "corrupt", f"cannot read {manifest(registry)}: cannot follow the redirect of '{url}': "
            "read URL 'file:///etc/passwd'")


def test_follows_no_redirect_from_https_to_http(image, refused, work):
    certificate = make_certificate(work)
    with hostile.running(image) as plain, hostile.running(
            image, certificate=certificate,
            manifests=[hostile.redirected(f"http://{plain.address}")]) as registry:
        path = "/v2/app/manifests/latest"
        assert refused(registry, tls_ca=str(certificate[0])) == (
            "denied", f"cannot read {manifest(registry)}: follow the redirect from "
            f"'https://{registry.address}{path}' to 'http://{plain.address}{path}': it goes from HTTPS to plain HTTP")
        assert plain.requests == []


def test_asks_no_proxy_for_loopback(image, transfer):
    nobody = "http://127.0.0.1:1"
    transfer.environment |= {"http_proxy": nobody, "https_proxy": nobody, "no_proxy": ""}
    with hostile.running(image) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"


def test_gets_one_token_for_all_its_requests(image, transfer):
    with hostile.running(image, token="t0") as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
        tokens = [path for _, path, _ in registry.requests if path.startswith("/v2/token")]
        assert tokens == ["/v2/token?service=test&scope=repository%3Aapp%3Apull"]


def test_says_that_the_password_is_wrong(image, refused, work):
    auth = work / "auth.json"
    with hostile.running(image, token="t0", users={"u": "p"}) as registry:
        auth.write_text(json.dumps({"auths": {registry.address: {"auth": "dTp3cm9uZw=="}}}))
        assert refused(registry, auth_files=[str(auth)]) == (
            "denied", f"cannot read {manifest(registry)}: get a token for '{registry.address}' "
            f"from 'http://{registry.address}/v2/token' as 'u': 401 Unauthorized: wrong user name or "
            f"password; try: berth login {registry.address}")


def test_leaves_only_what_is_verified_at_a_signal(image, transfer):
    digest = image.layer_digests[1]
    before = store_listing(transfer.root)
    with hostile.running(image, blobs=[hostile.only(digest, hostile.paced(10))]) as registry:
        process = transfer.start("pull", reference=registry.reference)
        for line in process.stdout:
            if '"downloading"' in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        process.wait(timeout=10)
        process.stdout.close()
        process.stderr.close()
    assert process.returncode == 1
    last = json.loads(rest.splitlines()[-1])
    assert (last["event"], last["kind"]) == ("error", "interrupted")
    after = store_listing(transfer.root)
    finished = image.layer_digests[0].removeprefix("sha256:")
    unpacked = image.diff_ids[0].removeprefix("sha256:")
    assert before.items() <= after.items()
    assert all(finished in path or unpacked in path for path in after.keys() - before.keys())


def test_many_pulls_at_once_download_a_layer_once(image, transfer):
    with hostile.running(image, blobs=[hostile.paced(0.5)]) as registry:
        processes = [transfer.start("pull", reference=registry.reference) for _ in range(6)]
        for process in processes:
            output = process.stdout.read()
            process.stdout.close()
            process.stderr.close()
            assert process.wait(timeout=60) == 0, output
        for digest in image.layer_digests:
            assert len(registry.seen(digest)) == 1


def test_shows_progress_no_more_than_20_times_a_second(image, transfer):
    digest = image.layer_digests[1]
    with hostile.running(image, blobs=[hostile.only(digest, hostile.paced(1, 200))]) as registry:
        outcome = transfer.pull(registry.reference)
        events = [e for e in outcome.of("layer") if digest.startswith("sha256:" + e["id"])]
        assert outcome.phases(digest) == ["waiting", "downloading", "unpacking", "done"]
        downloading = [e["done"] for e in events if e["phase"] == "downloading"]
        assert downloading == sorted(downloading) and 5 <= len(downloading) <= 30
        assert events[-1]["done"] == events[-1]["total"] == len(image.blobs[digest])
        assert transfer.pull(registry.reference, quiet=True).of("layer") == []


def test_gzip_members_after_another_are_one_layer(transfer):
    """Registries hold layers made of several gzip members (pigz, estargz)."""
    tar = images.layer([images.file("x", BIG)])
    image = images.build([tar])
    glued = gzip.compress(tar[:5000]) + gzip.compress(tar[5000:])
    digest = images.digest_of(glued)
    manifest_bytes = json.loads(image.manifest)
    manifest_bytes["layers"][0].update(digest=digest, size=len(glued))
    several = images.Image("oci", "amd64", image.config, json.dumps(manifest_bytes).encode(),
                           {image.id: image.config, digest: glued}, [digest], image.diff_ids)
    with hostile.running(several) as registry:
        assert transfer.pull(registry.reference).result["status"] == "downloaded"
