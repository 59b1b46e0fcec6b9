# SPDX-License-Identifier: Apache-2.0
"""What a site says of registries: mirrors, other locations, certificates, proxies."""

import contextlib
import os
import shutil
import threading

import pytest

from support import hostile_registry as hostile
from support import images
from support.proxy import Proxy
from support.registry import free_port

pytestmark = pytest.mark.profiles("root", "user")

NAME = "registry.example.org/team/app:1"


@pytest.fixture
def image():
    return images.build([images.layer([images.file("hello", "hi\n")])])


@pytest.fixture
def site(berth):
    """site(text, certificates={"host:port": {name: path}}) → the flags that name the files."""
    def write(text, certificates=None):
        config = berth.account.own(berth.directory / "site")
        (config / "registries.toml").write_text(text)
        for host, files in (certificates or {}).items():
            directory = config / "certs.d" / host
            directory.mkdir(parents=True)
            for name, path in files.items():
                shutil.copy(path, directory / name)
                os.chown(directory / name, berth.account.uid, berth.account.gid)
        return ["--config-dir", str(config)]
    return write


def own_copy(berth, path):
    """A file of the user's own: a client's key is for nobody else."""
    copy = berth.directory / path.name
    shutil.copy(path, copy)
    os.chown(copy, berth.account.uid, berth.account.gid)
    return copy


# ---- where images come from ---------------------------------------------------------------------

