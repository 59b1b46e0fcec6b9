# SPDX-License-Identifier: Apache-2.0
"""berth hub: a registry front that gives each caller the entry for its node."""

import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from support import images, podman
from support.hub import Hub, basic, htpasswd
from support.registry import make_certificate

pytestmark = pytest.mark.profiles("root")

VARIANTS = {"generic": {}, "v4": {"cpu": "x86-64-v4"}, "sm52": {"gpu": "sm_52"},
            "sm90": {"gpu": "sm_90", "cuda": "12.8", "cpu": "x86-64-v3"}}
NODES = {
    "plain": {"cpu": {"microarchitecture": "broadwell"}},
    "skylake": {"cpu": {"microarchitecture": "skylake_avx512"}},
    "m60": {"cpu": {"microarchitecture": "broadwell"}, "driver": {"module_version": "396.44"},
            "gpus": [{"compute_capability": "5.2"}]},
    "h100": {"cpu": {"microarchitecture": "sapphirerapids"},
             "driver": {"module_version": "570.133.20"}, "gpus": [{"compute_capability": "9.0"}]},
}
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(scope="module")
def story(registry):
    """{variant: digest} of hub/app at the session's registry."""
    built = {name: images.build([images.busybox_layer()], {"Env": ["PATH=/bin", f"VARIANT={name}"]})
             for name in VARIANTS}
    notes = [{f"dev.berth.variant.{axis}": value for axis, value in axes.items()}
             for axes in VARIANTS.values()]
    images.push_index(registry, "hub/app", "latest", list(built.values()), notes)
    built["generic"].push(registry, "hub/alone")
    built["generic"].push(registry, "secret/app")
    return {name: image.digest for name, image in built.items()}


@pytest.fixture
def fleet(work):
    directory = work / "fleet"
    directory.mkdir()
    for name, node in NODES.items():
        (directory / f"{name}.json").write_text(json.dumps({"architecture": "amd64", **node}))
    return directory


@pytest.fixture
def start_hub(programs, registry, fleet, work):
    """start_hub({…more of hub.toml…}, tls=…, users=…) → a Hub in front of the session's registry."""
    with contextlib.ExitStack() as stack:
        def start(more=None, **options):
            upstream = [{"registry": registry.address, "repositories": ["hub/*", "variants/*"]}]
            config = {"upstream": upstream, "fleet": str(fleet), **(more or {})}
            number = len(list(work.glob("hub-*")))
            hub = Hub(pathlib.Path(programs) / "berth", work / f"hub-{number}", config, **options)
            stack.callback(hub.stop)
            return hub
        yield start


def named(berth, registry, node_file):
    """The digest that `berth match` names."""
    done = berth.run("match", "--node", node_file, "--format", "json",
                     f"{registry.address}/hub/app:latest")
    assert done.returncode in (0, 10, 11), done.stderr
    return json.loads(done.stdout)["taken"]


# ---- the entry for the caller's node -------------------------------------------------------------

def test_every_node_is_given_what_match_names(berth, registry, story, fleet, start_hub):
    hub = start_hub()
    given = {node: hub.digest("hub/app", node=node) for node in NODES}
    assert given == {node: named(berth, registry, fleet / f"{node}.json") for node in NODES}
    assert given == {"plain": story["generic"], "skylake": story["v4"], "m60": story["sm52"],
                     "h100": story["sm90"]}
    assert hub.await_line("h100", "GET /v2/hub/app/manifests/latest 200", story["sm90"])


def test_what_is_given_is_the_manifest_itself(registry, story, start_hub):
    hub = start_hub()
    path = "/v2/hub/app/manifests/latest"
    status, headers, body = hub.request(path, node="h100")
    assert (status, images.digest_of(body)) == (200, story["sm90"])
    assert headers["Content-Type"] == images.OCI["manifest"]
    assert headers["Docker-Content-Digest"] == story["sm90"]
    status, head, nothing = hub.request(path, node="h100", method="HEAD")
    assert (status, nothing) == (200, b"")
    assert head["Content-Length"] == str(len(body))
    assert head["Docker-Content-Digest"] == story["sm90"]
    by_digest = hub.request(f"/v2/hub/app/manifests/{story['sm90']}", node="m60")
    assert by_digest[2] == body


def test_without_a_node_and_by_digest_the_index_stays_what_it_is(registry, story, start_hub):
    hub = start_hub()
    index, data = registry.manifest("hub/app", "latest")
    assert hub.request("/v2/hub/app/manifests/latest")[2] == data
    assert hub.request(f"/v2/hub/app/manifests/{index}", node="h100")[2] == data
    assert hub.digest("hub/alone", node="h100") == story["generic"]


