# SPDX-License-Identifier: Apache-2.0
"""What a Slurm has that others have not, with Berth: ./dev test versions makes a table of it."""

import json
import os
import re
import subprocess

import pytest

from support.bundle import Bundle
from support.slurm import version
from support.slurm_containers import Submitter, with_plugin
from support.slurm_images import with_images
from support.waiting import wait_until


def needs(*release):
    if version() < release:
        pytest.skip("Slurm {}.{:02} does not have it".format(*version()))


# ---- GPUs ---------------------------------------------------------------------------------------

# The synthetic driver's files where slurmd looks for a driver's, in a view of its own. All processors are near to
# each GPU: Slurm 26.05 takes whole sockets alone.
VIEW = """
set -e
mount --bind {tree}/proc/driver /proc/driver
for gpu in $(ls {tree}/proc/driver/nvidia/gpus); do
  mkdir -p {work}/drivers/nvidia/$gpu
  cp /sys/devices/system/cpu/online {work}/drivers/nvidia/$gpu/local_cpulist
done
mount --bind {work}/drivers /sys/bus/pci/drivers
mkdir -p {work}/dev
mount -t tmpfs tmpfs {work}/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty {work}/dev
mkdir {work}/dev/shm {work}/dev/pts
mount --bind /dev/shm {work}/dev/shm
mount --bind /dev/pts {work}/dev/pts
for gpu in 0 1 2 3 4 5 6 7; do mknod {work}/dev/nvidia$gpu c 1 3; done
mount --move {work}/dev /dev
exec "$@"
"""


@pytest.mark.profiles("root")
def test_gpus_that_slurm_finds_by_itself_are_those_of_the_container(berth, busybox, programs, driver_tree, work):
    needs(24, 11)
    berth.ok("pull", "--quiet", busybox)
    tree = driver_tree("eight")
    view = ("unshare", "--mount", "sh", "-c", VIEW.format(tree=tree, work=work), "sh")
    made = with_plugin(work, programs, inside=view, gpus=8)
    with made.running() as cluster:
        slurm = Submitter(cluster, berth)
        assert "Gres=gpu:8" in slurm.call("scontrol", "show", "node", "n1").stdout
        out = slurm.srun("--gpus=2", f"--container-image={busybox}", "/bin/sh", "-c",
                         "echo $CUDA_VISIBLE_DEVICES; ls /dev | grep '^nvidia[0-9]'", env={"TEST_TREE": tree})
        assert len(out.splitlines()) == 3, out


# ---- other ways to a container ------------------------------------------------------------------

@pytest.fixture
def images(programs, work):
    with with_images(work / "slurm", programs).running() as running:
        yield running


@pytest.mark.parametrize("kind", [with_plugin, with_images])
def test_a_task_keeps_the_processor_that_it_is_bound_to(berth, busybox, programs, work, kind):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    berth.ok("pull", "--quiet", busybox)
    image = f"--container={busybox}" if kind is with_images else f"--container-image={busybox}"
    with kind(work, programs, lines=["TaskPlugin=task/affinity"]).running() as cluster:
        out = Submitter(cluster, berth).srun("--cpu-bind=map_cpu:0", image, "grep", "Cpus_allowed_list",
                                             "/proc/self/status")
        assert out.split() == ["Cpus_allowed_list:", "0"]


@pytest.mark.profiles("root")
def test_the_json_of_squeue_and_scontrol_has_the_image(images, berth, busybox):
    slurm = Submitter(images, berth)
    berth.ok("pull", "--quiet", busybox)
    spelled = "/../".join("busybox")
    step = slurm.spawn("srun", f"--container={busybox}", "sh", "-c", "echo up; exec sleep 100")
    assert step.stdout.readline() == "up\n"
    asked = [("squeue", "--json")] + [("scontrol", "show", "job", "--json")] * (version() >= (23, 2))
    for words in asked:
        jobs = json.loads(slurm.call(*words).stdout)["jobs"]
        assert [spelled in job["container"] for job in jobs] == [True], (words, jobs)
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    wait_until(images.is_idle)


SCRUN_LUA = """
function slurm_scrun_stage_in(id, bundle, spool, config, job, user, group, env) return slurm.SUCCESS end
function slurm_scrun_stage_out(id, bundle, orig_bundle, root, orig_root, spool, config, job, user, group)
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""


@pytest.mark.profiles("root")
def test_scrun_runs_a_bundle_by_berth_runtime(images, berth, work):
    needs(23, 2)
    (images.directory / "scrun.lua").write_text(SCRUN_LUA)
    srun = images.directory / "srun"  # scrun gives its srun no variables, and this cluster's files lie elsewhere
    srun.write_text(f"#!/bin/sh\nSLURM_CONF={images.directory}/slurm.conf exec srun \"$@\"\n")
    srun.chmod(0o755)
    with open(images.directory / "oci.conf", "a", encoding="utf-8") as lines:
        lines.write(f"SrunPath={srun}\n")
    bundle = Bundle(work / "bundle")
    bundle.config["process"]["args"] = ["/bin/sh", "-c", "echo tea >/tea; exit 7"]
    bundle.write()
    slurm = Submitter(images, berth)
    scrun = ["scrun", "--root", work / "scrun"]
    (work / "scrun").mkdir()
    # 24.11's begins with the container at once, and does not wait for 'scrun start'.
    done = slurm.call(*scrun, "create", "--bundle", bundle.directory, "one", timeout=120)  # 12 s on an idle machine
    wait_until(lambda: (bundle.rootfs / "tea").exists() and images.is_idle())
    assert (bundle.rootfs / "tea").read_text() == "tea\n"
    assert "task 0: Exited with exit code 7" in done.stderr, (done, images.logs())


# ---- the plugin ---------------------------------------------------------------------------------

def make_of_another_release(plugin):
    """Writes 21.08 where Slurm looks for the release that a plugin was built for."""
    symbols = subprocess.run(["readelf", "--wide", "--symbols", plugin], capture_output=True, text=True, check=True)
    place = int(re.search(r"(\w+)\s+4 OBJECT .* plugin_version$", symbols.stdout, re.MULTILINE)[1], 16)
    headers = subprocess.run(["readelf", "--wide", "--segments", plugin], capture_output=True, text=True, check=True)
    for line in re.findall(r"^  LOAD .*", headers.stdout, re.MULTILINE):
        offset, address, _, size = (int(word, 16) for word in line.split()[1:5])
        if address <= place < address + size:
            with open(plugin, "r+b") as file:
                file.seek(place - address + offset)
                file.write((21 << 16 | 8 << 8).to_bytes(4, "little"))
            return
    raise AssertionError("no segment has plugin_version")


@pytest.mark.profiles("root")
def test_a_plugin_of_another_slurm_is_refused_with_the_one_it_is_for(berth, programs, work):
    made = with_plugin(work, programs)
    line = (work / "plugstack.conf").read_text()
    (work / "plugstack.conf").write_text("")
    make_of_another_release(work / "spank_berth.so")
    with made.running() as cluster:
        (work / "plugstack.conf").write_text(line)
        said = Submitter(cluster, berth).refused("srun", "true")
    assert "(21.08.0)" in said and "spank_berth.so" in said, said
