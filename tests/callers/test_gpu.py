# SPDX-License-Identifier: Apache-2.0
"""GPUs of a synthetic driver in containers that Docker, containerd, podman and Slurm make:
berth-runtime in the place of the NVIDIA container toolkit."""

import json
import os
import re
import subprocess
import tempfile

import pytest

from support import callers, images, mount_view, users
from support.bundle import PROGRAMS

pytestmark = pytest.mark.skipif("RUNTIME" in os.environ, reason="of berth-runtime alone")

VARIABLE = ("--env", "NVIDIA_VISIBLE_DEVICES=1")
# podman's containers have it only where it is asked for.
MAKES_NODES = ("--cap-add", "CAP_MKNOD")
ANNOTATION = ("--annotation", "cdi.k8s.io/test=nvidia.com/gpu=1")
# The second GPU of the tree "eight" has the minor 5.
SECOND = ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia5", "/dev/nvidiactl"]
NODES = "for node in /dev/nvidia*; do [ ! -c $node ] || echo $node; done"
LIBRARY = "sha256sum </usr/local/nvidia/lib64/libcuda.so.1; ls /usr/local/nvidia/lib64 | sort"
# An open() that the rules let through finds no driver of this machine behind the number.
GIVEN, DENIED = "No such device or address", "Operation not permitted"
TRY = "try() { dd if=$1 of=/dev/null bs=1 count=1 2>&1 | grep -o 'No such device.*\\|Operation not.*'; }; "


class Site:
    """/etc/berth in the view of the callers."""

    def __init__(self, view, root):
        self.view, self.root = view, root

    def shell(self, script, **options):
        return subprocess.run([*self.view, "sh", "-c", script], check=True, text=True,
                              capture_output=True, **options).stdout

    def write(self, directory="/etc/berth", **gpu):
        policy = {"format": 1, "policy": {"gpu": {"driver-root": str(self.root), **gpu}}}
        self.shell(f"mkdir -p {directory} && chmod 755 {directory} && "
                   f"cat >{directory}/policy.json && chmod 644 {directory}/policy.json",
                   input=json.dumps(policy))


@pytest.fixture
def site(view, driver_tree):
    made = Site(view, driver_tree("eight"))
    made.write()
    yield made
    made.shell("rm -rf /etc/berth /run/berth/gpu /run/berth/cdi /etc/cdi")


def run(caller, *command, flags=(), runtime=None):
    argv = caller.argv_to_run("gpus", *command)
    argv[1:1] = flags
    if runtime:
        argv[argv.index("tested")] = runtime
    return caller.call(*argv)


def nodes(done):
    assert done.returncode == 0, done
    return sorted(line for line in done.stdout.splitlines() if line.startswith("/dev/"))


def test_a_variable_grants_where_the_policy_says_so(caller, site):
    site.write(environment="grant")
    assert nodes(run(caller, "sh", "-c", NODES, flags=VARIABLE)) == SECOND


def test_a_variable_grants_nothing_otherwise(caller, site):
    for environment in ("ignore", "privileged"):
        site.write(environment=environment)
        done = run(caller, "sh", "-c", f"{NODES}; ls -d /usr/local/nvidia 2>&1; true", flags=VARIABLE)
        assert nodes(done) == [], environment
        assert "No such file" in done.stdout
    site.shell("rm /etc/berth/policy.json")
    assert nodes(run(caller, "sh", "-c", NODES, flags=VARIABLE)) == []


def test_an_annotation_grants_unless_the_caller_takes_it_from_images(started, site):
    made = started("containerd")
    try:
        assert nodes(run(made, "sh", "-c", NODES, flags=ANNOTATION)) == SECOND
    finally:
        made.remove_all()
    podman = started("podman")
    try:
        assert nodes(run(podman, "sh", "-c", NODES, flags=ANNOTATION)) == []
        site.write(environment="grant")
        assert nodes(run(podman, "sh", "-c", NODES, flags=ANNOTATION)) == SECOND
    finally:
        podman.remove_all()


