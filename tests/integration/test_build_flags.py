# SPDX-License-Identifier: Apache-2.0
"""Flags of `berth build` that docker's and podman's users type."""

import json

import pytest

# Overlays of overlays are not everywhere; as root they would be seen outside.
BUILDER = {"STORAGE_DRIVER": "vfs"}

pytestmark = pytest.mark.profiles("root", "user")


@pytest.fixture
def build(berth, work, busybox):
    """Builds a file that starts from busybox, and gives what the last RUN has left in /made."""
    context = work / "context"
    context.mkdir()

    def build(text, *flags, env=None, **options):
        (context / "Containerfile").write_text(f"FROM {busybox}\n{text}\n")
        berth.ok("build", "-q", "-t", "made", *flags, context, env=BUILDER | (env or {}), **options)
        return berth.ok("run", "--rm", "made", "cat", "/made")

    build.context = context
    return build


def test_a_secret_is_seen_by_run_and_is_not_in_the_image(berth, build, work):
    token = work / "token"
    token.write_text("from a file")
    show = "RUN --mount=type=secret,id=token cat /run/secrets/token >/made"
    assert build(show, "--secret", f"id=token,src={token}") == "from a file"
    assert build(show, "--no-cache", "--secret", "id=token,env=TOLD",
                 env={"TOLD": "from a variable"}) == "from a variable"
    assert build(show, "--no-cache", "--secret", "id=token", env={"token": "by its id"}) == \
        "by its id"
    assert "token" not in berth.ok("run", "--rm", "made", "ls", "-R", "/run")


@pytest.mark.parametrize("secret,told", [
    ("id=token,src=nosuch", "/nosuch': no such file"),
    ("id=token,env=NOSUCH", "secret 'token': there is no variable 'NOSUCH'"),
    ("src=token", "no id"), ("id=a,mode=1", "cannot read 'mode=1'"), ("", "cannot read ''"),
])
def test_a_secret_that_is_not_there_is_said_before_the_build(berth, build, secret, told):
    (build.context / "Containerfile").write_text("FROM scratch\n")
    line = berth.fail("build", "--secret", secret, build.context, status=1)
    assert told in line


def test_without_a_network_run_sees_none_and_with_hosts_it_sees_them(build):
    links = "RUN cat /proc/net/dev | grep -c : >/made"
    assert build(links, "--network", "none") == "1\n"
    assert build("RUN grep mirror /etc/hosts >/made", "--add-host", "mirror:10.0.0.7").split() == \
        ["10.0.0.7", "mirror"]
    assert build("RUN ulimit -n >/made", "--ulimit", "nofile=77:88") == "77\n"


def test_squash_makes_one_layer_of_the_new_ones(berth, build):
    steps = "RUN echo one >/one\nRUN echo two >/made"
    build(steps)
    [loose] = json.loads(berth.ok("inspect", "made"))
    assert build(steps, "--squash") == "two\n"
    [tight] = json.loads(berth.ok("inspect", "made"))
    assert len(loose["RootFS"]["Layers"]) == len(tight["RootFS"]["Layers"]) + 1
    assert loose["RootFS"]["Layers"][0] == tight["RootFS"]["Layers"][0]


@pytest.mark.parametrize("types,manifest", [
    ("docker", "application/vnd.docker.distribution.manifest.v2+json"),
    ("oci", "application/vnd.oci.image.manifest.v1+json")])
def test_what_only_dockers_config_has_is_kept_and_inherited(berth, build, work, types, manifest):
    build("HEALTHCHECK --retries=2 CMD true\nONBUILD RUN echo inherited >/made\n"
          "SHELL [\"/bin/sh\", \"-ec\"]\nSTOPSIGNAL SIGINT\nRUN touch /made", "--format", types)
    [image] = json.loads(berth.ok("inspect", "made"))
    config = image["Config"]
    assert config["Healthcheck"] == {"Test": ["CMD-SHELL", "true"], "Retries": 2}
    assert config["OnBuild"] == ["RUN echo inherited >/made"]
    assert config["Shell"] == ["/bin/sh", "-ec"]
    assert not config["Labels"]
    berth.ok("save", "--format", "oci", "-o", work / "layout", "made")
    index = json.loads((work / "layout/index.json").read_text())
    assert index["manifests"][0]["mediaType"] == manifest
    (build.context / "Containerfile").write_text("FROM made\n")
    berth.ok("build", "-q", "-t", "made", build.context, env=BUILDER)
    assert berth.ok("run", "--rm", "made", "cat", "/made") == "inherited\n"
    [child] = json.loads(berth.ok("inspect", "made"))
    assert child["Config"]["Healthcheck"] == config["Healthcheck"]
    assert not child["Config"]["OnBuild"]


def test_the_file_may_come_from_standard_input(berth, build, busybox):
    (build.context / "there").write_text("there\n")
    text = f"FROM {busybox}\nCOPY there /made\n"
    berth.ok("build", "-q", "-t", "made", "-f", "-", build.context, input=text, env=BUILDER)
    assert berth.ok("run", "--rm", "made", "cat", "/made") == "there\n"
    berth.fail("build", "-q", "-", input=text, status=1, env=BUILDER)  # nothing to copy from
    berth.ok("build", "-q", "-t", "made", "-", input=f"FROM {busybox}\nRUN echo - >/made\n",
             env=BUILDER)
    assert berth.ok("run", "--rm", "made", "cat", "/made") == "-\n"
    assert "standard input" in berth.fail("build", "-", input="", status=1)
    done = berth.run("build", "-", input=b"\x1f\x8b\x08rest", text=False)
    assert done.returncode == 1 and b"an archive, not a Containerfile" in done.stderr


@pytest.mark.parametrize("flags,told", [
    (["--network", "bridge"], "--network"),
    (["--provenance"], "attestations are not supported; try: --provenance=false"),
    (["--ssh", "default"], "SSH_AUTH_SOCK is not set to an agent's socket"),
    (["--ssh", "key=nosuch"], "/nosuch': no such file"),
    (["--add-host", "mirror"], "--add-host"),
    (["--ulimit", "nofile=x"], "--ulimit"),
    (["--build-arg", "=1"], "--build-arg"),
    (["--memory", "1g"], "systemd-run"),
])
def test_what_a_build_does_not_do_is_refused(berth, build, flags, told):
    (build.context / "Containerfile").write_text("FROM scratch\n")
    refused = berth.run("build", *flags, build.context, env={"SSH_AUTH_SOCK": ""})
    assert refused.returncode in (1, 125)
    [line] = refused.stderr.splitlines()
    assert told in line


@pytest.mark.parametrize("place,told", [
    ("https://git.example/app.git#main", "git clone https://git.example/app.git DIR"),
    ("git@git.example:app.git", "git clone git@git.example:app.git DIR"),
    ("http://files.example/app.tar.gz", "curl -L http://files.example/app.tar.gz | tar"),
])
def test_a_context_elsewhere_is_refused_with_what_fetches_it(berth, place, told):
    line = berth.fail("build", place, status=1)
    assert told in line and "the build context has to be a directory" in line
