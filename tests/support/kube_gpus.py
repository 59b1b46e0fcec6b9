# SPDX-License-Identifier: Apache-2.0
"""berth-node beside a kubelet, over a synthetic driver tree. Only in a room: it has /etc/berth and /run for itself."""

import contextlib
import json
import pathlib
import subprocess

from support import kube_node

POLICY = pathlib.Path("/etc/berth/policy.json")


@contextlib.contextmanager
def site(tree):
    """/etc/berth of a node with the drivers in `tree`, and a /run/berth and ledger of its own."""
    made = []
    try:
        for place in ("/etc/berth", "/run/berth", "/run/berth-ledger", "/etc/cdi", "/run/cdi"):
            pathlib.Path(place).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place], check=True)
            made.append(place)
        POLICY.write_text(json.dumps({"format": 1, "policy": {"gpu": {"driver-root": str(tree)}}}))
        POLICY.chmod(0o644)
        yield
    finally:
        for place in reversed(made):
            subprocess.run(["umount", "--lazy", place], check=False)


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

    def restart(self):
        self.daemon.start()