def test_docker_run_gpus_needs_no_policy(started, site):
    docker = started("docker")
    try:
        for flag, minors in (("device=1", {5}), ("device=0,3", {2, 7}), ("2", {2, 5}),
                             ("all", set(range(8)))):
            done = run(docker, "sh", "-c", NODES, flags=("--gpus", f'"{flag}"'))
            given = {int(n) for n in re.findall(r"/dev/nvidia(\d+)$", done.stdout, re.MULTILINE)}
            assert given == minors, (flag, done)
        done = run(docker, "sh", "-c", "env | grep NVIDIA | sort", flags=("--gpus", "device=1"))
        assert re.fullmatch("NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
                            "NVIDIA_VISIBLE_DEVICES=GPU-.*\n", done.stdout), done
        done = run(docker, "true", flags=("--gpus", "device=9"))
        assert done.returncode != 0
        assert "device=9: no such GPU, this machine has 8 GPUs" in done.stderr
    finally:
        docker.remove_all()


@pytest.fixture(scope="module")
def run_by_berth(session_directory, driver_tree):
    """run_by_berth(WORD…) → what a container of berth run --gpus device=1 prints."""
    place = session_directory / "own"
    place.mkdir()
    berth = [PROGRAMS / "berth", "--root", place / "store", "--state", place / "state",
             "--driver-root", driver_tree("eight")]
    subprocess.run([*berth, "import", callers.busybox_tar(place), "busybox"], check=True,
                   capture_output=True)
    return lambda *command: subprocess.run(
        [*berth, "run", "--rm", "--gpus", "device=1", "busybox", *command], check=True, text=True,
        capture_output=True).stdout


def test_it_is_what_berth_run_gives(caller, site, run_by_berth):
    site.write(environment="grant")
    command = ("sh", "-c", f"{NODES}; {LIBRARY}")
    theirs = run(caller, *command, flags=VARIABLE)
    assert theirs.stdout.splitlines() == run_by_berth(*command).splitlines()
    assert nodes(theirs) == SECOND


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_ldconfig_works_and_a_commit_has_nothing_of_the_driver(started, site, engine):
    site.write(environment="grant")
    made = started(engine)
    seen = "/ldconfig -p -C /etc/ld.so.cache | grep -o 'libcuda.so.*'"
    argv = made.argv_to_run("gpus", "sh", "-c", f"{seen}; readlink /usr/lib/libcuda.so; /ldconfig; echo status $?; {seen}")
    argv[argv.index("--rm"):argv.index("--rm") + 1] = [*VARIABLE, "--volume", "/sbin/ldconfig:/ldconfig:ro"]
    try:
        done = made.call(*argv)
        library = "/usr/local/nvidia/lib64/libcuda.so"
        before, after = done.stdout.split("status 0\n")
        assert done.returncode == 0 and f"libcuda.so.1 (libc6,x86-64) => {library}" in before, done
        assert f"libcuda.so (libc6,x86-64) => {library}" in before
        assert "libcuda.so.1 (libc6,x86-64) => " in after, done
        made.commit("gpus", "committed")
        shown = made.argv_to_run("gpus-committed", "sh", "-c", "grep -c nvidia /etc/ld.so.cache; ls /etc; ls /usr/lib")
        shown[shown.index(callers.IMAGE)] = "committed"
        shown[1:1] = ["--env", "NVIDIA_VISIBLE_DEVICES=void"]  # a commit keeps the variable
        kept = made.call(*shown)
        assert kept.stdout.split()[0] == "0" and "cuda" not in kept.stdout and "ld.so.conf\n" not in kept.stdout, kept
    finally:
        made.remove_all()
        made.call("rmi", "committed")


def start(caller, name, flags):
    # A first process gets no SIGTERM that it does not ask for.
    argv = caller.argv_to_run(name, "sh", "-c", "trap exit TERM; sleep 1000 & wait", detach=True)
    argv[1:1] = flags
    done = caller.call(*argv)
    assert done.returncode == 0, done


