# SPDX-License-Identifier: Apache-2.0
"""The annotations with which driver files come into a container: links that its first process makes,
and a loader cache of its own. Whoever writes them, they change nothing but the container's root."""

import ctypes
import os
import shutil
import subprocess
import threading

import pytest

from support.oci_fixtures import (bundle, kind, own_user_namespace, place,  # noqa: F401
                                  runtime)
from support.synthetic_elf import loader_cache

RUN = "cannot run container 'c1': "
MUSL = f"ld-musl-{os.uname().machine}"
NATIVE = 0x0303 if os.uname().machine == "x86_64" else 0x0A03
CACHE = "dev.berth.loader-cache"


def annotate(bundle, **links):
    """bundle with links: annotate(bundle, **{"/path": "target"})."""
    notes = bundle.config.setdefault("annotations", {})
    notes.update({f"dev.berth.link:{path}": target for path, target in links.items()})
    return bundle


def with_cache(bundle, *entries):
    bundle.config.setdefault("annotations", {})[CACHE] = "".join(
        f"{soname}\t{path}\t{flags}\n" for soname, path, flags in entries)
    return bundle


def entries_of(place, data):
    """What ldconfig says that a cache holds."""
    (place / "cache").write_bytes(data)
    out = subprocess.run(["/sbin/ldconfig", "-p", "-C", place / "cache"], check=True, capture_output=True,
                         text=True).stdout
    return [line.strip() for line in out.splitlines()[1:] if "=>" in line]


def cache_in(runtime, bundle, place):
    shared = place / "shared"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    bundle.mount("/shared", shared, "rbind")
    runtime.out(bundle.shell("cat /etc/ld.so.cache >/shared/cache"))
    return entries_of(place, (shared / "cache").read_bytes())


CUDA = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", NATIVE)


def test_makes_links_with_their_directories(runtime, bundle):
    annotate(bundle, **{"/opt/a/b/libcuda.so": "libcuda.so.1", "/dev/dri/by-path/card": "../card0", "/lib/x": "/bin"})
    out = runtime.out(bundle.shell("for f in /opt/a/b/libcuda.so /dev/dri/by-path/card /lib/x; do readlink $f; done"))
    assert out.splitlines() == ["libcuda.so.1", "../card0", "/bin"]


def test_a_link_replaces_what_has_its_name_and_leaves_nothing_beside_it(runtime, bundle):
    (bundle.rootfs / "opt").mkdir()
    (bundle.rootfs / "opt/file").write_text("old")
    (bundle.rootfs / "opt/link").symlink_to("elsewhere")
    (bundle.rootfs / "opt/same").symlink_to("new")
    before = os.lstat(bundle.rootfs / "opt/same").st_ino
    os.mkfifo(bundle.rootfs / "opt/fifo")
    annotate(bundle, **{f"/opt/{name}": "new" for name in ("file", "link", "same", "fifo")})
    out = runtime.out(bundle.shell("cd /opt; ls -A; readlink file; readlink link; readlink same; readlink fifo"))
    assert out.split() == ["fifo", "file", "link", "same", *["new"] * 4]
    assert os.lstat(bundle.rootfs / "opt/same").st_ino == before


def test_a_link_never_replaces_a_directory(runtime, bundle):
    (bundle.rootfs / "opt/full").mkdir(parents=True)
    line = runtime.error(annotate(bundle, **{"/opt/full": "new"}).shell("true"))
    assert line == RUN + "cannot make link '/opt/full': there is a directory at this path"


def test_a_link_is_made_in_a_read_only_root_too(runtime, bundle):
    bundle.config["root"]["readonly"] = True
    out = runtime.out(annotate(bundle, **{"/opt/a": "b"}).shell("readlink /opt/a; touch /opt/c 2>/dev/null || echo refused"))
    assert out.splitlines()[0] == "b" and out.splitlines()[-1] == "refused"


def test_no_link_of_the_image_leads_a_link_out_of_the_root(runtime, bundle, place):
    (place / "host").mkdir(mode=0o777)
    (place / "host").chmod(0o777)
    (bundle.rootfs / "out").symlink_to(f"../../../../..{place}/host")
    runtime.out(annotate(bundle, **{"/out/evil": "x"}).shell("true"))
    assert os.listdir(place / "host") == []


