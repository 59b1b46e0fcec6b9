# SPDX-License-Identifier: Apache-2.0
"""docker, podman and containerd pull through berth hub, with no change to any of them."""

import json
import re
import subprocess

import pytest

from support import images
from support.hub import Hub

VARIANTS = {"generic": {}, "v4": {"cpu": "x86-64-v4"}, "sm90": {"gpu": "sm_90", "cuda": "12.8"}}
NODES = {
    "plain": {"cpu": {"microarchitecture": "broadwell"}},
    "skylake": {"cpu": {"microarchitecture": "skylake_avx512"}},
    "h100": {"cpu": {"microarchitecture": "broadwell"},
             "driver": {"module_version": "570.133.20"}, "gpus": [{"compute_capability": "9.0"}]},
}
LOGINS = {"": "plain", "alice+skylake": "skylake", "alice+h100": "h100"}  # without: the address


def pull_docker(caller, reference, login):
    words = ["--config", caller.directory / "client"]
    if login:
        caller.ok(*words, "login", "--username", login, "--password", "pw", reference.split("/")[0])
    return re.search(r"Digest: (\S+)", caller.ok(*words, "pull", reference)).group(1)


def pull_podman(caller, reference, login):
    creds = ["--creds", f"{login}:pw"] if login else []
    caller.ok("pull", "--tls-verify=false", *creds, reference)
    return caller.ok("image", "inspect", "--format", "{{.Digest}}", reference).strip()


def pull_containerd(caller, reference, login):
    creds = ["--user", f"{login}:pw"] if login else []
    caller.ok("images", "pull", "--plain-http", *creds, reference)
    listed = caller.ok("images", "list", f"name=={reference}").splitlines()
    return listed[1].split()[2]


PULL = {"Docker": pull_docker, "Podman": pull_podman, "Containerd": pull_containerd}


@pytest.fixture(scope="module")
def story(registry):
    built = [images.build([images.busybox_layer()], {"Env": ["PATH=/bin", f"VARIANT={name}"]})
             for name in VARIANTS]
    notes = [{f"dev.berth.variant.{axis}": value for axis, value in axes.items()}
             for axes in VARIANTS.values()]
    images.push_index(registry, "hub/called", "latest", built, notes)
    return {name: image.digest for name, image in zip(VARIANTS, built)}


@pytest.fixture
def fleet(shared):
    directory = shared / "fleet"
    directory.mkdir()
    for name, node in NODES.items():
        (directory / f"{name}.json").write_text(json.dumps({"architecture": "amd64", **node}))
    return directory


@pytest.mark.parametrize("login", LOGINS)
def test_an_engine_is_given_the_entry_that_match_names(caller, login, programs, registry, story,
                                                       fleet, shared):
    node = LOGINS[login]
    done = subprocess.run(
        [programs / "berth", "--root", shared / "root", "--state", shared / "state", "match",
         "--node", fleet / f"{node}.json", "--format", "json",
         f"{registry.address}/hub/called:latest"],
        capture_output=True, text=True, check=False, timeout=60)
    wanted = json.loads(done.stdout)["taken"]
    assert wanted == story[{"plain": "generic", "skylake": "v4", "h100": "sm90"}[node]]

    config = {"upstream": [{"registry": registry.address, "repositories": ["hub/*"]}],
              "fleet": str(fleet), "address": [{"network": "127.0.0.0/8", "profile": "plain"}]}
    hub = Hub(programs / "berth", shared / "hub", config, users={"alice": "pw"} if login else None)
    try:
        reference = f"{hub.address}/hub/called:latest"
        assert PULL[type(caller).__name__](caller, reference, login) == wanted
        assert hub.await_line(f" {node} ", "/v2/hub/called/manifests/latest 200", wanted)
    finally:
        hub.stop()
