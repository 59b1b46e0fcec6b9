# SPDX-License-Identifier: Apache-2.0
"""Devices by their CDI names: files as others write them, as root and as every other user."""

import json
import os
import subprocess

import pytest

from support import loader_images

WORKS = {"cdiVersion": "0.5.0", "kind": "vendor.com/gpu"}


def write(directory, name, content):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def document(*devices, **more):
    return {**WORKS, "devices": [{"name": name, "containerEdits": edits} for name, edits in devices],
            **more}


def env(*assignments):
    return {"env": list(assignments)}


@pytest.fixture
def cdi(work):
    """Two directories of CDI files; the second is believed first."""
    return work / "etc-cdi", work / "run-cdi"


def flags(cdi):
    return "--cdi-spec-dir", cdi[0], "--cdi-spec-dir", cdi[1]


def test_a_device_brings_nodes_mounts_and_variables(berth, busybox, work, cdi):
    (work / "cargo").write_text("tea\n")
    write(cdi[0], "vendor.json", document(
        ("0", {"deviceNodes": [{"path": "/dev/crane", "hostPath": "/dev/zero"}], **env("CRANE=0")}),
        containerEdits={**env("HARBOUR=east", "CRANE=none"), "mounts": [
            {"hostPath": str(work / "cargo"), "containerPath": "/opt/hold/cargo",
             "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}]}))
    out = berth.ok(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=0", busybox, "sh", "-c",
                   "stat -c '%F %t:%T' /dev/crane; head -c 2 /dev/crane | od -An -tx1; cat /opt/hold/cargo;"
                   "echo x 2>/dev/null >/opt/hold/cargo || echo read-only; echo $HARBOUR $CRANE")
    assert out.splitlines() == ["character special file 1:5", " 00 00", "tea", "read-only", "east 0"]


def test_edits_come_in_the_order_of_the_request_and_those_of_a_file_once(berth, busybox, cdi):
    write(cdi[0], "a.json", document(("0", env("LAST=0")), ("1", env("LAST=1")), **{"containerEdits": env("LAST=all")}))
    run = [*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=1", "--device=vendor.com/gpu=0", busybox]
    assert berth.ok(*run, "sh", "-c", "echo $LAST") == "0\n"


def test_yaml_is_read_as_json_is(berth, busybox, cdi):
    write(cdi[0], "vendor.yaml", "---\ncdiVersion: 0.3.0\nkind: vendor.com/gpu\ndevices:\n"
                                 "  - name: gpu0\n    containerEdits:\n      env: ['CRANE=yes']\n")
    assert berth.ok(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=gpu0", busybox, "sh", "-c",
                    "echo $CRANE") == "yes\n"


def test_the_later_directory_is_believed_and_a_conflict_is_said(berth, busybox, cdi):
    write(cdi[0], "a.json", document(("0", env("FROM=etc")), ("1", env("FROM=etc"))))
    write(cdi[1], "a.json", document(("0", env("FROM=run"))))
    run = [*flags(cdi), "run", "--rm", "--device"]
    assert berth.ok(*run, "vendor.com/gpu=0", busybox, "sh", "-c", "echo $FROM") == "run\n"
    assert berth.ok(*run, "vendor.com/gpu=1", busybox, "sh", "-c", "echo $FROM") == "etc\n"
    write(cdi[1], "b.json", document(("0", env("FROM=other"))))
    assert berth.fail(*run, "vendor.com/gpu=0", busybox, "true") == (
        f"berth: device 'vendor.com/gpu=0': defined in both '{cdi[1]}/a.json' and '{cdi[1]}/b.json';"
        " try: berth cdi list")
    assert berth.ok(*run, "vendor.com/gpu=1", busybox, "sh", "-c", "echo $FROM") == "etc\n"


def test_a_bad_file_breaks_no_other_and_is_named(berth, busybox, cdi):
    write(cdi[0], "good.json", document(("0", env("A=1"))))
    write(cdi[0], "bad.json", document(("1", {"envs": ["A=1"]})))
    write(cdi[0], "worse.yaml", "a: &x [*x]\n")
    assert berth.ok(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=0", busybox, "sh", "-c",
                    "echo $A") == "1\n"
    done = berth.run(*flags(cdi), "cdi", "list")
    assert done.returncode == 0
    assert done.stdout.split() == ["NAME", "FILE", "vendor.com/gpu=0", f"{cdi[0]}/good.json"]
    assert done.stderr.splitlines() == [
        f"berth: warning: {cdi[0]}/bad.json: devices[0].containerEdits.envs: unknown member; did you mean"
        " 'env'?, ignoring this file",
        f"berth: warning: {cdi[0]}/worse.yaml: line 1, column 4: anchors are not allowed, ignoring this file"]
    done = berth.run(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=1", busybox, "true")
    assert done.returncode == 125
    assert done.stderr.splitlines()[-1] == (
        "berth: no CDI device 'vendor.com/gpu=1', did you mean 'vendor.com/gpu=0'? (2 CDI files could not be read);"
        " try: berth cdi list")


def test_a_device_whose_node_is_gone_is_one_line_and_leaves_nothing(berth, listing, busybox, cdi):
    write(cdi[0], "a.json", document(("0", {"deviceNodes": [{"path": "/dev/no-such-crane"}]}), ("1", env("A=1"))))
    berth.ok(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=1", busybox, "true")
    before = listing()
    assert berth.fail(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=0", busybox, "true") == (
        "berth: device 'vendor.com/gpu=0': cannot give device '/dev/no-such-crane': open '/dev/no-such-crane': "
        "No such file or directory; try: berth cdi list")
    assert listing() == before


@pytest.mark.profiles("root")
def test_what_is_no_cdi_name_is_one_line(berth):
    assert berth.fail("run", "--device", "vendor.com/gpu", "image") == (
        "berth: device 'vendor.com/gpu': expected vendor/class=name; try: a name of 'berth cdi list', such as"
        " nvidia.com/gpu=0")


def test_an_unknown_hook_runs_with_its_own_environment_and_nothing_else(berth, busybox, work, cdi):
    told = work / "told"
    hook = work / "hook"
    hook.write_text(f"#!/bin/sh\nenv >{told}\npwd >>{told}\necho \"$@\" >>{told}\n")
    hook.chmod(0o755)
    write(cdi[0], "a.json", document(("0", {"hooks": [
        {"hookName": "createRuntime", "path": str(hook), "args": ["hook", "a b"], "env": ["ONLY=this"]}]})))
    berth.ok(*flags(cdi), "run", "--rm", "-e", "LD_PRELOAD=/evil.so", "--device", "vendor.com/gpu=0", busybox, "true")
    lines = told.read_text().splitlines()
    seen = [line for line in lines if not line.startswith(("PWD=", "_=", "SHLVL="))]
    assert (seen[0], os.path.basename(seen[1]), seen[2:]) == ("ONLY=this", "bundle", ["a b"])


@pytest.mark.profiles("root")
def test_a_hook_with_no_environment_has_none_and_its_time_is_limited(berth, busybox, work, cdi):
    told = work / "told"
    hook = work / "hook"
    hook.write_text(f"#!/bin/sh\ncat /proc/self/environ >{told}\n")
    hook.chmod(0o755)
    spec = {"hookName": "createRuntime", "path": str(hook), "args": ["hook"]}
    slow = {"hookName": "createRuntime", "path": "/bin/sleep", "args": ["sleep", "30"], "timeout": 1}
    write(cdi[0], "a.json", document(("0", {"hooks": [spec]}), ("1", {"hooks": [slow]})))
    berth.ok(*flags(cdi), "run", "--rm", "-e", "SECRET=1", "--device", "vendor.com/gpu=0", busybox, "true")
    names = {entry.split("=")[0] for entry in told.read_text().split("\0") if entry}
    assert names <= {"PWD", "_", "SHLVL", "OLDPWD"}  # the shell's own
    line = berth.fail(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=1", busybox, "true")
    assert "cannot run the createRuntime hook: run '/bin/sleep'" in line


@pytest.mark.profiles("root")
def test_the_device_cgroup_allows_what_the_file_says_and_no_more(berth, busybox, cdi):
    write(cdi[0], "a.json", document(("0", {"deviceNodes": [
        {"path": "/dev/crane", "hostPath": "/dev/fuse", "permissions": "r"}]})))
    out = berth.ok(*flags(cdi), "run", "--rm", "--device", "vendor.com/gpu=0", busybox, "sh", "-c",
                   "(exec 3</dev/crane) && echo read; (exec 3>/dev/crane) 2>/dev/null || echo refused")
    assert out.splitlines() == ["read", "refused"]


@pytest.mark.profiles("root")
def test_list_inspect_validate_and_refresh_tell_the_same(berth, cdi):
    path = write(cdi[0], "a.json", document(("0", {"deviceNodes": [{"path": "/dev/zero"}]})))
    other = write(cdi[1], "b.yaml", "x: [")
    told = json.loads(berth.ok(*flags(cdi), "cdi", "list", "--format", "json"))
    assert told["devices"] == [{"name": "vendor.com/gpu=0", "file": str(path)}]
    assert [bad["file"] for bad in told["bad_files"]] == [str(other)]
    assert berth.ok(*flags(cdi), "cdi", "list", "-q") == "vendor.com/gpu=0\n"
    shown = json.loads(berth.ok(*flags(cdi), "cdi", "inspect", "vendor.com/gpu=0"))
    assert shown["edits"]["device_nodes"][0]["minor"] == 5
    assert berth.ok("cdi", "validate", path) == (
        f"{path}: good: CDI 0.5.0, vendor.com/gpu, 1 device\n")
    assert berth.fail("cdi", "validate", other, status=1) == (
        f"berth: {other}: line 2, column 1: did not find expected node content")
    done = berth.run(*flags(cdi), "cdi", "refresh")
    index = berth.state / "cdi/index.json"
    assert done.stdout == f"{index}: 1 device\n"
    assert json.loads(index.read_text())["devices"][0]["name"] == "vendor.com/gpu=0"


# ---- files as NVIDIA's toolkit lays them out ----------------------------------------------------

VERSION = "570.133.20"
LIBDIR = "/usr/lib/x86_64-linux-gnu"
HOOK = "/usr/bin/nvidia-cdi-hook"  # exists on no machine of these tests


def hook(name, *arguments, program=HOOK, before=()):
    return {"hookName": "createContainer", "path": program,
            "args": [os.path.basename(program), *before, name, *arguments],
            "env": ["NVIDIA_CTK_DEBUG=false"]}


def node(tree, path, **more):
    return {"path": path, "hostPath": f"{tree}{path}", **more}


def ctk_file(tree, minors, hooks=hook, version="0.5.0"):
    """Every library of the tree mounted where the host has it, links and the loader's cache made by hooks."""
    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    names = sorted(path.name for path in (tree / LIBDIR[1:]).iterdir()
                   if path.name.endswith(VERSION) and not path.is_symlink())
    links = []
    for link in sorted((tree / LIBDIR[1:]).iterdir()):
        if link.is_symlink() and ".so" in link.name and "/" not in os.readlink(link):
            links += ["--link", f"{os.readlink(link)}::{LIBDIR}/{link.name}"]
    devices = [(str(index), {"deviceNodes": [node(tree, f"/dev/nvidia{minor}")],
                             "hooks": [hooks("create-symlinks", "--link",
                                             f"../card{index}::/dev/dri/by-path/pci-0000:0{index}:00.0-card")]})
               for index, minor in enumerate(minors)]
    return {**document(*devices), "cdiVersion": version, "kind": "nvidia.com/gpu", "containerEdits": {
        "env": ["NVIDIA_VISIBLE_DEVICES=void", f"NVIDIA_CTK_LIBCUDA_DIR={LIBDIR}"],
        "deviceNodes": [node(tree, path) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")],
        "hooks": [hooks("create-symlinks", *links),
                  hooks("enable-cuda-compat", f"--host-driver-version={VERSION}",
                        "--cuda-compat-container-root=/usr/local/cuda/compat"),
                  hooks("update-ldcache", "--ldconfig-path", "/usr/sbin/ldconfig", "--folder", LIBDIR),
                  hooks("disable-device-node-modification"),
                  hooks("update-application-profile")],
        "mounts": [{"hostPath": f"{tree}{LIBDIR}/{name}", "containerPath": f"{LIBDIR}/{name}",
                    "options": options} for name in names]}}


@pytest.fixture(scope="module")
def layout_images(registry):
    return loader_images.push_all(registry)


@pytest.mark.parametrize("program", ["nvidia-cdi-hook", "nvidia-ctk"])
@pytest.mark.parametrize("image", ["debian", "rhel", "distroless"])
def test_a_file_of_nvidias_toolkit_drives_berth_without_its_hook_program(berth, layout_images, driver_tree, cdi,
                                                                         image, program):
    tree = driver_tree("eight")

    def hooks(name, *arguments):
        before = ["hook"] if program == "nvidia-ctk" else []
        return hook(name, *arguments, program=f"/usr/bin/{program}", before=before)
    write(cdi[0], "nvidia.json", ctk_file(tree, [2, 5, 0], hooks))
    lines = berth.ok(*flags(cdi), "run", "--rm", "--device", "nvidia.com/gpu=1", layout_images[image], "/probe",
                     "libcuda.so.1", "libnvidia-ml.so.1", "--nodes").splitlines()
    assert lines[:2] == [f"libcuda.so.1 => {LIBDIR}/libcuda.so.1", f"libnvidia-ml.so.1 => {LIBDIR}/libnvidia-ml.so.1"]
    assert {line.split()[0] for line in lines[2:]} == {"/dev/nvidia5", "/dev/nvidiactl", "/dev/nvidia-uvm",
                                                       "/dev/nvidia-uvm-tools"}


def test_what_the_hooks_would_link_is_linked(berth, busybox, driver_tree, cdi):
    write(cdi[0], "nvidia.json", ctk_file(driver_tree("one"), [0]))
    out = berth.ok(*flags(cdi), "run", "--rm", "--device", "nvidia.com/gpu=0", busybox, "sh", "-c",
                   f"for link in {LIBDIR}/libcuda.so {LIBDIR}/libcuda.so.1 /dev/dri/by-path/pci-0000:00:00.0-card;"
                   " do readlink $link; done;"
                   "echo $NVIDIA_VISIBLE_DEVICES; [ -e /usr/bin/nvidia-cdi-hook ] || echo no program")
    assert out.splitlines() == ["libcuda.so.1", f"libcuda.so.{VERSION}", "../card0", "void", "no program"]


def test_a_file_of_our_own_gives_what_gpus_gives(berth, layout_images, driver_tree, cdi):
    tree = driver_tree("eight")
    write(cdi[0], "nvidia.yaml", berth.ok("--driver-root", tree, "cdi", "generate"))
    probe = ["/probe", "libcuda.so.1", "libnvidia-ml.so.1", "--nodes"]
    for image in ("debian", "alpine"):
        got = berth.ok(*flags(cdi), "run", "--rm", "--device", "nvidia.com/gpu=1", layout_images[image], *probe)
        same = berth.ok("--driver-root", tree, "run", "--rm", "--gpus", "device=1,capabilities=all",
                        layout_images[image], *probe)
        assert sorted(got.splitlines()) == sorted(same.splitlines())


def test_gpus_and_devices_are_combined(berth, busybox, driver_tree, cdi):
    write(cdi[0], "vendor.json", document(("0", {"deviceNodes": [{"path": "/dev/crane", "hostPath": "/dev/zero"}]})))
    out = berth.ok("--driver-root", driver_tree("one"), *flags(cdi), "run", "--rm", "--gpus", "all", "--device",
                   "vendor.com/gpu=0", busybox, "sh", "-c", "ls /dev/crane /dev/nvidia0")
    assert out.split() == ["/dev/crane", "/dev/nvidia0"]


@pytest.mark.profiles("root")
@pytest.mark.parametrize("kind", ["one", "eight", "mig"])
def test_generated_files_are_the_same_bytes_and_valid(berth, driver_tree, work, kind):
    words = ["--driver-root", driver_tree(kind), "cdi", "generate"]
    text = berth.ok(*words)
    assert berth.ok(*words) == text
    for name in ("gpu.yaml", "gpu.json"):
        path = work / "etc/cdi" / name
        assert berth.ok(*words, "--output", path) == ""
        assert (path.stat().st_mode & 0o777) == 0o644
        assert berth.ok("cdi", "validate", path).startswith(f"{path}: good: CDI 0.5.0, nvidia.com/gpu, ")
    assert (work / "etc/cdi/gpu.yaml").read_text() == text
    parsed = json.loads((work / "etc/cdi/gpu.json").read_text())
    assert parsed["cdiVersion"] == "0.5.0"
    assert "annotations" not in text and "additionalGids" not in text


@pytest.mark.profiles("root")
def test_a_file_of_another_driver_is_said_to_be_stale(berth, driver_tree, work):
    path = work / "gpu.json"
    berth.ok("--driver-root", driver_tree("one"), "cdi", "generate", "-o", path)
    done = berth.run("--driver-root", driver_tree("one"), "cdi", "validate", path)
    assert "made for" not in done.stderr
    newer = driver_tree("one", "--version", "580.65.06")
    done = berth.run("--driver-root", newer, "cdi", "validate", path)
    assert done.returncode == 0
    assert done.stderr == (f"berth: warning: {path} was made for driver {VERSION}, 580.65.06 is loaded;"
                           f" try: berth cdi generate --output {path}\n")


def test_a_start_with_a_file_of_another_driver_says_so(berth, busybox, driver_tree, work, listing):
    """After an upgrade of the driver: the files that the CDI file names are gone."""
    tree = work / "tree"
    subprocess.run(["cp", "-a", driver_tree("one"), tree], check=True)
    berth.account.own(work / "cdi")
    berth.ok("run", "--rm", busybox, "true")
    berth.ok("--driver-root", tree, "cdi", "generate", "-o", work / "cdi/nvidia.yaml")
    before = listing()
    gone = tree / f"usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
    gone.rename(gone.with_name("libcuda.so.580.65.06"))
    (tree / "sys/module/nvidia/version").write_text("580.65.06\n")
    assert berth.fail("--driver-root", tree, "--cdi-spec-dir", work / "cdi", "run", "--rm", "--device",
                      "nvidia.com/gpu=all", busybox, "true") == (
        f"berth: device 'nvidia.com/gpu=all': its CDI file names '{gone}', which is not there; "
        "driver 580.65.06 is loaded; try: berth cdi generate --output FILE, for the driver that is "
        "here")
    assert listing() == before


@pytest.mark.profiles("root")
def test_generate_refuses_what_cannot_be_and_warns_of_what_clients_refuse(berth, driver_tree):
    words = ["--driver-root", driver_tree("one"), "cdi", "generate"]

    def refused(*more):
        done = berth.run(*words, *more)
        assert done.returncode == 1, done
        return done.stderr.splitlines()[-1]  # after warnings of the synthetic tree
    assert refused("--cdi-version", "0.4.0") == "berth: --cdi-version 0.4.0: the content needs 0.5.0"
    assert refused("--vendor", "amd") == "berth: no GPU of vendor amd on this machine; try: berth gpu list"
    assert refused("--device-name-strategy", "colour") == (
        "berth: device name strategy 'colour': expected index, uuid, type-index")
    assert refused("--cdi-version", "9") == (
        "berth: --cdi-version '9': there is no such version; try: one of 0.5.0, 0.6.0, 0.7.0, 1.1.0")
    done = berth.run(*words, "--class", "gpu.big")
    assert "CDI 0.6.0 is refused by podman 4.3 (Debian 12)" in done.stderr
    assert 'kind: "nvidia.com/gpu.big"' in done.stdout


def test_a_list_of_nothing_says_where_it_looked(berth, work):
    done = berth.run("--cdi-spec-dir", work, "cdi", "list")
    assert (done.returncode, done.stdout.split()) == (0, ["NAME", "FILE"])
    assert done.stderr == (f"berth: warning: no file in {work} offers a device; "
                           "see 'berth cdi generate --help'\n")