@pytest.fixture
def beside(site, shared):
    """beside(WORD…) → the end of a berth that sees what the engines see, and has an image busybox."""
    command = [*site.view, PROGRAMS / "berth", "--root", shared / "store", "--state", shared / "state"]

    def call(*words):
        return subprocess.run([*command, *words], check=False, text=True, capture_output=True)
    done = call("import", callers.busybox_tar(shared), "busybox")
    assert done.returncode == 0, done
    return call


def leases(beside):
    """[(engine, indices of its GPUs)] of those that have any."""
    listed = json.loads(beside("gpu", "list", "--format", "json").stdout)["leases"]
    return [(lease["engine"], lease["gpus"]) for lease in listed]


ASKS = {"docker": ("--gpus", "device=1"), "podman": VARIABLE, "containerd": VARIABLE,
        "slurm": VARIABLE[1:]}


def test_all_engines_take_from_one_ledger(started, site, beside):
    """What one keeps to himself no other gets, whoever it is, and it is free when it has ended."""
    site.write(environment="grant", exclusive=True)
    by_berth = ("run", "--rm", "--gpus", "device=1", "busybox", "sh", "-c", NODES)
    engines = {name: started(name) for name in ASKS}
    try:
        for name, holder in engines.items():
            start(holder, f"holds-{name}", ASKS[name])
            # Slurm answers before the job has begun.
            callers.until(lambda: leases(beside) == [("berth-runtime", ["1"])], f"{name} has GPU 1")
            for other, engine in engines.items():
                done = run(engine, "true", flags=ASKS[other])
                assert done.returncode != 0, (name, done)
                assert "0 of 1 GPU free: GPU 1 is held by container" in done.stderr, done
            done = beside(*by_berth)
            assert done.returncode == 125 and "GPU 1 is held by container" in done.stderr, done
            holder.remove(f"holds-{name}")
            assert leases(beside) == []
            assert nodes(run(holder, "sh", "-c", NODES, flags=ASKS[name])) == SECOND
            assert nodes(beside(*by_berth)) == SECOND
    finally:
        for engine in engines.values():
            engine.remove_all()


def test_no_node_that_a_container_makes_opens_another_gpu(caller, site):
    site.write(environment="grant")
    script = TRY + "mknod /tmp/other c 195 2; try /tmp/other; mknod /tmp/own c 195 5; try /tmp/own"
    done = run(caller, "sh", "-c", script, flags=(*VARIABLE, *MAKES_NODES))
    assert done.stdout.splitlines() == [DENIED, GIVEN], done


def test_exec_and_a_change_of_limits_leave_the_gpus(caller, site):
    site.write(environment="grant")
    argv = caller.argv_to_run("gpus", "sleep", "600", detach=True)
    argv[1:1] = (*VARIABLE, *MAKES_NODES)
    caller.ok(*argv)
    script = TRY + "try /dev/nvidia5; mknod /tmp/other c 195 2; try /tmp/other; rm /tmp/other"
    for _ in range(2):
        done = caller.exec("gpus", "sh", "-c", f"{NODES}; {script}")
        assert done.stdout.splitlines() == [*SECOND, GIVEN, DENIED], done
        caller.limit_memory("gpus", 64 << 20)


def test_a_mount_of_dev_null_asks_where_the_policy_lets_it(started, site):
    docker = started("docker")
    volume = ("--volume", "/dev/null:/var/run/nvidia-container-devices/1")
    try:
        assert nodes(run(docker, "sh", "-c", NODES, flags=volume)) == []
        site.write(**{"devices-by-volume": True})
        assert nodes(run(docker, "sh", "-c", NODES, flags=volume)) == SECOND
    finally:
        docker.remove_all()


