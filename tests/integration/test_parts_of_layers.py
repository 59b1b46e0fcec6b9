# SPDX-License-Identifier: Apache-2.0
"""A large layer comes in several parts at once, into bounded memory, whatever the registry does."""

import hashlib
import random
import threading

import pytest

from support import hostile_registry as hostile
from support import images
from support.store_listing import store_listing
from support.transfer import Transfer

pytestmark = pytest.mark.profiles("root")  # of berth-transfer, which knows no users

BUDGET = 38 << 20  # one layer: 20 MiB of it wait for the unpacker, in parts of 5 MiB
PART = 5 << 20
NOISE = random.Random(7).randbytes(17 << 20)


@pytest.fixture(scope="module")
def image():
    return images.build([images.layer([images.file("noise", NOISE)])], compression="none")


@pytest.fixture
def transfer(work):
    return Transfer(work / "store", {"HOME": str(work), "XDG_RUNTIME_DIR": ""})


def parts(image):
    size = len(image.blobs[image.layer_digests[0]])
    starts = range(0, size, PART)
    return [f"bytes={start}-{start + PART - 1}" if start + PART < size else f"bytes={start}-"
            for start in starts]


def pull(transfer, registry):
    return transfer.pull(registry.reference, memory_budget=BUDGET)


def seen(registry, image):
    return [headers.get("Range") for headers in registry.seen(image.layer_digests[0])]


def assert_whole(transfer):
    (tree,) = (transfer.root / "layers").glob("*/fs")
    assert hashlib.sha256((tree / "noise").read_bytes()).digest() == hashlib.sha256(NOISE).digest()


def test_each_part_is_asked_for_once(image, transfer):
    with hostile.running(image, blobs=[hostile.ranges]) as registry:
        assert pull(transfer, registry).result["status"] == "downloaded"
        assert sorted(seen(registry, image), key=len) == sorted(parts(image), key=len)
    assert_whole(transfer)


def test_a_registry_that_knows_no_range_is_asked_once(image, transfer):
    with hostile.running(image) as registry:
        assert pull(transfer, registry).result["status"] == "downloaded"
        assert seen(registry, image) == parts(image)[:1]
    assert_whole(transfer)


def test_a_part_whose_line_is_lost_goes_on_where_it_was(image, transfer):
    def drop_second(exchange):
        start, _ = hostile.range_of(exchange) or (0, 0)
        if start != PART or registry.dropped:
            return False
        registry.dropped = True
        return hostile.dropped_range(exchange, 2 << 20)
    with hostile.running(image, blobs=[drop_second, hostile.ranges]) as registry:
        registry.dropped = False
        assert pull(transfer, registry).result["status"] == "downloaded"
        assert f"bytes={PART + (2 << 20)}-{2 * PART - 1}" in seen(registry, image)
        assert len(seen(registry, image)) == len(parts(image)) + 1
    assert_whole(transfer)


