# SPDX-License-Identifier: Apache-2.0
"""What berth-runtime adds to a bundle by itself: GPUs of a synthetic driver, and the lines that say
why not. tests/callers/test_gpu.py has the same under Docker, containerd and podman."""

import json
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from support import missing_calls
from support.device_cgroup import job_without, numbers_of
from support.oci_fixtures import (bundle, kind, mounted_hierarchies, ok, place, runtime,  # noqa: F401
                                  start, until)

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
NODES = "for node in /dev/nvidia*; do [ ! -c $node ] || echo $node; done"
SECOND = ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia5", "/dev/nvidiactl"]
SYNTHETIC = "berth-runtime: warning: the driver tree is synthetic: these are not real GPUs\n"
FAILED = "cannot run container 'c1': cannot give the container its devices: "
# An open() that the rules let through finds no driver of this machine behind the number.
GIVEN, DENIED = "No such device or address", "Operation not permitted"


class Site:
    """A policy and a state directory of the test's own, and a driver tree that it may change."""

    def __init__(self, runtime, place, tree):
        self.directory, self.state, self.tree = place / "site", place / "berth", tree
        self.directory.mkdir()
        self.flags = []
        plain = runtime.command

        def command(*words):
            argv = plain(*words)
            flags = ["--config-dir", str(self.directory), "--state", str(self.state), *self.flags]
            program = argv.index(runtime.program)
            return [*argv[:program + 1], *flags, *argv[program + 1:]]
        runtime.command = command

    def write(self, **gpu):
        policy = {"gpu": {"driver-root": str(self.tree), **gpu}}
        path = self.directory / "policy.json"
        path.write_text(json.dumps({"format": 1, "policy": policy}))
        path.chmod(0o644)


@pytest.fixture
def site(runtime, place, driver_tree, monkeypatch):
    # Where the berth of an ordinary user keeps images.
    monkeypatch.setenv("HOME", str(place))
    tree = place / "driver"
    subprocess.run(["cp", "--archive", driver_tree("eight"), tree], check=True)
    made = Site(runtime, place, tree)
    made.write(environment="grant")
    return made


def asks(bundle, devices="1", *more):
    bundle.process["env"] = ["PATH=/bin", f"NVIDIA_VISIBLE_DEVICES={devices}", *more]
    return bundle


def test_a_variable_grants_where_the_policy_says_so(runtime, bundle, site):
    done = runtime.run(asks(bundle).shell(NODES))
    assert (done.returncode, done.stderr) == (0, SYNTHETIC)
    assert sorted(done.stdout.split()) == SECOND
    site.write()
    assert runtime.out(bundle) == ""


def test_a_config_of_berths_own_engine_is_left_alone(runtime, bundle, site):
    site.flags = ["--decided"]
    assert runtime.out(asks(bundle).shell(NODES)) == ""


@ROOT
@pytest.mark.parametrize("stage", ["prestart", "createRuntime", "createContainer"])
def test_an_annotation_of_an_image_does_not_bring_nvidias_hook_back(runtime, bundle, site, place, stage):
    """podman adds that hook to every container, copies annotations of images, and gives the hook the
    image's variables."""
    site.write()
    hook = place / "nvidia-container-runtime-hook"
    hook.write_text(f"#!/bin/sh\ntouch {place}/ran\n")
    hook.chmod(0o755)
    bundle.config["hooks"] = {stage: [{"path": str(hook)}]}
    bundle.config["annotations"] = {"io.container.manager": "libpod", "dev.berth.gpus-decided": "yes"}
    assert runtime.run(asks(bundle, "all").args("/bin/true")).returncode == 0
    assert not (place / "ran").exists()


def test_without_a_policy_and_a_request_it_costs_one_system_call(runtime, bundle, site, place):
    (site.directory / "policy.json").unlink()
    bundle.args("/bin/true").write()
    trace = place / "trace"
    subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=%file,clone,execve",
                    *runtime.command("run", "--bundle", str(bundle.directory), "c1")], check=True)
    calls = [line for line in trace.read_text().splitlines() if str(site.directory) in line]
    calls = [line for line in calls if "execve" not in line]
    assert len(calls) == 1 and "ENOENT" in calls[0], calls
    assert str(site.state) not in "".join(
        line for line in trace.read_text().splitlines() if "execve" not in line)


