# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own MPS daemon as Berth starts it for --gpu-cores and --gpu-memory, and NVML of every branch as
berth-gpu-probe asks it. No GPU is needed: proc, sys and dev are synthetic.

Without a kernel module the real NVML says only that no driver is loaded. So where MPS is tested, NVML is a stub
(tests/support/nvml_stub.c); the daemon, its server and libcuda are NVIDIA's. Without a card the server ends after its
start. A program then gets CUDA_ERROR_MPS_CONNECTION_FAILED (805), and without MPS CUDA_ERROR_NO_DEVICE (100): so 805
shows that libcuda has found the daemon. What NVML says of a module is in test_stand_in.py."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from integration.test_gpu_mps import daemons, keepers, line_of, shares
from support import images, reachable_trees, real_drivers, start_images
from support.berth import Berth
from support.bundle import PROGRAMS
from support.processes import command_lines
from support.waiting import wait_until

STUB = PROGRAMS.parent / "lib/libnvml_stub.so"
WITH_MPS = ("470", "535", "550")
CORES, MEMORY = ("--gpu-cores", "25"), ("--gpu-memory", "1g")
NO_DEVICE, NO_SERVER = "100", "805"
SECONDS = 10  # that any question may take
everybody = pytest.mark.profiles("root", "user", "single_id")


@pytest.fixture(scope="module")
def trees(session_directory):
    with reachable_trees.trees(session_directory) as make:
        yield make


# ---- MPS ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def with_stub(trees, driver_tree):
    """with_stub(branch) → a tree whose NVML is the stub."""
    made = {}

    def make(branch):
        if branch not in made:
            tree = trees(branch, private=True)
            kind = "boards" if int(branch) <= 470 else "eight"
            (nvml,) = {path for path in tree.root.rglob(f"libnvidia-ml.so.{tree.version}")
                       if "i386" not in str(path) and not path.is_symlink()}
            reachable_trees.replace(nvml, STUB.read_bytes())
            facts = driver_tree(kind, "--version", tree.version, "--gpus", "2") / "nvml.facts"
            (tree.root / "nvml.facts").write_bytes(facts.read_bytes())
            made[branch] = tree
        return made[branch]
    return make


@pytest.fixture(scope="module")
def image(registry):
    images.build(start_images.debian_layers(), {"Env": ["PATH=/usr/sbin:/usr/bin"]}).push(registry, "test/mps")
    return f"{registry.address}/test/mps:latest"


class Machine:
    """A user's command line on a machine with NVIDIA's MPS of one branch."""

    def __init__(self, berth, tree, image):
        self.berth, self.tree, self.image = berth, tree, image
        self.flags = ("--driver-root", tree.root)
        berth.ok("pull", "--quiet", image)
        berth.run(*self.flags, "gpu", "list")  # warns

    def start(self, name, *limits):
        self.berth.ok(*self.flags, "run", "-d", "--name", name, "--stop-timeout", "0", "--gpus", "all", *limits,
                      self.image, "sleep", "1000")

    def asks(self, name, *flags):
        """What CUDA says to a program in a running container."""
        done = self.berth.run(*self.flags, "exec", *flags, name, "/ask", timeout=SECONDS)
        assert done.returncode == 0, done
        return start_images.answers(done.stdout)["cuInit"]

    def daemon(self, command):
        """What NVIDIA's control program says that asks the daemon of the only share."""
        [share] = shares(self.berth)
        done = self.berth.account.run(["env", f"CUDA_MPS_PIPE_DIRECTORY={share}/daemon",
                                       self.tree.root / "usr/bin/nvidia-cuda-mps-control"], input=command + "\n",
                                      timeout=SECONDS)
        return done.stdout.strip()

    def log(self):
        [share] = shares(self.berth)
        return (share / "logs/daemon.log").read_text()

    def remove(self, *names):
        self.berth.ok("rm", "--force", *names)

    def end(self):
        names = self.berth.ok("ps", "-aq").split()
        if names:
            self.remove(*names)
        wait_until(lambda: not shares(self.berth) and not keepers(self.berth))


@pytest.fixture(params=WITH_MPS)
def machine(request, berth, with_stub, image):
    made = Machine(berth, with_stub(request.param), image)
    yield made
    made.end()


newer = pytest.mark.parametrize("machine", ["535", "550"], indirect=True)


@everybody
def test_a_program_reaches_the_daemon_which_knows_the_limit(machine):
    machine.start("held", *CORES)
    assert machine.daemon("get_default_active_thread_percentage") == "25.0"
    assert machine.asks("held") == NO_SERVER
    # The daemon of an ordinary user is in the user's namespace, where he is user 0.
    assert re.search(r"NEW CLIENT \d+ from user 0:", machine.log())
    machine.start("free")
    assert machine.asks("free") == NO_DEVICE


@everybody
@newer
def test_the_daemon_knows_the_limit_of_memory_of_each_gpu(machine):
    machine.start("held", *CORES, *MEMORY)
    assert [machine.daemon(f"get_default_device_pinned_mem_limit {gpu}") for gpu in (0, 1)] == ["1G", "1G"]
    assert machine.daemon("get_default_active_thread_percentage") == "25.0"
    assert machine.asks("held") == NO_SERVER