def test_no_link_is_made_in_a_volume(runtime, bundle, place):
    (place / "volume").mkdir(mode=0o777)
    bundle.mount("/data", place / "volume", "rbind")
    (bundle.rootfs / "way").symlink_to("data")
    for path in ("/data/evil", "/way/evil", "/data/deep/evil"):
        bundle.config["annotations"] = {}
        line = runtime.error(annotate(bundle, **{path: "x"}).shell("true"))
        assert line.startswith(RUN + f"cannot make link '{path}': ") and "it is in another mount; try: " in line
    assert os.listdir(place / "volume") == []


def test_a_link_is_made_in_no_other_file_system_than_a_tmpfs_at_dev(runtime, bundle):
    """A devtmpfs there would be the machine's; a ramfs stands for it, so that nothing is harmed."""
    mount = next(one for one in bundle.config["mounts"] if one["destination"] == "/dev")
    annotate(bundle, **{"/dev/evil": "x"})
    assert runtime.out(bundle.shell("readlink /dev/evil")) == "x\n"
    mount.update(type="ramfs", source="ramfs", options=["nosuid"])
    line = runtime.error(bundle.shell("true"))
    assert line.startswith(RUN + "cannot make ") and ": it is in another mount; try: " in line


@pytest.mark.parametrize("path", ["relative", "/", "/opt/", "/proc/evil", "/opt/../sys/evil", ""])
def test_a_link_that_is_none_of_the_root_is_ignored(runtime, bundle, path):
    done = runtime.run(annotate(bundle, **{path: "x"}).shell("echo fine"))
    assert done.stdout == "fine\n" and "no link of a root, ignoring" in done.stderr


def test_without_a_loader_cache_a_container_has_that_of_its_image(runtime, bundle):
    assert runtime.out(bundle.shell("ls /etc/ld.so.cache 2>&1 | wc -l; ls /etc")).split() == ["1", "passwd"]


def test_adds_libraries_to_the_images_loader_cache(runtime, bundle, place):
    (bundle.rootfs / "etc/ld.so.cache").write_bytes(loader_cache(
        [("libharbour.so.1", "/opt/libharbour.so.1", NATIVE), ("libcuda.so.1", "/opt/libcuda.so.1", NATIVE)], False))
    found = cache_in(runtime, with_cache(bundle, CUDA), place)
    assert [line.split()[0] + " " + line.split()[-1] for line in found] == [
        "libharbour.so.1 /opt/libharbour.so.1", "libcuda.so.1 /usr/local/nvidia/lib64/libcuda.so.1"]
    # The image's own is as it was.
    assert b"/opt/libcuda.so.1" in (bundle.rootfs / "etc/ld.so.cache").read_bytes()


def test_the_loader_cache_is_there_in_a_read_only_root_and_for_every_user(runtime, bundle):
    (bundle.rootfs / "etc/ld.so.cache").write_bytes(b"")
    bundle.config["root"]["readonly"] = True
    with_cache(bundle, CUDA).process["umask"] = 0o77
    out = runtime.out(bundle.shell("grep -c libcuda /etc/ld.so.cache; stat -c %a /etc/ld.so.cache;"
                                   "echo x 2>/dev/null >/etc/ld.so.cache || echo refused"))
    assert out.split() == ["1", "644", "refused"]
    assert (bundle.rootfs / "etc/ld.so.cache").read_bytes() == b""


def test_without_a_filter_that_comes_last_too(runtime, bundle):
    bundle.process["noNewPrivileges"] = False
    assert runtime.out(with_cache(bundle, CUDA).shell("grep -c libcuda /etc/ld.so.cache")) == "1\n"


@pytest.mark.parametrize("name,content", [("empty", b""), ("text", b"libs\n"), ("cut", None), ("huge", b"\0")])
def test_a_cache_of_the_image_that_is_none_counts_as_none(runtime, bundle, place, name, content):
    if name == "cut":
        content = loader_cache([("liba.so.1", "/opt/liba.so.1", NATIVE)], False)[:-3]
    path = bundle.rootfs / "etc/ld.so.cache"
    path.write_bytes(content)
    if name == "huge":
        os.truncate(path, 1 << 40)
    found = cache_in(runtime, with_cache(bundle, CUDA), place)
    assert [line.split()[0] for line in found] == ["libcuda.so.1"]


def test_a_cache_of_the_image_that_is_a_fifo_does_not_stop_a_start(runtime, bundle):
    os.mkfifo(bundle.rootfs / "etc/ld.so.cache")
    assert runtime.out(with_cache(bundle, CUDA).shell("grep -c libcuda /etc/ld.so.cache")) == "1\n"


