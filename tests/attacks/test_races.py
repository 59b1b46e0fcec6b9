# SPDX-License-Identifier: Apache-2.0
"""Attackers who change an image or a volume while a container is made from it. Each test gives them
a bounded number of rounds: BERTH_ATTACK_ROUNDS."""

import os

import pytest

from support.attacks import (CORE_PATTERN, ROUNDS, device_volume, holds, let_dev_be, opened,
                             swapping, watched_proc)

MOUNTS = 12  # chances in one round


@pytest.fixture
def volume(place):
    """A directory that the attacker can write to from a container of his."""
    path = place / "volume"
    path.mkdir()
    return path


@pytest.mark.attack("mount targets in a shared volume (race)")
def test_cve_2021_30465_mount_targets_in_a_volume(target, bundle, outside, volume):
    """The directory that mounts go to is exchanged with a link to the host; nothing may be mounted
    there."""
    (volume / "data").mkdir()
    (volume / "link").symlink_to(outside.path)
    (bundle.rootfs / "v").mkdir()
    for i in range(MOUNTS):
        (volume / f"data/{i}").mkdir()
        (outside.path / f"{i}").mkdir()
    bundle.mount("/v", volume, "rbind")
    for i in range(MOUNTS):
        bundle.mount(f"/v/data/{i}", "tmpfs", kind="tmpfs")
    outside.watch_mounts(bundle)
    with swapping((volume / "data", volume / "link")):
        for _ in range(ROUNDS):
            target.run(bundle.shell("echo in"))
    outside.assert_no_mounts()


@pytest.mark.attack("directories for mount targets in a shared volume (race)")
def test_cve_2024_45310_directories_in_a_volume(target, bundle, outside, volume):
    """The directory in which mount targets are missing is exchanged with a link to the host;
    nothing may be made there."""
    (volume / "data").mkdir()
    (volume / "link").symlink_to(outside.path)
    (bundle.rootfs / "v").mkdir()
    bundle.mount("/v", volume, "rbind")
    own = len(bundle.config["mounts"])
    with swapping((volume / "data", volume / "link")):
        for number in range(ROUNDS):
            del bundle.config["mounts"][own:]
            for i in range(MOUNTS):
                bundle.mount(f"/v/data/{number}/{i}/new", "tmpfs", kind="tmpfs")
            target.run(bundle.shell("echo in"))
            outside.assert_untouched()


@pytest.mark.attack("targets of bind mounts in a directory of the image (race)")
def test_cve_2024_0132_files_in_an_images_directory(target, bundle, outside, place):
    """The directory of the image that libraries are bound into is exchanged with a link to the
    host; nothing may be made or mounted there."""
    (place / "library").write_text("driver")
    (bundle.rootfs / "compat").mkdir()
    (bundle.rootfs / "link").symlink_to(outside.path)
    own = len(bundle.config["mounts"])
    outside.watch_mounts(bundle)
    with swapping((bundle.rootfs / "compat", bundle.rootfs / "link")):
        for number in range(ROUNDS):
            del bundle.config["mounts"][own:]
            for i in range(MOUNTS):
                bundle.mount(f"/compat/lib{number}-{i}.so", place / "library", "bind", "ro")
            target.run(bundle.shell("echo in"))
            outside.assert_untouched()


@pytest.mark.attack("masked paths, with /proc exchanged for a symlink (race)")
def test_cve_2019_19921_proc_is_exchanged(target, bundle):
    """An image's /proc is exchanged with a link while the container is made; no procfs may be left
    without its masks."""
    for name in ("fake", "fake/sys", "proc/sys"):
        (bundle.rootfs / name).mkdir()
    (bundle.rootfs / "moved").symlink_to("/fake")
    bundle.shell(f"echo in; {watched_proc('/proc', '/fake', '/moved')}")
    with swapping((bundle.rootfs / "proc", bundle.rootfs / "moved")):
        for _ in range(ROUNDS * 3):
            done = target.run(bundle)
            holds("writable" not in done.out, "procfs is writable")


@pytest.mark.attack("masked paths, with /proc exchanged for another directory (race)")
def test_cve_2023_28642_proc_is_exchanged_with_a_directory(target, bundle):
    """An image's /proc is exchanged with another directory while the container is made; no procfs
    may be left without its masks."""
    for name in ("moved", "proc/sys"):
        (bundle.rootfs / name).mkdir()
    bundle.shell(f"echo in; {watched_proc('/proc', '/moved')}")
    with swapping((bundle.rootfs / "proc", bundle.rootfs / "moved")):
        for _ in range(ROUNDS * 3):
            done = target.run(bundle)
            holds("writable" not in done.out, "procfs is writable")


