# SPDX-License-Identifier: Apache-2.0
"""What `berth doctor` finds: each complaint is produced on purpose in a synthetic driver tree, as
root and as ordinary users."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
VERSION = "570.133.20"


@pytest.fixture
def tree(work):
    """tree(kind, option…) → a driver tree of the test's own, to be damaged."""
    count = iter(range(10))

    def make(kind="one", *options):
        path = work / f"driver{next(count)}"
        subprocess.run([sys.executable, TESTS / "support/driver_tree.py", kind, path, *options],
                       check=True, capture_output=True)
        return path
    return make


def answers(berth, root, *words, env=None, timeout=60):
    done = berth.run("--driver-root", root, "doctor", *words, "--format", "json", env=env,
                     timeout=timeout)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    found = {check["id"]: check for check in told["checks"]}
    problems = [check for check in found.values() if check["status"] == "problem"]
    assert done.returncode == (1 if problems else 0)
    assert told["problems"] == len(problems)
    return found


def finding(berth, root, name, **options):
    """(status, cause, remedy) of one check about GPUs."""
    check = answers(berth, root, "gpu", **options)[name]
    return check["status"], check["cause"], check["remedy"]


def stub_tree(tree, programs, *options, kind="one"):
    stub = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS", TESTS.parent / "build/release/bin"))
    return tree(kind, "--nvml-stub", stub.resolve().parent / "lib/libnvml_stub.so", *options)


def test_a_good_machine_has_no_problem(berth, tree, programs):
    found = answers(berth, stub_tree(tree, programs), "gpu")
    assert [c["id"] for c in found.values() if c["status"] == "problem"] == []
    assert found["gpu.nvml"]["cause"] == "answers"
    assert found["gpu.version-mismatch"]["cause"] == f"module and files are both {VERSION}"


def test_it_says_how_this_user_runs_containers(berth, profile):
    found = answers(berth, "/")
    expected = {"root": "containers run as root of this machine",
                "user": "containers run in a user namespace with subordinate ids",
                "single_id": "containers run in a user namespace with only this user's id"}
    assert found["host.identity"]["cause"] == expected[profile.kind]
    assert found["host.overlay"]["status"] == "ok"
    assert found["host.layer-images"]["cause"] == (
        "EROFS, mounted by the kernel" if profile.kind == "root" else "EROFS, through FUSE")
    assert found["host.programs"]["status"] == "ok"
    status = {"root": "not applicable", "user": "ok", "single_id": "warning"}
    assert found["host.subordinate-ids"]["status"] == status[profile.kind]
    if profile.kind == "single_id":
        assert found["host.subordinate-ids"]["cause"].startswith(f"none for '{profile.name}' in /etc/subuid")
        assert profile.name in found["host.subordinate-ids"]["remedy"]


def test_it_leaves_the_store_as_it_was(berth, listing):
    before = listing()
    answers(berth, "/")
    assert listing() == before
    assert not [name for name in os.listdir(berth.directory) if name.startswith("doctor-")]


@pytest.mark.profiles("user")
def test_a_store_that_cannot_be_written_is_told(berth, work):
    closed = work / "closed"
    closed.mkdir()
    os.chown(closed, 0, 0)
    done = berth.run("--root", closed / "store", "doctor", "--format", "json")
    assert done.returncode == 1
    (check,) = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "storage.root"]
    assert (check["status"], check["cause"]) == ("problem", f"use '{closed}': Permission denied")


def test_driver_files_of_another_version(berth, tree):
    root = tree("one", "--library-version", "535.54.03")
    status, cause, remedy = finding(berth, root, "gpu.version-mismatch")
    assert (status, cause) == ("problem", f"driver files are 535.54.03 but the kernel module is {VERSION}")
    assert remedy.startswith("reboot")


def test_a_module_that_is_not_loaded(berth, tree):
    status, cause, remedy = finding(berth, tree("one", "--no-module"), "gpu.module")
    assert (status, cause) == ("problem", "the NVIDIA kernel module is not loaded")
    assert remedy.startswith("modprobe nvidia")


