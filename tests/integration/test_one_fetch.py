# SPDX-License-Identifier: Apache-2.0
"""The nodes of a job fetch an image once: a tree of nodes, each of which gives on what it gets."""

import contextlib
import http.client
import os
import pathlib
import random
import re
import signal
import ssl
import subprocess
import threading

import pytest

from support import images, registry_front, shared_key
from support.job_nodes import Front, JobNodes, MeteredRegistry, peers, tmpfs
from support.slurm_containers import Submitter, with_plugin
from support.store_listing import store_listing
from support.transfer import Transfer
from support.waiting import wait_until

NOISE = random.Random(166).randbytes(9 << 20)
as_root = pytest.mark.profiles("root")  # of berth-transfer and berth-hub, which know no users


@pytest.fixture(scope="module")
def image():
    """A layer in three parts of 4 MiB, and small ones."""
    return images.build([images.layer([images.file("noise", NOISE)]),
                         *(images.layer([images.file(name, name * 100)]) for name in "abc")],
                        compression="none")


@pytest.fixture
def large(image):
    return image.layer_digests[0]


def sizes(image):
    return {digest: len(data) for digest, data in image.blobs.items()}


def assert_whole(nodes, image, *, but_for=()):
    for node in range(nodes.count):
        if node in but_for:
            continue
        assert nodes.layers(node) == sorted(digest.removeprefix("sha256:")
                                            for digest in image.diff_ids)
        (noise,) = nodes.stores[node].glob("layers/*/fs/noise")
        assert noise.read_bytes() == NOISE
        assert list((nodes.stores[node] / "tmp").iterdir()) == []


# ---- a tree of nodes ----------------------------------------------------------------------------

@as_root
@pytest.mark.parametrize("count,arity", [(2, 2), (4, 2), (8, 2), (8, 4), (5, 1)])
def test_the_registry_gives_each_blob_once(work, image, count, arity):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, count, arity) as nodes:
        for outcome in nodes.pull_all():
            assert outcome.result["status"] == "downloaded"
            assert outcome.of("warning") == []
        assert {digest: registry.sent[digest] for digest in image.blobs} == sizes(image)
        assert_whole(nodes, image)


@as_root
def test_without_the_tree_it_gives_as_many(work, image, large):
    """That the test before this one can fail."""
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 3, arity=0) as nodes:
        assert all(outcome.status == 0 for outcome in nodes.pull_all())
        assert registry.sent[large] == 3 * sizes(image)[large]


@as_root
def test_bytes_are_given_on_while_they_come(work, image, large):
    with MeteredRegistry(image, hold=(large, 6 << 20)) as registry, \
            JobNodes(registry, work, 4, arity=1) as nodes:
        last = nodes.fronts[2]
        assert last.ask("/v2/app/manifests/latest")[2] == image.manifest
        status, answer = last.ask(f"/v2/app/blobs/{large}", read=False)
        assert status == 200
        half = answer.read(5 << 20)
        assert registry.reached.wait(30) and not registry.opened.is_set()
        assert half == image.blobs[large][:5 << 20]
        registry.opened.set()
        assert answer.read() == image.blobs[large][5 << 20:]


@as_root
def test_a_node_that_is_there_already_passes_on_what_it_has_not(work, image):
    """The first node has the image, unpacked: what others need of it is fetched once."""
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 4, arity=2) as nodes:
        assert nodes.transfer(0).pull(registry.reference).status == 0
        registry.sent.clear()
        assert all(outcome.status == 0 for outcome in nodes.pull_all())
        assert {digest: registry.sent[digest] for digest in image.layer_digests} == \
            {digest: sizes(image)[digest] for digest in image.layer_digests}
        assert_whole(nodes, image)


@as_root
def test_what_a_node_keeps_packed_nobody_fetches(work, image):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 2) as nodes:
        assert nodes.transfer(0).pull(registry.reference, keep_blobs=True).status == 0
        registry.sent.clear()
        assert nodes.pull(1).status == 0
        assert not set(registry.sent) & set(image.layer_digests)


# ---- who may ask, and for what ------------------------------------------------------------------

@as_root
@pytest.mark.parametrize("key", [None, "0" * 64, "short"])
def test_without_the_key_nothing_is_given(work, image, key):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 2) as nodes:
        front = nodes.fronts[0]
        stranger = shared_key.Connection(front.address, key, timeout=30)
        stranger.request("GET", "/v2/")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            stranger.getresponse()
        stranger.close()
        assert front.ask("/v2/")[0] == 200
        assert registry.requests == []


