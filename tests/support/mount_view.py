# SPDX-License-Identifier: Apache-2.0
"""Mount namespaces for other projects' programs: with the mounts that they need of this machine, which end
with the namespace."""

import contextlib
import pathlib
import subprocess

# "$1" is an empty directory; the next arguments are v1 hierarchies that this machine does not mount.
CGROUPS = """
mount -t tmpfs cgroup "$1" && cd "$1" || exit 1
for path in /sys/fs/cgroup/*/; do mkdir "${path#/sys/fs/cgroup/}"; done
for name in *; do mount --bind "/sys/fs/cgroup/$name" "$name" || exit 1; done
place=$1; shift
for name; do mkdir -p "$name" && mount -t cgroup -o "$name" "$name" "$name" || exit 1; done
cd / && mount --move "$place" /sys/fs/cgroup || exit 1
"""


@contextlib.contextmanager
def view(script, *arguments):
    """The prefix that runs another command with the mounts of the shell script `script`."""
    with subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             f"{script}\necho ready && read -r end", "sh", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        if holder.stdout.readline() != b"ready\n":
            raise RuntimeError("cannot make a mount namespace with what a test needs")
        try:
            yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]
        finally:
            holder.stdin.close()


def unmounted_hierarchies():
    """The v1 cgroup hierarchies that exist in the kernel but are not mounted here, because a program mounted
    them once. With such a hierarchy containerd finds no cgroup at all. Also controllers of the unified
    hierarchy beside v1 ones: crun refuses such a machine."""
    with open("/proc/self/cgroup", encoding="utf-8") as lines:
        kept = {line.split(":")[1] for line in lines} - {""}
    unified = pathlib.Path("/sys/fs/cgroup/unified/cgroup.controllers")
    if unified.exists():
        kept |= set(unified.read_text(encoding="utf-8").split())
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        mounted = [set(line.split()[-1].split(",")) for line in lines if " - cgroup " in line]
    return [names for names in sorted(kept)
            if not any(set(names.split(",")) <= options for options in mounted)]