@pytest.mark.profiles("root")
@pytest.mark.parametrize("machine", ["470"], indirect=True)
def test_a_daemon_that_has_no_limit_of_memory_starts_nothing(machine):
    done = machine.berth.run(*machine.flags, "run", "--rm", "--gpus", "all", *MEMORY, machine.image, "true")
    assert done.returncode == 125 and done.stderr.splitlines()[-1] == (
        "berth: NVIDIA's MPS daemon does not accept the limit of memory, it says 'Unknown command "
        "\"get_default_device_pinned_mem_limit\"'; try: a newer driver, a MIG slice, or leave it out")
    assert shares(machine.berth) == [] and keepers(machine.berth) == []


@pytest.mark.profiles("root", "user")
def test_containers_see_the_pipes_and_nothing_that_changes_limits(machine):
    machine.start("held", *CORES)
    shown = machine.berth.ok(*machine.flags, "exec", "held", "sh", "-c", "ls /tmp/nvidia-mps")
    assert shown.split() == ["control", "log"]
    [share] = shares(machine.berth)
    assert "control_privileged" in os.listdir(share / "daemon")


@pytest.mark.profiles("root")
def test_a_user_of_the_container_is_served_as_himself(machine):
    machine.start("held", *CORES)
    assert machine.asks("held", "--user", "1000") == NO_SERVER
    assert "from user 1000" in machine.log()


@everybody
def test_a_daemon_that_is_killed_is_back_with_its_limits(machine):
    machine.start("held", *CORES)
    before = line_of(machine.berth)
    os.kill(before[1], signal.SIGKILL)
    wait_until(lambda: len(daemons(machine.berth)) == 2 and not set(before) & set(daemons(machine.berth)))
    wait_until(lambda: machine.daemon("get_default_active_thread_percentage") == "25.0")
    wait_until(lambda: machine.asks("held") == NO_SERVER)


@pytest.mark.profiles("root")
def test_a_daemon_that_is_told_to_quit_is_back_with_its_limits(machine):
    machine.start("held", *CORES)
    before = set(daemons(machine.berth))
    machine.daemon("quit")
    wait_until(lambda: len(daemons(machine.berth)) == 2 and not before & set(daemons(machine.berth)))
    wait_until(lambda: machine.daemon("get_default_active_thread_percentage") == "25.0")


@everybody
def test_a_share_serves_all_with_its_limits_and_ends_with_the_last(machine):
    for name in ("first", "second"):
        machine.start(name, *CORES)
        assert machine.asks(name) == NO_SERVER
    assert len(shares(machine.berth)) == 1
    machine.remove("first")
    assert machine.asks("second") == NO_SERVER
    machine.remove("second")
    wait_until(lambda: not shares(machine.berth))
    assert not any(b"mps-control" in line for line in command_lines().values())


@everybody
def test_a_container_that_starts_again_has_a_daemon_again(machine):
    machine.start("held", *CORES)
    machine.berth.ok("stop", "held")
    wait_until(lambda: not shares(machine.berth))
    machine.berth.ok(*machine.flags, "start", "held")
    assert machine.daemon("get_default_active_thread_percentage") == "25.0"
    assert machine.asks("held") == NO_SERVER


@pytest.mark.profiles()
@pytest.mark.parametrize("branch", WITH_MPS)
def test_two_users_have_a_daemon_each(programs, accounts, work, with_stub, image, branch):
    made = [Machine(Berth(programs, accounts[kind], work / kind), with_stub(branch), image)
            for kind in ("root", "user")]
    try:
        for machine, percent in zip(made, ("25", "50")):
            machine.start("held", "--gpu-cores", percent)
        for machine, percent in zip(made, ("25.0", "50.0")):
            assert machine.daemon("get_default_active_thread_percentage") == percent
            assert machine.asks("held") == NO_SERVER
            assert len(re.findall(r"NEW CLIENT \d+ from user 0:", machine.log())) == 1
        os.kill(line_of(made[0].berth)[1], signal.SIGKILL)
        assert made[1].asks("held") == NO_SERVER
    finally:
        for machine in made:
            machine.end()


@everybody
def test_the_server_loads_the_drivers_libcuda(machine):
    machine.start("held", *CORES)
    machine.asks("held")
    wait_until(lambda: "Driver initialization failed with: no CUDA-capable device is detected" in machine.log(), 3)


# ---- NVML ---------------------------------------------------------------------------------------

def library(branch):
    """libnvidia-ml of a kept driver."""
    driver = reachable_trees.driver(branch)
    (found,) = {os.path.realpath(driver.root / file) for file in driver.versioned
                if "/libnvidia-ml.so." in file and "i386" not in file}
    return pathlib.Path(found)


def functions(branch):
    told = subprocess.run(["nm", "--dynamic", "--defined-only", library(branch)], check=True, capture_output=True,
                          text=True).stdout
    return set(re.findall(r" T (nvml\w+)", told))


