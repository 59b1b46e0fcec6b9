# SPDX-License-Identifier: Apache-2.0
"""Who may ask for GPUs, and what becomes of it: flags, the site's policy, the variables of image,
user and batch job, and the name that the program was called by. With synthetic driver trees."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest

from support import images
from support.device_cgroup import job_without, numbers_of

SHOW = ("sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; ls /dev | grep '^nvidia[0-9]'; true")
JOB = {"SLURM_JOB_ID": "17"}
# The minors of the eight GPUs in the order of their PCI addresses.
MINORS = [2, 5, 0, 7, 1, 4, 3, 6]


def nodes(*indices):
    """The lines of `ls` for these GPUs."""
    return sorted(f"nvidia{MINORS[index]}" for index in indices)


@pytest.fixture
def site(berth, work):
    """site(text) puts that policy.toml in force; gives the flags that name its directory."""
    directory = work / "site"
    directory.mkdir()
    os.chown(directory, berth.account.uid, berth.account.gid)

    def apply(text):
        path = directory / "policy.toml"
        path.write_text(text)
        path.chmod(0o644)
        os.chown(path, berth.account.uid, berth.account.gid)
        flags = ("--config-dir", directory)
        assert berth.ok(*flags, "policy", "apply") == f"{directory}/policy.json\n"
        return flags
    return apply


@pytest.fixture
def eight(berth, driver_tree):
    flags = ("--driver-root", driver_tree("eight"))
    berth.run(*flags, "gpu", "list")  # its warnings come once
    return flags


@pytest.fixture
def greedy(push):
    """An image that asks for GPU 1 and 3."""
    return push(images.build([images.busybox_layer()],
                             {"Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=1,3"]}))


def granted(berth, *args, **options):
    """The nodes of the GPUs that the container of `args` has."""
    lines = berth.ok(*args, *SHOW, **options).splitlines()
    return [line for line in lines[1:]]


# ---- policy ------------------------------------------------------------------------------------

def test_an_images_variables_grant_where_policy_says_so_and_nowhere_else(berth, greedy, eight, site):
    assert granted(berth, *eight, "run", "--rm", greedy) == []
    assert granted(berth, *eight, *site('gpu.environment = "grant"'), "run", "--rm", greedy) == nodes(1, 3)
    flags = site('gpu.environment = "privileged"')
    assert granted(berth, *eight, *flags, "run", "--rm", greedy) == []


def test_a_typed_variable_that_grants_nothing_is_a_warning(berth, busybox, eight):
    done = berth.run(*eight, "run", "--rm", "-e", "NVIDIA_VISIBLE_DEVICES=all", busybox, "ls", "/dev")
    assert done.returncode == 0 and "nvidia" not in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "berth: warning: NVIDIA_VISIBLE_DEVICES=all: no GPUs are given for a variable here; "
        "try: --gpus all")


def test_a_flag_wins_over_the_variable(berth, greedy, eight, site):
    flags = site('gpu.environment = "grant"')
    assert granted(berth, *eight, *flags, "run", "--rm", "--gpus", "device=0", greedy) == nodes(0)
    assert granted(berth, *eight, *flags, "run", "--rm", "--gpus", "none", greedy) == []


def test_the_site_gives_and_withholds(berth, busybox, eight, site):
    flags = site('gpu.always = ["device=2"]\ngpu.never = ["0"]')
    assert granted(berth, *eight, *flags, "run", "--rm", busybox) == nodes(2)
    assert granted(berth, *eight, *flags, "run", "--rm", "--gpus", "all", busybox) == nodes(*range(1, 8))
    line = berth.fail(*eight, *flags, "run", "--rm", "--gpus", "device=0", busybox, "true")
    assert line == ("berth: --gpus device=0: the policy of this machine does not allow this GPU; "
                    "try: berth policy show")


def test_the_site_bounds_capabilities_and_requirements(berth, push, eight, site):
    image = push(images.build([images.busybox_layer()], {"Env": [
        "PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=99.0", "NVIDIA_DRIVER_CAPABILITIES=all"]}))
    flags = site('[gpu]\nrequirements = false\ncapabilities = ["utility"]')
    show = ("sh", "-c", "echo $NVIDIA_DRIVER_CAPABILITIES; ls /usr/local/nvidia/lib64 | grep -c libcuda.so")
    out = berth.run(*eight, *flags, "run", "--rm", "--gpus", "all", image, *show)
    assert out.stdout == "utility\n0\n"
    line = berth.fail(*eight, *flags, "run", "--rm", "--gpus", "all,capabilities=compute", image, "true")
    assert line == ("berth: capability 'compute': the policy of this machine does not allow it; "
                    "try: berth policy show")


def test_the_site_names_the_drivers_root(berth, busybox, eight, driver_tree, site):
    flags = site(f'gpu.driver-root = "{eight[1]}"')
    assert granted(berth, *flags, "run", "--rm", "--gpus", "device=7", busybox) == nodes(7)
    mig = ("--driver-root", driver_tree("mig"))  # a flag comes before it
    assert len(json.loads(berth.ok(*mig, *flags, "gpu", "list", "--format", "json"))["gpus"]) == 1


def test_volumes_ask_where_policy_lets_them(berth, busybox, eight, site):
    volume = ("-v", "/dev/null:/var/run/nvidia-container-devices/5")
    assert granted(berth, *eight, "run", "--rm", *volume, busybox) == []
    flags = site("gpu.devices-by-volume = true")
    assert granted(berth, *eight, *flags, "run", "--rm", *volume, busybox) == nodes(5)


def test_an_old_image_gets_all_where_its_variables_count(berth, push, eight, site):
    old = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "CUDA_VERSION=8.0.61"]}))
    flags = site('gpu.environment = "grant"')
    assert granted(berth, *eight, *flags, "run", "--rm", old) == nodes(*range(8))
    too_new = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "CUDA_VERSION=99.1.2"]}))
    line = berth.fail(*eight, "run", "--rm", "--gpus", "device=0", too_new, "true")
    assert line.startswith("berth: the image requires 'cuda>=99.1' (CUDA_VERSION), GPU 0 has driver ")


def test_none_gives_the_drivers_files_and_no_gpu(berth, push, eight, site):
    image = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=none"]}))
    out = berth.ok(*eight, *site('gpu.environment = "grant"'), "run", "--rm", image, "sh", "-c",
                   "ls /dev | grep '^nvidia[0-9]'; ls /usr/local/nvidia/lib64/libcuda.so.1; echo $NVIDIA_VISIBLE_DEVICES")
    assert out.splitlines() == ["/usr/local/nvidia/lib64/libcuda.so.1", "none"]


def test_a_policy_that_others_can_write_is_refused(berth, busybox, eight, site):
    flags = site('gpu.environment = "grant"')
    (pathlib.Path(flags[1]) / "policy.json").chmod(0o666)
    line = berth.fail(*flags, "run", "--rm", busybox, "true")
    assert line == (f"berth: cannot read the policy of this machine: read '{flags[1]}/policy.json': it is "
                    "writable by others; try: a copy in its place, which nobody else has open: cp "
                    f"{flags[1]}/policy.json COPY")


def test_what_is_in_force_is_what_was_applied(berth, site, work):
    flags = site('[gpu]\nenvironment = "grant"')
    shown = json.loads(berth.ok(*flags, "policy", "show", "--format", "json"))
    assert shown["policy"]["gpu"]["environment"] == "grant" and shown["stale"] is None
    assert {"key": "gpu.environment", "from": f"{flags[1]}/policy.toml:2"} in shown["keys"]
    source = pathlib.Path(flags[1]) / "policy.toml"
    source.write_text('[gpu]\nenvironment = "ignore"')
    done = berth.run(*flags, "policy", "show")
    assert 'gpu.environment             "grant"' in done.stdout
    assert "it was changed since it was applied; see 'berth policy apply'" in done.stderr
    source.write_text('[gpu]\n\ndriver-mod = "bind"')
    before = (pathlib.Path(flags[1]) / "policy.json").read_bytes()
    for verb in ("check", "apply"):
        line = berth.fail(*flags, "policy", verb, status=1)
        assert line == f"berth: {flags[1]}/policy.toml:3: gpu.driver-mod: unknown key; did you mean 'driver-mode'?"
    assert (pathlib.Path(flags[1]) / "policy.json").read_bytes() == before
    source.unlink()
    assert "it is gone, and what was applied is still in force" in berth.run(*flags, "policy", "show").stderr


def test_the_toolkits_configuration_becomes_a_policy(berth, site, work):
    config = work / "config.toml"
    config.write_text('disable-require = true\n[nvidia-container-cli]\nload-kmods = true\nroot = "/run/nvidia/driver"\n')
    toml = berth.ok("policy", "import", "nvidia-container-runtime", config)
    assert "# nvidia-container-cli.load-kmods: Berth loads no kernel module" in toml
    shown = json.loads(berth.ok(*site(toml), "policy", "show", "--format", "json"))["policy"]["gpu"]
    assert (shown["requirements"], shown["driver-root"], shown["environment"]) == (
        False, "/run/nvidia/driver", "grant")


# ---- a batch job -------------------------------------------------------------------------------

def test_all_means_all_of_the_jobs(berth, busybox, eight):
    job = {**JOB, "CUDA_VISIBLE_DEVICES": "4,6"}
    assert granted(berth, *eight, "run", "--rm", "--gpus", "all", busybox, env=job) == nodes(4, 6)
    assert granted(berth, *eight, "run", "--rm", "--gpus", "1", busybox, env=job) == nodes(4)


def test_a_gpu_outside_of_the_job_is_refused_with_the_variable(berth, busybox, eight):
    line = berth.fail(*eight, "run", "--rm", "--gpus", "device=0", busybox, "true",
                      env={**JOB, "CUDA_VISIBLE_DEVICES": "4,6"})
    assert line == ("berth: --gpus device=0: not one of the GPUs of CUDA_VISIBLE_DEVICES=4,6; "
                    "try: --gpus all for those")
    line = berth.fail(*eight, "run", "--rm", "--gpus", "all", busybox, "true",
                      env={**JOB, "CUDA_VISIBLE_DEVICES": "NoDevFiles"})
    assert line == "berth: --gpus all: CUDA_VISIBLE_DEVICES=NoDevFiles leaves 0 GPUs; try: --gpus none"


def test_a_jobs_gpus_need_no_flag(berth, busybox, eight, site):
    job = {**JOB, "CUDA_VISIBLE_DEVICES": "4,6"}
    assert granted(berth, *eight, "run", "--rm", busybox, env=job) == nodes(4, 6)
    assert granted(berth, *eight, "run", "--rm", "--gpus", "none", busybox, env=job) == []
    assert granted(berth, *eight, *site('gpu.scheduler = "limit"'), "run", "--rm", busybox, env=job) == []
    assert granted(berth, *eight, "run", "--rm", busybox, env=JOB) == []


def test_a_job_on_a_machine_without_gpus_still_runs(berth, busybox, work):
    root = work / "no-driver"
    root.mkdir()
    (root / "SYNTHETIC").write_text("")
    done = berth.run("--driver-root", root, "run", "--rm", busybox, "echo", "tea",
                     env={**JOB, "CUDA_VISIBLE_DEVICES": "0"})
    assert done.stdout == "tea\n"
    assert "Slurm says that this job has GPUs, but this machine has none, ignoring" in done.stderr


def values(berth, *args, env):
    return berth.ok(*args, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; echo $CUDA_DEVICE_ORDER; "
                    "echo $GPU_DEVICE_ORDINAL", env=env).splitlines()


def test_the_jobs_variable_is_given_as_the_container_counts(berth, busybox, eight):
    job = {**JOB, "CUDA_VISIBLE_DEVICES": "6,2,4", "GPU_DEVICE_ORDINAL": "6,2,4"}
    run = (*eight, "run", "--rm", "--gpus", "all")
    assert values(berth, *run, busybox, env=job) == ["2,0,1", "PCI_BUS_ID", "2,0,1"]
    assert values(berth, *eight, "run", "--rm", "--gpus", "device=4", busybox, env=job) == ["0", "", "0"]
    # By name it is the job's too; a value is the user's own.
    assert values(berth, *run, "-e", "CUDA_VISIBLE_DEVICES", busybox, env=job)[0] == "2,0,1"
    assert values(berth, *run, "-e", "CUDA_VISIBLE_DEVICES=1", busybox, env=job)[0] == "1"
    # Without a GPU no number of the job's means anything.
    assert values(berth, *eight, "run", "--rm", "--gpus", "none", "-e", "CUDA_VISIBLE_DEVICES", busybox,
                  env=job) == ["", "", ""]


def test_a_jobs_uuids_are_found_and_given_as_numbers(berth, busybox, eight):
    gpus = json.loads(berth.ok(*eight, "gpu", "list", "--format", "json"))["gpus"]
    job = {"PBS_JOBID": "3.host", "CUDA_VISIBLE_DEVICES": f"{gpus[5]['uuid']},{gpus[1]['uuid'][:20]}"}
    run = (*eight, "run", "--rm", "--gpus", "all", busybox)
    assert granted(berth, *run, env=job) == nodes(1, 5)
    assert values(berth, *run, env=job)[0] == "1,0"


def test_outside_of_a_job_the_callers_variable_is_not_passed(berth, busybox, eight):
    caller = {"CUDA_VISIBLE_DEVICES": "6"}
    run = (*eight, "run", "--rm", "--gpus", "all", busybox)
    assert granted(berth, *run, env=caller) == nodes(*range(8))
    assert values(berth, *run, env=caller)[0] == ""


def test_a_typed_value_that_names_nothing_is_a_warning(berth, busybox, eight):
    run = (*eight, "run", "--rm", "--gpus", "device=6")
    done = berth.run(*run, "-e", "CUDA_VISIBLE_DEVICES=6", busybox, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert done.stdout == "6\n"
    assert ("berth: warning: CUDA_VISIBLE_DEVICES=6: '6' names no GPU of the container, which has 1 GPU"
            in done.stderr.splitlines())
    done = berth.run(*run, "-e", "CUDA_VISIBLE_DEVICES=0", busybox, "true")
    assert "names no GPU" not in done.stderr
    done = berth.run("run", "--rm", "-e", "ROCR_VISIBLE_DEVICES=0", busybox, "true")
    assert "ROCR_VISIBLE_DEVICES=0: '0' names no GPU of the container, which has no GPU" in done.stderr


@contextlib.contextmanager
def job_of(berth, *flags, denied):
    """run(word…, NAME=value…), in a job whose device cgroup denies these nodes."""
    with job_without("berth-test-job", denied) as begin:
        def run(*args, **env):
            command = [*begin, *map(str, berth.argv(*flags, *args))]
            return subprocess.run(command, env=berth.account.environment(**env), cwd=berth.directory,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        yield run


@pytest.mark.profiles("root")
def test_gpus_that_the_device_cgroup_denies_are_not_there_and_the_others_count_from_0(berth, busybox, eight):
    numbers = numbers_of(eight[1])
    denied = [numbers[f"/dev/nvidia{MINORS[index]}"] for index in (0, 1, 2, 3, 5, 7)]
    berth.ok("pull", "--quiet", busybox)
    with job_of(berth, *eight, denied=denied) as run:
        listed = json.loads(run("gpu", "list", "--format", "json").stdout)["gpus"]
        assert [(gpu["index"], gpu["minor"]) for gpu in listed] == [(0, MINORS[4]), (1, MINORS[6])]
        # As Slurm writes it where it constrains devices: 0 is the first that can be opened.
        job = {**JOB, "CUDA_VISIBLE_DEVICES": "0,1", "SLURM_STEP_GPUS": "4,6"}
        done = run("run", "--rm", "--gpus", "all", busybox, *SHOW, **job)
        assert done.stdout.splitlines()[1:] == nodes(4, 6), done.stderr
        done = run("run", "--rm", "--gpus", "all", busybox, *SHOW, **JOB, SLURM_STEP_GPUS="4,6")
        assert done.stdout.splitlines()[1:] == nodes(4, 6), done.stderr
        done = run("run", "--rm", "--gpus", "device=2", busybox, "true")
        assert done.stderr.splitlines()[-1] == ("berth: --gpus device=2: no such GPU, this machine has 2 GPUs; "
                                                "try: berth gpu list")


@pytest.mark.profiles("root")
def test_mig_slices_that_the_device_cgroup_denies_are_not_there(berth, busybox, driver_tree):
    tree = driver_tree("mig")
    slices = json.loads(berth.ok("--driver-root", tree, "gpu", "list", "--format", "json"))["gpus"][0]["mig"]
    ours, others = slices[2], slices[:2] + slices[3:]
    denied = [(node["major"], node["minor"]) for other in others for node in other["nodes"]]
    berth.ok("pull", "--quiet", busybox)
    with job_of(berth, "--driver-root", tree, denied=denied) as run:
        listed = json.loads(run("gpu", "list", "--format", "json").stdout)["gpus"][0]["mig"]
        assert [one["index"] for one in listed] == [ours["index"]]
        done = run("run", "--rm", "--gpus", "all", busybox, "ls", "/dev/nvidia-caps")
        wanted = sorted(node["path"].rsplit("/", 1)[1] for node in ours["nodes"])
        assert sorted(done.stdout.split()) == wanted, done.stderr
        done = run("run", "--rm", "--gpus", f"device=0:{others[0]['index']}", busybox, "true")
        assert done.stderr == f"berth: --gpus device=0:{others[0]['index']}: GPU 0 has 1 MIG slices; try: berth gpu list\n"
        assert run("run", "--rm", "--gpus", f"device=0:{ours['index']}", busybox, "true").returncode == 0


@pytest.mark.profiles("root")
def test_a_node_beside_the_gpus_that_the_device_cgroup_denies_is_left_out_and_told(berth, busybox, driver_tree):
    tree = driver_tree("one", "--group", "mofed")
    denied = numbers_of(tree)["/dev/infiniband/uverbs0"]
    berth.ok("pull", "--quiet", busybox)
    with job_of(berth, "--driver-root", tree, denied=[denied]) as run:
        done = run("run", "--name", "c1", "--gpus", "all", "-e", "NVIDIA_MOFED=enabled", busybox, "ls",
                   "/dev/infiniband")
        assert done.stdout.split() == ["rdma_cm", "uverbs1"], done.stderr
        told = json.loads(run("explain", "--format", "json", "c1").stdout)["items"]
    why = {item["object"]: (item["given"], item["why"]) for item in told}
    assert why["/dev/infiniband/uverbs0"] == (False, "the device cgroup of this job denies it")
    assert why["/dev/infiniband/uverbs1"] == (True, "NVIDIA_MOFED asks for it")


# ---- names -------------------------------------------------------------------------------------

@pytest.fixture
def called(berth, work):
    """called("nvidia-docker") has berth called by that name, through a link."""
    def call(name):
        link = work / name
        link.symlink_to(berth.programs / "berth")
        berth.program = link
    return call


@pytest.fixture
def cuda(push):
    """A small image as NVIDIA's are, with a bash."""
    bash = images.layer([images.file("bin/bash", "#!/bin/sh\nexec sh \"$@\"\n", mode=0o755)])
    return push(images.build([images.busybox_layer(), bash], {
        "Env": ["PATH=/bin:/usr/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        "Labels": {"com.nvidia.volumes.needed": "nvidia_driver"}}))


def test_nvidia_docker_has_asked_and_docker_has_not(berth, cuda, push, eight, called):
    called("docker")
    assert granted(berth, *eight, "run", "--rm", cuda) == []
    called("nvidia-docker")
    assert granted(berth, *eight, "run", "--rm", cuda) == nodes(*range(8))
    labelled = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin"], "Labels": {"com.nvidia.volumes.needed": "nvidia_driver"}}))
    assert granted(berth, *eight, "run", "--rm", labelled) == nodes(*range(8))
    plain = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin"]}))
    assert granted(berth, *eight, "run", "--rm", plain) == []


def test_nv_gpu_narrows_nvidia_docker(berth, cuda, eight, called):
    called("nvidia-docker")
    run = (*eight, "run", "--rm", cuda)
    assert granted(berth, *run, env={"NV_GPU": "1,3"}) == nodes(1, 3)
    assert granted(berth, *run, env={"NV_GPU": "1 3"}) == nodes(1, 3)
    uuid = json.loads(berth.ok(*eight, "gpu", "list", "--format", "json"))["gpus"][5]["uuid"]
    assert granted(berth, *run, env={"NV_GPU": uuid}) == nodes(5)
    line = berth.fail(*run, "true", env={"NV_GPU": "8"})
    assert line == "berth: NV_GPU=8: '8': no such GPU, this machine has 8 GPUs; try: berth gpu list"


def test_the_line_that_everybody_typed(berth, cuda, driver_tree, called):
    """nvidia-docker run -it --name nvcuda1 -v /mnt:/mnt IMAGE bash, on a terminal."""
    called("nvidia-docker")
    shell = berth.terminal("run", "-it", "--name", "nvcuda1", "-v", "/mnt:/mnt", cuda, "bash",
                           env={"BERTH_DRIVER_ROOT": str(driver_tree("eight"))})
    shell.expect("# ")
    shell.send("nvidia-smi; ls -d /mnt; ls /dev | grep -c '^nvidia[0-9]'; tty\n")
    shell.expect("\n")
    assert shell.expect("# ").splitlines()[:4] == ["synthetic nvidia-smi 570.133.20", "/mnt", "8", "/dev/pts/0"]
    shell.send("exit 3\n")
    assert shell.wait() == 3
    berth.program = "berth"
    assert "nvcuda1" in berth.ok("ps", "-a")
    berth.ok("rm", "nvcuda1")
