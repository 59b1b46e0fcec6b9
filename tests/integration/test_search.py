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
    """A server on loopback that answers from `pages`: {path: what of the query} gives a body, or
    (status, body, headers). Any other path is a 404."""

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
        answer = page(dict(urllib.parse.parse_qsl(query))) if page else (404, b"", {})
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
        assert f"--filter {asked.partition('=')[0]}: registry '{filled.address}' has a list" in line
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


def test_no_escape_of_a_description_reaches_the_table(berth):
    hostile = found("a/b", description="\x1b]0;title\x07\x1b[2J\r\nmore\x9b31m")
    with serving({"/v1/search": index_of([hostile])}) as server:
        table = berth.ok("search", f"{server.address}/b")
        assert not set(table) & {"\x1b", "\x07", "\r", "\x9b"}
        assert "more" in table.splitlines()[1]


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


@pytest.mark.parametrize("link", ['</v2/_catalog?last=a>; rel="next"',
                                  '<http://192.0.2.1/v2/_catalog?last=a>; rel="next"',
                                  '<?last=a>; rel=next'])
def test_a_list_that_leads_to_itself_or_elsewhere_ends_here(berth, link):
    """The next page is at the registry's own address, wherever the link leads."""
    page = lambda query: (200, {"repositories": ["a/cuda"]}, {"Link": link})  # noqa: E731
    with serving({"/v2/_catalog": page}) as server:
        line = berth.fail("search", "--limit", "9", f"{server.address}/cuda", status=1)
        assert "names itself as the page after it" in line
        assert server.requests[-2:] == ["/v2/_catalog", "/v2/_catalog?last=a"]


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
        assert "has more than 1000 pages: the rest was not read" in done.stderr


def test_an_answer_beyond_4_mib_is_an_error(berth):
    huge = b'{"repositories": ["' + b"a" * (5 << 20) + b'"]}'
    with serving({"/v2/_catalog": lambda query: huge}) as server:
        line = berth.fail("search", f"{server.address}/cuda", status=1)
        assert "cannot list the repositories of registry" in line


def test_a_redirect_to_another_host_brings_it_no_login(berth, session_directory):
    with serving({"/stolen": lambda query: {"repositories": ["a/cuda"]}}) as other:
        away = lambda query: (307, b"", {"Location": f"http://localhost:{other.server_address[1]}"  # noqa: E731
                                                     "/stolen"})
        def locked(query):
            return 401, b"", {"WWW-Authenticate": 'Basic realm="x"'}
        with serving({"/v2/": locked, "/v2/_catalog": away}) as server:
            login = berth.directory / "auth.json"
            login.write_text(json.dumps({"auths": {server.address: {"auth": "bWU6c2VjcmV0"}}}))
            login.chmod(0o644)
            berth.run("search", f"{server.address}/cuda", env={"REGISTRY_AUTH_FILE": str(login)})
        assert not any("Authorization" in headers for headers in other.headers)


# ---- wrong input --------------------------------------------------------------------------------

@pytest.mark.profiles("root")
@pytest.mark.parametrize("args,status,said", [
    ([""], 1, "berth: read '': there is no text to look for"),
    (["docker.io/"], 1, "berth: read 'docker.io/': there is no text to look for"),
    (["https://quay.io/cuda"], 1, "berth: read 'https://quay.io/cuda': it is an address; try: "
                                  "REGISTRY/TEXT, without the scheme"),
    (["a_b:5000/x"], 1, "berth: read 'a_b:5000/x': 'a_b:5000' is not a registry's host and port"),
    (["a\nb"], 1, "berth: read 'a\\nb': it holds control characters"),
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
