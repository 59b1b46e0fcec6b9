# SPDX-License-Identifier: Apache-2.0
"""What was found in an image, published beside it: berth scan --attach, and who reads it."""

import base64
import json
import subprocess

import pytest
from support import images, registry_front

ARTIFACT = "application/vnd.dev.berth.facts.v1"


@pytest.fixture(params=["tag", "api"])
def front(registry, request):
    """A registry without the list of referrers, and one with it."""
    with registry_front.running(registry, referrers=request.param == "api") as server:
        yield server


@pytest.fixture(scope="module")
def v3_program(tmp_path_factory):
    place = tmp_path_factory.mktemp("v3")
    (place / "app.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-Wl,-z,x86-64-v3", "-o", place / "app", place / "app.c"],
                   check=True, timeout=60)
    return (place / "app").read_bytes()


def image_of(program, **config):
    return images.build([images.busybox_layer(),
                         images.layer([images.file("app", program, mode=0o755)])],
                        {"Cmd": ["/app"], "Env": ["PATH=/bin"], **config})


def name_of(front, request):
    return "facts/" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower()).strip("-")


@pytest.fixture
def published(berth, front, request, v3_program):
    """A reference to an image whose findings somebody has published."""
    repository = name_of(front, request)
    image_of(v3_program).push(front.upstream, repository, "latest")
    reference = f"{front.address}/{repository}:latest"
    berth.ok("pull", "--quiet", "--force", reference)
    out = berth.ok("scan", "--attach", reference)
    assert out.startswith(f"attached to {reference}: sha256:")
    berth.ok("rmi", reference)
    return reference


def node_file(work, level):
    path = work / f"{level}.json"
    path.write_text(json.dumps({"version": 1, "architecture": "amd64",
                                "cpu": {"microarchitecture": level}}))
    path.chmod(0o644)
    return path


def test_a_verdict_needs_three_requests_and_no_layer(berth, front, published, work):
    front.requests.clear()
    done = berth.run("match", "--node", node_file(work, "nehalem"), published, "--format", "json")
    assert done.returncode == 12, done.stdout + done.stderr
    [entry] = json.loads(done.stdout)["entries"]
    assert any("x86-64-v3" in clause["reason"] and clause["outcome"] == "fail"
               for clause in entry["clauses"])
    assert len(front.requests) <= 3, front.requests
    assert sum(size for _, _, size in front.requests) <= 256 << 10
    assert berth.run("match", "--node", node_file(work, "haswell"), published).returncode == 0


def test_facts_of_an_image_that_was_never_pushed_have_no_place(berth, front, request, published):
    berth.ok("pull", "--quiet", "--force", published)
    elsewhere = f"{front.address}/{name_of(front, request)}-not-there:1"
    berth.ok("tag", published, elsewhere)
    assert "berth push it first" in berth.fail("scan", "--attach", elsewhere, status=1)


def test_an_index_is_answered_for_by_one_document(berth, front, request, v3_program, work):
    repository = name_of(front, request)
    plain = images.build([images.busybox_layer()], {"Cmd": ["/bin/sh"]})
    images.push_index(front.upstream, repository, "latest", [plain, image_of(v3_program)],
                      [{}, {"dev.berth.variant.name": "fast"}])
    reference = f"{front.address}/{repository}:latest"
    for image in (plain, image_of(v3_program)):
        entry = f"{front.address}/{repository}@{image.digest}"
        berth.ok("pull", "--quiet", "--force", entry)
    berth.ok("pull", "--quiet", "--force", reference)
    berth.ok("scan", "--attach", reference)
    front.requests.clear()
    done = berth.run("match", "--node", node_file(work, "nehalem"), reference, "--format", "json")
    assert len(front.requests) <= 3, front.requests
    assert json.loads(done.stdout)["taken"] == plain.digest


def test_attaching_the_same_again_changes_nothing(berth, front, published):
    berth.ok("pull", "--quiet", "--force", published)
    assert berth.ok("scan", "--attach", published) == f"{published} has them already\n"


def test_a_name_that_means_something_else_now_is_refused(berth, front, published, v3_program):
    berth.ok("pull", "--quiet", "--force", published)
    repository = published.split("/", 1)[1].split(":")[0]
    image_of(v3_program, Labels={"moved": "yes"}).push(front.upstream, repository, "latest")
    done = berth.run("scan", "--attach", published)
    assert done.returncode == 1
    assert "is not one of the images that the registry has under this name now" in done.stderr


def test_what_is_published_is_an_oci_artifact_that_others_find(front, published):
    repository, tag = published.split("/", 1)[1].split(":")
    _, headers, _ = front.upstream.request(
        "GET", f"/v2/{repository}/manifests/{tag}", headers={"Accept": images.OCI["manifest"]})
    digest = headers["Docker-Content-Digest"]
    if front.referrers is None:
        _, _, body = front.upstream.request(
            "GET", f"/v2/{repository}/manifests/{digest.replace(':', '-')}",
            headers={"Accept": images.OCI["index"]})
        entries = json.loads(body)["manifests"]
    else:
        entries = front.referrers[(repository, digest)]
    [entry] = [one for one in entries if one["artifactType"] == ARTIFACT]
    _, _, body = front.upstream.request("GET", f"/v2/{repository}/manifests/{entry['digest']}",
                                        headers={"Accept": images.OCI["manifest"]})
    manifest = json.loads(body)
    assert manifest["subject"]["digest"] == digest
    [layer] = manifest["layers"]
    _, _, blob = front.upstream.request("GET", f"/v2/{repository}/blobs/{layer['digest']}")
    assert base64.b64decode(layer["data"]) == blob
    text = subprocess.run(["zstd", "-dc"], input=blob, check=True, capture_output=True).stdout
    facts = json.loads(text)
    assert facts["subject"] == digest
    assert facts["images"][0]["found"]["cpu"][0]["isa"]["level"] == 3


