# SPDX-License-Identifier: Apache-2.0
"""seccomp's notify listener: who asks, and what the agent is told."""

import array
import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import threading

import pytest

from support.oci_fixtures import bundle, kind, ok, place, runtime, start  # noqa: F401
from support.waiting import wait_until

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)

# linux/seccomp.h
NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101
NOTIF_SIZE, RESPONSE = 80, struct.Struct("=QqiI")
PLAYED_ERRNO = 113  # no call of mkdir gives that by itself


class Agent:
    """Listens at listenerPath and answers every call with an error of its own."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(4)
        self.states = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    fds = array.array("i")
                    text, control, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(4))
                    fds.frombytes(control[0][2][:4])
                self.states.append((json.loads(text), len(fds)))
                threading.Thread(target=self._answer, args=(fds[0],), daemon=True).start()

    @staticmethod
    def _answer(listener):
        with contextlib.suppress(OSError):
            while True:
                notification = bytearray(NOTIF_SIZE)
                fcntl.ioctl(listener, NOTIF_RECV, notification)
                identity, = struct.unpack_from("=Q", notification)
                fcntl.ioctl(listener, NOTIF_SEND,
                            RESPONSE.pack(identity, 0, -PLAYED_ERRNO, 0))
        os.close(listener)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def agent(place):
    made = Agent(place / "agent")
    yield made
    made.close()


@pytest.fixture
def watched(bundle, place, agent):
    bundle.linux["seccomp"] = {
        "defaultAction": "SCMP_ACT_ALLOW", "listenerPath": str(place / "agent"),
        "listenerMetadata": "whatever", "syscalls": [{"names": ["mkdir", "mkdirat"],
                                                      "action": "SCMP_ACT_NOTIFY"}]}
    return bundle


REFUSED = f"mkdir: can't create directory '/x': {os.strerror(PLAYED_ERRNO)}\n"


@pytest.mark.parametrize("no_new_privileges", [True, False])
def test_the_agent_answers_for_the_kernel(runtime, watched, agent, no_new_privileges):
    watched.process["noNewPrivileges"] = no_new_privileges
    watched.args("/bin/mkdir", "/x")
    done = runtime.run(watched)
    assert (done.returncode, done.stderr) == (1, REFUSED)
    (told, descriptors), = agent.states
    assert descriptors == 1
    assert told["ociVersion"] == "1.3.0" and told["fds"] == ["seccompFd"]
    assert told["metadata"] == "whatever" and told["pid"] == told["state"]["pid"] > 0
    assert told["state"]["id"] == "c1" and told["state"]["status"] == "creating"
    assert told["state"]["bundle"] == str(watched.directory)


def test_the_agent_is_told_before_create_returns(runtime, watched, agent):
    watched.args("/bin/mkdir", "/x").write()
    with open(watched.directory / "out", "w+", encoding="utf-8") as out:
        subprocess.run(runtime.command("create", "-b", str(watched.directory), "c1"), stdout=out,
                       stderr=out, check=True, timeout=20)
        wait_until(lambda: agent.states)  # it was told; reading it is the agent's own time
        ok(runtime.call("start", "c1"))
        assert len(agent.states) == 1
    ok(runtime.call("delete", "--force", "c1"))


def test_exec_has_a_listener_of_its_own(runtime, watched, agent, start):
    watched.args("/bin/sleep", "1000")
    start()
    done = runtime.call("exec", "c1", "/bin/mkdir", "/x")
    assert (done.returncode, done.stderr) == (1, REFUSED)
    assert [told["state"]["status"] for told, _ in agent.states] == ["creating", "running"]
    assert agent.states[0][0]["pid"] != agent.states[1][0]["pid"]


def test_says_what_is_missing(runtime, watched, place):
    watched.linux["seccomp"]["listenerPath"] = str(place / "nosuch")
    assert runtime.error(watched) == (
        f"cannot run container 'c1': cannot pass the seccomp listener to '{place}/nosuch': connect "
        f"to '{place}/nosuch': No such file or directory")
    del watched.linux["seccomp"]["listenerPath"]
    assert runtime.error(watched) == (
        "cannot run container 'c1': config.json: linux.seccomp.listenerPath: missing")


def test_write_cannot_be_asked_about(runtime, watched):
    watched.linux["seccomp"]["syscalls"][0]["names"] = ["write"]
    assert runtime.error(watched) == (
        "cannot run container 'c1': linux.seccomp.syscalls[0].action: SCMP_ACT_NOTIFY cannot be "
        "used for write")
