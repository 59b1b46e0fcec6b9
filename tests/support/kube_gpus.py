# SPDX-License-Identifier: Apache-2.0
"""berth-node beside a kubelet, over a synthetic driver tree. Only in a room: it has /etc/berth and /run for itself."""

import contextlib
import json
import pathlib
import subprocess

from support import kube_node

LEDGER = pathlib.Path("/run/berth-ledger")
POLICY = pathlib.Path("/etc/berth/policy.json")


@contextlib.contextmanager
def site(tree):
    """/etc/berth of a node with the drivers in `tree`, and a /run/berth and ledger of its own."""
    mounted, made = [], []
    try:
        if not LEDGER.exists():
            LEDGER.mkdir()
            made.append(LEDGER)
        for place in map(pathlib.Path, ("/etc/berth", "/run/berth", "/etc/cdi", "/run/cdi")):
            if not place.exists():
                place.mkdir()
                made.append(place)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place], check=True)
            mounted.append(place)
        # As docs/decisions/0152 tells an administrator to make one.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", LEDGER], check=True)
        mounted.append(LEDGER)
        (LEDGER / "lock").touch(0o644)
        POLICY.write_text(json.dumps({"format": 1, "policy": {"gpu": {"driver-root": str(tree)}}}))
        POLICY.chmod(0o644)
        yield
    finally:
        for place in mounted:
            subprocess.run(["umount", "--lazy", place], check=False)
        for place in made:
            place.rmdir()


class Agent:
    """berth-node as a daemon."""

    def __init__(self, programs, directory, *words):
        self.daemon = kube_node.Daemon("berth-node", [programs / "berth-node", "--cdi-dir", "/run/cdi", "--debug", *words],
                                       directory)

    @contextlib.contextmanager
    def running(self):
        try:
            self.daemon.start()
            yield self
        finally:
            self.daemon.stop()

    def registrations(self):
        """How often it has registered all its names."""
        return self.daemon.log.read_text().count("the kubelet knows ")