def test_a_module_of_two_versions(berth, tree):
    root = tree("one")
    (root / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n")
    status, cause, remedy = finding(berth, root, "gpu.module")
    assert (status, cause) == (
        "warning", f"/sys/module/nvidia/version says {VERSION}, which counts here, and "
        "/proc/driver/nvidia/version says 535.54.03")
    assert remedy.startswith("reboot")


def test_nouveau_in_the_place_of_the_driver(berth, tree):
    root = tree("one", "--no-module")
    (root / "sys/module/nouveau").mkdir(parents=True)
    assert finding(berth, root, "gpu.module")[1] == "the module nouveau has the GPUs, NVIDIA's is not loaded"


def test_uvm_that_is_not_loaded(berth, tree):
    status, cause, remedy = finding(berth, tree("one", "--no-uvm"), "gpu.uvm")
    assert (status, cause) == ("problem", "the module nvidia-uvm is not loaded: CUDA does not start")
    assert "modprobe nvidia-uvm" in remedy


def test_a_stale_node_after_a_reload(berth, tree):
    root = tree("one", "--uvm-major", "511")
    node = root / "dev/nvidia-uvm"
    node.unlink()
    os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(510, 0))
    status, cause, remedy = finding(berth, root, "gpu.nodes-stale")
    assert (status, cause) == ("problem", "'/dev/nvidia-uvm' is 510:0, the driver's is 511:0")
    assert remedy == "rm /dev/nvidia-uvm; nvidia-modprobe -u -c 0, as root"


def test_a_missing_node(berth, tree):
    root = tree("eight")
    (root / "dev/nvidia5").unlink()
    (root / "dev/nodes").write_text("")
    status, cause, remedy = finding(berth, root, "gpu.nodes-missing")
    assert (status, cause, remedy) == ("problem", "'/dev/nvidia5' is missing", "nvidia-modprobe -c 5, as root")


def test_nodes_that_a_job_did_not_get_are_no_problem(berth, tree):
    root = tree("eight")
    (root / "dev/nvidia5").unlink()
    (root / "dev/nodes").write_text("")
    found = answers(berth, root, "gpu", env={"SLURM_JOB_ID": "42"})
    assert found["gpu.nodes-missing"]["status"] == "ok"
    assert found["gpu.left-out"]["cause"] == "1 GPU is left out: not given to Slurm job 42"


@pytest.mark.profiles("user", "single_id")
def test_a_node_for_a_group_that_this_user_is_not_in(berth, tree, profile):
    root = tree("one")
    os.chown(root / "dev/nvidia0", 0, 44)
    os.chmod(root / "dev/nvidia0", 0o660)
    status, cause, remedy = finding(berth, root, "gpu.node-access")
    assert (status, cause) == ("problem", "this user may not open '/dev/nvidia0' (mode 0660, group video)")
    assert remedy == f"usermod -aG video {profile.name}, as root; then log in again"


@pytest.mark.profiles("user", "single_id")
def test_a_group_that_the_container_gives_up(berth, tree, profile):
    root = tree("one")
    os.chown(root / "dev/nvidia0", 0, 44)
    os.chmod(root / "dev/nvidia0", 0o660)
    argv = ["setpriv", f"--reuid={profile.uid}", f"--regid={profile.gid}", "--groups=44",
            "--inh-caps=-all", "--", berth.programs / "berth", "--driver-root", root, "doctor", "gpu",
            "--format", "json"]
    done = subprocess.run(argv, env=profile.environment(), capture_output=True, text=True, timeout=60,
                          cwd=berth.directory)
    (check,) = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "gpu.keep-groups"]
    if profile.kind == "user":
        assert (check["status"], check["cause"]) == (
            "warning", "'/dev/nvidia0' is open to this user by the group video, "
                       "which containers with subordinate ids give up")
    else:
        assert check["status"] == "ok"


