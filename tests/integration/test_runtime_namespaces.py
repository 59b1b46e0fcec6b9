# SPDX-License-Identifier: Apache-2.0
"""Which user namespace the others of a container belong to, and what the root of it has there."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from support.oci_fixtures import (bundle, kind, ok, own_user_namespace, place,  # noqa: F401
                                  runtime, start)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
NS_GET_USERNS = 0xb701
OWNED = ("ipc", "mnt", "net", "pid", "uts", "cgroup")


def owner_of(path):
    """The user namespace that owns another one, by its number."""
    space = os.open(path, os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    owner = libc.ioctl(space, NS_GET_USERNS)
    os.close(space)
    assert owner >= 0, os.strerror(ctypes.get_errno())
    number = os.fstat(owner).st_ino
    os.close(owner)
    return number


@ROOT
def test_the_message_queues_belong_to_root_of_a_new_user_namespace(runtime, bundle):
    own_user_namespace(bundle)
    assert runtime.out(bundle.shell("stat -c '%u:%g %a' /dev/mqueue")) == "0:0 1777\n"


@ROOT
def test_new_namespaces_belong_to_the_new_user_namespace(runtime, bundle, start):
    own_user_namespace(bundle)
    bundle.args("/bin/sleep", "100")
    start()
    spaces = Path(f"/proc/{runtime.state()['pid']}/ns")
    assert {name: owner_of(spaces / name) for name in OWNED} == \
        dict.fromkeys(OWNED, (spaces / "user").stat().st_ino)


@ROOT
def test_the_message_queues_belong_to_root_of_a_joined_user_namespace(runtime, bundle):
    own_user_namespace(bundle)
    holder = subprocess.Popen(["unshare", "--user", "sh", "-c", "echo; read word"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        for ids in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{ids}").write_text("0 100000 65536")
        for space in bundle.linux["namespaces"]:
            if space["type"] == "user":
                space["path"] = f"/proc/{holder.pid}/ns/user"
        for member in ("uidMappings", "gidMappings"):
            del bundle.linux[member]
        assert runtime.out(bundle.shell("stat -c '%u:%g %a' /dev/mqueue")) == "0:0 1777\n"
    finally:
        holder.communicate("\n")

@ROOT
@pytest.mark.parametrize("flags", [(), ("--no-pivot",)])
def test_a_user_namespace_inside_gets_no_procfs_without_what_is_masked(runtime, bundle, flags):
    """The kernel lets it mount one that shows no more than those that can be seen already."""
    bundle.shell("/bin/busybox unshare -mrpf /bin/busybox mount -t proc none /proc 2>&1 && echo mounted; "
                 "/bin/busybox unshare -mrn /bin/busybox mount -t sysfs none /sys 2>&1 && echo mounted")
    done = runtime.run(bundle, "c1", *flags)
    assert done.stderr == "" and "mounted" not in done.stdout, done
    assert done.stdout.count("ermission denied") == 2, done
