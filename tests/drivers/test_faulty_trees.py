# SPDX-License-Identifier: Apache-2.0
"""Driver trees that are damaged, half upgraded, or upgraded while containers start and run. The files are NVIDIA's
real ones, in the layout of Ubuntu unless said otherwise; proc, sys and dev are synthetic.

Of each fault: no crash, no hang, a message that names the file (and both versions where there are two), and no
container that is half made."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

from support import driver_layouts, images, reachable_trees, start_images

SECONDS = 20  # that any command may take
NEW, OLD = "550", "535"
VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)$")
everybody = pytest.mark.profiles("root", "user", "single_id")


@pytest.fixture(scope="module")
def trees(session_directory):
    with reachable_trees.trees(session_directory) as make:
        yield make


@pytest.fixture(scope="module")
def image(registry):
    images.build(start_images.debian_layers(), {"Env": ["PATH=/usr/sbin:/usr/bin"]}).push(registry, "test/faulty")
    return f"{registry.address}/test/faulty:latest"


def library(tree, name):
    """The 64-bit file of a library in a tree."""
    (found,) = {path for path in tree.root.rglob(f"{name}.so.{tree.version}")
                if "i386" not in str(path) and not path.is_symlink()}
    return found


# ---- faults: each changes a tree and returns what its message has to name -------------------------

def other_version(name):
    """The file is of another version than its sisters, as in a half upgraded tree."""
    def change(tree):
        path = library(tree, name)
        other = path.with_name(path.name.replace(tree.version, "555.42.02"))
        path.rename(other)
        for link in path.parent.iterdir():
            if link.is_symlink() and os.readlink(link) == path.name:
                link.unlink()
                link.symlink_to(other.name)
        return [other.name, "555.42.02", tree.version]
    return change


def content(name, make):
    def change(tree):
        path = library(tree, name)
        reachable_trees.replace(path, make(path.read_bytes()))
        return [path.name]
    return change


def text(_):
    return b"this is no library\n"


def short(data):
    return data[:100000]


def almost_whole(data):
    return data[:-1000]


def nothing(_):
    return b""


def of_arm(data):
    return data[:18] + (183).to_bytes(2, "little") + data[20:]


def in_both(one, other):
    def change(tree):
        return [*one(tree), *other(tree)]
    return change


def says(path, version):
    def change(tree):
        file = tree.root / path
        file.write_text(file.read_text().replace(tree.version, version))
        return [version, tree.version]
    return change


def gone(name):
    """The file is a link that leads nowhere."""
    def change(tree):
        path = library(tree, name)
        path.unlink()
        path.symlink_to(f"/gone/{path.name}")
        return [path.name, f"/gone/{path.name}"]
    return change


FAULTS = {
    "libcuda of another version": other_version("libcuda"),
    "nvml of another version": other_version("libnvidia-ml"),
    "jit of another version": other_version("libnvidia-ptxjitcompiler"),
    "libcuda is text": content("libcuda", text),
    "libcuda is empty": content("libcuda", nothing),
    "libcuda is cut short": content("libcuda", short),
    "libcuda lacks its end": content("libcuda", almost_whole),
    "libcuda is for arm": content("libcuda", of_arm),
    "libcuda leads nowhere": gone("libcuda"),
    "nvml is cut short": content("libnvidia-ml", short),
    "nvml leads nowhere": gone("libnvidia-ml"),
    "jit is text": content("libnvidia-ptxjitcompiler", text),
    "jit leads nowhere": gone("libnvidia-ptxjitcompiler"),
    "libcuda and nvml are cut short": in_both(content("libcuda", short), content("libnvidia-ml", short)),
    "libcuda and nvml are for arm": in_both(content("libcuda", of_arm), content("libnvidia-ml", of_arm)),
    "sysfs says another version": says("sys/module/nvidia/version", "555.42.02"),
    "procfs says another version": says("proc/driver/nvidia/version", "555.42.02"),
}
WITHOUT_CUDA = {name for name in FAULTS if name.startswith("libcuda")}
ALL = [pytest.param(name, id=name.replace(" ", "-")) for name in FAULTS]


@pytest.fixture(scope="module")
def faulty(trees):
    """faulty(fault) → the tree, and what a message about it has to name."""
    made = {}

    def make(name):
        if name not in made:
            tree = trees(NEW, "ubuntu", private=True)
            made[name] = tree, FAULTS[name](tree)
        return made[name]
    return make


@pytest.mark.parametrize("fault", ALL)
@pytest.mark.profiles("root", "user")
def test_a_fault_is_named(berth, faulty, fault):
    tree, names = faulty(fault)
    listed = berth.run("--driver-root", tree.root, "gpu", "list", "--format", "json", timeout=SECONDS)
    assert listed.returncode == 0, listed
    problems = "\n".join(json.loads(listed.stdout)["problems"])
    doctor = berth.run("--driver-root", tree.root, "doctor", "gpu", timeout=SECONDS)
    assert doctor.returncode in (0, 1), doctor
    for told in (problems, doctor.stdout):
        assert [name for name in names if name not in told] == [], told


@pytest.mark.parametrize("fault", ALL)
@everybody
def test_a_start_is_whole_or_refused(berth, image, faulty, fault):
    """And an image that starts has all that is whole of the driver. What a capability cannot do without is an error,
    what else is lost is a warning; each names the file."""
    tree, names = faulty(fault)
    berth.ok("pull", "--quiet", image)
    done = berth.run("--driver-root", tree.root, "run", "--rm", "--gpus", "all", image, "/start", timeout=SECONDS)
    assert berth.ok("ps", "--all", "--quiet") == ""
    if fault == "sysfs says another version":
        assert done.returncode == 125
        assert done.stderr.splitlines()[-1] == (f"berth: driver files are {tree.version} but the kernel module is "
                                                "555.42.02; try: reboot or reload the module")
        return
    if fault in WITHOUT_CUDA:
        assert done.returncode == 125 and done.stdout == "", done
        line = done.stderr.splitlines()[-1]
        both = fault.startswith("libcuda and nvml")
        assert line.startswith(
            f"berth: the kernel module is {tree.version} but no usable driver files were found below '{tree.root}': '"
            if both else f"berth: driver {tree.version} has no usable libcuda below '{tree.root}': '")
        assert [name for name in names if name not in line and "libnvidia-ml" not in name] == [], line
        return
    assert done.returncode == 0, done
    assert ("the container lacks a file of the driver: '" in done.stderr) == (fault.startswith(("nvml", "jit")))
    if fault.startswith(("nvml", "jit")):
        assert [name for name in names if name not in done.stderr] == [], done
    told = start_images.answers(done.stdout)
    assert (told["listed"], told.get("cuInit")) == ("yes", "100")
    assert told.get("nvmlInit_v2") == (None if "nvml" in fault else "9,Driver Not Loaded")


def refused(berth, *words):
    """The error line, after NVML's warning and what a pull shows."""
    done = berth.run(*words, timeout=SECONDS)
    assert done.returncode == 125 and done.stdout == "", done
    return done.stderr.splitlines()[-1]


