# SPDX-License-Identifier: Apache-2.0
"""Images whose links lead the runtime's mounts, devices and masks astray."""

import os
from pathlib import Path

import pytest

from support.attacks import (CORE_PATTERN, device_volume, holds, let_dev_be, opened,
                             watched_proc)

UP = "../" * 20


def links_to(outside):
    """The texts that an image's link may have to lead to a directory of the host."""
    return {"absolute": str(outside.path), "upwards": f"{UP}{outside.path}"}


@pytest.mark.attack("mount targets that are reached through links of the image")
@pytest.mark.parametrize("form", ["absolute", "upwards"])
def test_cve_2019_18837_mount_targets_behind_links(target, bundle, outside, place, form):
    """An image's links lead mount targets to a directory of the host; nothing may be made or
    mounted there."""
    (place / "data").mkdir()
    (place / "file").write_text("data")
    (bundle.rootfs / "link").symlink_to(links_to(outside)[form])
    if form == "absolute":  # where the link leads to in the image
        (bundle.rootfs / str(outside.path)[1:]).mkdir(parents=True)
    (bundle.rootfs / "a").mkdir()
    (bundle.rootfs / "a/b").symlink_to("../link")
    outside.watch_mounts(bundle)
    bundle.mount("/link/new", place / "data", "bind").mount("/a/b/file", place / "file", "bind")
    bundle.mount("/a/b/c/../d", "tmpfs", kind="tmpfs").mount("/link", "tmpfs", kind="tmpfs")
    target.run(bundle.shell("echo in"))
    outside.assert_untouched()


@pytest.mark.attack("the runtime's writes to /proc, with a volume mounted there")
@pytest.mark.parametrize("order", ["under", "over", "instead"])
def test_cve_2019_16884_a_volume_at_proc(target, bundle, place, order):
    """An image's volume lies at /proc with files named as the kernel's; the runtime's settings may
    not end in them."""
    fake = place / "fake/sys/net/ipv4/ip_default_ttl"
    fake.parent.mkdir(parents=True)
    fake.write_text("64\n")
    bundle.linux["sysctl"] = {"net.ipv4.ip_default_ttl": "77"}
    bundle.linux["maskedPaths"] = bundle.linux["readonlyPaths"] = []
    bundle.mount("/proc", place / "fake", "rbind")
    mounts = bundle.config["mounts"]
    if order == "under":
        mounts.insert(0, mounts.pop())
    elif order == "instead":
        mounts.pop(0)
    target.run(bundle.shell("echo in"))
    holds(fake.read_text() == "64\n", "a setting was written to the volume's file")


@pytest.mark.attack("writes to procfs diverted by a mount through a link")
@pytest.mark.parametrize("name", ["self/attr", "sys/net/ipv4", "1/task/1/attr"])
@pytest.mark.parametrize("place_of_link", ["/data", "/sys/data"])
def test_cve_2025_52881_a_mount_that_a_link_leads_into_proc(target, bundle, place, name,
                                                            place_of_link):
    """An image's link leads a volume over a directory of procfs that the runtime writes to; nothing
    may be diverted into the volume."""
    volume = place / "volume"
    volume.mkdir()
    files = [volume / file for file in ("ip_default_ttl", "exec", "current", "keycreate")]
    for file in files:
        file.write_text("mine")
    (bundle.rootfs / place_of_link[1:]).symlink_to(f"/proc/{name}")
    mounts = bundle.config["mounts"]
    mounts[:] = [one for one in mounts if not one["destination"].startswith("/sys")]
    bundle.mount(place_of_link, volume, "rbind")
    bundle.linux["sysctl"] = {"net.ipv4.ip_default_ttl": "77"}
    seen = "/proc/" + name.replace("self", "1")
    done = target.run(bundle.shell(f"echo in; cat {seen}/{files[0].name} "
                                   f"{seen}/exec"))
    holds("mine" not in done.out, "the volume covers a directory of procfs")
    holds(all(file.read_text() == "mine" for file in files), "a write was diverted to the volume")


@pytest.mark.attack("a directory of procfs, covered by a cgroup mount through a link")
def test_cve_2025_52881_cgroups_that_a_link_leads_into_proc(target, bundle):
    """An image without a sysfs has a link into procfs where its cgroups go; nothing of procfs may
    be covered."""
    mounts = bundle.config["mounts"]
    mounts[:] = [one for one in mounts if one["destination"] != "/sys"]
    (bundle.rootfs / "sys/fs").mkdir()
    (bundle.rootfs / "sys/fs/cgroup").symlink_to("/proc/sys/net")
    bundle.linux["readonlyPaths"] = bundle.linux["maskedPaths"] = []
    done = target.run(bundle.shell("echo in; cat /proc/self/mountinfo"))
    points = [line.split()[4] for line in done.out.splitlines()[1:]]
    holds(not any(point.startswith("/proc/sys") for point in points), "cgroups lie over procfs")


@pytest.mark.attack("masked paths below /proc, which is a link in the image")
@pytest.mark.parametrize("text", ["/fake", "fake/", "/moved/../fake"])
def test_cve_2023_28642_proc_is_a_link(target, bundle, text):
    """An image's /proc is a link, so that the masks lie elsewhere; no part of procfs may be left
    without them."""
    for name in ("fake", "moved"):
        (bundle.rootfs / name).mkdir()
    (bundle.rootfs / "proc").rmdir()
    (bundle.rootfs / "proc").symlink_to(text)
    done = target.run(bundle.shell(f"echo in; {watched_proc('/proc', '/fake', '/moved')}"))
    holds("writable" not in done.out, "procfs is writable")