def test_a_registry_may_give_less_than_it_was_asked_for(image, transfer):
    def stingy(exchange):
        start, end = hostile.range_of(exchange)
        data, end = exchange.content[1], min(end, start + (3 << 20))
        return exchange.answer(206, data[start:end], {
            "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})
    with hostile.running(image, blobs=[
            hostile.only(image.layer_digests[0], stingy)]) as registry:
        assert pull(transfer, registry).result["status"] == "downloaded"
    assert_whole(transfer)


def test_a_registry_that_has_too_many_requests_is_asked_again(image, transfer):
    def busy(exchange):
        start, _ = hostile.range_of(exchange) or (0, 0)
        if start == 0 or registry.refusals == 0:
            return False
        registry.refusals -= 1
        return hostile.refused(429, headers={"Retry-After": "0"})(exchange)
    with hostile.running(image, blobs=[busy, hostile.ranges]) as registry:
        registry.refusals = 6
        assert pull(transfer, registry).result["status"] == "downloaded"
    assert_whole(transfer)


def refusal(transfer, registry):
    before = store_listing(transfer.root)
    kind, line = pull(transfer, registry).error
    assert {path for path in store_listing(transfer.root) if path.startswith(("tmp/", "layers/"))
            } == {path for path in before if path.startswith(("tmp/", "layers/"))}
    return kind, line


def action(registry, image):
    return (f"cannot pull '{registry.reference}': cannot read blob '{image.layer_digests[0]}' at "
            f"registry '{registry.address}': ")


def test_bytes_that_change_between_the_parts_are_refused(image, transfer):
    def changed(exchange):
        start, end = hostile.range_of(exchange) or (0, 0)
        if start != 2 * PART:
            return False
        data = exchange.content[1]
        return exchange.answer(206, b"\0" * (end - start), {
            "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})
    with hostile.running(image, blobs=[changed, hostile.ranges]) as registry:
        kind, line = refusal(transfer, registry)
        assert kind == "corrupt"
        assert line.startswith(action(registry, image) + "check its bytes: their digest is '")


def test_the_whole_instead_of_a_part_is_refused(image, transfer):
    def whole(exchange):
        start, _ = hostile.range_of(exchange) or (0, 0)
        if start == 0:
            return False
        return exchange.answer(200, exchange.content[1])
    # The last part alone may be a whole: what comes before it is passed over.
    with hostile.running(image, blobs=[whole, hostile.ranges]) as registry:
        assert refusal(transfer, registry) == ("corrupt", action(registry, image) +
                                               "check its range: the registry sent the whole blob instead of a part")


def test_the_whole_after_parts_have_begun_is_refused(image, transfer):
    """The first part breaks off when others are on their way, and its rest is the whole blob."""
    others = threading.Event()

    def changes_its_mind(exchange):
        start, end = hostile.range_of(exchange) or (0, 0)
        if len(exchange.content[1]) < PART:
            return False
        if start >= PART:
            others.set()
            return False
        if start > 0:
            return exchange.answer(200, exchange.content[1])
        data = exchange.content[1]
        exchange.answer(206, data[:PART // 2], {
            "Content-Length": str(end), "Content-Range": f"bytes 0-{end - 1}/{len(data)}"})
        exchange.wfile.flush()
        assert others.wait(20)
        return exchange.hang_up()
    with hostile.running(image, blobs=[changes_its_mind, hostile.ranges]) as registry:
        assert refusal(transfer, registry) == ("corrupt", action(registry, image) +
                                               "check its range: the registry sent the whole blob instead of a part")


def test_pieces_of_a_few_bytes_without_end_are_refused(image, transfer):
    def drips(exchange):
        start, _ = hostile.range_of(exchange) or (0, 0)
        data = exchange.content[1]
        if len(data) < PART:
            return False
        return exchange.answer(206, data[start:start + 1], {
            "Content-Range": f"bytes {start}-{start}/{len(data)}"})
    with hostile.running(image, blobs=[drips]) as registry:
        kind, line = refusal(transfer, registry)
        assert kind == "corrupt" and "it comes in pieces of 1 bytes" in line


def test_more_bytes_than_asked_for_are_refused(image, transfer):
    def generous(exchange):
        start, end = hostile.range_of(exchange) or (0, 0)
        if start != PART:
            return False
        data = exchange.content[1]
        return exchange.answer(206, data[start:end + 100], {
            "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})
    with hostile.running(image, blobs=[generous, hostile.ranges]) as registry:
        kind, line = refusal(transfer, registry)
        assert kind == "corrupt"
        assert line.startswith(action(registry, image) + "check its size: more than ")


def test_a_small_budget_is_kept(image, work):
    # The address space holds code, stacks and libraries, too: what counts is what grows.
    def peak(budget):
        transfer = Transfer(work / f"store-{budget}", {"HOME": str(work), "XDG_RUNTIME_DIR": ""},
                            prefix=["/usr/bin/env", "time", "-f", "%M", "-o", str(work / "peak")])
        with hostile.running(image, blobs=[hostile.ranges]) as registry:
            transfer.pull(registry.reference, memory_budget=budget).result
        return int((work / "peak").read_text()) << 10
    assert peak(32 << 20) < 64 << 20
