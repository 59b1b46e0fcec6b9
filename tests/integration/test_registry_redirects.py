# SPDX-License-Identifier: Apache-2.0
"""A registry may send us on to where its blobs and tokens are, and to nothing that is nearer to us than
itself: what listens for this machine alone often lets in whoever asks. The registry is in another network
namespace than who asks it."""

import contextlib
import ctypes
import json
import pathlib
import socket
import threading
import urllib.parse

import pytest

from support import hostile_registry as hostile
from support import images
from support.hub import Hub
from support.netlab import HOST, WORLD, Lab
from support.transfer import Transfer

pytestmark = pytest.mark.profiles("root")

# Names that lead here, and how a host's table has one of them.
NAMES = ("127.0.0.1", "127.9.9.9", "localhost", "here.localhost", "0.0.0.0", "2130706433", "127.1", "[::1]",
         "[::ffff:127.0.0.1]", "innocent.example")


def listener_in(space, address, port=0):
    """A listening socket of a network namespace, for this process."""
    made = []

    def make():
        with open(f"/proc/{space.pid}/ns/net", "rb") as namespace:
            assert ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) == 0, ctypes.get_errno()
        made.append(socket.create_server((address, port), family=socket.AF_INET6 if ":" in address
                                         else socket.AF_INET, dualstack_ipv6=address == "::"))

    thread = threading.Thread(target=make)  # a thread's namespace is its own
    thread.start()
    thread.join()
    return made[0]


@pytest.fixture(scope="module")
def lab():
    lab = Lab("/nonexistent", "/nonexistent")
    yield lab
    for space in lab.spaces:
        space.end()


@pytest.fixture(scope="module")
def image():
    return images.build([images.layer([images.file("small", "a\n")])])


@pytest.fixture
def far(lab, image):
    """far(fault…) → a registry of another machine."""
    with contextlib.ExitStack() as stack:
        def start(**faults):
            listening = listener_in(lab.world, WORLD)
            return stack.enter_context(hostile.running(image, listening=listening, **faults))
        yield start


@pytest.fixture
def near(lab, image):
    """What listens on this machine for itself, on all its addresses, and answers as a registry."""
    with hostile.running(image, listening=listener_in(lab.host, "::")) as service:
        yield service


@pytest.fixture
def inside(lab, work):
    """The words before a command that is on this machine, which has a table of hosts."""
    hosts = work / "hosts"
    hosts.write_text("127.0.0.1 localhost innocent.example\n::1 localhost\n169.254.169.254 cloud.example\n")
    return [*lab.host.command(), "unshare", "-m", "--propagation=private", "sh", "-c",
            f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]


@pytest.fixture
def transfer(inside, work):
    return Transfer(work / "store", {"HOME": str(work), "XDG_RUNTIME_DIR": ""}, prefix=inside)


def to(host, service):
    return hostile.redirected(f"http://{host}:{service.port}")


def refusal(host, service):
    return f"follow the registry's redirect to 'http://{host}:{service.port}/"


@pytest.mark.parametrize("what", ("manifests", "blobs"))
@pytest.mark.parametrize("host", NAMES)
def test_a_registry_elsewhere_sends_nobody_to_his_own_machine(transfer, far, near, what, host):
    registry = far(**{what: [to(host, near)]})
    kind, line = transfer.pull(registry.reference, insecure_registries=[registry.address]).error
    assert (kind, near.requests) == ("denied", []), line
    assert "an address only for this machine, and the registry is not on it; try: " in line, line


@pytest.mark.parametrize("host", ("169.254.169.254", "[fe80::1]", "cloud.example"))
def test_a_registry_elsewhere_sends_nobody_to_his_own_link(lab, transfer, far, image, host):
    lab.host.run("ip", "addr", "add", "169.254.169.254/32", "dev", "lo")
    with hostile.running(image, listening=listener_in(lab.host, "0.0.0.0")) as cloud:
        registry = far(blobs=[to(host, cloud)])
        kind, line = transfer.pull(registry.reference, insecure_registries=[registry.address]).error
        assert (kind, cloud.requests) == ("denied", []), line
        assert "an address only for this link" in line, line


def test_a_second_redirect_leads_no_nearer_either(transfer, far, near):
    other = far(blobs=[to("127.0.0.1", near)])
    registry = far(blobs=[hostile.redirected(f"http://{other.address}")])
    kind, line = transfer.pull(registry.reference, insecure_registries=[registry.address]).error
    assert (kind, near.requests) == ("denied", []), line
    assert other.seen("/blobs/")


def test_a_registry_elsewhere_gets_no_token_from_this_machine(transfer, far, near):
    registry = far(token="far")
    registry.answer_token = to("127.0.0.1", near)
    kind, line = transfer.pull(registry.reference, insecure_registries=[registry.address]).error
    assert (kind, near.requests) == ("denied", []), line
    assert refusal("127.0.0.1", near) in line