def test_who_calls_decides_in_the_documented_order(story, start_hub):
    hub = start_hub({"default": "plain", "login": [{"name": "metahub-c59xl-ht", "profile": "skylake"}],
                     "address": [{"network": "127.0.0.0/8", "profile": "m60"}]},
                    users={"metahub-c59xl-ht": "pw", "alice": "pw", "h100": "pw"})
    app = "hub/app"
    assert hub.digest(app, user=("alice", "pw")) == story["sm52"]  # the address
    assert hub.digest(app, user=("metahub-c59xl-ht", "pw")) == story["v4"]  # the table
    assert hub.digest(app, user=("h100", "pw")) == story["sm90"]  # the profile of that name
    assert hub.digest(app, user=("alice+h100", "pw")) == story["sm90"]
    assert hub.digest(app, user=("alice/cpu#skylake_avx512", "pw")) == story["v4"]
    assert hub.digest(app, user=("alice+h100", "pw"), node="plain") == story["generic"]
    assert hub.await_line(" alice+h100 plain GET ", story["generic"])
    assert hub.digest(app, user=("metahub-c59xl-ht", "pw"), node="h100") == story["sm90"]
    other = start_hub({"default": "skylake"})
    assert other.digest(app) == story["v4"]


def test_an_unknown_node_is_refused_in_one_line(story, start_hub):
    hub = start_hub(users={"alice": "pw"})
    who = {"user": ("alice", "pw")}
    status, _, error = hub.request("/v2/hub/app/manifests/latest", node="h10", **who)
    assert (status, error["message"]) == (400, "Berth-Node: no profile 'h10'; did you mean 'h100'?")
    status, _, error = hub.request("/v2/hub/app/manifests/latest", user=("alice+nope", "pw"))
    assert (status, error["message"]) == (400, "login: no profile 'nope'")
    status, _, error = hub.request("/v2/hub/app/manifests/latest", user=("alice/cpu#brodwell", "pw"))
    assert status == 400 and "did you mean 'broadwell'" in error["message"]


def test_published_facts_count_as_for_match(berth, registry, fleet, start_hub, work):
    (work / "app.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-Wl,-z,x86-64-v4", "-o", work / "app", work / "app.c"],
                   check=True, timeout=60)
    program = images.layer([images.file("app", (work / "app").read_bytes(), mode=0o755)])
    silent = images.build([program], {"Cmd": ["/app"]})
    other = images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "VARIANT=other"]})
    images.push_index(registry, "hub/facts", "latest", [silent, other])
    reference = f"{registry.address}/hub/facts:latest"
    assert start_hub().digest("hub/facts", node="plain") == silent.digest
    berth.ok("pull", "--quiet", "--force", reference)
    berth.ok("scan", "--attach", reference)
    berth.ok("rmi", reference)
    hub = start_hub()
    for node, image in (("plain", other), ("skylake", silent)):
        named_by_match = json.loads(berth.run("match", "--node", fleet / f"{node}.json", "--format",
                                              "json", reference).stdout)["taken"]
        assert hub.digest("hub/facts", node=node) == named_by_match == image.digest


def test_what_refers_to_an_image_is_given_as_it_is(registry, story, start_hub):
    """Clients look for signatures and the like under a tag that means an index of artifacts."""
    tag = story["v4"].replace(":", "-")
    image = images.build([images.busybox_layer()])
    wanted = images.push_index(registry, "hub/app", tag, [image])
    assert start_hub().digest("hub/app", tag, node="h100") == wanted


def test_where_nothing_runs_the_reason_is_in_the_answer(registry, start_hub):
    image = images.build([images.busybox_layer()])
    images.push_index(registry, "hub/hopeless", "latest", [image],
                      [{"dev.berth.variant.cpu": "x86-64-v4"}])
    hub = start_hub()
    status, _, error = hub.request("/v2/hub/hopeless/manifests/latest", node="plain")
    assert (status, error["code"]) == (404, "MANIFEST_UNKNOWN")
    assert error["message"].startswith("no variant of hub/hopeless:latest runs on node 'plain': ")
    assert "x86-64-v4" in error["message"]


def test_indexes_in_indexes_and_of_ten_thousand_entries(registry, story, start_hub):
    hub = start_hub()
    kind = images.OCI["index"]
    image = images.build([images.busybox_layer()])
    image.push(registry, "hub/many")
    entry = {"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest),
             "platform": {"os": "linux", "architecture": "amd64"}}

    def put(tag, *entries):
        data = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": entries}).encode()
        digest = registry.put_manifest("hub/many", tag, kind, data)
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    inner = put("inner", entry)
    outer = put("outer", inner)
    put("deep", outer)
    put("large", *[entry] * 10_000)
    assert hub.digest("hub/many", "outer", node="plain") == image.digest
    for tag in ("deep", "large"):
        status, _, error = hub.request(f"/v2/hub/many/manifests/{tag}", node="plain")
        assert (status, error["message"]) == (
            502, "what the registry behind this hub has is not in order")
        assert hub.request(f"/v2/hub/many/manifests/{tag}")[0] == 200, "as it is, without a node"
    assert "1024" in hub.await_line("manifests/large 502")
    assert "indexes inside indexes" in hub.await_line("manifests/deep 502")


