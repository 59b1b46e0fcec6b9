# SPDX-License-Identifier: Apache-2.0
"""The loader's files of a container with a driver, in a root that another engine owns: ldconfig and
linkers work with them, and when the container has gone the root is as it was, but for what the
container's own ldconfig has added."""

import os
import signal
import subprocess
import time

import pytest

from support.oci_fixtures import (bundle, kind, own_user_namespace, place,  # noqa: F401
                                  runtime)
from support.synthetic_elf import loader_cache
from integration.test_runtime_driver_files import CUDA, NATIVE, entries_of, with_cache

DRIVER = "/usr/local/nvidia/lib64"
PLAIN = ("libcuda.so", f"{DRIVER}/libcuda.so.1", NATIVE)
HARBOUR = ("libharbour.so.1", "/opt/libharbour.so.1", NATIVE)
CONFIGURATION = "etc/ld.so.conf.d/00-berth.conf"


@pytest.fixture
def root(bundle):
    """The container's root, with a cache of its own and a directory that linkers look into."""
    (bundle.rootfs / "usr/lib").mkdir(parents=True)
    (bundle.rootfs / "etc/ld.so.conf.d").mkdir()
    (bundle.rootfs / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf\n")
    (bundle.rootfs / "etc/ld.so.cache").write_bytes(loader_cache([HARBOUR], False))
    with_cache(bundle, CUDA, PLAIN)
    return bundle.rootfs


def listing(root):
    """Every name below `root`, with its type and what it holds; mount points apart."""
    found = {}
    for directory, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            what = os.readlink(path) if os.path.islink(path) else \
                open(path, "rb").read() if os.path.isfile(path) else None
            found[os.path.relpath(path, root)] = (info.st_mode, what)
    return {path: what for path, what in found.items() if path not in ("dev", "proc", "sys")}


def replacing(bundle, place, *entries):
    """What ldconfig does, with these entries: a new file, renamed over the cache."""
    (place / "new").mkdir(exist_ok=True)
    (place / "new/cache").write_bytes(loader_cache(list(entries), False))
    (place / "new/cache").chmod(0o644)
    bundle.mount("/new", place / "new", "rbind")
    return "cat /new/cache >/etc/ld.so.cache~ && mv /etc/ld.so.cache~ /etc/ld.so.cache"


def test_the_root_is_as_it_was_when_the_container_has_gone(runtime, bundle, root):
    before = listing(root)
    out = runtime.out(bundle.shell("readlink /usr/lib/libcuda.so; grep -c libcuda.so.1 /etc/ld.so.cache;"
                                   f"cat /{CONFIGURATION}; cat /etc/ld.so.conf"))
    assert out.splitlines() == [f"{DRIVER}/libcuda.so.1", "1", DRIVER, "include ld.so.conf.d/*.conf"]
    assert listing(root) == before


def test_a_root_without_any_loader_file_has_none_afterwards(runtime, bundle, root):
    for name in ("etc/ld.so.cache", "etc/ld.so.conf"):
        (root / name).unlink()
    (root / "etc/ld.so.conf.d").rmdir()
    out = runtime.out(bundle.shell("grep -c libcuda.so.1 /etc/ld.so.cache; tail -1 /etc/ld.so.conf"))
    assert out.splitlines() == ["1", "include /etc/ld.so.conf.d/*.conf"]
    assert sorted(os.listdir(root / "etc")) == ["ld.so.conf.d", "passwd"]
    assert os.listdir(root / "etc/ld.so.conf.d") == []


def test_the_cache_can_be_replaced_and_stays_without_the_driver(runtime, bundle, root, place):
    tiny = ("libtiny.so.1", "/usr/lib/libtiny.so.1", NATIVE)
    script = replacing(bundle, place, HARBOUR, tiny, CUDA, ("libcuda.so", "/lib/libcuda.so", NATIVE),
                       ("libnvidia-new.so.1", f"{DRIVER}/libnvidia-new.so.1", NATIVE))
    assert runtime.out(bundle.shell(f"{script}; echo $?")) == "0\n"
    kept = entries_of(place, (root / "etc/ld.so.cache").read_bytes())
    assert sorted(line.split()[-1] for line in kept) == ["/opt/libharbour.so.1", "/usr/lib/libtiny.so.1"]


def test_a_link_of_the_images_own_stays(runtime, bundle, root):
    (root / "usr/lib/libcuda.so").symlink_to("of-the-image")
    assert runtime.out(bundle.shell("readlink /usr/lib/libcuda.so")) == "of-the-image\n"
    assert os.readlink(root / "usr/lib/libcuda.so") == "of-the-image"


def test_a_library_whose_file_has_another_name_has_a_link_too(runtime, bundle, root):
    """ldconfig takes it for granted that the SONAME is a name in the directory."""
    with_cache(bundle, ("libcuda.so.1", f"{DRIVER}/libcuda.so.570.133.20", NATIVE),
               ("libnarrow.so.1", "/usr/local/nvidia/lib/libnarrow.so.2", 3),
               ("libother.so.1", "/opt/elsewhere/libother.so.2", NATIVE))
    assert runtime.out(bundle.shell("ls /usr/lib; readlink /usr/lib/libcuda.so.1")).split() == [
        "libcuda.so.1", f"{DRIVER}/libcuda.so.570.133.20"]


def test_directories_come_in_the_order_of_the_libraries(runtime, bundle, root):
    with_cache(bundle, ("libb.so.1", "/b/libb.so.1", NATIVE), CUDA, ("liba.so.1", "/b/liba.so.1", NATIVE))
    assert runtime.out(bundle.shell(f"cat /{CONFIGURATION}")).split() == ["/b", DRIVER]


def test_a_start_that_fails_leaves_the_root_as_it_was(runtime, bundle, root):
    before = listing(root)
    runtime.error(bundle.args("/nothing/here"))
    bundle.mount("/tmp", root / "missing", "bind")
    runtime.error(bundle.shell("true"))
    assert listing(root) == before


@pytest.mark.parametrize("what", ["not for everybody", "too large"])
def test_a_cache_that_is_not_read_is_not_replaced(runtime, bundle, root, what):
    path = root / "etc/ld.so.cache"
    if what == "too large":
        os.truncate(path, 17 << 20)
    else:
        path.chmod(0o600)
    before = (os.lstat(path).st_ino, path.read_bytes())
    assert runtime.out(bundle.shell("grep -c libcuda.so.1 /etc/ld.so.cache")) == "1\n"
    assert (os.lstat(path).st_ino, path.read_bytes()) == before


def test_a_limit_in_the_middle_of_the_cache_takes_nothing_of_it(runtime, bundle, root):
    many = [(f"lib{number:03}.so.1", f"/opt/some/where/lib{number:03}.so.1", NATIVE) for number in range(300)]
    (root / "etc/ld.so.cache").write_bytes(loader_cache(many, True))
    before = listing(root)
    bundle.process["rlimits"] = [{"type": "RLIMIT_FSIZE", "soft": 8192, "hard": 8192}]
    assert runtime.error(bundle.shell("true")).endswith(": File too large")
    assert listing(root) == before


def test_a_volume_at_etc_leaves_the_roots_own_cache_alone(runtime, bundle, root, place):
    before = listing(root)
    (place / "etc").mkdir()
    (place / "etc/ld.so.cache").write_bytes(b"")
    bundle.mount("/etc", place / "etc", "rbind")
    assert runtime.out(bundle.shell("grep -c libcuda.so.1 /etc/ld.so.cache")) == "1\n"
    assert listing(root) == before and os.listdir(place / "etc") == ["ld.so.cache"]


@pytest.mark.parametrize("kind", ["root"], indirect=True)  # one id has one owner
def test_a_cache_keeps_its_owner(runtime, bundle, root):
    os.chown(root / "etc/ld.so.cache", 3, 4)
    assert runtime.out(bundle.shell("stat -c %u:%g /etc/ld.so.cache")) == "3:4\n"
    info = os.lstat(root / "etc/ld.so.cache")
    assert (info.st_uid, info.st_gid) == (3, 4)


def test_delete_takes_back_what_a_killed_runtime_has_left(runtime, bundle, root):
    before = listing(root)
    bundle.shell("echo up; sleep 1000").write()
    process = subprocess.Popen(runtime.command("run", "--bundle", str(bundle.directory), "c1"),
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    runner = int(subprocess.run(["pgrep", "-f", f"{runtime.root} run"], check=True, text=True,
                                capture_output=True).stdout.split()[-1])
    os.kill(runner, signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    assert b"libcuda" in (root / "etc/ld.so.cache").read_bytes()
    assert runtime.call("delete", "--force", "c1").returncode == 0
    assert listing(root) == before


def test_a_root_that_another_container_runs_in_keeps_its_driver(runtime, bundle, root):
    before = listing(root)
    bundle.shell("sleep 1000").write()
    done = runtime.call("run", "--detach", "--bundle", str(bundle.directory), "other", stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, capture_output=False)
    assert done.returncode == 0
    try:
        bundle.linux["cgroupsPath"] += "-beside"
        runtime.out(bundle.shell("true"))
        assert b"libcuda.so.1" in (root / "etc/ld.so.cache").read_bytes()
        assert os.readlink(root / "usr/lib/libcuda.so") == f"{DRIVER}/libcuda.so.1"
    finally:
        assert runtime.call("delete", "--force", "other").returncode == 0
    assert listing(root) == before


@pytest.mark.parametrize("script", [
    "rm /etc/ld.so.cache; ln -s {host}/cache /etc/ld.so.cache",
    "rm -r /etc/ld.so.cache; mkdir /etc/ld.so.cache",
    "rm /etc/ld.so.cache; mkfifo /etc/ld.so.cache",
    "mv /etc /old; ln -s {host} /etc",
    "rm -r /usr/lib; ln -s {host} /usr/lib",
    "rm /etc/ld.so.cache; truncate -s 1099511627776 /etc/ld.so.cache",
    "echo hello >/etc/ld.so.cache"])
def test_what_a_container_leaves_there_leads_nothing_to_the_host(runtime, bundle, root, place, script):
    host = place / "host"
    host.mkdir()
    (host / "ld.so.cache").write_bytes(loader_cache([CUDA], False))
    (host / "cache").write_bytes(loader_cache([CUDA], False))
    (host / "ld.so.conf").write_text("")
    (host / "libcuda.so").symlink_to(f"{DRIVER}/libcuda.so.1")
    before = listing(host)
    start = time.monotonic()
    bundle.shell(script.format(host=f"../../../../../..{host}"))
    done = runtime.run(bundle)
    assert done.returncode == 0, done
    assert all(line.endswith(", ignoring") for line in done.stderr.splitlines()), done
    assert time.monotonic() - start < 20
    assert listing(host) == before
    assert not os.path.exists(runtime.root / "c1")


def test_a_cache_that_is_a_volume_of_the_users_is_covered(runtime, bundle, root, place):
    (place / "cache").write_bytes(loader_cache([HARBOUR], False))
    (place / "cache").chmod(0o644)
    bundle.mount("/etc/ld.so.cache", place / "cache", "bind")
    assert runtime.out(bundle.shell("grep -c libcuda.so.1 /etc/ld.so.cache")) == "1\n"
    assert (place / "cache").read_bytes() == loader_cache([HARBOUR], False)


def test_a_directory_of_configuration_that_is_a_volume_is_not_written_to(runtime, bundle, root, place):
    (place / "volume").mkdir()
    bundle.mount("/etc/ld.so.conf.d", place / "volume", "rbind")
    bundle.mount("/usr/lib", place / "volume", "rbind")
    assert runtime.out(bundle.shell("grep -c libcuda.so.1 /etc/ld.so.cache")) == "1\n"
    assert os.listdir(place / "volume") == []