@as_root
def test_who_speaks_without_tls_is_told_nothing(work, image):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 2) as nodes:
        plain = http.client.HTTPConnection(nodes.fronts[0].address, timeout=30)
        plain.request("GET", "/v2/app/manifests/latest")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            plain.getresponse()
        plain.close()
        assert registry.requests == []


@contextlib.contextmanager
def impostor(certificate, image):
    """Has the port of a node that has ended, and would give another image. What it was told is in
    `heard`, requests that came through a handshake are in `requests`."""
    fake = MeteredRegistry(image)
    fake.heard = []
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)

    def get_request():
        connection, where = fake.socket.accept()
        if not tls:
            connection.settimeout(2)
            fake.heard.append(connection.recv(65536))
            return connection, where
        connection.settimeout(5)
        return tls.wrap_socket(connection, server_side=True), where
    fake.get_request = get_request
    with fake:
        yield fake


@pytest.fixture(scope="session")
def certificate(session_directory):
    path = session_directory / "impostor.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path,
                    "-out", path.with_suffix(".crt")], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@as_root
@pytest.mark.parametrize("speaks_tls", [False, True])
def test_who_has_the_port_of_a_node_gives_no_image_and_learns_no_key(work, image, certificate,
                                                                     speaks_tls):
    bait = images.build([images.layer([images.file("bait", "of another user")])])
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 2) as nodes, \
            impostor(certificate if speaks_tls else None, bait) as fake:
        outcome = nodes.pull(1, peers=peers(registry.reference, [fake.address], nodes.key))
        assert outcome.status == 0
        assert nodes.layers(1) == sorted(digest.removeprefix("sha256:") for digest in image.diff_ids)
        (warning,) = outcome.of("warning")
        assert "asking the registry instead" in warning["text"], warning
        assert fake.requests == []
        assert speaks_tls or fake.heard
        for heard in fake.heard:
            assert nodes.key.encode() not in heard and bytes.fromhex(nodes.key) not in heard


@as_root
def test_a_node_that_knows_not_yet_from_where_lets_others_wait(work, image):
    """Its own parent may come much later than its children."""
    with MeteredRegistry(image) as registry:
        front = Front(work / "store", registry.reference, "1" * 64, tell=False)
        pull = Transfer(work / "child").start("pull", reference=registry.reference,
                                              peers=peers(registry.reference, [front.address], "1" * 64))
        with pytest.raises(subprocess.TimeoutExpired):
            pull.wait(5)
        assert registry.requests == []
        front.tell()
        out, errors = pull.communicate(timeout=60)
        assert pull.returncode == 0 and '"warning"' not in out, (out, errors)
        assert [registry.sent[digest] for digest in image.layer_digests] == \
            [sizes(image)[digest] for digest in image.layer_digests]
        front.kill()


@as_root
def test_nothing_but_the_image_is_given(work, image, large):
    other = b"of another image"
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 2) as nodes:
        registry.blobs[images.digest_of(other)] = other
        front = nodes.fronts[0]
        assert front.ask(f"/v2/app/blobs/{large}")[0] == 404  # nobody has asked what it is a part of
        assert front.ask("/v2/app/manifests/latest")[0] == 200
        asked = len(registry.requests)
        for path in (f"/v2/app/blobs/{images.digest_of(other)}", f"/v2/other/blobs/{large}",
                     "/v2/app/manifests/older", "/v2/app/tags/list", "/v2/other/manifests/latest",
                     f"/v2/app/referrers/{images.digest_of(other)}", "/v2/app/blobs/../secret"):
            assert front.ask(path)[0] in (400, 404), path
        assert front.ask("/v2/app/manifests/latest", method="PUT")[0] == 405
        assert len(registry.requests) == asked
        assert front.ask(f"/v2/app/blobs/{large}", headers=[("Range", "bytes=3-9")])[2] == \
            image.blobs[large][3:10]


# ---- faults -------------------------------------------------------------------------------------

@as_root
def test_a_node_whose_parent_is_killed_asks_the_one_above(work, image, large):
    with MeteredRegistry(image, hold=(large, 5 << 20)) as registry, \
            JobNodes(registry, work, 4, arity=2) as nodes:
        pull = nodes.start(3)  # its parent is node 1
        assert registry.reached.wait(30)
        wait_until(lambda: registry.sent[large] >= 4 << 20)
        nodes.fronts[1].kill()
        registry.opened.set()
        out, errors = pull.communicate(timeout=60)
        assert pull.returncode == 0 and '"warning"' not in out, (out, errors)
        assert registry.sent[large] == sizes(image)[large]
        assert_whole(nodes, image, but_for=(0, 1, 2))