@pytest.mark.profiles("root")
def test_who_does_not_compute_needs_no_libcuda_and_who_brings_one_no_driver(berth, image, faulty):
    tree, _ = faulty("libcuda is cut short")
    flags = ("--driver-root", tree.root, "run", "--rm")
    told = start_images.answers(berth.ok(*flags, "--gpus", "all,capabilities=utility", image, "/start"))
    assert (told["listed"], told.get("nvmlInit_v2")) == ("no", "9,Driver Not Loaded")
    for mode in ("none", "image"):
        done = berth.run(*flags, "--gpus", "all", "--gpu-driver", mode, image, "true")
        assert "no usable libcuda" not in done.stderr, done
    tree, _ = faulty("nvml is cut short")
    line = refused(berth, "--driver-root", tree.root, "run", "--rm", "--gpus", "all,capabilities=utility", image,
                   "true")
    assert line.startswith(f"berth: driver {tree.version} has no usable libnvidia-ml below '{tree.root}': '")


@pytest.mark.profiles("root")
def test_a_damaged_library_that_is_overwritten_counts_at_once(berth, image, trees):
    """In place, as `cp` does: its directory does not change."""
    tree = trees(NEW, "ubuntu", private=True)
    path = library(tree, "libcuda")
    whole = path.read_bytes()
    reachable_trees.replace(path, whole[:-1000])
    flags = ("--driver-root", tree.root, "run", "--rm", "--gpus", "all", image, "/start")
    assert "has no usable libcuda" in refused(berth, *flags)
    path.write_bytes(whole)
    assert start_images.answers(berth.ok(*flags))["cuInit"] == "100"


