# SPDX-License-Identifier: Apache-2.0
"""pull, push, login and logout as people type them, for every kind of user."""

import pytest

from support import hostile_registry as hostile
from support import images
from support.registry import running

USERS = {"sailor": "pass:word"}


@pytest.fixture(scope="module")
def image():
    return images.build([images.layer([images.file("hello", "hi\n")]),
                         images.layer([images.file("there", "ho\n")])])


@pytest.fixture(scope="module")
def locked(session_directory, image):
    with running(session_directory / "locked", users=USERS) as server:
        image.push(server, "private/app")
        yield server


def test_ends_a_pull_as_docker_does(berth, push, image):
    reference = push(image)
    lines = berth.ok("pull", reference).splitlines()
    assert lines[-3:] == [f"Digest: {image.digest}",
                          f"Status: Downloaded newer image for {reference}", reference]
    lines = berth.ok("pull", reference).splitlines()
    assert lines[-3:] == [f"Digest: {image.digest}",
                          f"Status: Image is up to date for {reference}", reference]
    assert f"Digest: {image.digest}\n" in berth.ok("pull", reference)


def test_libraries_that_the_caller_has_loaded_are_not_ours(berth, push, image, work):
    """As a module of a site's, or a conda, puts them into every job."""
    place = berth.account.own(work / "module")
    (place / "libcurl.so.4").write_text("of another kind")
    berth.ok("pull", "--quiet", push(image), env={"LD_LIBRARY_PATH": str(place)})


def test_all_tags_of_a_repository_are_pushed(berth, push, image, start_registry):
    reference = push(image)
    berth.ok("pull", "-q", reference)
    repository = f"{start_registry().address}/fleet/tug"
    for name in (f"{repository}:1", f"{repository}:2", f"{repository}-boat:1"):
        berth.ok("tag", reference, name)
    assert berth.ok("push", "-q", "-a", repository).splitlines() == [
        f"{repository}:1", f"{repository}:2"]
    assert [line.split(": ")[0] for line in berth.ok("push", "--all-tags", repository).splitlines()
            if "digest: " in line] == ["1", "2"]
    berth.ok("rmi", f"{repository}:1", f"{repository}:2")
    assert f"Digest: {image.digest}\n" in berth.ok("pull", f"{repository}:2")
    assert berth.fail("push", "-a", f"{repository}:2", status=1) == (
        "berth: tag can't be used with --all-tags/-a")
    assert berth.fail("push", "-a", f"{repository}x", status=1).startswith(
        f"berth: An image does not exist locally with the tag: {repository}x")


def test_a_bad_pull_is_one_line_and_nothing_else(berth, push, image, listing):
    berth.ok("pull", push(images.build([images.layer([images.file("kept", "kept\n")])])))
    before = listing()
    digest = image.layer_digests[1]
    bad = image.blobs[digest][:-1] + b"\1"
    with hostile.running(image, blobs=[hostile.only(digest, hostile.replaced(bad))]) as registry:
        line = berth.fail("pull", "-q", registry.reference, status=1)
        assert line == (
            f"berth: cannot pull '{registry.reference}': cannot read blob '{digest}' at registry "
            f"'{registry.address}': check its bytes: their digest is '{images.digest_of(bad)}'")
    assert listing() == before


def test_logs_in_pulls_pushes_and_logs_out(berth, locked, image):
    reference = f"{locked.address}/private/app:latest"
    assert berth.fail("pull", reference, status=1) == (
        f"berth: cannot pull '{reference}': cannot read manifest 'private/app:latest' at registry "
        f"'{locked.address}': log in to '{locked.address}': 401 Unauthorized: no credentials; "
        f"try: berth login {locked.address}")
    assert berth.fail("login", "-u", "sailor", "--password-stdin", locked.address, input="wrong",
                      status=1) == (
        f"berth: cannot log in to '{locked.address}': log in to registry '{locked.address}': "
        "401 Unauthorized: wrong user name or password")
    assert berth.ok("login", "-u", "sailor", "--password-stdin", locked.address,
                    input="pass:word\n") == "Login Succeeded\n"
    try:
        berth.ok("pull", reference)
        berth.ok("tag", reference, f"{locked.address}/private/copy:2")
        lines = berth.ok("push", f"{locked.address}/private/copy:2").splitlines()
        assert lines[-1] == f"2: digest: {image.digest} size: {len(image.manifest)}"
        assert locked.manifest("private/copy", "2") == (image.digest, image.manifest)
    finally:
        said = berth.ok("logout", locked.address)
    assert said == f"Removing login credentials for {locked.address}\n"


@pytest.mark.profiles("root")
def test_a_platform_that_is_not_here_is_said_also_where_the_registry_is_away(berth, start_registry):
    away = start_registry()
    images.build([images.busybox_layer()]).push(away, "app", "1")
    name = f"{away.address}/app:1"
    berth.ok("pull", "-q", name)
    away.stop()
    assert berth.ok("run", "--rm", "--platform", "linux/amd64", name, "echo", "fine") == "fine\n"
    line = berth.fail("run", "--rm", "--platform", "linux/arm64", name, "true")
    assert line.startswith(f"berth: image '{name}' is here for linux/amd64, not for linux/arm64: ")
    assert "Connection refused" in line


@pytest.mark.profiles("root")
@pytest.mark.parametrize("verb", [["run", "--rm"], ["pull"], ["create"]])
def test_a_word_that_is_no_platform_is_refused_before_the_registry_is_asked(berth, verb):
    line = berth.fail(*verb, "--platform", "nosuch", "127.0.0.1:1/app:1",
                      status=1 if verb == ["pull"] else 125)
    assert line.endswith("read platform 'nosuch': it names neither an operating system nor an "
                         "architecture; try: OS/ARCH or OS/ARCH/VARIANT, as linux/arm64")