def test_links_that_systemd_misses(berth, tree):
    root = tree("one")
    (root / "run/systemd/system").mkdir(parents=True)
    status, cause, remedy = finding(berth, root, "gpu.char-links")
    assert status == "warning"
    assert cause.startswith("'/dev/nvidiactl' and ")
    assert "Failed to initialize NVML: Unknown Error" in cause
    assert remedy.startswith("ln -s /dev/nvidiactl /dev/char/195:255")
    (root / "dev/char").mkdir()
    for line in (root / "dev/nodes").read_text().splitlines():
        path, major, minor, _ = line.split()
        (root / f"dev/char/{major}:{minor}").symlink_to(f"..{path.removeprefix('/dev')}")
    assert finding(berth, root, "gpu.char-links")[0] == "ok"


def test_mig_mode_without_a_slice(berth, tree, programs):
    root = stub_tree(tree, programs)
    facts = (root / "nvml.facts").read_text().replace("mig=0", "mig=1")
    (root / "nvml.facts").write_text(facts)
    status, cause, _ = finding(berth, root, "gpu.mig-slices")
    assert (status, cause) == ("problem", "GPU 0 is in MIG mode and has no slice: nothing can run on it")


def test_a_capability_node_that_is_missing(berth, tree):
    root = tree("mig")
    node = root / "dev/nvidia-caps/nvidia-cap66"
    node.unlink()
    table = (root / "dev/nodes").read_text()
    (root / "dev/nodes").write_text(re.sub(r".*nvidia-cap66 .*\n", "", table))
    status, cause, _ = finding(berth, root, "gpu.mig-nodes")
    assert (status, cause) == ("problem", "'/dev/nvidia-caps/nvidia-cap66' is missing (slice 0:0)")


@pytest.mark.profiles("user", "single_id")
def test_a_capability_node_that_only_root_reads(berth, tree):
    root = tree("mig")
    os.chmod(root / "dev/nvidia-caps/nvidia-cap66", 0o400)
    status, cause, remedy = finding(berth, root, "gpu.mig-nodes")
    assert (status, cause) == ("problem", "this user may not read '/dev/nvidia-caps/nvidia-cap66' (slice 0:0)")
    assert remedy == "chmod 444 /dev/nvidia-caps/nvidia-cap66, as root"


@pytest.mark.profiles("root")
def test_nvml_that_hangs(berth, tree, programs):
    root = stub_tree(tree, programs, "--nvml-mode", "hang")
    found = answers(berth, root, "gpu", timeout=40)
    assert found["gpu.nvml"]["status"] == "problem"
    assert found["gpu.nvml"]["cause"] == "NVML fails: no answer within 10000 ms"
    assert found["gpu.persistence"]["status"] == "warning"


def test_nvml_that_fails(berth, tree, programs):
    status, cause, _ = finding(berth, stub_tree(tree, programs, "--nvml-mode", "init-fail"), "gpu.nvml")
    assert status == "problem"
    assert cause.startswith("NVML fails: ")


def test_no_library_and_where_it_was_looked_for(berth, tree):
    root = tree("one")
    shutil.rmtree(root / "usr/lib")
    check = answers(berth, root, "gpu")["gpu.libraries"]
    assert check["status"] == "problem"
    assert check["cause"].startswith(f"no libcuda.so.<version> was found below '{root}'; ")
    assert {"/usr/lib64", "/run/opengl-driver/lib", "/usr/lib/x86_64-linux-gnu"} <= set(check["details"])


def test_a_truncated_library_is_named(berth, tree):
    root = tree("one")
    library = root / f"usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.{VERSION}"
    library.write_bytes(b"\x7fELF")
    check = answers(berth, root, "gpu")["gpu.damaged-files"]
    assert check["status"] == "warning"
    (line,) = check["details"]
    assert line.startswith(f"'{library}': ") and not line.endswith("ignoring it")
    warned = berth.run("--driver-root", root, "gpu", "list").stderr
    assert f"berth: warning: {line}, ignoring it; try: install the driver again\n" in warned