@ROOT
def test_an_update_of_all_rules_leaves_the_gpus(runtime, bundle, site, start):
    asks(bundle).shell("sleep 60")
    start()
    rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 10,
                                                 "minor": 200, "access": "rw"}]
    script = ("try() { dd if=$1 of=/dev/null bs=1 count=1 2>&1 | grep -o 'No such dev.*\\|Operation.*'; }; "
              "mknod /tmp/other c 195 2; try /dev/nvidia5; try /tmp/other; rm /tmp/other")
    for _ in range(2):
        done = runtime.call("exec", "c1", "/bin/sh", "-c", script)
        assert done.stdout.splitlines() == [GIVEN, DENIED], done
        ok(runtime.call("update", "--resources", "-", "c1", stdin=None,
                        input=json.dumps({"devices": rules})))


@ROOT
def test_exec_has_the_groups_of_the_nodes(runtime, bundle, site, start):
    os.chown(site.tree / "dev/nvidia5", 0, 4242)
    (site.tree / "dev/nvidia5").chmod(0o660)
    table = site.tree / "dev/nodes"
    table.write_text(table.read_text().replace("/dev/nvidia5 195 5 666", "/dev/nvidia5 195 5 660"))
    asks(bundle).shell("id -G; sleep 60")
    start()
    until(lambda: "4242" in (bundle.directory / "out").read_text())
    assert "4242" in ok(runtime.call("exec", "c1", "/bin/id", "-G")).split()


def test_what_cannot_be_given_is_one_line(runtime, bundle, site):
    asks(bundle, "9").args("/bin/true")
    assert "no such GPU, this machine has 8 GPUs" in runtime.error(bundle)
    asks(bundle, "0", "NVIDIA_REQUIRE_CUDA=cuda>=13.0")
    assert runtime.error(bundle).startswith(FAILED + "the image requires 'cuda>=13.0'")
    asks(bundle, "," * 17000)
    assert runtime.error(bundle) == (
        FAILED + "config.json: 'NVIDIA_VISIBLE_DEVICES': longer than 16384 bytes")


def test_a_driver_that_was_removed_after_it_was_found_is_one_line(runtime, bundle, site, place):
    asks(bundle).args("/bin/true")
    assert runtime.run(bundle).returncode == 0
    shutil.rmtree(site.tree / "usr/lib")
    log = place / "log"
    bundle.write()
    done = runtime.call("--log", str(log), "--log-format", "json", "run", "--bundle",
                        str(bundle.directory), "c1")
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "no driver files were found" in line, done
    told = json.loads(log.read_text().splitlines()[-1])
    assert told["level"] == "error" and "no driver files were found" in told["msg"]


@ROOT
def test_a_policy_of_somebody_else_is_one_line(runtime, bundle, site):
    policy = site.directory / "policy.json"
    os.chown(policy, 1000, 1000)
    assert runtime.error(asks(bundle)) == (
        FAILED + f"cannot read the site's policy: read '{policy}': it belongs to another user; "
        f"try: a copy in its place, which nobody else has open: cp {policy} COPY")


