# SPDX-License-Identifier: Apache-2.0
"""Containers without a mount namespace of their own: they mount nothing, and their root is a
directory of a namespace that others are in too."""

import os

import pytest

from support.bundle import Bundle
from support.oci_fixtures import (bundle, kind, ok, place, runtime, start,  # noqa: F401
                                  assert_nothing_is_left)

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)

MOUNTING = ("maskedPaths", "readonlyPaths")


def without_mounts(bundle, **space):
    """Takes from `bundle` what needs a mount namespace; `space` is the one of "mount", if any."""
    bundle.config["mounts"] = []
    for member in MOUNTING:
        del bundle.linux[member]
    spaces = [one for one in bundle.linux["namespaces"] if one["type"] != "mount"]
    bundle.linux["namespaces"] = spaces + ([{"type": "mount", **space}] if space else [])
    return bundle


def mount_table():
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return table.read()


def test_without_one_the_root_is_a_directory_of_the_caller(runtime, bundle):
    before = mount_table()
    without_mounts(bundle).shell("pwd; echo /*; cat /etc/passwd; test -e /dev/null || echo bare")
    assert runtime.out(bundle) == (
        "/\n/bin /etc /root /tmp\nroot:x:0:0:root:/root:/bin/sh\nbare\n")
    assert mount_table() == before
    assert not (bundle.rootfs / "dev").exists()


def test_the_programs_of_the_host_can_be_run_in_it(runtime, bundle):
    bundle.config["root"] = {"path": "/"}
    without_mounts(bundle).args("/bin/sh", "-c", "readlink /proc/self/ns/mnt; hostname; echo $$")
    own = os.readlink("/proc/self/ns/mnt")
    assert runtime.out(bundle) == f"{own}\nberth-test\n1\n"


def test_exec_has_the_same_root(runtime, bundle, start):
    without_mounts(bundle).args("/bin/sleep", "1000")
    start()
    assert ok(runtime.call("exec", "c1", "/bin/sh", "-c", "pwd; echo /*")) == (
        "/\n/bin /etc /root /tmp\n")


def test_by_its_path_it_has_the_mounts_of_another_container(runtime, bundle, start, place):
    bundle.args("/bin/sleep", "1000")
    start()
    first = runtime.state()["pid"]
    other = without_mounts(Bundle(place / "other"), path=f"/proc/{first}/ns/mnt")
    other.config["root"] = {"path": "/"}
    other.linux["cgroupsPath"] = bundle.linux["cgroupsPath"] + "-other"
    other.shell("head -c 10 /proc/1/cmdline; echo; ls -d /dev/full; readlink /proc/self/ns/mnt")
    other.linux["namespaces"] = [one for one in other.linux["namespaces"] if one["type"] != "pid"]
    other.linux["namespaces"].append({"type": "pid", "path": f"/proc/{first}/ns/pid"})
    space = os.readlink(f"/proc/{first}/ns/mnt")
    done = runtime.run(other, "c2")
    assert (done.returncode, done.stdout) == (0, f"/bin/sleep\n/dev/full\n{space}\n"), done


@pytest.mark.parametrize("change, member", [
    (lambda config: config["mounts"].append({"destination": "/x", "type": "tmpfs"}), "mounts"),
    (lambda config: config["root"].update(readonly=True), "root.readonly"),
    (lambda config: config["linux"].update(maskedPaths=["/x"]), "linux.maskedPaths"),
    (lambda config: config["linux"].update(readonlyPaths=["/x"]), "linux.readonlyPaths"),
    (lambda config: config["linux"].update(rootfsPropagation="slave"), "linux.rootfsPropagation"),
    (lambda config: config["linux"].update(devices=[{"type": "c", "path": "/dev/x"}]),
     "linux.devices"),
])
def test_nothing_may_be_mounted_or_made_in_what_others_see(runtime, bundle, change, member):
    without_mounts(bundle)
    change(bundle.config)
    assert runtime.error(bundle) == (
        f"cannot run container 'c1': config.json: {member}: needs a new mount namespace")
