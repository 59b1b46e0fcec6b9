# SPDX-License-Identifier: Apache-2.0
"""How containers have ended, published beside their image: berth scan --attach --verified."""

import base64
import json
import os
import pathlib
import subprocess

import pytest
from support import images, registry_front

TESTS = pathlib.Path(__file__).resolve().parent.parent
ARTIFACT = "application/vnd.dev.berth.facts.v1"


def variant(registry, repository, command, axes):
    """One image under one name, whose publisher declares something that nobody understands."""
    image = images.build([images.busybox_layer()], {"Cmd": command, "Env": ["PATH=/bin"]})
    notes = {f"dev.berth.variant.{axis}": value for axis, value in axes.items()}
    images.push_index(registry, repository, "latest", [image], [notes])
    return f"{registry.address}/{repository}:latest"


def name_of(request):
    return "runs/" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower()).strip("-")


@pytest.fixture
def puzzle(registry, request):
    """Of a processor that nobody knows; its own command ends with 0."""
    return variant(registry, name_of(request), ["/bin/true"], {"cpu": "nextgen"})


def keys_in(directory, name):
    key, public = directory / f"{name}.key", directory / f"{name}.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-out", key], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    for path in (key, public):
        path.chmod(0o644)
    return key, public


@pytest.fixture
def site(work):
    return keys_in(work, "site")


@pytest.fixture
def trusting(berth, work):
    """trusting(public) puts a policy in force that names this key; gives the flags for it."""
    config = work / "config"
    config.mkdir()
    os.chown(config, berth.account.uid, berth.account.gid)

    def apply(public, facts="any"):
        policy = config / "policy.toml"
        policy.write_text(f'[match]\nfacts = "{facts}"\nkeys = ["{public}"]\n')
        policy.chmod(0o644)
        os.chown(policy, berth.account.uid, berth.account.gid)
        berth.ok("--config-dir", config, "policy", "apply")
        return ("--config-dir", config)
    return apply


def ended(berth, reference, *flags, name="c1", status=0):
    assert berth.run(*flags, "run", "--name", name, reference).returncode == status
    return name


def profile_of(berth, work, *flags, name="here", **changes):
    """A saved profile of this machine, or of one that differs."""
    node = json.loads(berth.ok(*flags, "node", "show", "--format", "json"))
    for member, value in changes.items():
        node[member] = {**node[member], **value} if isinstance(value, dict) else value
    path = work / f"{name}.json"
    path.write_text(json.dumps(node))
    path.chmod(0o644)
    return path


def verdict(berth, *flags, node=None, verb="match"):
    """Of the only entry: the exit status and the clauses by what they are about."""
    more = ("--node", node) if node else ()
    done = berth.run(*flags[:-1], verb, *more, flags[-1], "--format", "json")
    assert done.returncode in (0, 10, 11, 12), done.stderr
    [entry] = json.loads(done.stdout)["entries"]
    return done.returncode, {clause["about"]: clause for clause in entry["clauses"]}


LESSER = {"cpu": {"microarchitecture": "x86_64", "level": 1, "features": [], "ancestors": [],
                  "vendor": "", "model": ""}}
needs_better = pytest.mark.skipif(
    "avx2" not in pathlib.Path("/proc/cpuinfo").read_text(), reason="this processor has no AVX2")


# ---- a run that succeeded ------------------------------------------------------------------------

@needs_better
def test_a_run_here_lifts_what_is_unknown_for_a_node_like_this(berth, puzzle, site, trusting, work):
    key, public = site
    policy = trusting(public)
    here = profile_of(berth, work)
    lesser = profile_of(berth, work, name="lesser", **LESSER)
    assert verdict(berth, *policy, puzzle, node=here)[0] == 11
    ended(berth, puzzle)
    out = berth.ok("scan", "--attach", "--verified", "c1", "--sign-key", key, puzzle)
    assert out.startswith(f"attached to {puzzle}: sha256:")
    status, clauses = verdict(berth, *policy, puzzle, node=here)
    assert status == 0
    assert clauses["cpu"]["outcome"] == "pass" and clauses["cpu"]["tier"] == "verified"
    assert clauses["cpu"]["reason"].startswith("ran on a node like this (record of 20")
    assert "exit 0): declares 'nextgen'" in clauses["cpu"]["reason"]
    assert "ran on a node like this" in berth.ok(*policy, "why", puzzle)
    status, clauses = verdict(berth, *policy, puzzle, node=lesser)
    assert status == 11
    assert clauses["cpu"]["tier"] == "declared" and "runs" not in clauses