@pytest.fixture(name="state_in_tmp")
def state_directory_in_tmp(site):
    with tempfile.TemporaryDirectory(prefix="berth-tests-state-", dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        site.state = directory
        yield directory


def test_an_inventory_that_another_user_left_in_tmp_is_one_line(runtime, bundle, site, state_in_tmp):
    """In a user namespace every user of the machine has the same id as its root."""
    assert runtime.run(asks(bundle).args("/bin/true")).returncode == 0
    assert os.path.exists(state_in_tmp + "/gpu")
    for path in (state_in_tmp, *(os.path.join(base, name) for base, inner, files in os.walk(state_in_tmp)
                                 for name in (*inner, *files))):
        os.chown(path, 1000, 1000, follow_symlinks=False)
        if not os.path.islink(path):
            os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
    line = runtime.error(bundle)
    assert line.startswith(FAILED) and "it belongs to another user" in line


@ROOT
def test_volumes_of_driver_files_that_another_user_can_write_are_one_line(runtime, bundle, site):
    site.write(environment="grant", **{"driver-mode": "volume"})
    assert runtime.run(asks(bundle).args("/bin/true")).returncode == 0
    os.chown(site.state / "volumes", 1000, 1000)
    line = runtime.error(bundle)
    assert line.startswith(FAILED) and f"'{site.state}/volumes': it belongs to another user" in line


def test_an_image_cannot_lead_a_driver_file_to_the_host(runtime, bundle, site, place):
    outside = place / "outside"
    outside.mkdir()
    for name in ("usr", "etc"):
        (bundle.rootfs / name).mkdir(exist_ok=True)
    (bundle.rootfs / "usr/local").symlink_to(outside)
    (bundle.rootfs / "etc/ld.so.cache").symlink_to(outside / "cache")
    (bundle.rootfs / "usr/bin").symlink_to(outside)
    runtime.run(asks(bundle).args("/bin/true"))
    assert os.listdir(outside) == []


def test_ways_of_the_driver_that_take_a_look_into_the_image_are_refused(runtime, bundle, site):
    for mode in ("copy", "image"):
        site.write(environment="grant", **{"driver-mode": mode})
        assert runtime.error(asks(bundle)) == (
            FAILED + f"driver mode '{mode}': only berth run has it; "
            "try: gpu.driver-mode of the policy: bind, volume or none")
    site.write(environment="grant", **{"driver-mode": "none"})
    done = runtime.run(asks(bundle).shell(f"{NODES}; ls -d /usr/local/nvidia || true"))
    assert sorted(done.stdout.split()) == SECOND


@ROOT
def test_an_amd_gpu_on_which_somebody_computes_is_nobodys_own(runtime, bundle, site, driver_tree):
    site.tree = site.directory.parent / "amd"
    subprocess.run(["cp", "--archive", driver_tree("amd"), site.tree], check=True)
    site.write(exclusive=True)
    bundle.linux["devices"] = [
        {"type": "c", "path": path, "major": int(major), "minor": int(minor)}
        for path, (major, minor) in numbers_of(site.tree).items()
        if path in ("/dev/kfd", "/dev/dri/renderD128")]
    with subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL) as stranger:
        queue = site.tree / f"sys/class/kfd/kfd/proc/{stranger.pid}/queues/0"
        queue.mkdir(parents=True)
        (queue / "gpuid").write_text("4001")
        line = runtime.error(bundle.args("/bin/true"))
        stranger.kill()
    assert (f"GPU 0 is held by process {stranger.pid} 'sleep' of root, which has no lease; "
            "try: berth gpu list") in line


@ROOT
def test_the_lease_of_a_node_goes_by_what_it_opens(runtime, bundle, site, start):
    site.write(exclusive=True, environment="grant")
    major, minor = numbers_of(site.tree)["/dev/nvidia5"]
    bundle.linux["devices"] = [{"type": "c", "path": "/dev/nvidia2", "major": int(major), "minor": int(minor)}]
    bundle.args("/bin/sleep", "100")
    start()
    bundle.linux["devices"] = []
    refused = runtime.run(asks(bundle.args("/bin/true"), "1"), "c2")
    assert refused.returncode == 1 and "GPU 1 is held by container 'c1'" in refused.stderr, refused
    bundle.linux["cgroupsPath"] += "-other"
    done = runtime.run(asks(bundle.shell(NODES), "0"), "c2")  # whose node is called so on the host
    assert "/dev/nvidia2" in done.stdout.split(), done


# ---- the job that the caller is in ----------------------------------------------------------------

def given(runtime, bundle):
    """The nodes of GPUs, in the order of their minors, and the last line that the container prints."""
    done = runtime.run(bundle.shell("ls /dev | grep '^nvidia[0-9]' | sort; echo $CUDA_VISIBLE_DEVICES"))
    assert done.returncode == 0, done
    *nodes, last = done.stdout.splitlines()
    return nodes, last


