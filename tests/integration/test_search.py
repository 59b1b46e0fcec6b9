# SPDX-License-Identifier: Apache-2.0
"""berth search: Docker's search where a registry has it, else the list of its repositories."""

import contextlib
import http.server
import json
import ssl
import threading
import urllib.parse

import pytest

from support import images
from support.proxy import Proxy
from support.registry import make_certificate, running

pytestmark = pytest.mark.profiles("root", "user")

NAMES = ["app/cuda", "app/cuda-12", "app/pytorch", "team/cuda/pytorch-2",
         "hub/library/debian", "hub/me/debian", "hub/debian",
         *(f"many/n{number:03}" for number in range(130))]


@pytest.fixture(scope="module")
def image():
    return images.build([images.layer([images.file("hello", "hi\n")])])


@pytest.fixture
def site(berth):
    """site(text) → the flags that name a registries.toml."""
    def write(text):
        config = berth.account.own(berth.directory / "site")
        (config / "registries.toml").write_text(text)
        return ["--config-dir", str(config)]
    return write


@pytest.fixture(scope="module")
def filled(session_directory, image):
    """Debian's docker-registry, which has a list of its repositories and no search."""
    with running(session_directory / "filled") as server:
        for name in NAMES:
            image.push(server, name, "1")
        for tag in ("2", "3", "latest"):
            image.push(server, "app/cuda", tag)
        yield server


def names_of(berth, *args):
    return berth.ok("search", "--format", "{{.Name}}", *args).splitlines()