def test_what_is_not_signed_is_shown_and_lifts_nothing(berth, puzzle, site, trusting):
    policy = trusting(site[1])
    ended(berth, puzzle)
    berth.ok("scan", "--attach", "--verified", "c1", puzzle)
    status, clauses = verdict(berth, *policy, puzzle)
    assert status == 11 and clauses["cpu"]["outcome"] == "unknown"
    assert clauses["runs"]["outcome"] == "pass" and clauses["runs"]["tier"] is None
    assert "no key that the policy names has signed that" in clauses["runs"]["reason"]


def test_the_key_of_somebody_else_counts_for_nothing(berth, puzzle, site, trusting, work):
    policy = trusting(site[1])
    other, _ = keys_in(work, "other")
    ended(berth, puzzle)
    berth.ok("scan", "--attach", "--verified", "c1", "--sign-key", other, puzzle)
    assert verdict(berth, *policy, puzzle)[0] == 11
    assert verdict(berth, puzzle)[0] == 11  # and without a policy no key does


def test_a_key_signs_no_records_that_nobody_trusted_has_signed(berth, puzzle, site, trusting):
    key, public = site
    policy = trusting(public)
    ended(berth, puzzle)
    berth.ok("scan", "--attach", "--verified", "c1", puzzle)  # by anybody who may push
    done = berth.run("scan", "--attach", "--sign-key", key, puzzle)
    assert done.returncode == 0
    assert "no trusted key has signed what was published before, leaving it out" in done.stderr
    assert verdict(berth, *policy, puzzle)[0] == 11
    berth.ok("scan", "--attach", "--verified", "c1", "--sign-key", key, puzzle)
    berth.ok("scan", "--attach", "--sign-key", key, puzzle)  # the findings alone, anew
    assert verdict(berth, *policy, puzzle)[0] == 0


def test_a_record_says_nothing_about_whose_it_is(berth, registry, puzzle):
    ended(berth, puzzle)
    berth.ok("scan", "--attach", "--verified", "c1", puzzle)
    [run] = document_of(registry, puzzle)["images"][0]["runs"]
    assert run.keys() <= {"time", "exit", "own_command", "user_land", "gpus", "architecture", "cpu",
                          "kernel", "driver", "synthetic", "berth"}
    assert os.uname().nodename not in json.dumps(run)
    assert run["exit"] == 0 and run["own_command"] is True


def test_the_same_again_replaces_the_record(berth, registry, puzzle):
    for name in ("c1", "c2"):
        ended(berth, puzzle, name=name)
        berth.ok("scan", "--attach", "--verified", name, puzzle)
    assert len(document_of(registry, puzzle)["images"][0]["runs"]) == 1
    assert berth.ok("scan", "--attach", "--verified", "c2", puzzle).endswith("has them already\n")


# ---- a run that failed ---------------------------------------------------------------------------

def test_a_failure_on_a_node_like_this_is_told_in_one_line(berth, registry, request, site, trusting,
                                                           work):
    key, public = site
    policy = trusting(public)
    reference = variant(registry, name_of(request), ["/bin/sh", "-c", "exit 132"], {})
    ended(berth, reference, status=132)
    berth.ok("scan", "--attach", "--verified", "c1", "--sign-key", key, reference)
    status, clauses = verdict(berth, *policy, reference)
    assert status == 10
    words = "failed on a node like this on 20"
    assert clauses["runs"]["reason"].startswith(words)
    assert clauses["runs"]["reason"].endswith(" with exit 132")
    for verb in ("match", "why"):
        assert words in berth.run(*policy, verb, reference).stdout
    berth.ok("rm", "c1")
    berth.ok("rmi", reference)
    done = berth.run(*policy, "run", "--rm", reference)  # it is told, and not refused
    assert done.returncode == 132
    [line] = [line for line in done.stderr.splitlines() if words in line]
    assert "with exit 132" in line
    berth.ok("rmi", reference)
    assert words in berth.fail(*policy, "run", "--rm", "--strict", reference)


# ---- what is no record ---------------------------------------------------------------------------

def refusal(berth, container, reference):
    return berth.fail("scan", "--attach", "--verified", container, reference, status=1)


def test_a_container_that_runs_is_refused(berth, registry, request):
    reference = variant(registry, name_of(request), ["/bin/sleep", "100"], {})
    berth.ok("run", "-d", "--name", "c1", reference)
    assert "publish how 'c1' ran: it has not ended" in refusal(berth, "c1", reference)
    berth.ok("kill", "c1")
    berth.run("wait", "c1")
    assert "it was ended from outside" in refusal(berth, "c1", reference)