def test_a_job_is_the_most_that_a_container_gets(runtime, bundle, site, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert given(runtime, asks(bundle, "all")) == (["nvidia5", "nvidia7"], "1,0")
    line = runtime.error(asks(bundle, "0"))
    assert line.startswith(FAILED + "NVIDIA_VISIBLE_DEVICES=0: ") and "CUDA_VISIBLE_DEVICES=3,1" in line
    # The job's number, as Slurm puts it into a configuration of its own, is made right; another
    # value is the user's.
    assert given(runtime, asks(bundle, "3", "CUDA_VISIBLE_DEVICES=3,1")) == (["nvidia7"], "0")
    assert given(runtime, asks(bundle, "all", "CUDA_VISIBLE_DEVICES=1"))[1] == "1"
    monkeypatch.delenv("SLURM_JOB_ID")
    assert given(runtime, asks(bundle, "0")) == (["nvidia2"], "")


def test_a_job_alone_grants_nothing(runtime, bundle, site, monkeypatch):
    """An engine may have been started from a job's shell."""
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    site.write(environment="grant", scheduler="grant")
    assert runtime.out(bundle.shell(NODES)) == ""


def test_a_policy_may_have_jobs_ignored(runtime, bundle, site, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    site.write(environment="grant", scheduler="ignore")
    assert given(runtime, asks(bundle, "0")) == (["nvidia2"], "")


@ROOT
def test_gpus_that_the_callers_device_cgroup_denies_are_not_there(runtime, bundle, site):
    numbers = numbers_of(site.tree)
    runtime.run(asks(bundle, "all").args("/bin/true"))  # the inventory has all of the machine's
    denied = [numbers[f"/dev/nvidia{minor}"] for minor in (2, 5, 0, 7, 4, 6)]
    with job_without("berth-test-runtime-job", denied) as begin:
        runtime.prefix = begin
        assert given(runtime, asks(bundle, "all"))[0] == ["nvidia1", "nvidia3"]
        assert given(runtime, asks(bundle, "1"))[0] == ["nvidia3"]
        assert "no such GPU, this machine has 2 GPUs" in runtime.error(asks(bundle, "2"))
        runtime.prefix = []


# ---- what the image has of a driver ---------------------------------------------------------------

def own_driver(directory):
    directory.mkdir(parents=True)
    (directory / "libcuda.so.1.0").write_text("the image's\n")
    (directory / "libcuda.so.1").symlink_to("libcuda.so.1.0")


def loaded(runtime, bundle, path, *before):
    """What lies at `path` where the loader is told to look for it first."""
    directory = path[:path.rindex("/")]
    ours = "/usr/local/nvidia/lib64"
    order = ":".join((*before, directory, ours))
    script = (f"head -c 4 {path} | grep -q ELF && echo driver || grep -o \"the .*'s\" {path}; "
              f"head -c 4 {ours}/libcuda.so.1 | grep -q ELF || echo none")
    done = runtime.run(asks(bundle, "1", f"LD_LIBRARY_PATH={order}").shell(script))
    assert done.returncode == 0, done
    return done.stdout.strip()


@pytest.mark.parametrize("directory", ["/opt/lib", "/usr/lib/x86_64-linux-gnu", "/way"])
def test_the_drivers_library_lies_over_one_of_the_image_that_would_come_first(runtime, bundle, site, directory):
    if directory == "/way":
        own_driver(bundle.rootfs / "opt/lib")
        (bundle.rootfs / "way").symlink_to("/opt/lib/../lib")
    else:
        own_driver(bundle.rootfs / directory[1:])
    assert loaded(runtime, bundle, f"{directory}/libcuda.so.1") == "driver"
    # What comes later is as the image has it.
    assert loaded(runtime, bundle, f"{directory}/libcuda.so.1", "/usr/local/nvidia/lib64") == "the image's"


def test_a_library_of_a_volume_or_a_compat_package_is_left_alone(runtime, bundle, site, place):
    own_driver(bundle.rootfs / "usr/local/cuda-12/compat")
    (bundle.rootfs / "usr/local/cuda").symlink_to("cuda-12")
    assert loaded(runtime, bundle, "/usr/local/cuda/compat/libcuda.so.1").split("\n")[0] == "the image's"
    site.write(environment="grant", **{"forward-compatibility": False})
    assert loaded(runtime, bundle, "/usr/local/cuda/compat/libcuda.so.1") == "driver"
    own_driver(place / "volume")
    bundle.mount("/opt/lib", place / "volume", "bind")
    assert loaded(runtime, bundle, "/opt/lib/libcuda.so.1") == "the image's"


def test_no_file_is_made_in_a_volume_for_a_library_that_the_image_has_below_it(runtime, bundle, site, place):
    (place / "volume").mkdir(mode=0o777)
    own_driver(bundle.rootfs / "data")
    (bundle.rootfs / "way").symlink_to("data")
    bundle.mount("/data", place / "volume", "bind")
    for directory in ("/data", "/way"):
        runtime.run(asks(bundle, "1", f"LD_LIBRARY_PATH={directory}").args("/bin/true"))
        assert os.listdir(place / "volume") == []


def cdi_file(site, place, node):
    directory = place / "cdi"
    directory.mkdir()
    (directory / "vendor.json").write_text(json.dumps({
        "cdiVersion": "0.5.0", "kind": "vendor.com/thing",
        "devices": [{"name": "one", "containerEdits": {
            "env": ["THING=one"], "deviceNodes": [{"path": "/dev/thing", "hostPath": node}],
            "mounts": [{"hostPath": str(site.tree), "containerPath": "/opt/tree"}],
            "hooks": [{"hookName": "createContainer", "path": "/bin/false"}]}}]}))
    return {"cdi-directories": [str(directory)]}


def test_driver_mode_image_takes_nodes_alone_of_a_cdi_device(runtime, bundle, site, place):
    found = cdi_file(site, place, "/dev/full")
    bundle.config["annotations"] = {"cdi.k8s.io/x": "vendor.com/thing=one"}
    bundle.shell("stat -c %t:%T /dev/thing; echo $THING; ls /opt")
    site.write(**found, **{"driver-mode": "image"})
    done = runtime.run(bundle)
    assert done.stdout.splitlines() == ["1:7", "one"], done
    assert done.stderr.splitlines()[0] == (
        "berth-runtime: warning: driver mode 'image': CDI devices give only nodes and variables, ignoring their "
        "mounts, links and hooks")
    site.write(**found)
    assert runtime.run(bundle).returncode == 1  # the hook


# ---- what takes long, what cannot be --------------------------------------------------------------

@pytest.mark.long
@ROOT
def test_a_berth_that_does_not_end_stops_a_start_after_30_seconds(runtime, bundle, site, place):
    programs = place / "programs"
    programs.mkdir()
    shutil.copy(runtime.program, programs)
    (programs / "berth").write_text("#!/bin/sh\nexec sleep 600\n")
    (programs / "berth").chmod(0o755)
    runtime.program = str(programs / "berth-runtime")
    plain = type(runtime).command
    runtime.command = lambda *words: [
        *(argv := plain(runtime, *words))[:1], "--config-dir", str(site.directory), "--state",
        str(site.state), *argv[1:]]
    begin = time.monotonic()
    line = runtime.error(asks(bundle))
    assert line == (FAILED + f"cannot look for this machine's GPUs: run '{programs}/berth': no end within 30000 ms")
    assert 29 < time.monotonic() - begin < 45


@ROOT
@pytest.mark.parametrize("names", [("bpf",), ("bpf", "clone3")], ids=" ".join)
def test_the_device_lists_of_v1_hold_a_container_to_its_gpus(runtime, bundle, site, names):
    if "devices" not in mounted_hierarchies():
        pytest.skip("no cgroup v1 for device rules")
    script = ("try() { dd if=$1 of=/dev/null bs=1 count=1 2>&1 | grep -o 'No such dev.*\\|Operation.*'; }; "
              "mknod /tmp/other c 195 2; try /dev/nvidia5; try /tmp/other")
    done = runtime.run(asks(bundle).shell(script), preexec_fn=missing_calls.without(*names))
    assert done.stdout.splitlines() == [GIVEN, DENIED], done