def test_another_location_takes_the_place_of_a_name(berth, registry, image, site):
    image.push(registry, "moved/team/app", "1")
    flags = site(f'[[registry]]\nprefix = "registry.example.org"\n'
                 f'location = "{registry.address}/moved"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", NAME)
    assert "registry.example.org/team/app" in berth.ok("images")


def test_the_longest_prefix_counts(berth, registry, image, site):
    image.push(registry, "right/app", "1")
    flags = site(f'[[registry]]\nprefix = "registry.example.org"\nblocked = true\n'
                 f'[[registry]]\nprefix = "registry.example.org/team"\n'
                 f'location = "{registry.address}/right"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", NAME)
    line = berth.fail(*flags, "pull", "registry.example.org/teams/app:1", status=1)
    assert line == ("berth: cannot pull 'registry.example.org/teams/app:1': reach "
                    "'registry.example.org/teams/app': registries.toml blocks it")


def test_a_mirror_is_asked_before_the_registry(berth, registry, image, site):
    image.push(registry, "mirror/team/app", "1")
    flags = site('[[registry]]\nprefix = "registry.example.org"\n'
                 f'[[registry.mirror]]\nlocation = "{registry.address}/mirror"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", NAME)


def test_the_next_is_asked_where_a_mirror_has_it_not_or_is_gone(berth, registry, image, site):
    image.push(registry, "primary/team/app", "1")
    flags = site('[[registry]]\nprefix = "registry.example.org"\n'
                 f'location = "{registry.address}/primary"\n'
                 f'[[registry.mirror]]\nlocation = "127.0.0.1:{free_port()}/gone"\n'
                 f'[[registry.mirror]]\nlocation = "{registry.address}/without"\n')
    out = berth.ok(*flags, "pull", NAME)
    assert f"Digest: {image.digest}" in out
    assert out.count("Mirror 127.0.0.1:") == 2


def test_a_mirror_may_be_for_digests_alone(berth, registry, image, site):
    other = images.build([images.layer([images.file("hello", "from the mirror\n")])])
    other.push(registry, "mirror/team/app", "1")
    image.push(registry, "mirror/team/app", "2")
    image.push(registry, "primary/team/app", "1")
    flags = site('[[registry]]\nprefix = "registry.example.org"\n'
                 f'location = "{registry.address}/primary"\n'
                 f'[[registry.mirror]]\nlocation = "{registry.address}/mirror"\n'
                 'pull-from-mirror = "digest-only"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", NAME)
    by_digest = f"registry.example.org/team/app@{other.digest}"
    assert f"Digest: {other.digest}\n" in berth.ok(*flags, "pull", by_digest)


def test_a_push_goes_to_the_registry_and_no_mirror(berth, registry, image, site):
    image.push(registry, "mirror/team/app", "1")
    flags = site('[[registry]]\nprefix = "registry.example.org"\n'
                 f'location = "{registry.address}/pushed"\n'
                 f'[[registry.mirror]]\nlocation = "{registry.address}/mirror"\n')
    berth.ok(*flags, "pull", "-q", NAME)
    target = f"registry.example.org/new/{berth.account.kind}:1"
    berth.ok("tag", NAME, target)
    berth.ok(*flags, "push", "-q", target)
    assert registry.manifest(f"pushed/new/{berth.account.kind}", "1")[0] == image.digest


def test_what_the_user_says_comes_first(berth, registry, image, site):
    image.push(registry, "mine/team/app", "1")
    flags = site('[[registry]]\nprefix = "registry.example.org"\nblocked = true\n')
    own = berth.directory / "config"
    (own / "berth").mkdir(parents=True)
    (own / "berth/registries.toml").write_text(
        f'[[registry]]\nprefix = "registry.example.org"\nlocation = "{registry.address}/mine"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", NAME,
                                                   env={"XDG_CONFIG_HOME": str(own)})


# ---- how they are reached -----------------------------------------------------------------------

def test_a_registry_may_be_insecure(berth, start_registry, image, site):
    secure = start_registry(tls=True)
    image.push(secure, "team/app", "1")
    reference = f"{secure.address}/team/app:1"
    flags = site(f'[[registry]]\nlocation = "{secure.address}"\ninsecure = true\n')
    assert "verify the certificate" in berth.fail("pull", reference, status=1)
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", reference)


@pytest.mark.parametrize("how", ["rule", "directory"])
def test_an_authority_may_be_trusted_for_one_registry(berth, start_registry, image, site, how):
    secure = start_registry(tls=True)
    image.push(secure, "team/app", "1")
    if how == "rule":
        authority = own_copy(berth, secure.certificate)
        flags = site(f'[[registry]]\nprefix = "{secure.address}"\ntls-ca = "{authority}"\n')
    else:
        flags = site("", {secure.address: {"site.crt": secure.certificate}})
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", f"{secure.address}/team/app:1")
    other = start_registry(tls=True)
    image.push(other, "team/app", "1")
    assert "verify the certificate" in berth.fail(
        *flags, "pull", f"{other.address}/team/app:1", status=1)


@pytest.mark.parametrize("how", ["rule", "directory"])
def test_a_registry_may_ask_for_the_clients_certificate(berth, start_registry, image, site, how):
    strict = start_registry(tls=True, known_clients=True)
    image.push(strict, "team/app", "1")
    reference = f"{strict.address}/team/app:1"
    authority = own_copy(berth, strict.certificate)
    if how == "rule":
        key = own_copy(berth, strict.key)
        flags = site(f'[[registry]]\nprefix = "{strict.address}"\ntls-ca = "{authority}"\n'
                     f'tls-certificate = "{authority}"\ntls-key = "{key}"\n')
    else:
        flags = site("", {strict.address: {"ca.crt": strict.certificate,
                                           "client.cert": strict.certificate,
                                           "client.key": strict.key}})
    berth.fail("pull", "--tls-ca", str(authority), reference, status=1)
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", reference)


def test_a_certificate_without_its_key_is_one_line(berth, start_registry, site):
    strict = start_registry(tls=True)
    flags = site("", {strict.address: {"client.cert": strict.certificate}})
    line = berth.fail(*flags, "pull", f"{strict.address}/team/app:1", status=1)
    assert "client.cert': its key '" in line and line.endswith("client.key' does not exist")


@pytest.fixture
def proxy():
    with contextlib.closing(Proxy()) as running:
        yield running


def test_a_proxy_may_be_for_one_registry(berth, start_registry, image, site, proxy):
    secure = start_registry(tls=True)
    image.push(secure, "team/app", "1")
    authority = own_copy(berth, secure.certificate)
    flags = site(f'[[registry]]\nprefix = "{secure.address}"\ntls-ca = "{authority}"\n'
                 f'proxy = "{proxy.url}"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", f"{secure.address}/team/app:1")
    assert set(proxy.seen) == {secure.address}


def test_none_is_no_proxy_whatever_the_environment_says(berth, start_registry, image, site, proxy):
    secure = start_registry(tls=True)
    image.push(secure, "team/app", "1")
    authority = own_copy(berth, secure.certificate)
    flags = site(f'[[registry]]\nprefix = "{secure.address}"\ntls-ca = "{authority}"\n'
                 'proxy = "none"\n')
    assert f"Digest: {image.digest}\n" in berth.ok(*flags, "pull", f"{secure.address}/team/app:1",
                    env={"https_proxy": proxy.url})
    assert proxy.seen == []


def test_a_proxy_that_cuts_what_it_passes_is_found_out(berth, start_registry, site, listing):
    secure = start_registry(tls=True)
    noise = images.layer([images.file("noise", os.urandom(400_000))])
    images.build([noise], compression="none").push(secure, "team/app", "1")
    authority = own_copy(berth, secure.certificate)
    with contextlib.closing(Proxy(most=100_000)) as cutting:
        flags = site(f'[[registry]]\nprefix = "{secure.address}"\ntls-ca = "{authority}"\n'
                     f'proxy = "{cutting.url}"\n')
        done = berth.run(*flags, "pull", "-q", f"{secure.address}/team/app:1")
        # Each connection brings 100 kB more, so that it may end well: never with other bytes.
        assert done.returncode == 0 or "cannot read blob 'sha256:" in done.stderr
        assert len(cutting.seen) > 1


def test_connections_are_as_many_as_the_site_allows(berth, image, site):
    large = images.build([images.layer([images.file("noise", os.urandom(40 << 20))])],
                         compression="none")
    lock, now, most = threading.Lock(), [0], [0]

    def counted(exchange):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        try:
            return hostile.ranges(exchange)
        finally:
            with lock:
                now[0] -= 1
    for connections in (1, 4):
        most[0] = 0
        with hostile.running(large, blobs=[counted]) as registry:
            flags = site(f'[[registry]]\nprefix = "{registry.address}"\n'
                         f'connections = {connections}\n')
            berth.ok(*flags, "pull", "-q", registry.reference)
            berth.ok("rmi", registry.reference)
        assert most[0] <= connections
        shutil.rmtree(berth.directory / "site")
    assert most[0] > 1


# ---- wrong files --------------------------------------------------------------------------------

@pytest.mark.parametrize("text,said", [
    ('[[registry]\n', "registries.toml:1"),
    ('[[registry]]\nprefix = "a.b"\nunknown = 1\n', ".unknown: unknown key"),
    ('unqualified-search-registries = ["docker.io"]\n', "unknown key"),
    ('[[registry]]\ninsecure = true\n', "a prefix or a location is missing"),
    ('[[registry]]\nlocation = "https://a.b"\n', "without a scheme"),
    ('[[registry]]\nprefix = "a.b"\ntls-ca = "ca.pem"\n', "expected an absolute path"),
    ('[[registry]]\nprefix = "a.b"\ntls-key = "/k"\n', "a tls-certificate beside it"),
    ('[[registry]]\nprefix = "a.b"\nproxy = "proxy:3128"\n', "SCHEME://HOST:PORT or none"),
    ('[[registry]]\nprefix = "a.b/team"\ninsecure = true\n', "a rule for a whole host"),
    ('[[registry]]\nprefix = "a.b"\nconnections = 1000\n', "at most 64"),
    ('[[registry]]\nprefix = "a.b"\n[[registry.mirror]]\nlocation = "c.d"\n'
     'pull-from-mirror = "never"\n', "all, digest-only or tag-only"),
])
def test_a_wrong_file_is_one_line(berth, site, text, said):
    line = berth.fail(*site(text), "pull", "-q", "registry.example.org/x", status=1)
    assert "registries.toml" in line and said in line


def test_a_file_that_is_named_and_not_there_is_one_line(berth, start_registry, site):
    secure = start_registry(tls=True)
    flags = site(f'[[registry]]\nprefix = "{secure.address}"\ntls-ca = "/no/such.pem"\n')
    line = berth.fail(*flags, "pull", f"{secure.address}/x", status=1)
    assert "/no/such.pem" in line