def test_devices_of_cdi_files(started, site):
    site.write()
    site.shell("mkdir -p /etc/cdi && cat >/etc/cdi/vendor.json", input=json.dumps({
        "cdiVersion": "0.5.0", "kind": "vendor.com/thing",
        "devices": [{"name": "one", "containerEdits": {
            "env": ["THING=one"], "deviceNodes": [{"path": "/dev/thing", "hostPath": "/dev/full"}]}}]}))
    made = started("containerd")
    flags = ("--annotation", "cdi.k8s.io/test=vendor.com/thing=one,nvidia.com/gpu=1")
    try:
        done = run(made, "sh", "-c", f"{NODES}; stat -c %t:%T /dev/thing; echo $THING", flags=flags)
        assert nodes(done) == SECOND
        assert done.stdout.splitlines()[-2:] == ["1:7", "one"]
        # Changed: the index is made anew.
        site.shell("sed -i s/THING=one/THING=two/ /etc/cdi/vendor.json")
        assert run(made, "sh", "-c", "echo $THING", flags=flags).stdout == "two\n"
        done = run(made, "true", flags=("--annotation", "cdi.k8s.io/test=vendor.com/thing=on"))
        assert "no CDI device 'vendor.com/thing=on', did you mean 'vendor.com/thing=one'?" in done.stderr
    finally:
        made.remove_all()


# What CRIU says of a process that has a GPU open.
CRIU = """#!/bin/sh
[ "$1" != check ] || exit 0
while [ $# -gt 0 ]; do
  [ "$1" != --work-dir ] || echo "(00.01) Error (criu/files-ext.c:96): Can't dump file 3 of that \
type [20666] (chr 195:5 /dev/nvidia5)" >"$2/dump.log"
  shift
done
exit 1
"""


def test_a_checkpoint_that_is_refused_leaves_a_container_and_its_gpus(started, site, session_directory):
    containerd = started("containerd")
    site.shell("mount -t tmpfs tmpfs /usr/local/sbin; cat >/usr/local/sbin/criu; chmod 755 /usr/local/sbin/criu",
               input=CRIU)
    argv = containerd.argv_to_run("gpus", "sleep", "600", detach=True)
    argv[1:1] = ANNOTATION
    try:
        containerd.ok(*argv)
        done = containerd.call("tasks", "checkpoint", "--image-path", session_directory / "images", "gpus")
        assert done.returncode != 0
        assert "cannot checkpoint container 'gpus': run 'criu dump'" in done.stderr, done
        assert "(chr 195:5 /dev/nvidia5)" in done.stderr
        assert containerd.state("gpus") == "running"
        assert containerd.exec("gpus", "sh", "-c", NODES).stdout.splitlines() == SECOND
    finally:
        containerd.remove_all()
        site.shell("umount /usr/local/sbin")


def test_other_places_by_flags(started, site):
    """runtimeArgs of dockerd, --runtime-flag of podman."""
    docker, podman = started("docker"), started("podman")
    for made in (docker, podman):
        site.write(made.directory / "site", environment="grant")
    try:
        assert nodes(run(docker, "sh", "-c", NODES, flags=VARIABLE)) == []
        assert nodes(run(docker, "sh", "-c", NODES, flags=VARIABLE, runtime="flagged")) == SECOND
        client = podman.client
        podman.client = [*client, *(f"--runtime-flag={flag[2:]}" for flag in podman.site_flags())]
        assert nodes(run(podman, "sh", "-c", NODES, flags=VARIABLE)) == SECOND
        podman.client = client
        assert nodes(run(podman, "sh", "-c", NODES, flags=VARIABLE)) == []
    finally:
        docker.remove_all()
        podman.remove_all()


# ---- jobs of Slurm -------------------------------------------------------------------------------

@pytest.fixture
def slurm(started):
    made = started("slurm")
    yield made
    made.remove_all()
    assert made.kept_states() == []


def test_a_job_has_its_gpu_until_it_has_ended(slurm, site, beside):
    site.write(environment="grant")
    show = ("busybox", "sh", "-c", NODES)
    start(slurm, "holds", ("NVIDIA_VISIBLE_DEVICES=0",))
    callers.until(lambda: leases(beside) == [("berth-runtime", ["0"])], "the job has GPU 0")
    assert nodes(beside("run", "--rm", "--gpus", "1", *show)) == SECOND
    for wish, free in (("device=0", "0 of 1 GPU free"), ("all", "7 of 8 GPUs free")):
        done = beside("run", "--rm", "--gpus", wish, "--gpus-exclusive", *show)
        assert done.returncode == 125
        assert f"--gpus {wish}: {free}: GPU 0 is held by container 'n1.root." in done.stderr, done
    slurm.remove("holds")
    assert leases(beside) == []
    assert len(nodes(beside("run", "--rm", "--gpus", "all", "--gpus-exclusive", *show))) == 8 + 3