@as_root
def test_who_has_lost_all_asks_the_registry_and_says_so(work, image, large):
    with MeteredRegistry(image, hold=(large, 5 << 20)) as registry, \
            JobNodes(registry, work, 4, arity=2) as nodes:
        pull = nodes.start(3)
        assert registry.reached.wait(30)
        nodes.fronts[1].kill()
        nodes.fronts[0].kill()
        registry.opened.set()
        out, errors = pull.communicate(timeout=60)
        assert pull.returncode == 0, (out, errors)
        assert out.count("asking the registry instead") == 1
        assert_whole(nodes, image, but_for=(0, 1, 2))


@as_root
def test_a_killed_node_leaves_nothing_behind(work, image, large):
    with MeteredRegistry(image, hold=(large, 5 << 20)) as registry, \
            JobNodes(registry, work, 2) as nodes:
        pull = nodes.start(1)
        assert registry.reached.wait(30)
        nodes.fronts[0].kill()
        assert [path for path in (nodes.stores[0] / "tmp").iterdir()
                if path.stat().st_size > 0] == []
        pull.kill()
        pull.communicate()


@as_root
def test_a_disk_that_is_full_is_one_nodes_fault(work, image):
    with contextlib.ExitStack() as stack:
        registry = stack.enter_context(MeteredRegistry(image))
        stack.enter_context(tmpfs(work / "node3", "4m"))
        nodes = stack.enter_context(JobNodes(registry, work, 4, arity=2))
        outcomes = nodes.pull_all()
        kind, line = outcomes[3].error
        assert kind == "io" and "No space left on device" in line, line
        assert all(outcome.status == 0 for outcome in outcomes[:3])
        assert {digest: registry.sent[digest] for digest in image.blobs} == sizes(image)
        assert_whole(nodes, image, but_for=(3,))
        assert [name for name, text in store_listing(nodes.stores[3]).items()
                if "/" in name and text.startswith("-")] == []


@as_root
def test_a_full_disk_above_is_no_fault_of_those_below(work, image):
    with contextlib.ExitStack() as stack:
        registry = stack.enter_context(MeteredRegistry(image))
        stack.enter_context(tmpfs(work / "node1", "4m"))
        nodes = stack.enter_context(JobNodes(registry, work, 4, arity=2))
        outcomes = nodes.pull_all()
        assert outcomes[1].status == 1
        assert [outcomes[node].status for node in (0, 2, 3)] == [0, 0, 0]
        assert_whole(nodes, image, but_for=(1,))


@as_root
def test_an_image_that_is_not_there_fails_alike_everywhere(work, image):
    with MeteredRegistry(image) as registry:
        registry.reference = f"{registry.address}/app:missing"
        with JobNodes(registry, work, 4, arity=2) as nodes:
            errors = [outcome.error for outcome in nodes.pull_all()]
            assert {kind for kind, _ in errors} == {"not_found"}
            lines = {re.sub(r"registry '127\.0\.0\.1:\d+'", "registry", line) for _, line in errors}
            assert len(lines) == 1 and f"{registry.address} has no manifest missing" in lines.pop()
            asked = [path for path in registry.requests if path.endswith("/manifests/missing")]
            assert len(asked) == 1
            for node in range(4):
                assert nodes.layers(node) == []


@as_root
def test_a_registry_that_stands_still_fails_all_in_bounded_time(work, image, large):
    with MeteredRegistry(image, hold=(large, 5 << 20)) as registry, \
            JobNodes(registry, work, 3, stall_seconds=1) as nodes:
        outcomes = nodes.pull_all(stall_seconds=1)
        assert [outcome.status for outcome in outcomes] == [1, 1, 1]
        for node, outcome in enumerate(outcomes):
            assert large in outcome.error[1], outcome.error
            assert nodes.layers(node) == []


@as_root
def test_bytes_that_are_wrong_reach_no_store(work, image, large):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 3) as nodes:
        registry.blobs[large] = image.blobs[large][:-1] + b"?"
        for node, outcome in enumerate(nodes.pull_all()):
            assert outcome.error[0] == "corrupt", outcome.error
            assert nodes.layers(node) == []


