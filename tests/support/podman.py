# SPDX-License-Identifier: Apache-2.0
"""Debian's podman as a client of registries."""

import json
import subprocess


def pulled_digests(place, reference, *flags):
    """Pulls into a new store at `place` and returns the digests of the chosen manifest and, if there was one,
    of the index."""
    place.mkdir()
    podman = ["podman", "--storage-driver", "vfs", "--root", place / "data", "--runroot",
              "/run/containers", "--tmpdir", "/run/tmp", "--events-backend", "none"]
    script = 'mount -t tmpfs tmpfs /run; exec "$@"'
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *podman]
    pulled = subprocess.run([*inside, "pull", "--tls-verify=false", *flags, reference],
                            capture_output=True, text=True, timeout=120)
    assert pulled.returncode == 0, pulled.stderr
    shown = subprocess.run([*inside, "image", "inspect", reference], capture_output=True,
                           text=True, check=True, timeout=60)
    return {name.split("@")[1] for name in json.loads(shown.stdout)[0]["RepoDigests"]}