@pytest.mark.profiles("root")
@pytest.mark.parametrize("place,status", [("root", "warning"), ("state", "ok")])
def test_noexec_counts_where_volumes_of_driver_files_lie(berth, tree, busybox, place, status):
    """The control: a program in such a volume."""
    root = tree("one")
    berth.ok("run", "--rm", busybox, "true")
    run = ("run", "--rm", "--gpus", "all", "--gpu-driver", "volume", busybox, "/usr/local/nvidia/bin/nvidia-smi")
    script = 'mount --bind $1 $1 && mount -o remount,bind,noexec $1 && shift && exec "$@"'

    def below_noexec(*words):
        argv = berth.argv("--driver-root", root, *words)
        return subprocess.run(["unshare", "-m", "sh", "-ec", script, "sh", getattr(berth, place), *argv],
                              capture_output=True, text=True, timeout=60)
    told = json.loads(below_noexec("doctor", "--format", "json").stdout)
    (check,) = [one for one in told["checks"] if one["id"] == "storage.mount-flags"]
    assert check["status"] == status
    assert below_noexec(*run).returncode == (0 if status == "ok" else 126)


@pytest.mark.profiles("user", "single_id")
def test_a_proc_that_is_partly_covered(berth, busybox):
    """As in a container, LXD or a Slurm node that is a pod: told by doctor and by the start, and
    the way that both name works."""
    berth.ok("pull", "-q", busybox)

    def covered(*words):
        script = 'mount -t tmpfs none /proc/sys/fs && exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *berth.argv(*words)],
                              capture_output=True, text=True, timeout=60, cwd=berth.directory,
                              env=berth.account.environment())

    def procfs(done):
        (check,) = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "host.procfs"]
        return check["status"]
    assert procfs(berth.run("doctor", "--format", "json")) == "ok"
    assert procfs(covered("doctor", "--format", "json")) == "problem"
    refused = covered("run", "--rm", busybox, "true")
    assert refused.returncode == 125 and "berth run --pid host" in refused.stderr, refused
    assert covered("run", "--rm", "--pid", "host", busybox, "echo", "up").stdout == "up\n"


@pytest.mark.profiles("root")
def test_driver_files_that_cannot_be_executed(berth, tree, work):
    root = tree("one")
    script = ("mount -t tmpfs -o noexec tmpfs $1/usr && mkdir -p $1/usr/lib/x86_64-linux-gnu && "
              "cp -a $2/. $1/usr/lib/x86_64-linux-gnu && shift 2 && exec \"$@\"")
    copy = work / "libraries"
    shutil.copytree(root / "usr/lib/x86_64-linux-gnu", copy, symlinks=True)
    argv = berth.argv("--driver-root", root, "doctor", "gpu", "--format", "json")
    done = subprocess.run(["unshare", "-m", "sh", "-ec", script, "sh", root, copy, *argv],
                          capture_output=True, text=True, timeout=60)
    found = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["gpu.noexec"]["status"] == "problem"


def write_cdi(root, name="nvidia.yaml", **changes):
    values = {"version": VERSION, "major": 195, "node": "/dev/nvidia0", **changes}
    directory = root / "etc/cdi"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(f"""cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: {values["node"]}
      major: {values["major"]}
      minor: 0
      type: c
containerEdits:
  mounts:
  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{values["version"]}
    containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{values["version"]}
    options: [ro, nosuid, nodev, bind]
""")


def test_a_fresh_cdi_file(berth, tree):
    root = tree("one")
    write_cdi(root)
    found = answers(berth, root, "gpu")
    for name in ("gpu.cdi-files", "gpu.cdi-driver", "gpu.cdi-nodes", "gpu.cdi-missing-files"):
        assert found[name]["status"] == "ok", found[name]