def test_a_cache_of_the_image_that_is_a_directory_is_one_line(runtime, bundle):
    (bundle.rootfs / "etc/ld.so.cache").mkdir()
    line = runtime.error(with_cache(bundle, CUDA).shell("true"))
    assert line.startswith(RUN + "cannot cover '/etc/ld.so.cache': ")


def test_a_cache_of_the_image_that_leads_into_the_kernel_is_one_line(runtime, bundle):
    (bundle.rootfs / "etc/ld.so.cache").symlink_to("/proc/self/environ")
    line = runtime.error(with_cache(bundle, CUDA).shell("true"))
    assert line == RUN + "cannot cover '/etc/ld.so.cache': '/etc/ld.so.cache' leads into the kernel's file systems"


def test_a_cache_of_the_image_that_leads_outside_makes_nothing_there(runtime, bundle, place):
    (place / "host").mkdir(mode=0o777)
    (place / "host").chmod(0o777)
    (bundle.rootfs / "etc/ld.so.cache").symlink_to(f"../../../../../..{place}/host/cache")
    runtime.run(with_cache(bundle, CUDA).shell("true"))
    assert os.listdir(place / "host") == []


def test_a_limit_for_file_sizes_is_one_line(runtime, bundle):
    bundle.process["rlimits"] = [{"type": "RLIMIT_FSIZE", "soft": 10, "hard": 10}]
    line = runtime.error(with_cache(bundle, CUDA).shell("true"))
    assert line == RUN + "cannot write the loader cache: write '/etc/ld.so.cache': File too large"


def test_an_image_with_musl_gets_its_list_of_directories(runtime, bundle):
    (bundle.rootfs / "lib").mkdir()
    (bundle.rootfs / f"lib/{MUSL}.so.1").write_text("")
    compat = ("libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1", 3)
    with_cache(bundle, CUDA, compat)
    show = bundle.shell(f"cat /etc/{MUSL}.path")
    assert runtime.out(show).splitlines() == ["/usr/local/nvidia/lib64", "/lib:/usr/local/lib:/usr/lib"]
    (bundle.rootfs / f"etc/{MUSL}.path").write_text("/opt/lib\n")
    assert runtime.out(show).splitlines() == ["/usr/local/nvidia/lib64", "/opt/lib"]


def test_no_handle_of_the_cache_is_left_to_the_program(runtime, bundle):
    out = runtime.out(with_cache(bundle, CUDA).shell("ls /proc/self/fd"))
    assert len(out.split()) == 4  # three streams, and the directory that ls reads


def test_the_plan_names_links_and_libraries(runtime, bundle):
    annotate(with_cache(bundle, CUDA), **{"/opt/a": "b"}).shell("true").write()
    out = subprocess.run([*runtime.prefix, runtime.program, "plan", "-b", bundle.directory, "c1"], check=True,
                         capture_output=True, text=True).stdout
    lines = out.splitlines()
    link = next(i for i, line in enumerate(lines) if "link '/opt/a' to 'b', whatever is there" in line)
    bound = next(i for i, line in enumerate(lines) if "put a loader cache of its own" in line)
    filled = next(i for i, line in enumerate(lines) if "add 1 libraries to the loader cache" in line)
    root = next(i for i, line in enumerate(lines) if "enter the root" in line)
    kept = next(i for i, line in enumerate(lines) if "keep capabilities" in line)
    assert link < bound < root < kept < filled


def exchange(left, right):
    """Swaps two names in one step. renameat2(2) RENAME_EXCHANGE"""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.renameat2(-100, os.fsencode(left), -100, os.fsencode(right), 2)


