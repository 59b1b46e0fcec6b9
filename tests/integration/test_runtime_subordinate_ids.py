# SPDX-License-Identifier: Apache-2.0
"""berth-runtime called by an ordinary user, for a container with his subordinate ids or his own."""

import json
import subprocess

import pytest

from support.bundle import PROGRAMS, Bundle
from support.oci_fixtures import place  # noqa: F401


@pytest.fixture
def bundle(place):
    made = Bundle(place / "bundle")
    made.linux["namespaces"].append({"type": "user"})
    return made


def call(profile, place, *words, **options):
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, **options}
    return subprocess.run(profile.command([PROGRAMS / "berth-runtime", "--root", place / "state", *words]), text=True,
                          env=profile.environment(), check=False, timeout=60, **options)


def run(profile, place, bundle, name="c1", *flags, **options):
    bundle.write()
    subprocess.run(["chown", "-hR", f"{profile.uid}:{profile.gid}", place], check=True)
    return call(profile, place, "run", *flags, "-b", bundle.directory, name, **options)


def maps(own, first, count):
    return [{"containerID": 0, "hostID": own, "size": 1}, {"containerID": 1, "hostID": first, "size": count}]


@pytest.mark.profiles("user")
def test_the_container_has_the_subordinate_ids_of_its_config(profile, place, bundle):
    first, count = profile.subordinate_ids
    bundle.linux["uidMappings"] = maps(profile.uid, first, count)
    bundle.linux["gidMappings"] = maps(profile.gid, first, count)
    bundle.shell("cat /proc/self/uid_map /proc/self/gid_map; cat /proc/self/setgroups; touch /file; chown 5:6 /file")
    done = run(profile, place, bundle)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["0", str(profile.uid), "1"], ["1", str(first), str(count)],
        ["0", str(profile.gid), "1"], ["1", str(first), str(count)], ["allow"]]
    info = (bundle.rootfs / "file").stat()
    assert (info.st_uid, info.st_gid) == (first + 4, first + 5)


@pytest.mark.profiles("user")
def test_exec_gets_into_a_container_whose_program_has_a_subordinate_id(profile, place, bundle):
    first, count = profile.subordinate_ids
    bundle.linux["uidMappings"] = maps(profile.uid, first, count)
    bundle.linux["gidMappings"] = maps(profile.gid, first, count)
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    bundle.args("/bin/sleep", "1000")
    quiet = {"capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert run(profile, place, bundle, "c1", "-d", **quiet).returncode == 0
    try:
        done = call(profile, place, "exec", "c1", "/bin/id", "-u")
        assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")
    finally:
        assert call(profile, place, "delete", "--force", "c1").returncode == 0


@pytest.mark.profiles("user", "single_id")
def test_ids_that_are_not_the_users_are_refused_in_the_words_of_the_helpers(profile, place, bundle):
    bundle.linux["uidMappings"] = maps(profile.uid, 1, 10)
    bundle.linux["gidMappings"] = maps(profile.gid, 1, 10)
    done = run(profile, place, bundle.args("/bin/true"))
    assert done.returncode == 1
    assert done.stderr.startswith("berth-runtime: cannot run container 'c1': cannot map ids: newuidmap: ")
    assert done.stderr.endswith("; try: the user's lines in /etc/subuid and /etc/subgid\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.profiles("user", "single_id")
def test_a_users_second_container_joins_the_users_and_processes_of_the_first(profile, place, bundle):
    bundle.linux["uidMappings"] = [{"containerID": 0, "hostID": profile.uid, "size": 1}]
    bundle.linux["gidMappings"] = [{"containerID": 0, "hostID": profile.gid, "size": 1}]
    for mount in bundle.config["mounts"]:  # of the user's group alone
        mount["options"] = [option for option in mount["options"] if option != "gid=5"]
    bundle.args("/bin/sleep", "1000")
    quiet = {"capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert run(profile, place, bundle, "c1", "-d", **quiet).returncode == 0
    try:
        first = json.loads(call(profile, place, "state", "c1").stdout)["pid"]
        for space in bundle.linux["namespaces"]:
            if space["type"] in ("user", "pid"):
                space["path"] = f"/proc/{first}/ns/{space['type']}"
        for member in ("uidMappings", "gidMappings"):
            del bundle.linux[member]
        done = run(profile, place, bundle.shell("cat /proc/1/cmdline | tr '\\0' ' '; echo $$"), "c2")
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout.startswith("/bin/sleep 1000 ") and int(done.stdout.split()[-1]) > 1
    finally:
        assert call(profile, place, "delete", "--force", "c1").returncode == 0