# ---- what others have put there -----------------------------------------------------------------

def replace(front, published, change):
    """Puts a document beside the image that `change` made of the right one."""
    repository, tag = published.split("/", 1)[1].split(":")
    ask = front.upstream.request
    _, headers, image = ask("GET", f"/v2/{repository}/manifests/{tag}",
                            headers={"Accept": images.OCI["manifest"]})
    digest = headers["Docker-Content-Digest"]
    _, _, listed = ask("GET", f"/v2/{repository}/manifests/{digest.replace(':', '-')}",
                       headers={"Accept": images.OCI["index"]})
    artifact = json.loads(base64.b64decode(json.loads(listed)["manifests"][0]["data"]))
    blob = base64.b64decode(artifact["layers"][0]["data"])
    text = subprocess.run(["zstd", "-dc"], input=blob, check=True, capture_output=True).stdout
    changed = change(json.loads(text))
    raw = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
    packed = subprocess.run(["zstd", "-qc"], input=raw, check=True, capture_output=True).stdout
    front.upstream.put_blob(repository, images.digest_of(packed), packed)
    artifact["layers"][0].update(digest=images.digest_of(packed), size=len(packed))
    del artifact["layers"][0]["data"]
    body = json.dumps(artifact).encode()
    ask("PUT", f"/v2/{repository}/manifests/{images.digest_of(body)}", body,
        {"Content-Type": images.OCI["manifest"]})
    index = {"schemaVersion": 2, "mediaType": images.OCI["index"], "manifests": [
        {"mediaType": images.OCI["manifest"], "digest": images.digest_of(body), "size": len(body),
         "artifactType": ARTIFACT}]}
    ask("PUT", f"/v2/{repository}/manifests/{digest.replace(':', '-')}", json.dumps(index).encode(),
        {"Content-Type": images.OCI["index"]})


def other_machine(facts):
    facts["images"][0]["found"]["glibc"] = "2.36; rm"
    return facts


def level_four(facts):
    facts["images"][0]["found"]["cpu"] = [{"isa": {"level": 4, "source": "note"}, "files": 1,
                                          "example": "/app", "main": True}]
    return facts


def escape(facts):
    level_four(facts)["images"][0]["found"]["program"] = "/app\x1b[2J"
    return facts


@pytest.mark.parametrize("front", ["tag"], indirect=True)
@pytest.mark.parametrize("change, words", [
    (lambda facts: b"no JSON", "line 1"),
    (lambda facts: {**facts, "version": 2}, "of a later version of Berth"),
    (lambda facts: {**facts, "subject": "sha256:" + "0" * 64}, "they are of"),
    (escape, "control characters"),
    (other_machine, "version '2.36; rm'"),
    (lambda facts: b"[" * 100000, "nested too deeply"),
    (lambda facts: b" " * (17 << 20), "more than 16 MiB"),
], ids=["text", "later", "subject", "escape", "version", "nested", "large"])
def test_what_is_wrong_with_it_is_told_and_ignored(berth, front, published, work, change, words):
    replace(front, published, change)
    done = berth.run("match", "--node", node_file(work, "nehalem"), published)
    assert done.returncode in (0, 10, 11), done.stdout
    [line] = [line for line in done.stderr.splitlines() if "published" in line]
    assert "ignoring them" in line and words in line
    assert "\x1b" not in line


@pytest.mark.parametrize("front", ["tag"], indirect=True)
def test_a_hopeless_image_is_refused_before_its_layers_are_fetched(berth, front, published):
    replace(front, published, level_four)
    host = berth.run("match", published)
    if host.returncode != 12:
        pytest.skip("this processor has x86-64-v4")
    front.requests.clear()
    done = berth.run("pull", published)
    assert done.returncode == 1
    assert "x86-64-v4" in done.stderr
    assert not any("/blobs/" in path for _, path, size in front.requests if size > 4096)


# ---- signed -------------------------------------------------------------------------------------

@pytest.fixture
def keys(work):
    key, public = work / "site.key", work / "site.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-out", key], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    for path in (key, public):
        path.chmod(0o644)
    return key, public


@pytest.mark.profiles("root")
@pytest.mark.parametrize("front", ["tag"], indirect=True)
def test_a_site_may_believe_only_what_its_key_has_signed(berth, front, published, keys, work):
    key, public = keys
    config = work / "config"
    config.mkdir()
    (config / "policy.toml").write_text(
        f'[match]\nfacts = "signed"\nkeys = ["{public}"]\n')
    policy = ("--config-dir", config)
    berth.ok(*policy, "policy", "apply")
    node = node_file(work, "nehalem")
    done = berth.run(*policy, "match", "--node", node, published)
    assert "no key that the policy trusts has signed them" in done.stderr
    assert done.returncode != 12
    berth.ok("pull", "--quiet", "--force", published)
    berth.ok("scan", "--attach", "--sign-key", key, published)
    berth.ok("rmi", published)
    assert berth.run(*policy, "match", "--node", node, published).returncode == 12


@pytest.mark.profiles("root")
@pytest.mark.parametrize("front", ["tag"], indirect=True)
def test_a_file_that_is_no_key_is_refused(berth, front, published, work):
    berth.ok("pull", "--quiet", "--force", published)
    (work / "none").write_text("no key")
    done = berth.run("scan", "--attach", "--sign-key", work / "none", published)
    assert done.returncode == 1
    assert "not an unencrypted PEM of a P-256 or Ed25519 key" in done.stderr