class Index(http.server.ThreadingHTTPServer):
    """A server on loopback that answers from `pages`: {path: f(query) or f(query, headers)}, which
    gives a body or (status, body, headers). Any other path is a 404."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, pages, certificate=None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.pages, self.requests, self.headers = pages, [], []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request, client_address):
        pass  # the client hung up


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format, *arguments):
        pass

    def do_GET(self):
        self.server.requests.append(self.path)
        self.server.headers.append(self.headers)
        path, _, query = self.path.partition("?")
        page = self.server.pages.get(path)
        asked = [dict(urllib.parse.parse_qsl(query)), self.headers]
        answer = page(*asked[:page.__code__.co_argcount]) if page else (404, b"", {})
        status, body, headers = answer if isinstance(answer, tuple) else (200, answer, {})
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)


@contextlib.contextmanager
def serving(pages, **options):
    server = Index(pages, **options)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def found(name, stars=0, **more):
    return {"name": name, "description": "", "star_count": stars, "is_official": False,
            "is_automated": False, **more}


CUDA = [found("me/cuda", 12, description="of mine"),
        found("cuda", 900, is_official=True, description="The one that is meant,\nby most"),
        found("they/cuda", 40, is_automated=True, description=None)]


def index_of(results):
    return lambda query: {"num_pages": 1, "num_results": len(results), "page": "1",
                          "query": query["q"], "results": results}


# ---- the list of repositories -------------------------------------------------------------------

def test_names_that_hold_the_text_are_found_as_pull_takes_them(berth, filled, image):
    at = filled.address
    assert names_of(berth, f"{at}/cuda") == [f"{at}/app/cuda", f"{at}/app/cuda-12",
                                             f"{at}/team/cuda/pytorch-2"]
    assert names_of(berth, f"{at}/CUDA") == names_of(berth, f"{at}/cuda")
    assert names_of(berth, f"{at}/app/cuda") == [f"{at}/app/cuda", f"{at}/app/cuda-12"]
    first = names_of(berth, "--limit", "1", f"{at}/cuda")[0]
    assert f"Digest: {image.digest}" in berth.ok("pull", f"{first}:1")


def test_every_word_has_to_be_there(berth, filled):
    at = filled.address
    assert names_of(berth, f"{at}/pytorch cuda") == [f"{at}/team/cuda/pytorch-2"]
    assert names_of(berth, f"{at}/cuda nothing") == []


def test_a_list_of_several_pages_is_read_to_its_end(berth, filled):
    at = filled.address
    assert names_of(berth, "--limit", "10000", f"{at}/") == sorted(f"{at}/{name}" for name in NAMES)
    assert len(names_of(berth, f"{at}/")) == 25
    assert names_of(berth, f"{at}/pytorch") == [f"{at}/app/pytorch", f"{at}/team/cuda/pytorch-2"]


def test_the_spellings_of_other_programs_are_understood(berth, filled):
    at = filled.address
    expected = names_of(berth, f"{at}/cuda")
    assert names_of(berth, f"docker://{at}/cuda") == expected
    assert names_of(berth, f"{at}#cuda") == expected
    assert berth.ok("image", "search", f"{at}/cuda") == berth.ok("search", f"{at}/cuda")


def test_the_table_is_dockers(berth, filled):
    lines = berth.ok("search", f"{filled.address}/pytorch").splitlines()
    assert lines[0].split() == ["NAME", "DESCRIPTION", "STARS", "OFFICIAL"]
    assert lines[1].split() == [f"{filled.address}/app/pytorch", "0"]
    assert berth.ok("search", f"{filled.address}/nothing-of-it").splitlines() == [
        "NAME      DESCRIPTION   STARS     OFFICIAL"]


def test_what_a_list_of_names_does_not_tell_is_no_filter(berth, filled):
    for asked in ("stars=1", "is-official=true", "is-automated"):
        line = berth.fail("search", "--filter", asked, f"{filled.address}/cuda", status=1)
        assert f"--filter {asked.partition('=')[0]}: registry '{filled.address}' has only a list" in line
    assert len(names_of(berth, "--filter", "is-official=false", f"{filled.address}/cuda")) == 3


def test_a_list_that_is_locked_is_shown_to_who_logs_in(berth, session_directory, image):
    with running(session_directory / f"locked-{berth.account.kind}",
                 users={"sailor": "secret"}) as locked:
        image.push(locked, "team/app", "1")
        line = berth.fail("search", f"{locked.address}/app", status=1)
        assert line.endswith(f"401 Unauthorized: no credentials; try: berth login {locked.address}")
        berth.ok("login", "-u", "sailor", "--password-stdin", locked.address, input="secret")
        assert names_of(berth, f"{locked.address}/app") == [f"{locked.address}/team/app"]


# ---- tags ---------------------------------------------------------------------------------------

def test_tags_of_a_repository_are_listed(berth, filled):
    name = f"{filled.address}/app/cuda"
    rows = [line.split() for line in berth.ok("search", "--list-tags", name).splitlines()]
    assert rows[0] == ["NAME", "TAG"]
    assert sorted(rows[1:]) == [[name, tag] for tag in ("1", "2", "3", "latest")]
    assert len(names_of(berth, "--list-tags", "--limit", "2", name)) == 2
    line = berth.fail("search", "--list-tags", f"{filled.address}/no/such", status=1)
    assert line.startswith(f"berth: cannot list the tags of '{filled.address}/no/such': ")
    assert "404 Not Found" in line
    assert "--filter" in berth.fail("search", "--list-tags", "-f", "stars=1", name, status=1)


def test_tags_come_page_by_page(berth):
    tags = [f"t{number:02}" for number in range(55)]

    def page(query):
        start = tags.index(query["last"]) + 1 if "last" in query else 0
        part = tags[start:start + 20]
        more = {"Link": f'</v2/app/tags/list?last={part[-1]}&n=20>; rel="next"'}
        return 200, {"name": "app", "tags": part}, more if part[-1] != tags[-1] else {}
    with serving({"/v2/app/tags/list": page}) as server:
        listed = berth.ok("search", "--list-tags", "--limit", "1000", "--format", "{{.Tag}}",
                          f"{server.address}/app")
    assert listed.split() == tags


# ---- Docker's search ----------------------------------------------------------------------------

def test_dockers_search_ranks_and_describes(berth):
    with serving({"/v1/search": index_of(CUDA)}) as server:
        at = server.address
        table = [line.split() for line in berth.ok("search", f"{at}/cuda").splitlines()]
        assert table == [["NAME", "DESCRIPTION", "STARS", "OFFICIAL"],
                         [f"{at}/cuda", *"The one that is meant, by most".split(), "900", "[OK]"],
                         [f"{at}/they/cuda", "40"], [f"{at}/me/cuda", "of", "mine", "12"]]
        rows = [json.loads(line) for line in
                berth.ok("search", "--format", "json", f"{at}/cuda").splitlines()]
        assert rows[0] == {"Description": "The one that is meant, by most", "IsAutomated": "false",
                           "IsOfficial": "true", "Name": f"{at}/cuda", "StarCount": "900"}
        assert names_of(berth, "--limit", "2", f"{at}/cuda") == [f"{at}/cuda", f"{at}/they/cuda"]
        for form in ("{{json .}}", "{{ json . }}", "x {{json .}}"):
            rows = berth.ok("search", "--format", form, f"{at}/cuda").splitlines()
            assert json.loads(rows[0].removeprefix("x "))["IsOfficial"] == "true"


@pytest.mark.parametrize("filters,names", [
    (["stars=40"], ["cuda", "they/cuda"]),
    (["stars=13", "stars=41"], ["cuda"]),
    (["is-official=true"], ["cuda"]),
    (["is-official"], ["cuda"]),
    (["is-official=false", "is-automated=false"], ["me/cuda"]),
    (["is-automated=1"], ["they/cuda"]),
    (["is-automated=true", "stars=41"], []),
])
def test_filters_are_dockers_and_podmans(berth, filters, names):
    with serving({"/v1/search": index_of(CUDA)}) as server:
        flags = [word for one in filters for word in ("--filter", one)]
        assert names_of(berth, *flags, f"{server.address}/cuda") == [
            f"{server.address}/{name}" for name in names]


def test_a_long_description_is_cut_unless_it_is_wanted(berth):
    long = "a line that goes on " * 5
    with serving({"/v1/search": index_of([found("a/b", description=long)])}) as server:
        cut = berth.ok("search", "--format", "{{.Description}}", f"{server.address}/b")
        assert cut == long[:44] + "…\n"
        whole = berth.ok("search", "--no-trunc", "--format", "{{.Description}}",
                         f"{server.address}/b")
        assert whole == long + "\n"


def test_pages_of_a_search_are_read_until_there_are_enough(berth):
    def page(query):
        start = (int(query["page"]) - 1) * 100
        return {"num_pages": 3, "results": [found(f"a/n{start + i:03}") for i in range(100)]}
    with serving({"/v1/search": page}) as server:
        assert len(names_of(berth, "--limit", "250", f"{server.address}/n")) == 250
        assert len(server.requests) == 3
        assert len(names_of(berth, f"{server.address}/n")) == 25
        assert len(server.requests) == 4
        assert len(names_of(berth, "--limit", "400", f"{server.address}/n")) == 300


def test_a_search_is_read_for_a_thousand_results(berth):
    def page(query):
        start = (int(query["page"]) - 1) * 100
        return {"num_pages": 50, "results": [found(f"a/n{start + i}") for i in range(100)]}
    with serving({"/v1/search": page}) as server:
        done = berth.run("search", "--limit", "5000", "--format", "{{.Name}}", f"{server.address}/n")
        assert len(set(done.stdout.split())) == 1000
        assert done.stderr == (f"berth: warning: registry '{server.address}' has more results: only the "
                               "first 1000 are shown\n")


def test_a_search_without_pages_is_not_read_twice(berth):
    same = {"results": [found(f"a/n{number:03}") for number in range(100)]}
    with serving({"/v1/search": lambda query: same}) as server:
        listed = names_of(berth, "--limit", "1000", f"{server.address}/n")
        assert len(listed) == len(set(listed)) == 100


@pytest.mark.profiles("root")
def test_docker_hub_is_searched_at_its_index_without_a_login(berth, session_directory):
    """The index answers at a name of its own, behind TLS; the credential of Docker Hub is nobody's
    who has not asked for it."""
    directory = berth.account.own(session_directory / "index")
    certificate = make_certificate(directory, "DNS:index.docker.io")
    official = [found("nginx", 19000, is_official=True), found("bitnami/nginx", 190)]
    with serving({"/v1/search": index_of(official)}, certificate=certificate) as index:
        proxy = Proxy(leads_to={"index.docker.io:443": index.address})
        with contextlib.closing(proxy):
            login = berth.directory / "auth.json"
            login.write_text(json.dumps({"auths": {"https://index.docker.io/v1/": {
                "auth": "bWU6c2VjcmV0"}}}))
            environment = {"https_proxy": proxy.url, "REGISTRY_AUTH_FILE": str(login)}
            for term in ("nginx", "docker.io/library/nginx", "index.docker.io/nginx"):
                listed = berth.ok("search", "--tls-ca", str(certificate[0]), "--format",
                                  "{{.Name}} {{.IsOfficial}}", term, env=environment)
                assert listed.splitlines() == ["nginx [OK]", "bitnami/nginx "]
        assert index.requests == ["/v1/search?q=nginx&n=100&page=1"] * 3
        assert not any("Authorization" in headers for headers in index.headers)
        assert set(proxy.seen) == {"index.docker.io:443"}


# ---- rules of the site --------------------------------------------------------------------------

def test_a_registry_that_is_blocked_is_not_asked(berth, filled, site):
    flags = site(f'[[registry]]\nprefix = "{filled.address}"\nblocked = true\n')
    line = berth.fail(*flags, "search", f"{filled.address}/cuda", status=1)
    assert line == (f"berth: cannot search '{filled.address}': reach '{filled.address}': "
                    "registries.toml blocks it")


def test_what_is_blocked_is_not_shown(berth, filled, site):
    flags = site(f'[[registry]]\nprefix = "{filled.address}/team"\nblocked = true\n')
    listed = berth.ok(*flags, "search", "--format", "{{.Name}}", f"{filled.address}/pytorch")
    assert listed.split() == [f"{filled.address}/app/pytorch"]


def test_another_location_is_searched_in_the_place_of_a_name(berth, filled, site):
    flags = site(f'[[registry]]\nprefix = "docker.io"\nlocation = "{filled.address}/hub"\n'
                 f'[[registry]]\nprefix = "lab.example.org"\nlocation = "{filled.address}"\n')
    done = berth.run(*flags, "search", "--format", "{{.Name}}", "debian")
    assert done.stdout.split() == ["debian", "me/debian"]
    assert "'docker.io' lists 1 name that no image can have" in done.stderr  # hub/debian
    assert "Digest: " in berth.ok(*flags, "pull", "debian:1")
    listed = berth.ok(*flags, "search", "--format", "{{.Name}}", "lab.example.org/pytorch")
    assert listed.split() == ["lab.example.org/app/pytorch", "lab.example.org/team/cuda/pytorch-2"]


def test_what_a_rule_leads_elsewhere_is_not_shown(berth, filled, site):
    """A pull of it would ask another registry."""
    flags = site(f'[[registry]]\nprefix = "{filled.address}/team"\n'
                 'location = "other.example.org/elsewhere"\n')
    listed = berth.ok(*flags, "search", "--format", "{{.Name}}", f"{filled.address}/pytorch")
    assert listed.split() == [f"{filled.address}/app/pytorch"]


def test_the_path_of_a_location_is_no_part_of_the_names(berth, filled, site):
    flags = site(f'[[registry]]\nprefix = "lab.example.org"\nlocation = "{filled.address}/hub"\n')
    assert berth.ok(*flags, "search", "--format", "{{.Name}}", "lab.example.org/hub") == ""
    listed = berth.ok(*flags, "search", "--format", "{{.Name}}", "lab.example.org/me")
    assert listed.split() == ["lab.example.org/me/debian"]


def test_a_login_for_the_path_of_a_location_is_used(berth, start_registry, image, site):
    locked = start_registry(users={"sailor": "secret"})
    image.push(locked, "hub/team/app", "1")
    flags = site(f'[[registry]]\nprefix = "lab.example.org"\nlocation = "{locked.address}/hub"\n')
    login = berth.directory / "auth.json"
    login.write_text(json.dumps({"auths": {f"{locked.address}/hub": {"auth": "c2FpbG9yOnNlY3JldA=="}}}))
    login.chmod(0o644)
    listed = berth.ok(*flags, "search", "--format", "{{.Name}}", "lab.example.org/app",
                      env={"REGISTRY_AUTH_FILE": str(login)})
    assert listed.split() == ["lab.example.org/team/app"]


def test_a_mirror_of_docker_hub_offers_no_name_of_another_registry(berth, site):
    names = ["quay.io/team/nginx", "localhost/nginx", "me/nginx"]
    with serving({"/v2/_catalog": lambda query: {"repositories": names}}) as server:
        flags = site(f'[[registry]]\nprefix = "docker.io"\nlocation = "{server.address}"\n')
        listed = berth.ok(*flags, "search", "--format", "{{.Name}}", "nginx")
        assert listed.split() == ["docker.io/quay.io/team/nginx", "docker.io/localhost/nginx",
                                  "me/nginx"]


def test_tags_come_from_a_mirror_that_has_them_and_not_from_what_is_blocked(berth, site):
    tags = {"/v2/hub/team/app/tags/list": lambda query: {"tags": ["1", "2"]}}
    with serving(tags) as mirror:
        flags = site('[[registry]]\nprefix = "lab.example.org"\n'
                     f'[[registry.mirror]]\nlocation = "{mirror.address}/hub"\n'
                     '[[registry]]\nprefix = "lab.example.org/shut"\nblocked = true\n')
        listed = berth.ok(*flags, "search", "--list-tags", "--format", "{{.Tag}}",
                          "lab.example.org/team/app")
        assert listed.split() == ["1", "2"]
        assert mirror.requests == ["/v2/hub/team/app/tags/list"]
        line = berth.fail(*flags, "search", "--list-tags", "lab.example.org/shut/app", status=1)
        assert line == ("berth: cannot list the tags of 'lab.example.org/shut/app': reach "
                        "'lab.example.org/shut/app': registries.toml blocks it")


# ---- hostile and broken registries --------------------------------------------------------------

def test_names_that_no_image_can_have_are_left_out_and_counted(berth):
    names = ["../etc", "a b", "UPPER", "a/b:tag", "ok/cuda", "", "x@sha256:" + "0" * 64, "\x1b[31m"]
    with serving({"/v1/search": index_of([found(name) for name in names])}) as server:
        done = berth.run("search", "--format", "{{.Name}}", f"{server.address}/x")
        assert done.stdout.split() == [f"{server.address}/ok/cuda"]
        assert f"registry '{server.address}' lists 7 names that no image can have" in done.stderr
    with serving({"/v2/_catalog": lambda query: {"repositories": ["a/cuda", "cuda/../.."]}}) as server:
        done = berth.run("search", "--format", "{{.Name}}", f"{server.address}/cuda")
        assert done.stdout.split() == [f"{server.address}/a/cuda"]
        assert "lists 1 name that no image can have" in done.stderr


def test_a_web_page_in_the_place_of_a_search_is_none(berth):
    web = lambda query: (200, b"<html>portal</html>", {"Content-Type": "text/html"})  # noqa: E731
    with serving({"/v1/search": web,
                  "/v2/_catalog": lambda query: {"repositories": ["a/cuda"]}}) as server:
        assert names_of(berth, f"{server.address}/cuda") == [f"{server.address}/a/cuda"]
    with serving({"/v1/search": web, "/v2/_catalog": web}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert line.startswith(f"berth: cannot search '{server.address}': the answer to /v2/_catalog")


def test_a_registry_with_neither_is_one_line(berth):
    with serving({}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert line == (f"berth: cannot search '{server.address}': registry '{server.address}' has "
                        "neither a search nor a list of its repositories; try: its web page, or "
                        f"berth search --list-tags {server.address}/NAME")


def test_the_next_page_is_at_the_registry_wherever_its_link_leads(berth):
    first = {"repositories": ["a/cuda"]}

    def page(query):
        if query.get("last") == "a":
            return {"repositories": ["b/cuda"]}
        return 200, first, {"Link": '<http://192.0.2.1/v2/_catalog?last=a>; rel="next"'}
    with serving({"/v2/_catalog": page}) as server:
        assert names_of(berth, f"{server.address}/cuda") == [f"{server.address}/a/cuda",
                                                             f"{server.address}/b/cuda"]


@pytest.mark.profiles("root")
def test_a_list_without_an_end_is_read_for_a_thousand_pages(berth):
    count = [0]

    def page(query):
        count[0] += 1
        return 200, {"repositories": [f"a/n{count[0]}"]}, {
            "Link": f'</v2/_catalog?last={count[0]}>; rel="next"'}
    with serving({"/v2/_catalog": page}) as server:
        done = berth.run("search", f"{server.address}/nothing")
        assert done.returncode == 0 and count[0] == 1000
        assert "is not read to its end, after 1000 pages and " in done.stderr


def test_an_answer_beyond_4_mib_is_an_error(berth):
    huge = b'{"repositories": ["' + b"a" * (5 << 20) + b'"]}'
    with serving({"/v2/_catalog": lambda query: huge}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert "cannot list the repositories of registry" in line


@pytest.mark.parametrize("then", ["answers", "asks for a login"])
def test_a_redirect_to_another_host_brings_it_no_login(berth, then):
    def stolen(query):
        if then == "answers":
            return {"repositories": ["a/cuda"]}
        return 401, b"", {"WWW-Authenticate": 'Basic realm="there"'}

    def locked(query, headers):
        if "Authorization" not in headers:
            return 401, b"", {"WWW-Authenticate": 'Basic realm="here"'}
        return 307, b"", {"Location": f"http://localhost:{other.server_address[1]}/stolen"}
    with serving({"/stolen": stolen}) as other, serving({"/v2/_catalog": locked}) as server:
        login = berth.directory / "auth.json"
        login.write_text(json.dumps({"auths": {server.address: {"auth": "bWU6c2VjcmV0"}}}))
        login.chmod(0o644)
        done = berth.run("search", f"{server.address}/cuda",
                         env={"REGISTRY_AUTH_FILE": str(login)})
        assert done.returncode == (0 if then == "answers" else 1)
        assert any(headers.get("Authorization") == "Basic bWU6c2VjcmV0"
                   for headers in server.headers)
        assert other.requests == ["/stolen"]
        assert "Authorization" not in other.headers[0]


def test_tags_that_are_none_are_left_out_and_counted(berth):
    tags = ["\x1b]0;title\x07\x1b[2J", "x\ny", "$(id)", "", "a b", "good", "t" * 129]
    with serving({"/v2/a/tags/list": lambda query: {"tags": tags}}) as server:
        done = berth.run("search", "--list-tags", "--format", "{{.Tag}}", f"{server.address}/a")
        assert done.stdout == "good\n"
        assert done.stderr == (f"berth: warning: '{server.address}/a' lists 6 tags that are none: "
                               "left out\n")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("path", ["/v2/_catalog", "/v2/a/tags/list"])
def test_a_list_that_is_too_long_in_all_is_not_read_to_its_end(berth, path):
    count = [0]

    def page(query):
        count[0] += 1
        long = "x" * 2_000_000
        return 200, {"repositories": [long], "tags": [long]}, {
            "Link": f'<{path}?last={count[0]}>; rel="next"'}
    with serving({path: page}) as server:
        flags = ["--list-tags"] if "tags" in path else []
        done = berth.run("search", *flags, f"{server.address}/a", timeout=120)
        assert done.returncode == 0 and 16 < count[0] <= 34
        assert f"is not read to its end, after {count[0]} pages and " in done.stderr


@pytest.mark.parametrize("links", [["a", "b", "a"], ["a", "a"]])
def test_pages_that_lead_in_a_circle_are_an_error(berth, links):
    def page(query):
        at = links.index(query["last"]) + 1 if "last" in query else 0
        return 200, {"repositories": ["a/cuda"]}, {
            "Link": f'</v2/_catalog?last={links[at]}>; rel="next"'}
    with serving({"/v2/_catalog": page}) as server:
        line = berth.fail("search", "--limit", "9", f"{server.address}/cuda", status=1)
        assert line == (f"berth: cannot search '{server.address}': read the list of repositories of "
                        f"'{server.address}': a page leads back to one before")
        assert len(server.requests) == 1 + len(links)  # with the search that it does not have


def test_a_page_that_cannot_be_found_is_an_error(berth):
    page = lambda query: (200, {"repositories": ["a/cuda"]},  # noqa: E731
                          {"Link": '</v2/_catalog/next>; rel="next"'})
    with serving({"/v2/_catalog": page}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert line == (f"berth: cannot search '{server.address}': cannot read the list of "
                        f"repositories of '{server.address}': find the page after it: "
                        "'/v2/_catalog/next' is not an address with a query")


@pytest.mark.parametrize("odd", [
    {"star_count": 1.5}, {"star_count": 1 << 70}, {"name": None}, {"is_official": "yes"},
])
def test_a_strange_result_spoils_no_other(berth, odd):
    with serving({"/v1/search": index_of([{**found("odd/cuda"), **odd}, *CUDA])}) as server:
        done = berth.run("search", "--format", "{{.Name}}", f"{server.address}/cuda")
        assert done.stdout.split() == [f"{server.address}/{name}"
                                       for name in ("cuda", "they/cuda", "me/cuda")]
        assert "1 name that no image can have" in done.stderr


def test_nothing_that_is_found_is_an_empty_table(berth):
    for answer in ({"results": None}, {"results": [], "num_pages": "1"}, {}):  # noqa: B023
        with serving({"/v1/search": lambda query: answer}) as server:
            assert names_of(berth, f"{server.address}/cuda") == []
            assert server.requests == ["/v1/search?q=cuda&n=100&page=1"]


@pytest.mark.parametrize("flags", [[], ["-f", "stars=3"]])
def test_a_search_that_fails_is_not_called_absent(berth, flags):
    broken = lambda query: (503, b"", {"Retry-After": "0"})  # noqa: E731
    with serving({"/v1/search": broken}) as server:
        line = berth.fail("search", *flags, f"{server.address}/cuda", status=1)
        assert line == (f"berth: cannot search '{server.address}': search registry "
                        f"'{server.address}': 503 Service Unavailable; try: again later; the registry reports "
                        "an internal error")


def test_a_description_is_of_bounded_length_and_one_line(berth):
    long = found("a/b", description="\u202fgr\u00f6\u00df\n" * 100_000)
    with serving({"/v1/search": index_of([long])}) as server:
        shown = berth.ok("search", "--no-trunc", "--format", "{{.Description}}",
                         f"{server.address}/b")
        assert len(shown.encode()) < 1100 and shown.count("\n") == 1 and shown.endswith("\u2026\n")
    steal = found("a/b", description="\x1b]0;title\x07\x1b[2J\r\x9b31m\x7f.")
    with serving({"/v1/search": index_of([steal])}) as server:
        for form in ("table", "json", "{{.Description}}"):
            text = berth.ok("search", "--format", form, f"{server.address}/b")
            assert not set(text) & {"\x1b", "\x07", "\r", "\x9b", "\x7f"}
            assert "]0;title  [2J  31m ." in text


@pytest.mark.profiles("root")
def test_a_list_for_nobody_without_a_login_says_so(berth):
    challenge = lambda query: (401, b"", {  # noqa: E731
        "WWW-Authenticate": f'Bearer realm="http://{server.address}/token",service="s"'})
    refused = lambda query: (403, b"", {})  # noqa: E731
    with serving({"/v2/_catalog": challenge, "/token": refused}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert line == (f"berth: cannot search '{server.address}': cannot list the repositories of "
                        f"registry '{server.address}': get a token for '{server.address}' from "
                        f"'http://{server.address}/token': 403 Forbidden: no credentials; try: "
                        f"berth login {server.address}")
        assert "/token?service=s&scope=registry%3Acatalog%3A%2A" in server.requests


# ---- wrong input --------------------------------------------------------------------------------

@pytest.mark.profiles("root")
@pytest.mark.parametrize("args,status,said", [
    ([""], 1, "berth: read '': there is no text to look for"),
    (["docker.io/"], 1, "berth: read 'docker.io/': there is no text to look for"),
    (["https://quay.io/cuda"], 1, "berth: read 'https://quay.io/cuda': it is an address; try: "
                                  "REGISTRY/TEXT, without the scheme"),
    (["a_b:5000/x"], 1, "berth: read 'a_b:5000/x': 'a_b:5000' is not a registry's host and port"),
    (["a\nb"], 1, "berth: read 'a\\nb': it holds control characters"),
    (["127.0.0.1:5000"], 1, "berth: read '127.0.0.1:5000': it names a registry and no text; try: "
                            "127.0.0.1:5000/TEXT, or 127.0.0.1:5000/ for all"),
    (["x" * 300], 1, f"berth: read '{'x' * 300}': it is longer than 255 characters"),
    (["--limit", "0", "x"], 1, "berth: --limit: expected a number from 1 to 10000, got 0"),
    (["--limit", "10001", "x"], 1, "berth: --limit: expected a number from 1 to 10000, got 10001"),
    (["-f", "color=red", "x"], 1, "berth: invalid filter 'color'; there are: is-automated, "
                                  "is-official, stars"),
    (["-f", "stars=many", "x"], 1, "berth: --filter stars=many: expected a number"),
    (["--compatible", "x"], 125, "berth: unknown flag '--compatible': stars are always listed; "
                                 "try: leave it out"),
    (["127.0.0.1:1/x"], 1, "berth: cannot search '127.0.0.1:1': connect to '127.0.0.1:1': "
                           "Connection refused; try: check that the registry runs and that its "
                           "port is right"),
])
def test_wrong_input_is_one_line(berth, args, status, said):
    assert berth.fail("search", *args, status=status) == said


@pytest.mark.profiles("root")
def test_how_many_arguments_there_are_is_said(berth):
    assert "takes 1 argument, got 2" in berth.fail("search", "a", "b", status=1)