@pytest.fixture(scope="module")
def dangling(trees):
    """Debian's layout, with each of NVIDIA's alternatives leading nowhere."""
    tree = trees(NEW, private=True)
    for link in (tree.root / "etc/alternatives").iterdir():
        if "nvidia" in link.name:
            link.unlink()
            link.symlink_to(f"/gone/{link.name}")
    return tree


@pytest.mark.profiles("root")
@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_where_alternatives_dangle_programs_find_the_driver_all_the_same(berth, image, dangling, mode):
    """On the bare root itself no loader finds it: Berth looks where the links led to."""
    told = start_images.answers(berth.ok("--driver-root", dangling.root, "run", "--rm", "--gpus", "all",
                                         "--gpu-driver", mode, image, "/start"))
    assert (told["listed"], told["cuInit"], told["smi"]) == ("yes", "100", "/usr/bin/nvidia-smi")


@pytest.mark.profiles("root")
def test_a_dangling_alternative_is_named(berth, image, dangling):
    listed = json.loads(berth.ok("--driver-root", dangling.root, "gpu", "list", "--format", "json"))
    lost = ["nvoptix.bin", "nvidia-drm-outputclass.conf", "nvidia_drv.so", "libglxserver_nvidia.so"]
    for told in ("\n".join(listed["problems"]), berth.run("--driver-root", dangling.root, "doctor", "gpu").stdout):
        assert [name for name in lost if name not in told] == [], told
        assert "that leads nowhere" in told
    start = ("--driver-root", dangling.root, "run", "--rm", "--gpus")
    assert "leads nowhere" in berth.run(*start, "all,capabilities=graphics", image, "true").stderr
    assert "leads nowhere" not in berth.run(*start, "all", image, "true").stderr


@pytest.mark.profiles("root", "user")
def test_a_library_of_six_gigabytes_is_not_read(berth, image, trees):
    tree = trees(NEW, "ubuntu", private=True)
    path = library(tree, "libnvidia-ptxjitcompiler")
    reachable_trees.replace(path, path.read_bytes())  # not the kept one
    os.truncate(path, 6 << 30)
    for mode in ("bind", "volume"):
        began = time.monotonic()
        told = start_images.answers(berth.ok("--driver-root", tree.root, "run", "--rm", "--gpus", "all",
                                             "--gpu-driver", "bind", image, "/start", timeout=SECONDS))
        assert told["cuInit"] == "100" and time.monotonic() - began < SECONDS / 2, mode


@pytest.mark.profiles("root", "user")
def test_a_directory_of_fifty_thousand_files_is_searched_in_bounded_time(berth, image, trees):
    tree = trees(NEW, "ubuntu", private=True)
    directory = library(tree, "libcuda").parent
    for number in range(50000):
        os.mknod(directory / f"libother{number}.so.{tree.version}")
    began = time.monotonic()
    told = start_images.answers(berth.ok("--driver-root", tree.root, "run", "--rm", "--gpus", "all", image, "/start",
                                         timeout=SECONDS))
    assert told["cuInit"] == "100" and time.monotonic() - began < SECONDS / 2


# ---- upgrades -----------------------------------------------------------------------------------

DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/bin")