def test_a_cdi_file_of_an_older_driver(berth, tree):
    root = tree("one")
    write_cdi(root, version="550.54.14")
    found = answers(berth, root, "gpu")
    file = f"{root}/etc/cdi/nvidia.yaml"
    assert found["gpu.cdi-driver"]["cause"] == (
        f"'{file}' is of driver 550.54.14, this machine has {VERSION}")
    assert found["gpu.cdi-missing-files"]["cause"] == (
        f"'{file}' names '/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14', which is not there")
    assert found["gpu.cdi-driver"]["status"] == found["gpu.cdi-missing-files"]["status"] == "problem"


def test_a_cdi_file_with_old_numbers(berth, tree):
    root = tree("one")
    write_cdi(root, major=240)
    status, cause, _ = finding(berth, root, "gpu.cdi-nodes")
    assert (status, cause) == (
        "problem", f"'{root}/etc/cdi/nvidia.yaml': '/dev/nvidia0' is 195:0, the file says 240:0")


def test_a_cdi_file_with_a_node_that_is_gone(berth, tree):
    root = tree("one")
    write_cdi(root, node="/dev/nvidia9")
    assert finding(berth, root, "gpu.cdi-nodes")[1].endswith("'/dev/nvidia9' is not there")


def test_a_cdi_file_that_cannot_be_read(berth, tree):
    root = tree("one")
    (root / "var/run/cdi").mkdir(parents=True)
    (root / "var/run/cdi/broken.json").write_text("{")
    status, cause, remedy = finding(berth, root, "gpu.cdi-files")
    assert status == "problem"
    assert "broken.json" in cause
    assert remedy.startswith("berth cdi validate")


def test_nvidias_toolkit_and_its_hooks(berth, tree):
    root = tree("one")
    config = root / "etc/nvidia-container-runtime/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("disable-require = false\n[nvidia-container-cli]\nno-cgroups = true\n")
    hook = root / "usr/share/containers/oci/hooks.d/oci-nvidia-hook.json"
    hook.parent.mkdir(parents=True)
    hook.write_text('{"hook": {"path": "/usr/bin/nvidia-container-toolkit"}}')
    found = answers(berth, root, "gpu")
    assert found["gpu.toolkit-config"]["details"] == ["nvidia-container-cli.no-cgroups = true"]
    assert found["gpu.old-hooks"]["details"] == [str(hook)]


def test_a_toolkit_configuration_that_is_no_toml_is_named_with_its_line(berth, tree):
    root = tree("one")
    config = root / "etc/nvidia-container-runtime/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("disable-require = false\nno-cgroups =\n")
    check = answers(berth, root, "gpu")["gpu.toolkit-config"]
    assert check["status"] == "warning"
    assert check["cause"].startswith(f"NVIDIA's toolkit cannot read its configuration: {config}:2: ")


def test_selinux_that_keeps_containers_from_devices(berth, tree):
    root = tree("one")
    (root / "sys/fs/selinux/booleans").mkdir(parents=True)
    (root / "sys/fs/selinux/enforce").write_text("1")
    (root / "sys/fs/selinux/booleans/container_use_devices").write_text("0 0")
    assert finding(berth, root, "gpu.selinux")[0] == "warning"
    (root / "sys/fs/selinux/booleans/container_use_devices").write_text("1 1")
    assert finding(berth, root, "gpu.selinux")[0] == "ok"


def test_a_gpu_that_has_fallen_off_the_bus(berth, tree):
    root = tree("eight")
    (root / "sys/bus/pci/drivers/nvidia").mkdir(parents=True)
    for address in os.listdir(root / "sys/bus/pci/devices"):
        (root / f"sys/bus/pci/drivers/nvidia/{address}").symlink_to(f"../../devices/{address}")
    assert finding(berth, root, "gpu.lost")[0] == "ok"
    shutil.rmtree(root / "proc/driver/nvidia/gpus/0000:61:00.0")
    status, cause, _ = finding(berth, root, "gpu.lost")
    assert (status, cause) == ("problem", "the module has the GPU at 0000:61:00.0 and does not list it")