def test_a_root_that_changes_during_the_start_leads_nothing_to_the_host(runtime, bundle, place):
    """The shape of CVE-2024-0132 and CVE-2025-23359: between two looks a directory becomes a link."""
    host = place / "host"
    (host / "nvidia/lib64").mkdir(parents=True)
    (host / "nvidia/lib64/libcuda.so.1").write_text("the host's")
    for path in (host, host / "nvidia", host / "nvidia/lib64"):
        path.chmod(0o777)
    (place / "driver").write_text("the driver's")
    (bundle.rootfs / "usr/local/nvidia/lib64").mkdir(parents=True)
    (bundle.rootfs / "usr/other").symlink_to(f"../../../../../../..{host}")
    (bundle.rootfs / "etc-other").symlink_to(f"../../../../../..{host}")
    annotate(with_cache(bundle, CUDA), **{"/usr/local/evil": "x", "/usr/local/nvidia/deep/evil": "x"})
    bundle.mount("/usr/local/nvidia/lib64/libcuda.so.1", place / "driver", "bind", "ro")
    before = subprocess.run(["find", host, "-ls"], check=True, capture_output=True).stdout
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            exchange(bundle.rootfs / "usr/local", bundle.rootfs / "usr/other")
            exchange(bundle.rootfs / "etc", bundle.rootfs / "etc-other")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(40):
            done = runtime.run(bundle.shell("cat /usr/local/nvidia/lib64/libcuda.so.1 2>/dev/null; true"))
            assert "the host's" not in done.stdout
            if done.returncode != 0:
                assert len(done.stderr.splitlines()) == 1, done
    finally:
        stop.set()
        swapper.join()
    assert subprocess.run(["find", host, "-ls"], check=True, capture_output=True).stdout == before


@pytest.fixture(name="secret")
def secret_of_root(bundle, place, kind):
    """A volume with a file that only root may read, in a container of somebody else with musl."""
    (place / "secret").mkdir()
    (place / "secret/key").write_text("the secret\n")
    (place / "secret/key").chmod(0o600)
    bundle.mount("/data", place / "secret", "rbind")
    (bundle.rootfs / "lib").mkdir()
    (bundle.rootfs / f"lib/{MUSL}.so.1").write_text("")
    if kind == "root":
        bundle.process["user"] = {"uid": 1, "gid": 1}
        bundle.process["capabilities"] = {}
    return with_cache(bundle, CUDA)


@pytest.mark.parametrize("link,text", [(f"etc/{MUSL}.path", "/data/key"), (f"etc/{MUSL}.path", "../data/./key"),
                                       ("etc", "/data")])
def test_a_loader_file_that_a_link_leads_into_a_volume_is_one_line(runtime, bundle, secret, place, link, text):
    if link == "etc":
        shutil.rmtree(bundle.rootfs / "etc")
        for name in ("ld.so.cache", f"{MUSL}.path"):
            os.link(place / "secret/key", place / "secret" / name)
    (bundle.rootfs / link).symlink_to(text)
    line = runtime.error(secret.shell(f"cat /data/key; cat /etc/{MUSL}.path"))
    assert line.startswith(RUN + "cannot cover '/etc/") and line.endswith("to another mount")
    assert (place / "secret/key").read_text() == "the secret\n"


def test_a_loader_file_that_only_root_may_read_counts_as_none(runtime, bundle, secret):
    (bundle.rootfs / "root-only").write_text("the secret\n")
    (bundle.rootfs / "root-only").chmod(0o600)
    (bundle.rootfs / f"etc/{MUSL}.path").symlink_to("/root-only")
    out = runtime.out(secret.shell(f"cat /etc/{MUSL}.path"))
    assert "the secret" not in out and "/usr/local/nvidia/lib64" in out


def test_a_volume_in_the_place_of_etc_has_its_loader_files(runtime, bundle, secret, place):
    (place / "etc").mkdir()
    (place / "etc/ld.so.cache").write_bytes(b"")
    (place / f"etc/{MUSL}.path").write_text("/opt/of-volume\n")
    secret.mount("/etc", place / "etc", "rbind")
    assert "/opt/of-volume" in runtime.out(bundle.shell(f"cat /etc/{MUSL}.path"))
    assert (place / f"etc/{MUSL}.path").read_text() == "/opt/of-volume\n"


@pytest.mark.parametrize("name", ["ld.so.cache", f"{MUSL}.path"])
def test_a_link_in_a_volume_at_etc_shows_nothing_that_the_volume_shuts_off(runtime, bundle, secret, place, name):
    closed = place / "etc/closed"
    closed.mkdir(parents=True)
    (closed / "key").write_text("the secret\n")
    (closed / "key").chmod(0o644)
    closed.chmod(0o700)
    for other in ("ld.so.cache", f"{MUSL}.path"):
        (place / "etc" / other).write_bytes(b"")
    (place / "etc" / name).unlink()
    (place / "etc" / name).symlink_to("closed/key")
    secret.mount("/etc", place / "etc", "rbind")
    line = runtime.error(secret.shell(f"cat /etc/{name}"))
    assert line == RUN + f"cannot cover '/etc/{name}': a symbolic link leads '/etc/{name}' to another mount"