def upgrade(tree, new, module=None):
    """Replaces the files in `tree` by those of `new`, as a package manager does: each by a rename, then the old ones
    are removed; then the module's version."""
    for name in DIRECTORIES:
        at = tree.root / name
        there = {entry.name for entry in os.scandir(new.root / name) if not entry.is_dir(follow_symlinks=False)}
        for one in sorted(there):
            driver_layouts.put(new.root / name / one, at / f".{one}.new")
            os.replace(at / f".{one}.new", at / one)
        for entry in list(os.scandir(at)):
            version = VERSION.search(entry.name)
            if version and version[1] == tree.version and tree.version != new.version and entry.name not in there:
                os.unlink(entry.path)
    subprocess.run(["ldconfig", "-r", tree.root], check=True, capture_output=True)
    if module:
        set_module(tree, module)


def set_module(tree, version):
    sysfs, procfs = tree.root / "sys/module/nvidia/version", tree.root / "proc/driver/nvidia/version"
    reachable_trees.replace(procfs, procfs.read_text().replace(sysfs.read_text().strip(), version).encode())
    reachable_trees.replace(sysfs, f"{version}\n".encode())


LIBRARIES = "ls /usr/local/nvidia/lib64 | sed -n 's/.*\\.so\\.\\([0-9]*\\.[0-9.]*\\)$/\\1/p' | sort -u"


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_an_upgrade_under_a_running_container_leaves_it_its_driver(berth, image, trees, mode):
    tree, new = trees(OLD, "ubuntu", private=True), trees(NEW, "ubuntu")
    flags = ("--driver-root", tree.root)
    berth.ok(*flags, "run", "-d", "--name", "held", "--stop-timeout", "0", "--gpus", "all", "--gpu-driver", mode,
             image, "sleep", "1000")
    before = start_images.answers(berth.ok(*flags, "exec", "held", "/start"))
    assert before["cuDriverGetVersion"] == "0,12020" and before["module"] == tree.version
    upgrade(tree, new)
    assert start_images.answers(berth.ok(*flags, "exec", "held", "/start")) == before
    line = berth.fail(*flags, "run", "--rm", "--gpus", "all", "--gpu-driver", mode, image, "true")
    assert line == (f"berth: driver files are {new.version} but the kernel module is {tree.version}; try: reboot or "
                    "reload the module")
    assert f"driver files are {new.version} but the kernel module is {tree.version}" in berth.run(
        *flags, "doctor", "gpu").stdout
    set_module(tree, new.version)  # the machine was booted, or the module was loaded again
    after = start_images.answers(berth.ok(*flags, "run", "--rm", "--gpus", "all", "--gpu-driver", mode, image,
                                          "/start"))
    assert (after["cuDriverGetVersion"], after["module"]) == ("0,12040", new.version)
    berth.ok("rm", "--force", "held")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("upgraded", [False, True], ids=["same", "upgraded"])
@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_a_container_that_starts_again_has_the_driver_of_its_machine(berth, image, trees, mode, upgraded):
    tree, new = trees(OLD, "ubuntu", private=True), trees(NEW, "ubuntu")
    flags = ("--driver-root", tree.root)
    berth.ok(*flags, "run", "-d", "--name", "held", "--stop-timeout", "0", "--gpus", "all", "--gpu-driver", mode,
             image, "sleep", "1000")
    berth.ok(*flags, "stop", "held")
    if upgraded:
        upgrade(tree, new, module=new.version)
    berth.ok(*flags, "start", "held")
    told = start_images.answers(berth.ok(*flags, "exec", "held", "/start"))
    expected = ("0,12040", new.version) if upgraded else ("0,12020", tree.version)
    assert (told["cuDriverGetVersion"], told["module"]) == expected and told["listed"] == "yes"
    assert set(berth.ok(*flags, "exec", "held", "sh", "-c", LIBRARIES).split()) == {expected[1]}
    berth.ok("rm", "--force", "held")


class Upgrading:
    """Upgrades a tree back and forth until the block ends."""

    def __init__(self, *steps):
        self.steps, self.done, self.rounds, self.fault = steps, threading.Event(), 0, None
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self.done.is_set():
                for step in self.steps:
                    step()
                self.rounds += 1
        except OSError as error:
            self.fault = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        assert self.fault is None and self.rounds > 0, (self.fault, self.rounds)