def test_a_job_that_is_created_and_started(slurm, site, beside):
    """Slurm passes nothing on that such a container prints."""
    site.write(environment="grant")
    slurm.starts_by("create")
    try:
        done = run(slurm, "sh", "-c", f"({NODES}) >/tmp/nodes", flags=VARIABLE[1:])
    finally:
        slurm.starts_by("run")
    assert done.returncode == 0, done
    assert sorted((slurm.bundle.rootfs / "tmp/nodes").read_text().split()) == SECOND
    assert leases(beside) == []


def test_the_bundle_of_a_job_asks(slurm, site):
    site.write()
    plain = slurm.bundle.config
    slurm.bundle.config = {**plain, "annotations": {"cdi.k8s.io/test": "nvidia.com/gpu=1"}}
    slurm.bundle.write()
    try:
        assert nodes(run(slurm, "sh", "-c", NODES)) == SECOND
    finally:
        slurm.bundle.config = plain
        slurm.bundle.write()
    assert nodes(run(slurm, "sh", "-c", NODES)) == []


# ---- an ordinary user's podman ------------------------------------------------------------------

@pytest.fixture(scope="module")
def rootless(session_directory, tested):
    session_directory.chmod(0o755)  # the runtime lies there
    # podman wants a short path.
    with tempfile.TemporaryDirectory(prefix="berth-tests-", dir="/tmp") as place:
        os.chmod(place, 0o755)
        with users.accounts(place, ["user"]) as made, callers.RootlessPodman(tested, made["user"]).running() as podman:
            yield podman


@pytest.fixture
def own_site(rootless, driver_tree):
    """write(**policy) of the user's own; the caller looks there."""
    directory = rootless.directory / "site"
    directory.mkdir(exist_ok=True)
    client = rootless.client
    rootless.client = [*client, f"--runtime-flag=config-dir={directory}"]

    def write(**gpu):
        policy = {"format": 1, "policy": {"gpu": {"driver-root": str(driver_tree("eight")), **gpu}}}
        (directory / "policy.json").write_text(json.dumps(policy))
        (directory / "policy.json").chmod(0o644)
    yield write
    rootless.client = client


def test_podman_of_an_ordinary_user(rootless, own_site):
    own_site()
    assert nodes(run(rootless, "sh", "-c", NODES, flags=VARIABLE)) == []
    assert nodes(run(rootless, "sh", "-c", NODES, flags=ANNOTATION)) == []
    own_site(environment="grant")
    for flags in (VARIABLE, ANNOTATION):
        done = run(rootless, "sh", "-c", f"{NODES}; ls /usr/local/nvidia/lib64", flags=flags)
        assert nodes(done) == SECOND and "libcuda.so.1" in done.stdout.split()
    assert rootless.kept_states() == []


def test_exec_of_an_ordinary_users_podman(rootless, own_site):
    own_site(environment="grant")
    argv = rootless.argv_to_run("gpus", "sleep", "600", detach=True)
    argv[1:1] = VARIABLE
    rootless.ok(*argv)
    try:
        assert rootless.exec("gpus", "sh", "-c", NODES).stdout.splitlines() == SECOND
    finally:
        rootless.remove_all()


# podman 4.3 reads /etc/cdi alone.
WITH_CDI = """
mkdir -p "$1/upper/cdi" "$1/work" && printf %s "$2" >"$1/upper/cdi/vendor.json"
mount -t overlay overlay /etc -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work"
"""


