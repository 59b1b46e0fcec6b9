# SPDX-License-Identifier: Apache-2.0
"""A minimal image with this machine's systemd as its first process: a service that writes to /run/up that it
has run, and the units for a shutdown."""

from pathlib import Path

from support import images, program_images

HOME = Path("/usr/lib/systemd")
PROGRAMS = ("systemd", "systemd-shutdown")
UNITS = {
    "default.target": "Requires=up.service\nAfter=up.service",
    "up.service": "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
                  "ExecStart=/bin/sh -c 'echo up >/run/up'",
    "halt.target": "Requires=down.service\nAfter=down.service",
    "down.service": "SuccessAction=exit-force\n[Service]\nType=oneshot\nExecStart=/bin/true",
}


def is_here():
    return all((HOME / name).exists() for name in PROGRAMS)


def image():
    units = "usr/lib/systemd/system"
    own = images.layer([
        images.directory("usr/lib/systemd"), images.directory(units),
        *(images.file(f"{units}/{name}", f"[Unit]\nDefaultDependencies=no\n{text}\n")
          for name, text in UNITS.items()),
        images.file("usr/lib/systemd/systemd-shutdown", (HOME / PROGRAMS[1]).read_bytes(), mode=0o755),
        images.file("etc/machine-id", "")])
    program = program_images.layer("systemd", (HOME / PROGRAMS[0]).read_bytes())
    return images.build([images.busybox_layer(), program, own],
                        {"Cmd": ["/systemd"], "StopSignal": "SIGRTMIN+3"})