def damage_what_is_kept(front, size):
    """The last byte of a blob of that size, in the file without a name that the node gives it from."""
    (kept,) = (file for file in pathlib.Path(f"/proc/{front.process.pid}/fd").iterdir()
               if file.is_file() and file.stat().st_size == size)
    with open(kept, "r+b") as blob:
        blob.seek(size - 1)
        last = blob.read(1)[0]
        blob.seek(size - 1)
        blob.write(bytes([last ^ 1]))


@as_root
def test_what_a_node_gives_damaged_those_below_ask_the_registry_for(work, image, large):
    with MeteredRegistry(image) as registry, JobNodes(registry, work, 3) as nodes:
        assert nodes.pull(0).result
        damage_what_is_kept(nodes.fronts[0], sizes(image)[large])
        below = nodes.pull(1)
        assert below.result
        assert "a node of this job sent damaged data: " in below.output
        assert registry.sent[large] == 2 * sizes(image)[large]
        assert_whole(nodes, image, but_for=(2,))


@as_root
def test_a_node_that_is_to_end_gives_what_it_is_giving(work, image, large):
    with MeteredRegistry(image, hold=(large, 6 << 20)) as registry:
        front = Front(work / "store", registry.reference, "1" * 64)
        assert front.ask("/v2/app/manifests/latest")[0] == 200
        status, answer = front.ask(f"/v2/app/blobs/{large}", read=False)
        assert status == 200
        front.process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            front.process.wait(4)
        registry.opened.set()
        assert answer.read() == image.blobs[large]
        assert front.process.wait(15) == 0


@as_root
def test_a_node_that_is_to_end_and_gives_nothing_ends(work, image):
    with MeteredRegistry(image) as registry:
        front = Front(work / "store", registry.reference, "1" * 64)
        assert front.ask("/v2/app/manifests/latest")[0] == 200
        front.process.send_signal(signal.SIGHUP)
        assert front.process.wait(15) == 0


@as_root
def test_a_node_that_nobody_asks_ends(work, image):
    with MeteredRegistry(image) as registry:
        front = Front(work / "store", registry.reference, "1" * 64, idle_seconds=1)
        assert front.process.wait(15) == 0


@as_root
def test_a_front_takes_no_order_that_it_does_not_know(work):
    front = Front(work / "store", "127.0.0.1:1/app:latest", "1" * 64, colour="red")
    assert front.process.wait(15) == 1


# ---- in a step of Slurm's -----------------------------------------------------------------------

STARTER = """\
#!/bin/sh
{place}
exec {programs}/berth --root "$TEST_ROOT/$SLURMD_NODENAME" --state "$TEST_STATE/$SLURMD_NODENAME" "$@"
"""
NODES = 8


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-one-fetch"
    directory.mkdir()
    made = with_plugin(directory, programs, nodes=NODES, starter=STARTER)
    with made.running() as running:
        yield running


@pytest.fixture
def slurm(cluster, berth):
    for place in (berth.root, berth.state):
        berth.account.own(place)
    yield Submitter(cluster, berth)
    wait_until(cluster.is_idle)


@pytest.fixture
def front(registry):
    with registry_front.running(registry) as running:
        yield running


@pytest.fixture
def pushed(registry, front):
    """(image, reference) at the counting front."""
    made = images.build([images.busybox_layer(),
                         *(images.layer([images.file(name, os.urandom(90000))]) for name in "ab")])
    made.push(registry, "test/one-fetch")
    return made, f"{front.address}/test/one-fetch:latest"


def fetched(front, image):
    """How often the registry was asked for each layer."""
    return [sum(method == "GET" and path.endswith(digest) for method, path, _ in front.requests)
            for digest in image.layer_digests]


def stores_with_layers(slurm, image):
    return [node for node in slurm.cluster.nodes
            if len(list((slurm.berth.root / node / "layers").glob("*"))) == len(image.layer_digests)]


@pytest.mark.parametrize("nodes", [2, NODES])
def test_a_step_fetches_an_image_once(slurm, front, pushed, nodes):
    image, reference = pushed
    out = slurm.srun("--nodes", nodes, "--ntasks", 2 * nodes, f"--container-image={reference}",
                     "sh", "-c", "wc -c </a")
    assert out.split() == ["90000"] * 2 * nodes
    assert fetched(front, image) == [1, 1, 1]
    assert len(stores_with_layers(slurm, image)) == nodes