@pytest.mark.attack("masked paths below /sys, which is a link in the image")
def test_cve_2023_27561_sys_is_a_link(target, bundle):
    """An image's /sys is a link, so that the masks lie elsewhere; nothing masked may be in
    sight."""
    (bundle.rootfs / "fake").mkdir()
    (bundle.rootfs / "sys").rmdir()
    (bundle.rootfs / "sys").symlink_to("/fake")
    bundle.linux["maskedPaths"].append("/sys/kernel")
    done = target.run(bundle.shell("echo in; ls -d /sys/kernel/* /fake/kernel/* 2>/dev/null"))
    holds("/kernel/" not in done.out, "a masked directory is in sight")


@pytest.mark.attack("/dev in the image is a link to the host")
@pytest.mark.parametrize("form", ["absolute", "upwards"])
@pytest.mark.parametrize("mounted", [True, False])
def test_cve_2026_41579_dev_is_a_link(target, bundle, outside, form, mounted):
    """An image's /dev is a link to a directory of the host; no device, link or mount may be made
    there."""
    (bundle.rootfs / "dev").rmdir()
    (bundle.rootfs / "dev").symlink_to(links_to(outside)[form])
    if not mounted:
        let_dev_be(bundle)
    outside.watch_mounts(bundle)
    target.run(bundle.shell("echo in"))
    outside.assert_untouched()


@pytest.mark.attack("a directory below /dev in the image is a link to the host")
@pytest.mark.parametrize("form", ["absolute", "upwards"])
def test_cve_2026_47766_a_device_behind_a_link(target, bundle, outside, form):
    """A container's device is asked for in a directory that the image has made a link to the host;
    no device may be made there."""
    (bundle.rootfs / "dev").rmdir()
    (bundle.rootfs / "dev").mkdir()
    (bundle.rootfs / "dev/net").symlink_to(links_to(outside)[form])
    let_dev_be(bundle)
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/net/tun", "major": 10, "minor": 200}]
    outside.watch_mounts(bundle)
    target.run(bundle.shell("echo in"))
    outside.assert_untouched()


@pytest.mark.attack("masked paths, with /dev/null as a link in the image")
@pytest.mark.parametrize("volume", [True, False])
def test_cve_2025_31133_null_is_a_link(target, bundle, place, volume):
    """An image's /dev/null is a link to a file of the kernel; no masked path may become that
    file."""
    bundle.linux["maskedPaths"] = ["/proc/keys"]
    let_dev_be(bundle)
    dev = bundle.rootfs / "dev"
    if volume:
        dev = device_volume(place)
        (dev / "null").unlink()
        bundle.mount("/dev", dev, "rbind")
    (dev / "null").symlink_to("/proc/version")
    target.run(bundle.shell("echo in; cat /proc/keys >/out"))
    out = bundle.rootfs / "out"  # the runtime may have used "/dev/null" for the output too
    holds(not out.exists() or "Linux" not in out.read_text(), "the masked path is /proc/version")


@pytest.mark.attack("/dev/console in the image is a link")
@pytest.mark.parametrize("form", ["absolute", "upwards", "proc"])
def test_cve_2025_52565_console_is_a_link(target, bundle, outside, place, form):
    """An image's /dev/console is a link to the host or into procfs; the terminal may not be made
    there."""
    links = links_to(outside) | {"proc": CORE_PATTERN}
    dev = device_volume(place)
    (dev / "console").symlink_to(links[form] + ("" if form == "proc" else "/console"))
    let_dev_be(bundle, keep=("/dev/pts",))
    bundle.config["mounts"].insert(1, {"destination": "/dev", "type": "bind", "source": str(dev),
                                       "options": ["rbind"]})
    outside.watch_mounts(bundle)
    bundle.shell(f"[ -c {CORE_PATTERN} ] && echo covered >/out; true")
    target.run_on_terminal(bundle)
    outside.assert_untouched()
    holds(not (bundle.rootfs / "out").exists(), "the terminal lies over a file of procfs")


@pytest.mark.attack("another device in place of /dev/ptmx")
def test_cve_2025_52565_another_device_as_the_multiplexer(target, bundle, place):
    """A volume at /dev holds another file where a terminal is made; it may not be opened, for what
    opening does depends on the device, and the container's rules for devices do not hold yet."""
    dev = device_volume(place)
    os.mkfifo(dev / "pts/ptmx", 0o666)  # a device would do; this one shows that it was opened
    let_dev_be(bundle)
    bundle.mount("/dev", dev, "rbind")
    with opened(dev / "pts/ptmx") as events:
        target.run_on_terminal(bundle.shell("true"))
        holds(not events(), "the file was opened")


def test_payload_a_proc_without_masks_is_seen_as_writable(target, bundle):
    bundle.linux["maskedPaths"] = bundle.linux["readonlyPaths"] = []
    done = target.run(bundle.shell(f"echo in; {watched_proc('/proc', '/fake', '/moved')}"))
    assert "writable /proc" in done.out


def test_payload_a_mount_outside_of_the_root_is_seen(target, bundle, outside, place):
    script = f"mount -t tmpfs tmpfs {outside.path} && touch {outside.path}/made"
    hooks = bundle.config.setdefault("hooks", {})
    hooks["createContainer"] = [{"path": "/bin/sh", "args": ["sh", "-c", script],
                                 "env": ["PATH=/usr/bin:/bin"]}]
    outside.watch_mounts(bundle)
    target.run(bundle.shell("echo in"))
    with pytest.raises(AssertionError, match="mounted over the host's"):
        outside.assert_untouched()
