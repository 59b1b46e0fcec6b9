# SPDX-License-Identifier: Apache-2.0
"""berth on the host of a Lab, and the processes of an ordinary user's network there."""

import contextlib
import os
import pathlib
import stat

from support.netlab import Lab
from support.processes import command_lines
from support.waiting import wait_until

TUN = pathlib.Path("/dev/net/tun")

# Part of a program: answers every DNS query with 203.0.113.80.
ANSWER = """
def answer(names):
    while True:
        question, peer = names.recvfrom(512)
        end = question.index(b"\\0", 12) + 5
        is_a = question[end - 4:end - 2] == b"\\0\\1"
        found = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4\\xcb\\0\\x71\\x50" if is_a else b""
        names.sendto(question[:2] + b"\\x81\\x80\\0\\1\\0" + bytes([is_a]) + b"\\0\\0\\0\\0" +
                     question[12:end] + found, peer)
"""


@contextlib.contextmanager
def open_tun():
    """Opens the device that ordinary users' helpers need, as a site does once."""
    before = stat.S_IMODE(TUN.stat().st_mode)
    TUN.chmod(0o666)
    yield
    TUN.chmod(before)


def helpers(berth):
    """Processes of the networks of this store's containers."""
    found = []
    for pid, line in command_lines().items():
        name = line.split(b"\0")[0].split(b"/")[-1]
        if name in (b"pasta", b"berth-network", b"slirp4netns") and bytes(berth.state) in line or (
                name == b"slirp4netns" and cwd_of(pid).startswith(str(berth.state))):
            found.append((pid, name.decode()))
    return found


def cwd_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


@contextlib.contextmanager
def berth_on_the_host_of_a_lab(berth, programs, work, nameserver, **kind):
    """Runs `berth` on the host of the lab from here on; checks that nothing is left there at the end."""
    made = Lab(pathlib.Path(programs) / "berth-network", berth.state / "network", **kind)
    resolver = work / "resolv.conf"
    resolver.write_text(f"nameserver {nameserver}\nsearch example.org\n")
    usual, before = berth.argv, made.state()
    berth.path = os.environ["PATH"]

    def argv(*words):
        command = usual(*words)
        command.insert(command.index(str(berth.programs / "berth")), f"PATH={berth.path}")
        command.insert(command.index(f"PATH={berth.path}"), "/usr/bin/env")
        return made.host.command("unshare", "-m", "sh", "-c",
                                 f"mount --bind {resolver} /etc/resolv.conf && exec \"$@\"", "-",
                                 *command)
    berth.argv = argv
    yield made
    berth.run("rm", "-f", *berth.ok("ps", "-aq").split()) if berth.ok("ps", "-aq") else None
    wait_until(lambda: not made.leases() and not helpers(berth))
    assert made.state() == before
    made.end()