def test_a_cdi_device_that_podman_of_an_ordinary_user_resolves_itself(rootless, own_site, session_directory):
    own_site()
    # Of a path on the host that is another one podman says nothing: there runtimes find no node.
    device = {"name": "one", "containerEdits": {
        "env": ["THING=one"], "deviceNodes": [{"path": "/dev/kmsg", "type": "c", "major": 1, "minor": 11}]}}
    file = json.dumps({"cdiVersion": "0.5.0", "kind": "vendor.com/thing", "devices": [device]})
    inside = rootless.inside
    rootless.ok("system", "migrate")  # the mounts are those of the process that podman leaves
    with mount_view.view(WITH_CDI, session_directory / "with-cdi", file) as view:
        rootless.inside = [*view, *inside]
        try:
            done = run(rootless, "sh", "-c", "stat -c %t:%T /dev/kmsg; echo $THING",
                       flags=("--device", "vendor.com/thing=one"))
            rootless.ok("system", "migrate")
        finally:
            rootless.inside = inside
    assert done.stdout.splitlines() == ["1:b", "one"], done


# ---- hostile ------------------------------------------------------------------------------------

@pytest.mark.parametrize("value", ["../../x", "all\t", "0,0,,99999999999999999999", "\x01\x1b[31m",
                                   "nvidia.com/gpu=../../etc", "," * 17000])
def test_a_hostile_variable_gives_one_line_or_nothing(started, site, value):
    site.write(environment="grant")
    docker = started("docker")
    try:
        done = run(docker, "sh", "-c", NODES, flags=("--env", f"NVIDIA_VISIBLE_DEVICES={value}"))
        if done.returncode == 0:
            assert nodes(done) in ([], *([f"/dev/nvidia{n}"] for n in range(8))) or "all" in value
        else:
            assert "cannot give the container its devices" in done.stderr
            assert "\x1b" not in done.stderr
    finally:
        docker.remove_all()


def test_a_policy_that_others_can_write_stops_every_container(started, site):
    docker = started("docker")
    for harm, words in (("chmod 666 /etc/berth/policy.json", "it is writable by others"),
                        ("chown 1000 /etc/berth/policy.json", "it belongs to another user"),
                        ("chmod 777 /etc/berth", "directory '/etc/berth': it is writable"),
                        ("chown 1000 /etc/berth", "directory '/etc/berth': it belongs to")):
        site.shell("rm -rf /etc/berth")
        site.write(environment="grant")
        site.shell(harm)
        done = run(docker, "sh", "-c", NODES, flags=VARIABLE)
        assert done.returncode != 0 and words in done.stderr, (harm, done)
    docker.remove_all()


def test_an_inventory_of_somebody_else_is_not_believed(started, site):
    site.write(environment="grant")
    docker = started("docker")
    try:
        assert nodes(run(docker, "sh", "-c", NODES, flags=VARIABLE)) == SECOND
        # A node of another number, by somebody who may not say so: it is made anew.
        site.shell("sed -i s/nvidia5/nvidia9/ /run/berth/gpu/inventory-*.json; "
                   "chown 1000 /run/berth/gpu/inventory-*.json")
        assert nodes(run(docker, "sh", "-c", NODES, flags=VARIABLE)) == SECOND
        assert site.shell("stat -c %u /run/berth/gpu/inventory-*.json") == "0\n"
    finally:
        docker.remove_all()


def test_what_an_image_says_of_itself_grants_nothing(started, site, session_directory):
    """podman copies the annotations of an image's manifest into the configuration."""
    podman = started("podman")
    greedy = images.build([images.busybox_layer()],
                          {"Env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"]})
    archive = session_directory / "greedy.tar"
    archive.write_bytes(callers.layout_archive(
        greedy, {"cdi.k8s.io/x": "nvidia.com/gpu=all", "io.container.manager": "none"},
        name="localhost/greedy:latest"))
    try:
        image = podman.ok("pull", "--quiet", f"oci-archive:{archive}").strip()
        argv = [image if word == callers.IMAGE else word
                for word in podman.argv_to_run("gpus", "sh", "-c", NODES)]
        assert nodes(podman.call(*argv)) == []
    finally:
        podman.remove_all()
        archive.unlink()


def test_nvidias_hook_of_ours_does_nothing():
    program = PROGRAMS / callers.NVIDIAS_HOOK
    done = subprocess.run([program, "prestart"], input="{}", capture_output=True, text=True,
                          check=True, env={})
    assert (done.stdout, done.stderr) == ("", "")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    assert "does nothing" in told