def test_a_container_of_another_image_or_command_is_refused(berth, registry, request, puzzle):
    other = variant(registry, name_of(request) + "/other", ["/bin/false"], {})
    ended(berth, other, status=1)
    berth.ok("pull", "--quiet", puzzle)
    assert "which is another image here" in refusal(berth, "c1", puzzle)
    assert berth.run("run", "--name", "c2", puzzle, "echo", "hi").returncode == 0
    assert "it did not run the image's own command" in refusal(berth, "c2", puzzle)
    # No two hex digits, which the id of another one may begin with.
    assert "no such container: nobody" in refusal(berth, "nobody", puzzle)
    berth.ok("create", "--name", "c3", puzzle)
    assert "it was never started" in refusal(berth, "c3", puzzle)


def test_verified_needs_attach(berth, puzzle):
    assert "--verified needs --attach" in berth.fail("scan", "--verified", "c1", puzzle, status=1)


# ---- GPUs ----------------------------------------------------------------------------------------

@pytest.fixture
def stub():
    programs = os.environ.get("BERTH_TEST_PROGRAMS", TESTS.parent / "build/release/bin")
    return pathlib.Path(programs).resolve().parent / "lib/libnvml_stub.so"


def test_gpus_and_driver_have_to_be_alike(berth, registry, request, driver_tree, stub, site,
                                          trusting, work):
    key, public = site
    policy = trusting(public)
    tree = ("--driver-root", driver_tree("one", "--nvml-stub", stub))
    reference = variant(registry, name_of(request), ["/bin/true"], {"gpu": "sm_90", "cuda": "next"})
    assert berth.run(*tree, "run", "--name", "c1", "--gpus", "all", reference).returncode == 0
    berth.ok(*tree, "scan", "--attach", "--verified", "c1", "--sign-key", key, reference)
    [run] = document_of(registry, reference)["images"][0]["runs"]
    assert run["gpus"] == [{"vendor": "nvidia", "model": "NVIDIA H100 80GB HBM3",
                            "compute_capability": "9.0"}]
    assert run["driver"]["kind"] == "nvidia" and run["synthetic"] is True

    here = profile_of(berth, work, *tree)
    assert json.loads(here.read_text())["driver"]["module_version"] == run["driver"]["version"]
    older = profile_of(berth, work, *tree, name="older", driver={"module_version": "525.60.13"})
    ampere = profile_of(berth, work, *tree, name="ampere", gpus=[
        {"vendor": "nvidia", "compute_capability": "8.0"}])
    for node, outcome in ((here, "pass"), (older, "unknown"), (ampere, "unknown")):
        _, clauses = verdict(berth, *policy, reference, node=node)
        assert clauses["facts"]["outcome"] == outcome, (node, clauses)


# ---- what others put there -----------------------------------------------------------------------

def document_of(registry, reference):
    repository, tag = reference.split("/", 1)[1].split(":")
    artifact = artifact_of(registry, repository, tag)[1]
    blob = base64.b64decode(artifact["layers"][0]["data"])
    return json.loads(subprocess.run(["zstd", "-dc"], input=blob, check=True,
                                     capture_output=True).stdout)


def artifact_of(registry, repository, tag):
    kinds = {"Accept": ", ".join(images.OCI.values())}
    _, headers, _ = registry.request("GET", f"/v2/{repository}/manifests/{tag}", headers=kinds)
    subject = headers["Docker-Content-Digest"]
    _, _, listed = registry.request(
        "GET", f"/v2/{repository}/manifests/{subject.replace(':', '-')}",
        headers={"Accept": images.OCI["index"]})
    [entry] = [one for one in json.loads(listed)["manifests"] if one["artifactType"] == ARTIFACT]
    return subject, json.loads(base64.b64decode(entry["data"]))


def replace(registry, reference, document):
    """Puts another document in the place of what Berth has attached, embedded as Berth does it."""
    repository, tag = reference.split("/", 1)[1].split(":")
    subject, artifact = artifact_of(registry, repository, tag)
    packed = subprocess.run(["zstd", "-qc"], input=json.dumps(document).encode(), check=True,
                            capture_output=True).stdout
    registry.put_blob(repository, images.digest_of(packed), packed)
    layer = artifact["layers"][0]
    layer.update(digest=images.digest_of(packed), size=len(packed),
                 data=base64.b64encode(packed).decode())
    body = json.dumps(artifact).encode()
    registry.request("PUT", f"/v2/{repository}/manifests/{images.digest_of(body)}", body,
                     {"Content-Type": images.OCI["manifest"]})
    entry = {"mediaType": images.OCI["manifest"], "digest": images.digest_of(body),
             "size": len(body), "artifactType": ARTIFACT,
             "data": base64.b64encode(body).decode()}
    index = {"schemaVersion": 2, "mediaType": images.OCI["index"], "manifests": [entry]}
    registry.request("PUT", f"/v2/{repository}/manifests/{subject.replace(':', '-')}",
                     json.dumps(index).encode(), {"Content-Type": images.OCI["index"]})
    return len(body)