STARTS = 16


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_starts_while_the_same_version_is_installed_again(berth, image, trees, mode):
    """Each file is renamed over, as by `apt-get install --reinstall`: every start has a whole driver."""
    tree, same = trees(NEW, "ubuntu", private=True), trees(NEW, "ubuntu")
    berth.ok("pull", "--quiet", image)
    with Upgrading(lambda: upgrade(tree, same)):
        for _ in range(STARTS):
            told = start_images.answers(berth.ok("--driver-root", tree.root, "run", "--rm", "--gpus", "all",
                                                 "--gpu-driver", mode, image, "/start", timeout=SECONDS))
            assert (told["listed"], told["cuInit"]) == ("yes", "100")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("mode", ["bind", "volume", "copy"])
def test_starts_while_another_version_is_installed(berth, image, trees, mode):
    """A start has one driver, all of it, or is refused in one line and leaves nothing."""
    tree, old, new = trees(OLD, "ubuntu", private=True), trees(OLD, "ubuntu"), trees(NEW, "ubuntu")
    berth.ok("pull", "--quiet", image)
    outcomes = []
    begun = time.monotonic()
    berth.ok("--driver-root", tree.root, "run", "--rm", "--gpus", "all", "--gpu-driver", mode, image, "true")
    took = time.monotonic() - begun

    def switch(one, other):
        # `tree.version` is that of the files to be removed.
        object.__setattr__(tree, "version", one.version)
        upgrade(tree, other, module=other.version)
        time.sleep(2 * took)  # some starts fall between two upgrades, some into one
    with Upgrading(lambda: switch(old, new), lambda: switch(new, old)):
        for _ in range(STARTS):
            done = berth.run("--driver-root", tree.root, "run", "--rm", "--gpus", "all", "--gpu-driver", mode, image,
                             "sh", "-c", f"/start; {LIBRARIES}", timeout=SECONDS)
            outcomes.append((done.returncode, done.stdout, done.stderr))
            assert berth.ok("ps", "--all", "--quiet") == ""
    berth.run("--driver-root", tree.root, "gpu", "list")  # removes leases of refused starts
    wrong = [one for one in outcomes if not is_right(*one, {old.version: "0,12020", new.version: "0,12040"})]
    assert wrong == []
    # Both are seen, or nothing is shown.
    assert {status for status, _, _ in outcomes} == {0, 125}, [err for _, _, err in outcomes]


@pytest.mark.profiles("user")
@pytest.mark.parametrize("flags", [("--rm",), ("-d",)], ids=["rm", "detached"])
def test_a_start_whose_copies_fail_leaves_no_lease(berth, image, trees, flags):
    tree = trees(NEW, "ubuntu", private=True)
    smi = tree.root / "usr/bin/nvidia-smi"
    reachable_trees.replace(smi, smi.read_bytes())
    smi.chmod(0o700)  # root's alone
    berth.ok("run", "--rm", "--gpus", "none", image, "true")
    done = berth.run("--driver-root", tree.root, "run", *flags, "--gpus", "all", "--gpu-driver", "copy", image,
                     "true")
    refused = done.returncode == 125 and "/usr/bin/nvidia-smi': Permission denied" in done.stderr
    assert refused, done
    left = list(pathlib.Path(berth.state).rglob("lease-*")) + list(pathlib.Path("/run").glob("berth-ledger/lease-*"))
    berth.run("--driver-root", tree.root, "gpu", "list")
    assert left == []


def is_right(status, out, err, known):
    lines = [line for line in err.splitlines() if line.startswith("berth: ") and not line.startswith("berth: warning")]
    if status == 125:
        return len(lines) == 1 and out == ""
    answers = start_images.answers(out)
    versions = {line for line in out.splitlines() if line in known}
    return status == 0 and versions == {version for version in known
                                        if known[version] == answers.get("cuDriverGetVersion")}