def test_the_clients_types_are_honoured(story, start_hub):
    hub = start_hub()
    path = "/v2/hub/app/manifests/latest"
    docker = {"Accept": images.DOCKER["manifest"]}
    status, _, error = hub.request(path, node="h100", headers=docker)
    assert (status, error["code"]) == (404, "MANIFEST_UNKNOWN") and "not accept" in error["message"]
    oci = {"Accept": f"text/html, {images.OCI['manifest']};q=0.9"}
    assert hub.request(path, node="h100", headers=oci)[0] == 200
    assert hub.request(path, headers=oci)[0] == 404  # the index


# ---- clients -------------------------------------------------------------------------------------

def test_berth_and_skopeo_pull_through_tls_with_a_password(berth, story, start_hub):
    hub = start_hub(tls=True, users={"alice": "pass:word"})
    berth.ok("login", "--tls-ca", hub.certificate, "-u", "alice+h100", "--password-stdin",
             hub.address, input="pass:word")
    reference = f"{hub.address}/hub/app:latest"
    berth.ok("pull", "--force", "--tls-ca", hub.certificate, reference)
    image = json.loads(berth.ok("inspect", reference))[0]
    assert "VARIANT=sm90" in image["Config"]["Env"]
    certs = hub.directory / "certs"
    certs.mkdir()
    (certs / "ca.crt").write_bytes(hub.certificate.read_bytes())
    for login, variant in (("alice+skylake", "v4"), ("alice/cpu#broadwell", "generic")):
        done = subprocess.run(
            ["skopeo", "inspect", "--no-tags", "--cert-dir", certs, "--creds",
             f"{login}:pass:word", f"docker://{reference}"], capture_output=True, text=True,
            check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["Digest"] == story[variant]


def test_podman_pulls_by_address_and_by_login(story, start_hub, work):
    hub = start_hub({"address": [{"network": "127.0.0.1", "profile": "m60"}]}, users={"bob": "pw"})
    for login, variant in (("bob", "sm52"), ("bob+h100", "sm90")):
        reference = f"{hub.address}/hub/app:latest"
        assert podman.pulled_digests(work / f"podman-{variant}", reference,
                                     "--creds", f"{login}:pw") == {story[variant]}


def test_two_hundred_clients_at_once(registry, story, start_hub):
    hub = start_hub({"limits": {"transfers": 16, "connections-per-address": 0}}, users={"alice": "pw"})
    blob = images.build([images.busybox_layer()]).layer_digests[0]
    nodes = list(NODES)
    wanted = {node: hub.digest("hub/app", user=("alice+" + node, "pw")) for node in nodes}

    def client(number):
        node = nodes[number % len(nodes)]
        given = hub.digest("hub/app", user=("alice+" + node, "pw"))
        data = hub.request(f"/v2/hub/app/blobs/{blob}", user=("alice", "pw"))[2]
        return given == wanted[node] and images.digest_of(data) == blob

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        assert all(pool.map(client, range(200)))
    assert hub.peak_memory() < 64 << 20


# ---- blobs ---------------------------------------------------------------------------------------

def test_blobs_pass_with_head_and_ranges(registry, story, start_hub):
    hub = start_hub()
    image = images.build([images.busybox_layer()])
    digest = image.layer_digests[0]
    data = image.blobs[digest]
    path = f"/v2/hub/app/blobs/{digest}"
    status, headers, body = hub.request(path)
    assert (status, body) == (200, data)
    assert headers["Docker-Content-Digest"] == digest
    status, headers, body = hub.request(path, method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(data)), b"")
    status, headers, body = hub.request(path, headers={"Range": "bytes=10-29"})
    assert (status, body) == (206, data[10:30])
    assert headers["Content-Range"] == f"bytes 10-29/{len(data)}"
    assert hub.request(path, headers={"Range": "bytes=99999999-"})[0] == 416
    assert hub.request(f"/v2/hub/app/blobs/{EMPTY}")[2]["code"] == "BLOB_UNKNOWN"
    registry.put_blob("hub/app", EMPTY, b"")
    status, headers, body = hub.request(f"/v2/hub/app/blobs/{EMPTY}")
    assert (status, headers["Content-Length"], body) == (200, "0", b"")


def test_blobs_are_redirected_where_that_needs_no_credentials(registry, story, start_hub):
    hub = start_hub({"blobs": "redirect"})
    digest = images.build([images.busybox_layer()]).layer_digests[0]
    status, headers, body = hub.request(f"/v2/hub/app/blobs/{digest}")
    assert (status, body) == (307, b"")
    assert headers["Location"] == f"http://{registry.address}/v2/hub/app/blobs/{digest}"
    assert hub.request(f"/v2/hub/app/blobs/{EMPTY.replace('e3', 'aa')}")[0] == 404