@pytest.mark.parametrize("change, words", [
    ({"time": "2026-11-20"}, "time '2026-11-20'"),
    ({"time": "2026-02-30T12:00:00Z\x1b[2J"}, "control characters"),
    ({"kernel": "6.1; rm"}, "kernel '6.1; rm'"),
    ({"exit": 1000}, "exit status '1000'"),
    ({"exit": -1}, "out of range"),
    ({"cpu": {"microarchitecture": "a b"}}, "processor 'a b'"),
    ({"driver": {"kind": "nvidia", "version": "x"}}, "driver's version 'x'"),
    ({"gpus": [{"vendor": "acme"}]}, "vendor of a GPU 'acme'"),
], ids=["time", "control", "kernel", "exit", "negative", "cpu", "driver", "vendor"])
def test_records_that_no_berth_writes_are_told_and_ignored(berth, registry, puzzle, change, words):
    ended(berth, puzzle)
    berth.ok("scan", "--attach", "--verified", "c1", puzzle)
    document = document_of(registry, puzzle)
    document["images"][0]["runs"][0].update(change)
    replace(registry, puzzle, document)
    done = berth.run("match", puzzle)
    assert done.returncode == 11
    [line] = [line for line in done.stderr.splitlines() if "published" in line]
    assert words in line and "ignoring them" in line and "\x1b" not in line


def many_runs(count):
    cpus = ["haswell", "broadwell", "skylake_avx512", "cascadelake", "icelake", "zen3", "zen4"]
    return [{"time": f"2026-11-{1 + i % 28:02}T{i % 24:02}:{i % 60:02}:{i * 7 % 60:02}Z",
             "exit": 0 if i % 3 else i, "own_command": True, "user_land": "host",
             "gpus": [{"vendor": "nvidia", "model": "NVIDIA H100 80GB HBM3",
                       "compute_capability": "9.0"}],
             "architecture": "amd64", "cpu": {"microarchitecture": cpus[i % 7], "level": 3},
             "kernel": f"6.{i % 20}.{i}", "driver": {"kind": "nvidia",
                                                     "version": f"570.{i}.{i * 13 % 100}"},
             "berth": "0.1.0"} for i in range(count)]


@pytest.mark.parametrize("referrers", [False, True], ids=["tag", "api"])
def test_a_verdict_with_many_records_needs_three_requests(berth, registry, request, work,
                                                          referrers):
    repository = name_of(request)
    built = [images.build([images.busybox_layer()], {"Cmd": ["/bin/true"], "Env": [f"N={i}"]})
             for i in range(8)]
    images.push_index(registry, repository, "latest", built, [{} for _ in built])
    reference = f"{registry.address}/{repository}:latest"
    berth.ok("pull", "--quiet", reference)
    berth.ok("scan", "--attach", reference)
    document = document_of(registry, reference)
    [scanned] = document["images"]
    document["images"] = [{**scanned, "image": image.digest, "runs": many_runs(64)}
                          for image in built]
    if referrers:
        return with_referrers(berth, registry, reference, document)
    assert replace(registry, reference, document) <= 160 << 10
    with registry_front.running(registry, referrers=False) as front:
        told = f"{front.address}/{repository}:latest"
        check_cost(berth, front, told)


def with_referrers(berth, registry, reference, document):
    repository = reference.split("/", 1)[1].split(":")[0]
    with registry_front.running(registry, referrers=True) as front:
        told = f"{front.address}/{repository}:latest"
        berth.ok("pull", "--quiet", told)
        berth.ok("scan", "--attach", told)
        [(place, entries)] = front.referrers.items()
        replace(registry, reference, document)
        _, artifact = artifact_of(registry, repository, "latest")
        body = json.dumps(artifact).encode()
        [entry] = [one for one in entries if one["artifactType"] == ARTIFACT]
        entry.update(digest=images.digest_of(body), size=len(body))
        front.referrers[place] = [entry]
        check_cost(berth, front, told)


def check_cost(berth, front, reference):
    front.requests.clear()
    done = berth.run("match", reference, "--format", "json")
    assert done.returncode in (0, 10), done.stderr
    assert "published" not in done.stderr
    assert len(front.requests) <= 3, front.requests
    assert sum(size for _, _, size in front.requests) <= 256 << 10