@pytest.mark.attack("masked paths, with /dev/null exchanged for a symlink (race)")
def test_cve_2025_31133_null_is_exchanged(target, bundle, place):
    """A shared /dev/null is exchanged with a link to a file of the kernel; no masked path may
    become that file."""
    dev = device_volume(place)
    (dev / "link").symlink_to("/proc/version")
    let_dev_be(bundle)
    bundle.mount("/dev", dev, "rbind")
    out = bundle.rootfs / "out"
    bundle.linux["maskedPaths"] = ["/proc/keys", "/proc/interrupts"]
    bundle.shell("echo in; cat /proc/keys /proc/interrupts >/out")
    with swapping((dev / "null", dev / "link")):
        for _ in range(ROUNDS):
            target.run(bundle)
            holds(not out.exists() or "Linux version" not in out.read_text(),
                  "the masked path is /proc/version")


@pytest.mark.attack("/dev/pts exchanged, to bind another file as the console (race)")
def test_cve_2025_52565_pts_is_exchanged(target, bundle, place):
    """The directory of terminals is exchanged with one that holds links; /dev/console may not
    become a file of the kernel."""
    dev = device_volume(place)
    (dev / "console").write_text("")
    (dev / "links").mkdir()
    for number in range(3):
        (dev / f"links/{number}").symlink_to(CORE_PATTERN)
    (dev / "links/ptmx").symlink_to("../../dev/links/ptmx")
    let_dev_be(bundle, keep=("/dev/pts",))
    bundle.config["mounts"].insert(1, {"destination": "/dev", "type": "bind", "source": str(dev),
                                       "options": ["rbind"]})
    bundle.shell("cat /dev/console </dev/null >/out & sleep 0.02; "
                 "[ -f /dev/console ] && [ -s /dev/console ] && echo file >/found; true")
    with swapping((dev / "pts", dev / "links")):
        for _ in range(ROUNDS):
            target.run_on_terminal(bundle)
            holds(not (bundle.rootfs / "found").exists(), "/dev/console is a file of the kernel")


@pytest.mark.attack("writes to procfs diverted by a mount in a shared volume (race)")
def test_cve_2025_52881_a_mount_is_diverted_into_proc(target, bundle, place, volume):
    """The directory of a mount target is exchanged with a link into procfs; no setting may end in
    the file that is mounted."""
    fake = place / "fake"
    fake.write_text("64\n")
    (volume / "data").mkdir()
    (volume / "data/ip_default_ttl").write_text("")
    (volume / "link").symlink_to("/proc/sys/net/ipv4")
    (bundle.rootfs / "v").mkdir()
    bundle.mount("/v", volume, "rbind")
    for _ in range(MOUNTS):
        bundle.mount("/v/data/ip_default_ttl", fake, "bind")
    bundle.linux["sysctl"] = {"net.ipv4.ip_default_ttl": "77"}
    with swapping((volume / "data", volume / "link")):
        for _ in range(ROUNDS):
            done = target.run(bundle.shell("echo in; cat /proc/sys/net/ipv4/ip_default_ttl"))
            holds(fake.read_text() == "64\n", "the setting was written to the mounted file")
            holds("64" not in done.out, "the mounted file covers the setting")


def test_what_is_copied_up_is_exchanged_with_a_fifo(target, bundle):
    """A file of the image is exchanged with a FIFO, which stands for a device, while a tmpfs is
    filled with it; nothing but files may be opened."""
    top = bundle.rootfs / "top"
    top.mkdir()
    pairs = [(top / f"{number}-file", top / f"{number}-fifo") for number in range(2)]
    for file, fifo in pairs:
        file.write_text("data")
        os.mkfifo(fifo)
    bundle.mount("/top", "tmpfs", "tmpcopyup", kind="tmpfs")
    with opened(pairs[0][1]) as first, opened(pairs[1][1]) as second, swapping(*pairs):
        for _ in range(ROUNDS * 3):
            target.run(bundle.shell("echo in"))
            holds(not first() and not second(), "the FIFO was opened")