def test_blobs_of_a_private_registry_pass_with_the_hubs_own_credentials(start_registry, start_hub,
                                                                        work):
    private = start_registry(users={"robot": "hub's own"})
    image = images.build([images.busybox_layer()])
    image.push(private, "hub/app")
    auth = work / "auth.json"
    auth.write_text(json.dumps({"auths": {private.address: {
        "auth": basic("robot", "hub's own").split()[1]}}}))
    upstream = [{"registry": private.address, "repositories": ["*"]}]
    for way in ("pass", "redirect"):
        hub = start_hub({"upstream": upstream, "blobs": way, "access": {"auth-files": [str(auth)]}},
                        users={"alice": "pw"})
        digest = image.layer_digests[0]
        assert hub.digest("hub/app", user=("alice", "pw")) == image.digest
        status, _, body = hub.request(f"/v2/hub/app/blobs/{digest}", user=("alice", "pw"))
        assert (status, body) == (200, image.blobs[digest])
    # The caller's own credentials do not reach the registry: with them it would answer.
    locked = start_hub({"upstream": upstream, "access": {"auth-files": ["/dev/null"]}},
                       users={"robot": "hub's own"})
    status, _, error = locked.request("/v2/hub/app/manifests/latest", user=("robot", "hub's own"))
    assert (status, error["code"]) == (403, "DENIED")
    assert "robot" not in json.dumps(error)