def called():
    """The functions that berth-gpu-probe may call: their names are in the program."""
    names = {name.decode() for name in re.findall(rb"nvml[A-Z]\w+", (PROGRAMS / "berth-gpu-probe").read_bytes())}
    kinds = {f"nvmlDeviceGet{kind}RunningProcesses{variant}" for kind in ("Compute", "MPSCompute", "Graphics")
             for variant in ("", "_v2")}
    return {name for name in names if name not in ("nvmlDeviceGet",)} | kinds


MIG = {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetGpuInstanceId",
       "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetMigMode"}
# What NVML of a branch does not have of the functions that the probe calls. An older variant is asked in its place,
# or the fact is not known with this driver.
SINCE_450 = MIG | {"nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetMemoryInfo_v2",
                   "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v2",
                   "nvmlDeviceGetMPSComputeRunningProcesses_v2"}
MISSING = {
    "340": SINCE_450 | {"nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                        "nvmlDeviceGetNvLinkState", "nvmlDeviceGetP2PStatus", "nvmlDeviceGetPciInfo_v3",
                        "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses",
                        "nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"},
    "390": SINCE_450 | {"nvmlSystemGetCudaDriverVersion_v2"},
    "418": SINCE_450,
    "450": {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
    "470": {"nvmlDeviceGetMemoryInfo_v2"},
    "535": set(),
    "550": set(),
}
@pytest.mark.profiles()
@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_functions_that_this_nvml_does_not_have(branch):
    assert called() - functions(branch) == MISSING[branch]


@pytest.mark.profiles()
@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_an_older_variant_is_asked_where_there_is_one(branch):
    """Of the functions that a branch lacks and has in an older variant."""
    has, asked = functions(branch), called()
    bases = {re.sub(r"_v\d$", "", name) for name in MISSING[branch]}
    older = {name for name in has if re.sub(r"_v\d$", "", name) in bases and name + "_v2" not in has}
    assert {re.sub(r"_v\d$", "", name) for name in older} <= {re.sub(r"_v\d$", "", name) for name in older & asked}


@pytest.mark.profiles()
@pytest.mark.parametrize("words", [(), ("--use",), ("--compute-mode", "GPU-0", "default")], ids=" ".join)
@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_nvml_without_a_module_is_one_line(branch, words):
    done = subprocess.run([PROGRAMS / "berth-gpu-probe", *words, library(branch)], capture_output=True, text=True,
                          timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "nvmlInit_v2: Driver Not Loaded\n")


@pytest.mark.profiles()
def test_libraries_that_are_no_nvml_are_one_line_and_no_crash():
    """Others of NVIDIA's, an NVML of 32 bits, and one that is cut short."""
    driver = reachable_trees.driver("550")
    others = [driver.root / file for file in driver.versioned
              if re.search(r"/lib(cuda|nvidia-(ml|cfg|encode|opencl))\.so", file) and file not in str(library("550"))
              and os.path.realpath(driver.root / file) != str(library("550"))]
    assert len(others) >= 5
    for path in others:
        done = subprocess.run([PROGRAMS / "berth-gpu-probe", path], capture_output=True, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (path, done)


@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
@pytest.mark.profiles("root", "user")
def test_commands_go_on_without_nvml(berth, trees, branch):
    tree = trees(branch)
    began = time.monotonic()
    listed = berth.run("--driver-root", tree.root, "gpu", "list", "--format", "json", timeout=SECONDS)
    told = json.loads(listed.stdout)
    assert listed.returncode == 0 and len(told["gpus"]) == 2 and told["nvml"] == "nvmlInit_v2: Driver Not Loaded"
    assert "NVML: nvmlInit_v2: Driver Not Loaded, using procfs and file names instead" in listed.stderr
    for words in (("gpu", "top", "--once"), ("doctor", "gpu"), ("stats", "--no-stream"), ("metrics",)):
        done = berth.run("--driver-root", tree.root, *words, timeout=SECONDS)
        assert done.returncode in (0, 1), (words, done)
    assert time.monotonic() - began < 5 * SECONDS


@pytest.mark.profiles("root")
@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_doctor_says_what_nvml_says(berth, trees, branch):
    told = berth.run("--driver-root", trees(branch).root, "doctor", "gpu").stdout
    assert re.search(r"problem  nvml +NVML fails: nvmlInit_v2: Driver Not Loaded\n", told), told


@pytest.mark.profiles("root")
@pytest.mark.parametrize("branch", real_drivers.BRANCHES)
def test_nvml_is_not_asked_where_the_module_is_of_another_version(berth, trees, branch):
    tree = reachable_trees.with_module(trees(branch, private=True), f"{branch}.1.1")
    listed = json.loads(berth.ok("--driver-root", tree.root, "gpu", "list", "--format", "json"))
    assert listed["nvml"] == "missing"
    assert listed["problems"] == [f"driver files are {tree.version} but the kernel module is {branch}.1.1; try: reboot "
                                  "or reload the module"]
    assert "not queried while module and files differ" in berth.run("--driver-root", tree.root, "doctor", "--format",
                                                                    "json", "gpu").stdout
