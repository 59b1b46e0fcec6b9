# SPDX-License-Identifier: Apache-2.0
"""The socket that `berth attach` comes through: clients that mean harm."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

TICK = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done"


@pytest.fixture
def container(berth, busybox):
    """Prints numbers, and never reads what it is sent."""
    berth.ok("pull", "--quiet", busybox)
    full = berth.ok("run", "-d", "-i", "--name", "tick", busybox, "sh", "-c", TICK).strip()
    yield berth.state / "monitors" / full
    berth.ok("rm", "-f", "tick")


def monitor_of(directory):
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"berth-monitor" and directory.name.encode() in words:
            return process
    raise AssertionError("it has no monitor")


def connect(directory):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Waits while others are being accepted, without being told EAGAIN.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 2, 0))
    handle = os.open(directory, os.O_PATH)
    try:
        client.connect(f"/proc/self/fd/{handle}/attach")
    finally:
        os.close(handle)
    client.settimeout(5)
    return client


def flood(client, packet, patience=1.0):
    """Sends until nothing is taken for a while; returns the number of bytes."""
    sent, last = 0, time.monotonic()
    client.setblocking(False)
    while time.monotonic() < last + patience and sent < 50_000_000:
        try:
            sent += client.send(packet)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    return sent


def resident_kb(process):
    line = next(x for x in (process / "status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1])


def ticks(process):
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def last_number(berth):
    return int(berth.ok("logs", "--tail", "1", "tick"))


def still_serves(berth, container, process):
    """The container goes on, and who comes now is heard."""
    before = last_number(berth)
    with connect(container) as client:
        client.send(b"h\0")
        assert client.recv(70000)[:1] == b"o"
    time.sleep(0.2)
    assert last_number(berth) > before
    assert process.exists() and resident_kb(process) < 4096


def test_nobody_else_gets_to_the_socket(berth, container, profile):
    other = 65534
    assert other != profile.uid
    assert (container / "attach").stat().st_mode & 0o777 == 0o600
    assert container.stat().st_mode & 0o777 == 0o700
    # Its path is longer than a socket's may be: whether it is there is asked instead.
    done = subprocess.run(
        ["setpriv", f"--reuid={other}", f"--regid={other}", "--clear-groups", sys.executable, "-c",
         "import os, sys; os.stat(sys.argv[1])", str(container / "attach")],
        capture_output=True, text=True, timeout=30, check=False)
    assert "PermissionError" in done.stderr


def test_packets_that_are_none_end_nothing(berth, container):
    process = monitor_of(container)
    for packet in (b"h", b"h\xff\xff", b"w\0", b"w\xff\xff\xff\xff", b"k", b"k\0", b"k\xff", b"kk\0",
                   b"i", b"z" * 1000, b"\0", b"i" * 70000, b"h" + b"\7" * 65536, b""):
        with connect(container) as client:
            client.send(packet)
            with contextlib.suppress(BrokenPipeError):  # an empty one is its end
                client.send(b"h\0")
    for _ in range(100):
        with connect(container) as client:
            socket.send_fds(client, [b"h\0"], [0] * 200)
    time.sleep(0.2)
    assert len(list((process / "fd").iterdir())) < 32
    still_serves(berth, container, process)


def test_what_the_container_does_not_read_is_not_heaped_up(berth, container):
    process = monitor_of(container)
    with connect(container) as client:
        client.send(b"h\1")
        assert flood(client, b"i" + b"x" * 60000) < 4_000_000
        still_serves(berth, container, process)
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        before = ticks(process)
        time.sleep(1)
        assert ticks(process) - before < 20  # it does not spin
    still_serves(berth, container, process)


def test_clients_that_never_read_hold_up_nobody(berth, container):
    process = monitor_of(container)
    clients = [connect(container) for _ in range(20)]
    for client in clients:
        client.send(b"h\0")
    for client in clients[:10]:
        client.shutdown(socket.SHUT_RD)
    time.sleep(0.5)
    still_serves(berth, container, process)
    for client in clients:
        client.close()


def test_a_thousand_clients_do_not_use_up_the_monitor(berth, container):
    process = monitor_of(container)
    clients = []
    for _ in range(1000):
        try:
            clients.append(connect(container))
        except BlockingIOError:  # it is behind
            break
    assert len(clients) > 64
    assert berth.fail("attach", "tick", status=1) == (
        "berth: cannot attach to container 'tick': 64 clients are attached already; "
        "try: 'berth logs -f', or detach one of them")
    before = last_number(berth)
    time.sleep(0.3)
    assert last_number(berth) > before and len(list((process / "fd").iterdir())) < 100
    for client in clients:
        client.close()
    still_serves(berth, container, process)