def test_a_node_that_has_the_image_passes_it_on(slurm, front, pushed):
    """The first node of the step has it: what the others need of it is fetched once all the same."""
    image, reference = pushed
    slurm.srun("--nodelist", "n1", f"--container-image={reference}", "true")
    assert fetched(front, image) == [1, 1, 1]
    # One whose tasks have ended before others ask gives nothing.
    slurm.srun("--nodes", 4, "--nodelist", "n[1-4]", f"--container-image={reference}", "sleep", "3")
    assert fetched(front, image) == [2, 2, 2]
    assert stores_with_layers(slurm, image) == ["n1", "n2", "n3", "n4"]


def test_where_all_have_the_image_nothing_is_asked_and_no_hub_runs(slurm, front, pushed):
    image, reference = pushed
    words = ["--nodes", 4, "--nodelist", "n[1-4]", f"--container-image={reference}"]
    slurm.srun(*words, "true")
    asked = len(front.requests)
    step = slurm.spawn("srun", *map(str, words), "sh", "-c", "echo runs; exec sleep 30")
    try:
        for _ in range(4):
            assert step.stdout.readline() == "runs\n"
        assert wait_until(lambda: programs_of(slurm, "slurm", "give"))
        assert programs_of(slurm, "--for-job") == []
    finally:
        slurm.call("scancel", "--user", slurm.berth.account.name)
        step.communicate(timeout=60)
    wait_until(lambda: programs_of(slurm, "slurm", "give") == [])
    assert len(front.requests) == asked


def test_each_node_fetches_where_the_site_says_so(work, programs, berth, front, pushed):
    image, reference = pushed
    directory = work / "slurm-alone"
    directory.mkdir()
    made = with_plugin(directory, programs, nodes=2, arguments=["one_fetch=0"], starter=STARTER)
    with made.running() as cluster:
        for place in (berth.root, berth.state):
            berth.account.own(place)
        Submitter(cluster, berth).srun("--nodes", 2, f"--container-image={reference}", "true")
    assert fetched(front, image) == [2, 2, 2]


def test_a_task_does_not_see_the_secret_of_its_step(slurm, pushed):
    _, reference = pushed
    out = slurm.srun("--nodes", 2, f"--container-image={reference}", "env")
    assert "SLURM_JOB_ID=" in out and "BERTH_BOARD" not in out


def test_a_step_without_the_users_variables_fetches_once(slurm, front, pushed):
    image, reference = pushed
    slurm.srun("--nodes", 2, "--export=TEST_ROOT,TEST_STATE,HOME",
               f"--container-image={reference}", "true")
    assert fetched(front, image) == [1, 1, 1]


def test_an_image_that_is_not_there_fails_the_step(slurm, front):
    said = slurm.refused("--nodes", 4, f"--container-image={front.address}/test/no-such", "true")
    assert f"cannot pull '{front.address}/test/no-such'" in said, said


def programs_of(slurm, *words):
    """The process ids of programs of ours with these words that belong to the user's steps."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            said = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\0")
            variables = open(f"/proc/{entry}/environ", "rb").read().split(b"\0")
            if all(word.encode() in said for word in words) and \
                    f"TEST_ROOT={slurm.berth.root}".encode() in variables:
                found.append(int(entry))
    return found


def berth_of(node):
    """The process ids of `berth slurm step` on one node."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\0")
            variables = open(f"/proc/{entry}/environ", "rb").read().split(b"\0")
            if words[:1] and words[0].endswith(b"berth") and b"step" in words and \
                    f"SLURMD_NODENAME={node}".encode() in variables:
                found.append(int(entry))
    return found


def test_a_node_that_is_killed_in_its_pull_ends_the_step(slurm, front, pushed):
    image, reference = pushed
    reached, opened = threading.Event(), threading.Event()

    def hold(method, path):
        if path.endswith(image.layer_digests[0]):
            reached.set()
            opened.wait(60)
    front.before = hold
    step = slurm.spawn("srun", "--nodes", 4, "--ntasks", 4, "--kill-on-bad-exit=1",
                       f"--container-image={reference}", "true")
    try:
        assert reached.wait(30)
        pids = wait_until(lambda: berth_of("n2"))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    finally:
        opened.set()
    out, errors = step.communicate(timeout=90)
    assert step.returncode != 0, (out, errors)
    wait_until(slurm.cluster.is_idle)
    wait_until(lambda: not any(berth_of(node) for node in slurm.cluster.nodes))


def test_the_image_of_an_environment_file_is_fetched_once(slurm, front, pushed):
    image, reference = pushed
    (slurm.berth.directory / "train.toml").write_text(f'image = "{reference}"\n')
    slurm.srun("--nodes", 2, "--environment=./train.toml", "true")
    assert fetched(front, image) == [1, 1, 1]