@contextlib.contextmanager
def upstream_that(answer):
    """A registry whose GET and HEAD are `answer`, and the requests that it got."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            seen.append((self.command, self.path, dict(self.headers)))
            answer(self)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


def reply(handler, status, body=b"", **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def test_a_redirect_of_the_registry_goes_on_to_the_client(start_hub, work):
    digest = images.digest_of(b"blob")

    def answer(handler):
        if "/blobs/" not in handler.path:
            reply(handler, 200)
        elif handler.path.startswith("/signed"):
            reply(handler, 200, b"blob")
        elif not handler.headers.get("Authorization"):
            reply(handler, 401, WWW_Authenticate='Basic realm="x"')
        else:
            reply(handler, 307, Location=f"/signed{handler.path}?signature=1")

    with upstream_that(answer) as (address, seen):
        upstream = [{"registry": address, "repositories": ["*"]}]
        auth = work / "auth.json"
        auth.write_text(json.dumps({"auths": {address: {"auth": basic("a", "b").split()[1]}}}))
        access = {"auth-files": [str(auth)]}
        through = start_hub({"upstream": upstream, "access": access})
        assert through.request(f"/v2/x/blobs/{digest}")[2] == b"blob"
        signed = [entry for entry in seen if entry[1].startswith("/signed")]
        assert "Authorization" in seen[-2][2] and signed
        around = start_hub({"upstream": upstream, "access": access, "blobs": "redirect"})
        status, headers, _ = around.request(f"/v2/x/blobs/{digest}")
        assert status == 307
        assert headers["Location"] == f"http://{address}/signed/v2/x/blobs/{digest}?signature=1"


def test_a_lying_registry_is_not_believed(start_hub):
    digest = images.digest_of(b"what it should be")

    def answer(handler):
        if handler.path.startswith("/v2/short/blobs/"):
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            handler.wfile.write(b"x" * 100_000)
            handler.close_connection = True
        elif "/manifests/" in handler.path:
            reply(handler, 200, b"something else", Content_Type=images.OCI["manifest"],
                  Docker_Content_Digest=digest)
        elif handler.path.startswith("/v2/busy/"):
            reply(handler, 429, Retry_After="1")
        else:
            reply(handler, 200, b"{}")

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}]})
        status, _, error = hub.request(f"/v2/app/manifests/{digest}")
        assert status == 502 and "not in order" in error["message"]
        status, headers, _ = hub.request("/v2/app/manifests/tag")
        assert headers["Docker-Content-Digest"] == images.digest_of(b"something else")
        # Half a blob never looks like a whole one.
        answer = hub.raw(f"GET /v2/short/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b"Content-Length: 1000000" in answer and len(answer) < 200_000
        assert "connection was closed before the end" in hub.await_line("/v2/short/")
        status, headers, error = hub.request(f"/v2/busy/blobs/{digest}")
        assert (status, error["code"]) == (429, "TOOMANYREQUESTS") and headers["Retry-After"]


def test_what_is_no_blob_is_not_passed_on_as_one(start_hub):
    """Nor does a registry whose refusal has no end keep a caller."""
    digest = images.digest_of(b"blob")

    def answer(handler):
        name = handler.path.split("/")[2]
        if name == "endless":
            handler.send_response(500)
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b"x" * 65536)
        elif name.isdigit():
            reply(handler, int(name), b"" if name == "204" else b"part",
                  Content_Range="bytes 0-3/9")
        else:
            reply(handler, 200)

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}]})
        for status in (201, 204, 206, 299):
            for method in ("GET", "HEAD"):
                assert hub.request(f"/v2/{status}/blobs/{digest}", method=method)[0] == 502
        assert "status 204" in hub.await_line("/v2/204/blobs/", " 502 ")
        part = {"Range": "bytes=0-3"}
        assert hub.request(f"/v2/206/blobs/{digest}", headers=part)[0] == 206
        for path in ("/v2/endless/manifests/latest", f"/v2/endless/blobs/{digest}"):
            started = time.monotonic()
            assert hub.request(path)[0] == 502
            assert time.monotonic() - started < 5


def test_memory_stays_small_while_large_blobs_pass(start_hub):
    size, piece = 500 << 20, b"\0" * (1 << 20)
    digest = images.digest_of(b"not looked at")

    def answer(handler):
        if "/blobs/" not in handler.path:
            return reply(handler, 200)
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(size // len(piece)):
                handler.wfile.write(piece)

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}]})
        with contextlib.closing(hub.connect()) as client:
            client.request("GET", f"/v2/x/blobs/{digest}")
            response = client.getresponse()
            # While another reads nothing at all.
            with socket.create_connection(("127.0.0.1", hub.port)) as idle:
                idle.sendall(f"GET /v2/x/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                taken = 0
                while data := response.read(1 << 20):
                    taken += len(data)
        assert taken == size
        assert hub.peak_memory() < 64 << 20


# ---- what is refused -----------------------------------------------------------------------------

def test_nothing_but_what_is_named_is_served(story, start_hub):
    hub = start_hub()
    for path in ("/v2/secret/app/manifests/latest", "/v2/secret/app/tags/list",
                 f"/v2/secret/app/blobs/{EMPTY}"):
        status, _, error = hub.request(path)
        assert (status, error["code"]) == (404, "NAME_UNKNOWN"), path
    for path in ("/", "/v2/_catalog", "/v1/", "/v2/hub/app/referrers/" + EMPTY, "/debug/vars",
                 "/v2/hub/../secret/app/manifests/latest", "/v2/hub/app/manifests/../../x",
                 "/v2/hub/%2e%2e/secret/manifests/latest", "//evil.example.org/v2/",
                 "http://evil.example.org/v2/hub/app/manifests/latest", "/v2/HUB/app/manifests/x"):
        assert hub.request(path)[0] in (400, 404), path
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        status, headers, error = hub.request("/v2/hub/app/manifests/latest", method=method,
                                             body=b"{}")
        assert (status, error["code"], headers["Allow"]) == (405, "UNSUPPORTED", "GET, HEAD")
    assert hub.request("/v2/hub/app/blobs/uploads/", method="POST")[0] == 405


def test_tags_have_the_hubs_names(registry, story, start_hub):
    for tag in ("1", "2", "3"):
        images.busybox().push(registry, "hub/tags", tag)
    hub = start_hub({"upstream": [{"prefix": "mirror", "registry": registry.address,
                                   "repositories": ["hub/*"]}]})
    listed = json.loads(hub.request("/v2/mirror/hub/tags/tags/list")[2])
    assert (listed["name"], sorted(listed["tags"])) == ("mirror/hub/tags", ["1", "2", "3"])
    status, headers, body = hub.request("/v2/mirror/hub/tags/tags/list?n=2")
    assert status == 200 and len(json.loads(body)["tags"]) in (2, 3)
    if headers["Link"]:
        assert headers["Link"] == '</v2/mirror/hub/tags/tags/list?n=2&last=2>; rel="next"'
    assert hub.request("/v2/hub/tags/tags/list")[0] == 404


def test_who_has_no_password_is_told_nothing(story, start_hub):
    hub = start_hub(users={"alice": "pw"})
    for user in (None, ("alice", "wrong"), ("bob", "pw"), ("alice+h100", "wrong"), ("", "pw")):
        for path in ("/v2/", "/v2/hub/app/manifests/latest", "/nothing", f"/v2/hub/app/blobs/{EMPTY}"):
            status, headers, error = hub.request(path, user=user)
            assert (status, error["code"]) == (401, "UNAUTHORIZED")
            assert headers["WWW-Authenticate"].startswith("Basic realm=")
    assert hub.request("/v2/", user=("alice", "pw"))[0] == 200
    for value in ("Bearer x", "Basic", "Basic =", "Basic " + "A" * 8000):
        assert hub.request("/v2/", headers={"Authorization": value})[0] == 401
    assert "pw" not in hub.out.read_text() + hub.err.read_text()


def test_malformed_requests_are_answered_or_dropped(story, start_hub):
    hub = start_hub()
    get = b"GET /v2/ HTTP/1.1\r\nHost: x\r\n"
    assert b" 431 " in hub.raw(get + b"X: " + b"a" * 20_000 + b"\r\n\r\n").split(b"\r\n")[0]
    assert b" 431 " in hub.raw(b"GET /" + b"a" * 1_000_000)[:40]
    for data in (b"\r\n\r\n\r\nx", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n",
                 get + b"broken header\r\n\r\n", b"G\0T / HTTP/1.1\r\n\r\n",
                 b"GET /\xff\x7f HTTP/1.1\r\n\r\n",
                 get + b"Content-Length: -1\r\n\r\n", get + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"):
        assert hub.raw(data)[:13] in (b"HTTP/1.1 400 ", b""), data
    # podman asks so first, and then without.
    assert any("speaks TLS" in line for line in hub.out.read_text().splitlines()
               + hub.err.read_text().splitlines())
    # What looks like a second request is a body's end, and not answered.
    smuggled = get + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get + b"\r\n"
    assert hub.raw(smuggled).count(b"HTTP/1.1 ") == 1
    pipelined = get + b"\r\n" + get + b"Connection: close\r\n\r\n"
    assert hub.raw(pipelined).count(b"HTTP/1.1 200 ") == 2
    assert hub.request("/v2/")[0] == 200


def test_slow_clients_are_dropped_and_keep_nobody_waiting(story, start_hub):
    hub = start_hub({"limits": {"connections": 20, "connections-per-address": 0}})
    slow = [socket.create_connection(("127.0.0.1", hub.port)) for _ in range(20)]
    try:
        for client in slow:
            client.sendall(b"GET /v2/ HTTP/1.1\r\nX-Slow: ")
        started = time.monotonic()
        assert hub.request("/v2/")[0] == 200  # as soon as one of them has had its time
        assert 5 < time.monotonic() - started < 40
        slow[0].settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            assert slow[0].recv(100) == b""
    finally:
        for client in slow:
            client.close()


def test_one_address_cannot_use_up_the_connections_of_others(story, start_hub):
    hub = start_hub({"limits": {"connections": 20}})
    get = b"GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n"
    with contextlib.ExitStack() as stack:
        def client(source):
            return stack.enter_context(socket.create_connection(
                ("127.0.0.1", hub.port), timeout=30, source_address=(source, 0)))

        sitting = [client("127.0.0.1") for _ in range(100)]
        for one in sitting[:5]:  # a quarter of 20, in the order in which they came
            one.sendall(get)
            assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
        sitting[5].sendall(get)
        told = sitting[5].recv(4096)
        assert told.startswith(b"HTTP/1.1 429 ") and b"\r\nRetry-After: 5\r\n" in told
        assert "connections-per-address" in hub.await_line("127.0.0.1", "/v2/ 429")
        started = time.monotonic()
        other = client("127.0.0.2")
        other.sendall(get)
        assert other.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - started < 2
        with contextlib.suppress(ConnectionResetError):
            assert sitting[-1].recv(1) == b"", "closed at once"
        sitting[0].close()
        time.sleep(0.5)
        assert hub.request("/v2/")[0] == 200, "one place is free again"


def test_what_one_address_waits_for_keeps_no_other_waiting(start_hub):
    stuck = threading.Event()
    digest = images.digest_of(b"blob")

    def answer(handler):
        if "/slow/" in handler.path:
            stuck.wait(30)
        reply(handler, 200, b"{}" if "/blobs/" not in handler.path else b"blob")

    with upstream_that(answer) as (address, _), contextlib.ExitStack() as stack:
        stack.callback(stuck.set)
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}],
                         "limits": {"connections": 200, "transfers": 8}})

        def ask(path, source):
            client = stack.enter_context(socket.create_connection(
                ("127.0.0.1", hub.port), timeout=30, source_address=(source, 0)))
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return client

        for _ in range(20):
            ask("/v2/slow/manifests/latest", "127.0.0.1")
            ask(f"/v2/slow/blobs/{digest}", "127.0.0.1")
        time.sleep(1)
        for path in ("/v2/", "/v2/quick/manifests/latest", f"/v2/quick/blobs/{digest}"):
            started = time.monotonic()
            assert ask(path, "127.0.0.2").recv(4096).startswith(b"HTTP/1.1 200 "), path
            assert time.monotonic() - started < 5, path
        stuck.set()
        own = ask("/v2/", "127.0.0.1")
        assert own.recv(4096).startswith(b"HTTP/1.1 200 "), "after its own turns"


# ---- its life ------------------------------------------------------------------------------------

def test_a_signal_ends_it_and_lets_answers_end(start_hub):
    arrived, go_on = threading.Event(), threading.Event()
    digest = images.digest_of(b"blob")

    def answer(handler):
        if "/blobs/" not in handler.path:
            return reply(handler, 200)
        handler.send_response(200)
        handler.send_header("Content-Length", "8")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.wfile.flush()
        arrived.set()
        go_on.wait(20)
        handler.wfile.write(b"done")

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}]})
        idle = hub.connect()
        idle.connect()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(hub.request, f"/v2/x/blobs/{digest}")
            assert arrived.wait(20)
            hub.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 10
            with pytest.raises(OSError):  # nobody listens any more
                while time.monotonic() < deadline:
                    socket.create_connection(("127.0.0.1", hub.port), timeout=5).close()
                    time.sleep(0.05)
            go_on.set()
            assert asked.result(20)[2] == b"halfdone"
        assert hub.process.wait(10) == 0
        idle.close()


def test_a_second_signal_breaks_off(start_hub):
    digest = images.digest_of(b"blob")
    stuck = threading.Event()

    def answer(handler):
        if "/blobs/" not in handler.path:
            return reply(handler, 200)
        handler.send_response(200)
        handler.send_header("Content-Length", "8")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.wfile.flush()
        stuck.wait(30)

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["*"]}]})
        with socket.create_connection(("127.0.0.1", hub.port)) as client:
            client.sendall(f"GET /v2/x/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.recv(4)
            started = time.monotonic()
            hub.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            hub.process.send_signal(signal.SIGTERM)
            assert hub.process.wait(20) == 0
            assert time.monotonic() - started < 4
        stuck.set()


def test_a_hangup_reads_accounts_and_tables_again(registry, story, start_hub, fleet):
    hub = start_hub({"login": [{"name": "alice", "profile": "m60"}]},
                    users={"alice": "pw", "bob": "pw"})
    assert hub.digest("hub/app", user=("alice", "pw")) == story["sm52"]
    kept = hub.connect()  # a connection that is open stays so
    kept.request("GET", "/v2/", headers={"Authorization": basic("bob", "pw")})
    kept.getresponse().read()
    (hub.directory / "htpasswd").write_text(htpasswd(alice="pw", carol="new"))
    (fleet / "late.json").write_text(json.dumps({"architecture": "amd64", **NODES["h100"]}))
    hub.reload({**hub.settings, "login": [{"name": "alice", "profile": "skylake"}]})
    assert hub.digest("hub/app", user=("alice", "pw")) == story["v4"]
    assert hub.digest("hub/app", user=("carol+late", "new")) == story["sm90"]
    assert hub.request("/v2/", user=("bob", "pw"))[0] == 401
    kept.request("GET", "/v2/", headers={"Authorization": basic("bob", "pw")})
    assert kept.getresponse().status == 401, "nor by a connection from before"
    kept.close()


def test_a_configuration_that_is_wrong_changes_nothing(story, start_hub):
    hub = start_hub({"default": "m60"}, users={"alice": "pw"})
    who = {"user": ("alice", "pw")}
    old, accounts = hub.config.read_text(), hub.directory / "htpasswd"

    def still_served(what):
        hub.reload(told="using the old one instead")
        line = hub.err.read_text().splitlines()[-1]
        assert line.startswith("berth-hub: warning: cannot read the configuration again: "), line
        assert what in line
        assert hub.digest("hub/app", **who) == story["sm52"]
        assert hub.request("/v2/")[0] == 401

    hub.config.write_text("default = ")
    still_served("hub.toml:1")
    hub.config.write_text(old.replace('"m60"', '"m61"'))
    still_served("no profile 'm61'; did you mean 'm60'?")
    hub.config.write_text("blob = 'pass'\n" + old)
    still_served("did you mean 'blobs'?")
    hub.config.unlink()  # without it there would be no passwords
    still_served("hub.toml")
    hub.config.write_text(old)
    accounts.write_text("alice:plain\n")
    still_served("htpasswd:1: ")
    accounts.unlink()
    still_served("htpasswd")
    accounts.write_text(htpasswd(alice="other"))
    hub.reload()
    assert hub.request("/v2/", **who)[0] == 401
    assert hub.digest("hub/app", user=("alice", "other")) == story["sm52"]


def test_what_cannot_change_while_it_serves_is_told(story, start_hub):
    hub = start_hub()
    hub.reload({**hub.settings, "listen": ["127.0.0.1:1"], "log": "json", "default": "m60",
                "limits": {"transfers": 3}})
    assert ("warning: listen, log, limits.transfers: changed; using the old values until a restart "
            "instead\n") in hub.err.read_text()
    assert hub.digest("hub/app") == story["sm52"], "all else counts"
    # Passwords that would come in plain from other machines are refused as at the start.
    open_hub = start_hub({"listen": ["0.0.0.0:0"]})
    (open_hub.directory / "htpasswd").write_text(htpasswd(alice="pw"))
    open_hub.reload({**open_hub.settings, "listen": ["127.0.0.1:0"],
                     "htpasswd": str(open_hub.directory / "htpasswd")},
                    told="passwords would come in plain HTTP")
    assert open_hub.request("/v2/")[0] == 200


def test_a_hangup_takes_another_certificate(story, start_hub):
    hub = start_hub(tls=True)
    first = hub.certificate.read_text()
    make_certificate(hub.directory)
    assert hub.certificate.read_text() != first
    with pytest.raises(ssl.SSLError):
        hub.request("/v2/")  # it has the old one yet
    hub.reload()
    assert hub.request("/v2/")[0] == 200
    key = hub.directory / hub.settings["tls-key"]
    key.write_text("none")
    hub.reload(told="read tls-key")
    assert hub.request("/v2/")[0] == 200


def test_a_hangup_breaks_no_answer_off(start_hub):
    arrived, go_on = threading.Event(), threading.Event()
    digest = images.digest_of(b"blob")

    def answer(handler):
        if "/blobs/" not in handler.path:
            return reply(handler, 200)
        handler.send_response(200)
        handler.send_header("Content-Length", "8")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.wfile.flush()
        arrived.set()
        go_on.wait(20)
        handler.wfile.write(b"done")

    with upstream_that(answer) as (address, _):
        hub = start_hub({"upstream": [{"registry": address, "repositories": ["x"]}]})
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(hub.request, f"/v2/x/blobs/{digest}")
            assert arrived.wait(20)
            hub.reload({**hub.settings,
                        "upstream": [{"registry": address, "repositories": ["other"]}]})
            hub.reload()
            assert hub.request(f"/v2/x/blobs/{digest}")[0] == 404, "it is served no more"
            go_on.set()
            assert asked.result(20)[2] == b"halfdone"


def test_the_hangup_of_a_terminal_that_is_closed_ends_it(programs, registry, work):
    master, slave = os.openpty()
    out = work / "out"
    with open(out, "wb") as stream:
        hub = subprocess.Popen(
            [pathlib.Path(programs) / "berth", "hub", "--listen", "127.0.0.1:0", "--upstream",
             registry.address, "--repository", "*"], stdin=subprocess.DEVNULL, stdout=stream,
            stderr=slave)
    try:
        def said(what):
            deadline = time.monotonic() + 10
            while what not in out.read_text():
                assert time.monotonic() < deadline and hub.poll() is None
                time.sleep(0.02)

        said("listening at")
        hub.send_signal(signal.SIGHUP)
        said("read again")
        os.close(slave)
        os.close(master)
        hub.send_signal(signal.SIGHUP)
        assert hub.wait(10) == 0
    finally:
        hub.kill()
        hub.wait()


def test_what_is_wrong_with_the_configuration_is_one_line(berth, registry, fleet, work, start_hub):
    def told(*flags):
        return berth.fail("hub", *flags, status=1)

    assert "no registry is given" in told()
    served = ("--upstream", registry.address, "--repository", "hub/*", "--listen", "127.0.0.1:0")
    assert berth.ok("hub", "--check", *served) == "berth-hub: the configuration can be served\n"
    assert "nothing is served" in told("--upstream", registry.address)
    assert "--upstream" in told("--repository", "x")
    assert "expected ADDRESS:PORT" in told(*served, "--listen", "localhost")
    assert "no-such" in told("--config", "/no-such.toml")
    (work / "hub.toml").write_text("blob = 'pass'\n")
    assert "hub.toml:1: blob: unknown key; did you mean 'blobs'?" in told("--config",
                                                                          work / "hub.toml")

    def told_by_it(*flags):
        done = berth.run("hub", "--check", *served, *flags)
        assert (done.returncode, done.stdout) == (1, ""), done
        line, = done.stderr.splitlines()
        assert line.startswith("berth-hub: ")
        return line

    assert "no profile 'h10'; did you mean 'h100'?" in told_by_it("--fleet", fleet, "--default",
                                                                  "h10")
    accounts = work / "accounts"
    accounts.write_text("bob:$apr1$x$y\n")
    assert "accounts:1: the hash is not a bcrypt hash" in told_by_it("--htpasswd", accounts)
    assert "no-such" in told_by_it("--fleet", "/no-such")
    empty = work / "empty.pem"
    empty.write_text("")
    assert "read tls-certificate" in told_by_it("--tls-cert", empty, "--tls-key", empty)
    hub = start_hub()
    taken = ("--upstream", registry.address, "--repository", "*", "--listen", hub.address)
    done = berth.run("hub", *taken)
    assert (done.returncode, "Address already in use" in done.stderr) == (1, True), done.stderr
    # Beside the hub that runs with it, a configuration can be checked.
    assert berth.ok("hub", "--check", *taken) == "berth-hub: the configuration can be served\n"


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_needs_nothing_for_it(berth, registry, story):
    assert "the configuration can be served" in berth.ok(
        "hub", "--check", "--listen", "127.0.0.1:0", "--upstream", registry.address,
        "--repository", "hub/*")