def test_an_upload_goes_to_no_service_of_this_machine(transfer, far, near):
    registry = far(blobs=[hostile.uploads_at(f"http://innocent.example:{near.port}")])
    assert transfer.pull(registry.reference, insecure_registries=[registry.address]).result
    kind, line = transfer("push", reference=registry.reference,
                          insecure_registries=[registry.address]).error
    assert (kind, near.requests) == ("denied", []), line
    assert refusal("innocent.example", near)[:-1] in line


def test_storage_that_others_reach_is_gone_on_to(transfer, far):
    storage = far()
    registry = far(blobs=[hostile.redirected(f"http://{storage.address}")])
    assert transfer.pull(registry.reference,
                         insecure_registries=[registry.address]).result["status"] == "downloaded"
    assert storage.seen("/blobs/")


@pytest.mark.parametrize("host", (HOST, "127.0.0.1", "innocent.example"))
def test_a_registry_of_this_machine_has_its_storage_on_it(lab, transfer, near, image, host):
    """Also one that is called by an address which others reach it at."""
    listening = listener_in(lab.host, "0.0.0.0")
    with hostile.running(image, listening=listening, blobs=[to("localhost", near)]) as registry:
        done = transfer.pull(f"{host}:{registry.port}/app:latest", insecure_registries=[host])
        assert done.result["status"] == "downloaded"
        assert near.seen("/blobs/")


def test_where_a_proxy_connects_a_name_is_its_affair(transfer, far, near):
    """The proxy's own address is one of this machine, and nothing but it is asked."""
    registry = far()

    def send_on(exchange):
        url = urllib.parse.urlsplit(exchange.path)
        return url.hostname != "storage.example" and exchange.answer(
            307, b"", {"Location": f"http://storage.example{url.path}"})

    near.faults["blobs"] = [send_on]
    transfer.environment["http_proxy"] = f"http://127.0.0.1:{near.port}"
    assert transfer.pull(registry.reference, insecure_registries=[registry.address]).result
    assert "http://storage.example/v2/app/blobs/" in json.dumps(near.requests)
    assert not registry.requests


@pytest.fixture
def hub(programs, lab, inside, work):
    """hub({its upstream…}) → ask(path), which gives the status."""
    with contextlib.ExitStack() as stack:
        def start(*upstream, insecure, **more):
            made = Hub(pathlib.Path(programs) / "berth", work / "hub",
                       {"upstream": list(upstream), "access": {"insecure-registries": insecure}} | more,
                       prefix=inside)
            stack.callback(made.stop)

            def ask(path, *flags):
                return lab.host.ok("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *flags,
                                   made.url + path)
            return ask
        yield start


def test_a_hub_reads_nothing_of_its_machine_for_a_registry(hub, far, near, image):
    registry = far(manifests=[to("127.0.0.1", near)], blobs=[to("innocent.example", near)])
    ask = hub({"registry": registry.address, "repositories": ["*"]}, insecure=[registry.address])
    for path in ("manifests/latest", f"blobs/{next(iter(image.blobs))}"):
        assert ask(f"/v2/app/{path}") == "403"
        assert ask(f"/v2/app/{path}", "--head") == "403"
    assert registry.requests and not near.requests


def test_a_connection_that_is_kept_is_no_way_there(hub, far, near, image):
    """The hub may ask the service by its name, and does; the registry sends it there, too."""
    path = f"blobs/{next(iter(image.blobs))}"
    registry = far(blobs=[to("innocent.example", near)])
    ask = hub({"registry": registry.address, "repositories": ["*"], "prefix": "far"},
              {"registry": f"innocent.example:{near.port}", "repositories": ["*"], "prefix": "near"},
              insecure=[registry.address, "innocent.example"])
    assert ask(f"/v2/near/app/{path}") == "200"
    before = len(near.requests)
    assert ask(f"/v2/far/app/{path}") == "403"
    assert len(near.requests) == before


def test_a_hub_sends_no_client_of_its_machine_where_the_registry_may_not(hub, far, near, image):
    """The hub, which is near, may send him there; so it does not pass the registry's word on."""
    path = f"/v2/app/blobs/{next(iter(image.blobs))}"
    private = far(token="far", blobs=[lambda exchange: exchange.command == "GET" and hostile.redirected(
        f"http://innocent.example:{near.port}")(exchange)])
    ask = hub({"registry": private.address, "repositories": ["*"]}, insecure=[private.address],
              blobs="redirect")
    assert ask(path, "--head") == "200"
    assert ask(path) == "403"
    assert private.requests and not near.requests