def test_nvswitch_without_a_fabric_manager(berth, tree):
    root = tree("eight")
    (root / "proc/driver/nvidia-nvswitch/devices/0000:05:00.0").mkdir(parents=True)
    shutil.rmtree(root / "run/nvidia-fabricmanager", ignore_errors=True)
    assert finding(berth, root, "gpu.fabric-manager")[0] == "problem"


def test_a_terminal_gets_folded_lines_in_colour(berth, tree):
    terminal = berth.terminal("--driver-root", tree("one", "--no-uvm"), "doctor", "gpu")
    status = terminal.wait()
    lines = terminal.output.replace("\r", "").splitlines()
    assert status == 1
    assert any("\x1b[1;31mproblem" in line for line in lines)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert [line for line in plain if len(line) > 80 and " " in line.strip()[40:]] == []
    plain_terminal = berth.terminal("--driver-root", "/", "doctor", "gpu", env={"NO_COLOR": "1"})
    plain_terminal.wait()
    assert "\x1b" not in plain_terminal.output


def test_quiet_shows_what_is_wrong_alone(berth, tree):
    done = berth.run("--driver-root", tree("one", "--no-uvm"), "doctor", "gpu", "--quiet")
    assert done.returncode == 1
    assert "  ok " not in done.stdout
    assert "problem  uvm" in done.stdout


@pytest.mark.profiles("root")
def test_the_document_has_every_check_in_the_order_of_the_program(berth):
    told = list(answers(berth, "/"))
    text = (TESTS.parent / "docs/doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z]+\.[a-z-]+)` \|", text, re.MULTILINE) == told


@pytest.mark.profiles("root")
def test_it_searches_where_the_policy_says(berth, tree, work):
    root = tree("one", "--libdir", "srv/driver", "--cache", "none")
    (root / "etc/ld.so.conf.d/nvidia.conf").unlink()
    config = work / "config"
    config.mkdir()

    def libraries():
        done = berth.run("--config-dir", config, "--driver-root", root, "doctor", "gpu", "--format", "json")
        (check,) = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "gpu.libraries"]
        return check

    assert libraries()["status"] == "problem"
    (config / "policy.toml").write_text('[gpu]\nlibrary-directories = ["/srv/nowhere"]\n')
    berth.ok("--config-dir", config, "policy", "apply")
    assert libraries()["details"][0] == "/srv/nowhere"
    (config / "policy.toml").write_text('[gpu]\nlibrary-directories = ["/srv/driver"]\n')
    berth.ok("--config-dir", config, "policy", "apply")
    assert libraries()["status"] == "ok"


@pytest.fixture
def unfit_programs(work, programs):
    """Berth's programs, of which berth-transfer lacks a library here."""
    place = work / "unfit"
    place.mkdir()
    for program in programs.glob("berth*"):
        if program.name not in ("berth-transfer", "berth"):
            (place / program.name).symlink_to(program)
    build = ["cc", "-shared", "-Wl,-soname,libgone.so", "-o", work / "libgone.so", "-x", "c", "/dev/null"]
    subprocess.run(build, check=True)
    subprocess.run(["cc", "-o", place / "berth-transfer", "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed",
                    work / "libgone.so"], check=True, input=b"int main(){return 0;}")
    (work / "libgone.so").unlink()
    return place


def test_a_program_that_was_built_for_another_system_is_told(berth, tree, unfit_programs, listing):
    env = {"BERTH_LIBEXEC_DIR": unfit_programs}
    before = listing()
    done = berth.run("pull", "127.0.0.1:1/no/image", env=env)
    *loader, line = done.stderr.splitlines()
    assert done.returncode == 1 and len(loader) == 1 and loader[0].startswith("berth-transfer: ")
    assert line == (f"berth: start {unfit_programs}/berth-transfer: error while loading shared libraries: libgone.so: "
                    "cannot open shared object file: No such file or directory; "
                    "try: install the Berth that was built for this system, or build it here")
    assert listing() == before
    told = answers(berth, tree(), env=env)["host.programs"]
    assert told["status"] == "problem" and "libgone.so" in told["cause"] and "built for this system" in told["remedy"]
