# SPDX-License-Identifier: Apache-2.0
"""Ids, capabilities, settings, cgroups and hooks: what a container gets without having a right to
it."""

import shutil
from pathlib import Path

import pytest

from support.attacks import GAINING, INHERITING, STATUS, field, holds, make_gaining, tool


@pytest.fixture
def gaining(bundle):
    return make_gaining(bundle)


# ---- capabilities -------------------------------------------------------------------------------

@pytest.mark.attack("inheritable capabilities at run")
def test_cve_2022_24769_inheritable_capabilities(target, gaining):
    """An ordinary user's program with inheritable file capabilities gains what the caller of the
    runtime can inherit; there may be nothing to inherit."""
    target.prefix = list(INHERITING)
    done = target.run(gaining.shell(f"echo in; {STATUS}; {GAINING}"))
    assert target.entered, done
    holds("CapInh:\t0000000000000000" in done.out, "the container inherits capabilities")
    holds(done.out.count("CapPrm:\t0000000000000000") == 2, "the user has gained capabilities")


def test_payload_a_program_gains_by_inheriting(target, gaining):
    gaining.process["capabilities"]["inheritable"] = ["CAP_NET_ADMIN"]
    done = target.run(gaining.shell(f"echo in; {GAINING}"))
    assert field(done.out, "CapPrm") == "0000000000001000", done


# ---- ids ----------------------------------------------------------------------------------------

@pytest.mark.attack("ids in the config that overflow to root's")
@pytest.mark.parametrize("uid", [-1, -2**32, 2**31, 2**32 - 1, 2**32, 2**64, 2**64 - 1, 1e19])
@pytest.mark.parametrize("member", ["uid", "gid", "additionalGids"])
def test_cve_2024_40635_ids_out_of_range(target, bundle, member, uid):
    """An image asks for an id that does not fit, so that it becomes 0; the program may not run with
    the rights of root."""
    bundle.process["user"] = {"uid": 1000, "gid": 1000} | {
        member: [uid] if member == "additionalGids" else uid}
    done = target.run(bundle.shell(f"echo in; {STATUS}"))
    if "in" in done.out.splitlines():
        ids = field(done.out, {"uid": "Uid", "gid": "Gid", "additionalGids": "Groups"}[member])
        holds("0" not in ids.split(), f"the program has the ids {ids.split()}")


# ---- settings of the kernel and cgroups ---------------------------------------------------------

MACHINE = Path("/proc/sys/vm/stat_interval")  # harmless, and nobody's but the machine's


@pytest.mark.attack("sysctls of the machine")
@pytest.mark.parametrize("key", ["vm.stat_interval", "vm/stat_interval",
                                 "net/../vm/stat_interval", "net.ipv4/../../vm/stat_interval",
                                 "net...vm.stat_interval", "kernel.shm_rmid_forced",
                                 "kernel.shm_rmid_forced/../../vm/stat_interval"])
def test_cve_2022_0811_settings_of_the_machine(target, bundle, key):
    """A container's setting is one of the machine's, by its name or hidden in another's value; the
    machine's may not change."""
    before = MACHINE.read_text()
    value = str(int(before) + 1)
    if key == "kernel.shm_rmid_forced":
        value = f"1+vm.stat_interval={value}\nvm.stat_interval={value}"
    bundle.linux["sysctl"] = {key: value}
    try:
        target.run(bundle.shell("echo in"))
        holds(MACHINE.read_text() == before, "a setting of the machine was changed")
    finally:
        MACHINE.write_text(before)


@pytest.mark.attack("sysctls of the caller's network namespace")
@pytest.mark.parametrize("how", ["absent", "joined"])
def test_cve_2022_0811_settings_of_the_callers_network(target, bundle, place, how):
    """A container on its caller's network sets that network's settings; they may not change."""
    bundle.linux["sysctl"] = {"net.ipv4.ip_default_ttl": "77"}
    spaces = [one for one in bundle.linux["namespaces"] if one["type"] != "network"]
    if how == "joined":
        spaces.append({"type": "network", "path": "/proc/self/ns/net"})
    bundle.linux["namespaces"] = spaces
    bundle.config["mounts"] = [one for one in bundle.config["mounts"] if one["type"] != "sysfs"]
    # The caller is in a network of his own, so that the machine's stays as it is.
    seen = place / "ttl"
    target.prefix = ["unshare", "--net", "sh", "-c",
                     f'"$@"; code=$?; cat /proc/sys/net/ipv4/ip_default_ttl >{seen}; exit $code',
                     "sh"]
    target.run(bundle.shell("echo in"))
    holds(seen.read_text() == "64\n", "a setting of the caller's network was changed")


@pytest.mark.attack("the machine's cgroups, through a bind mount of /sys")
def test_cve_2023_25809_cgroups_behind_a_bind_of_sys(target, bundle, place):
    """A container in its caller's user namespace has /sys bound read-only and no cgroup namespace;
    it may not make a cgroup outside of its own."""
    target.prefix = ["unshare", "--user", "--map-root-user", "--mount"]
    spaces = bundle.linux["namespaces"]
    bundle.linux["namespaces"] = [one for one in spaces if one["type"] not in ("network", "cgroup")]
    for mount in bundle.config["mounts"]:
        if mount["type"] == "sysfs":
            mount |= {"type": "none", "source": "/sys",
                      "options": ["rbind", "nosuid", "noexec", "nodev", "ro"]}
        elif mount["type"] == "devpts":
            mount["options"].remove("gid=5")  # a single id is mapped
    bundle.linux.pop("resources")
    name = f"berth-attack-{place.name[-8:]}-made"
    done = target.run(bundle.shell(
        f"echo in; for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/{name} 2>/dev/null && "
        "echo made $d; done; true"))
    made = [path for path in Path("/sys/fs/cgroup").glob(f"*/{name}")]
    for path in made:
        path.rmdir()
    if not target.entered:
        pytest.skip(f"no container in the caller's user namespace: {done.err.strip()}")
    holds(not made, f"cgroups were made in {made}")


# ---- hooks --------------------------------------------------------------------------------------

STAGES = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")


def with_hook(bundle, place, stage):
    """A hook of the host's, and an image whose environment has it load a library."""
    shutil.copy2(tool("preload.so"), bundle.rootfs / "preload.so")
    mark = place / "preloaded"
    bundle.config["hooks"] = {stage: [{"path": "/bin/sh", "args": ["sh", "-c", "exit 0"]}]}
    preload = f"LD_PRELOAD=/proc/self/cwd/preload.so:{bundle.rootfs}/preload.so"
    bundle.process["env"] += [preload, f"PRELOAD_MARK={mark}"]
    return mark


@pytest.mark.attack("the image's LD_PRELOAD in hooks of the host")
@pytest.mark.parametrize("stage", STAGES)
def test_cve_2025_23266_the_images_environment_in_hooks(target, bundle, place, stage):
    """An image's environment names a library of the image; no hook of the host may load it."""
    mark = with_hook(bundle, place, stage)
    done = target.run(bundle.shell("unset LD_PRELOAD; echo in"))
    assert done.code == 0, done
    holds(not mark.exists(), f"the {stage} hook loaded a library of the image")


def test_payload_a_hook_with_the_images_environment_loads_the_library(target, bundle, place):
    mark = with_hook(bundle, place, "createRuntime")
    bundle.config["hooks"]["createRuntime"][0]["env"] = bundle.process["env"]
    assert target.run(bundle.shell("echo in")).code == 0
    assert mark.exists()
