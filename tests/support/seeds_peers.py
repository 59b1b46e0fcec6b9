# SPDX-License-Identifier: Apache-2.0
"""The ways in which './dev bench seeds' runs a program: directly on the machine, and in a container of each
engine. All run the same files: those of one image, unpacked for the direct run."""

import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

from support import debian_images, digits, images, registry, users
from support.bench_peers import Berth, Podman
from support.side_by_side import run, version

PLACE = "/bench"  # of the programs in the image
DATA = f"{PLACE}/digits"
CGROUP = "berth-bench-seeds"
BARE, ROOT, ROOTLESS = "bare metal", "berth as root", "berth rootless"
PODMAN, DOCKER, CHARLIECLOUD = "podman", "docker", "Charliecloud"


@dataclasses.dataclass(frozen=True)
class Share:
    """A tenant's share of the machine: a processor, a GPU, or with neither the whole machine."""
    processor: int | None = None
    gpu: int | None = None


def gpu_names():
    """The name of each GPU and its driver's version, in the driver's order."""
    with contextlib.suppress(OSError, RuntimeError):
        return run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"
                   ).splitlines()
    return []


# ---- the image ----------------------------------------------------------------------------------

def libraries(program):
    """The shared libraries of a program, and its loader; none if it is static."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", done.stdout)) if done.returncode == 0 else set()


def make_image(programs, work):
    """(the image, its unpacked tree). It contains the programs, their libraries and the digits; the GPU
    programs, which have large libraries, only if there are GPUs."""
    digits.write(work / "digits")
    kinds = ["cpu", "cuda"] if gpu_names() else ["cpu"]
    entries = [images.directory(path) for path in
               ("bench", "bench/digits", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr",
                "usr/bin", "var", "mnt", "run")]
    entries += [images.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
                images.file("etc/group", "root:x:0:\n"),
                images.file("etc/hosts", ""), images.file("etc/resolv.conf", "")]
    needed = set()
    for program in [one for kind in kinds for one in sorted(programs.glob(f"bench_*_{kind}"))]:
        entries.append(images.file(f"bench/{program.name}", program.read_bytes(), mode=0o755))
        needed |= libraries(program)
    entries += [images.file(path.lstrip("/"), pathlib.Path(path).read_bytes(), mode=0o755)
                for path in sorted(needed)]
    entries += [images.file(f"bench/digits/{path.name}", path.read_bytes())
                for path in sorted((work / "digits").iterdir())]
    layer = images.layer(entries)
    tree, archive = work / "tree", work / "tree.tar"
    tree.mkdir(mode=0o755)
    archive.write_bytes(layer)
    with tarfile.open(archive) as opened:
        opened.extractall(tree)  # we made it
    archive.unlink()
    return images.build([layer]), tree


# ---- engines ------------------------------------------------------------------------------------

def pinned(share):
    return [] if share.processor is None else ["taskset", "--cpu-list", str(share.processor)]


def cpuset(share):
    return [] if share.processor is None else ["--cpuset-cpus", str(share.processor)]


@dataclasses.dataclass
class Peer:
    """`command(words, share)` returns the argv that runs the words in a container."""
    name: str
    version: str
    command: object
    environment: dict | None = None

    def once(self, words, share=Share(), timeout=None):
        """The program's output, and the duration of the command, including its container's start and end."""
        argv = [str(word) for word in self.command([str(word) for word in words], share)]
        started = time.perf_counter()
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment, timeout=timeout, check=False)
        elapsed = time.perf_counter() - started
        if done.returncode != 0:
            why = done.stderr.strip().partition("\n")[0]
            raise RuntimeError(f"{why} (exit status {done.returncode} of '{' '.join(argv)}')")
        said = json.loads(done.stdout)
        if share.processor is not None and said["processors"] != [share.processor]:
            raise RuntimeError(f"{self.name}: the program may use the processors "
                               f"{said['processors']}, not {share.processor} alone")
        return {**said, "command_s": elapsed}

    def together(self, words, shares, timeout=None):
        """Starts containers at the same time, one for each share."""
        with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
            started = [pool.submit(self.once, words, share, timeout) for share in shares]
            return [one.result() for one in started]


def bare(tree):
    def command(words, share):
        gpu = [] if share.gpu is None else ["env", f"CUDA_VISIBLE_DEVICES={share.gpu}"]
        return pinned(share) + gpu + [f"{tree}{word}" if word.startswith(PLACE) else word
                                      for word in words]
    return Peer(BARE, "", command)


def berth_as_root(programs, work, image):
    berth = Berth(programs, work, image)
    run(*berth.argv, "pull", "--quiet", image)

    def command(words, share):
        gpus = [] if share.gpu is None else ["--gpus", f"device={share.gpu}"]
        return [*berth.argv, "run", "--rm", "--network", "none", *cpuset(share), *gpus, image,
                *words]
    return Peer(ROOT, berth.version, command)


def berth_rootless(programs, work, image, account):
    argv = [programs / "berth", "--root", account.own(work / "user") / "root", "--state",
            account.own(work / "run/user") / "state"]
    run(*account.command([*argv, "pull", "--quiet", image]), env=account.environment())

    def command(words, share):
        gpus = [] if share.gpu is None else ["--gpus", f"device={share.gpu}"]
        return pinned(share) + account.command([*argv, "run", "--rm", "--network", "none", *gpus,
                                                image, *words])
    return Peer(ROOTLESS, version(str(argv[0]), "--version"), command, account.environment())


def podman(work, image):
    engine = Podman(work)
    run(*engine.argv, "pull", "--quiet", "--tls-verify=false", image)

    def command(words, share):
        gpu = [] if share.gpu is None else ["--device", f"nvidia.com/gpu={share.gpu}"]
        return [*engine.argv, "run", "--rm", "--network", "none", *Podman.LIMITS, *cpuset(share),
                *gpu, image, *words]
    return Peer(PODMAN, version("podman", "--version"), command)


def docker(client, image):
    run(*client, "pull", "--quiet", image)

    def command(words, share):
        gpu = [] if share.gpu is None else ["--gpus", f"device={share.gpu}"]
        return [*client, "run", "--rm", "--network", "none", "--cgroup-parent", f"/{CGROUP}",
                *cpuset(share), *gpu, image, *words]
    return Peer(DOCKER, version("dockerd", "--version"), command)


def charliecloud(tree, account):
    def command(words, share):
        if share.gpu is not None:
            raise RuntimeError("ch-fromhost would have to change the image for it")
        return pinned(share) + account.command(["ch-run", tree, "--", *words])
    said = version("env", f"USER={account.name}", "ch-run", "--version")
    return Peer(CHARLIECLOUD, f"ch-run {said}", command, account.environment())


def usable(peers, device, share, left_out):
    """The peers that can run a small program on the device; the reasons of the others go to `left_out`."""
    found = []
    for peer in peers:
        try:
            peer.once([f"{PLACE}/bench_pooling_{device}", "--side", 64], share, timeout=60)
            found.append(peer)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            left_out[f"{peer.name} on {device}"] = str(error)
    return found


def remove_cgroups():
    """docker leaves the parent cgroup of its containers."""
    for path in pathlib.Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"):
        with contextlib.suppress(OSError):
            path.rmdir()


def unmount_below(directory):
    """podman leaves its store mounted on itself; its last helper gets a moment to end."""
    time.sleep(0.5)
    lines = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    for point in sorted((line.split()[4] for line in lines), reverse=True):
        if point.startswith(f"{directory}/"):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


@contextlib.contextmanager
def all_of(programs, work):
    """([all peers that run here, bare metal first], {the others: the reason})."""
    work.chmod(0o755)
    shutil.copytree(programs, work / "bin", ignore=lambda _, names: [
        name for name in names if not name.startswith(("berth", "bench_"))])
    image, tree = make_image(work / "bin", work)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(registry.running(work / "registry"))
        image.push(server, "bench/seeds")
        name = f"{server.address}/bench/seeds:latest"
        (work / "home").mkdir()
        user = stack.enter_context(users.accounts(work / "home", kinds=("user",)))["user"]
        stack.callback(remove_cgroups)
        stack.callback(unmount_below, work / "podman")
        found, left_out = [bare(tree)], {}
        for peer, program, make in (
                (ROOT, "sh", lambda: berth_as_root(work / "bin", work, name)),
                (ROOTLESS, "newuidmap", lambda: berth_rootless(work / "bin", work, name, user)),
                (PODMAN, "podman", lambda: podman(work, name)),
                (DOCKER, "dockerd", lambda: docker(stack.enter_context(
                    debian_images.docker_engine(work, driver="overlay2")), name)),
                (CHARLIECLOUD, "ch-run", lambda: charliecloud(tree, user))):
            try:
                if not shutil.which(program):
                    raise RuntimeError(f"{program} is not installed")
                found.append(make())
            except (OSError, RuntimeError) as error:
                left_out[peer] = str(error)
        yield found, left_out
