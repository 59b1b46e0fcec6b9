# SPDX-License-Identifier: Apache-2.0
"""What the start scripts of NVIDIA's images ask before the program (support/start_images.py), and what NVIDIA's own
libraries and nvidia-smi say then: in a container the answers are those of the bare root, a chroot of the driver's
root. The drivers are real, proc, sys and dev are synthetic, and there is no kernel module. So CUDA says that there is
no device, and NVML that no driver is loaded.

And the images that carry a driver of their own, on nodes of another one."""

import re
import subprocess
import sys

import pytest

from callers.conftest import nothing_left, started, tested  # noqa: F401
from callers.test_gpu import Site
from callers.test_gpu_loader import ENGINES, users_podman  # noqa: F401
from integration.test_gpu_driver_modes import compat_layer
from support import callers, images, reachable_trees, start_images
from support import registry as registries

BRANCHES = ("550", "470", "390")
MODES = ("bind", "volume", "copy")
WANTED = {"CUDA_DRIVER_VERSION": "470.82.01"}
ENV = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "CUDA_DRIVER_VERSION=470.82.01"]
# Of NVIDIA's images: it wants GPUs, of any driver that has CUDA 9.
ASKING = [*ENV, "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "CUDA_VERSION=9.0.176",
          "NVIDIA_REQUIRE_CUDA=cuda>=9.0"]
# Without /ask.
QUESTIONS = ("listed", "found", "module", "needs", "compat", "cpu_only", "smi")


@pytest.fixture(scope="session")
def trees(session_directory):
    with reachable_trees.trees(session_directory) as make:
        yield make


@pytest.fixture(scope="session")
def view(trees, session_directory, nothing_left):  # noqa: F811
    """After the trees, which are a mount."""
    with callers.private_view(session_directory) as command:
        yield command


def carrying(branch):
    return [*start_images.debian_layers(), start_images.driver_layer(reachable_trees.driver(branch))]


@pytest.fixture(scope="module")
def pushed(session_directory):
    """pushed("debian"), pushed("musl"), pushed("compat"), pushed("550"): an image with that driver of its own"""
    made = {}
    with registries.running(session_directory / "start-images") as server:
        def get(name, env=ENV):
            key = f"{name}-{len(env)}"
            if key not in made:
                layers = {"debian": start_images.debian_layers, "musl": start_images.musl_layers,
                          "compat": lambda: [
                              *start_images.debian_layers(), compat_layer(), images.layer([images.whiteout("ask")])]}
                images.build(layers[name]() if name in layers else carrying(name), {"Env": env}).push(
                    server, f"test/start-{key}")
                made[key] = f"{server.address}/test/start-{key}:latest"
            return made[key]
        yield get


@pytest.fixture(scope="module")
def bare(trees):
    """bare(branch) → the answers of the driver's root itself."""
    made = {}

    def get(branch):
        if branch not in made:
            made[branch] = start_images.bare(trees(branch).root, WANTED)
        return made[branch]
    return get


def asked(berth, tree, image, *flags, command=("/start",), gpus=("--gpus", "all")):
    return start_images.answers(berth.ok("--driver-root", tree.root, "run", "--rm", *gpus, *flags, image, *command))


def of_musl(answers):
    return {name: answers[name] for name in QUESTIONS}


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_bare_root_answers(bare, branch):
    """What the others are compared with is what it should be."""
    told = bare(branch)
    version = reachable_trees.driver(branch).version
    assert of_musl(told) == {"listed": "yes", "found": "yes", "module": version, "compat": "no", "cpu_only": "no",
                             "needs": "newer" if branch == "390" else "nothing", "smi": "/usr/bin/nvidia-smi"}
    assert told["smi_says"].endswith(", 9") and "couldn't communicate" in told["smi_says"]
    assert told["nvmlInit_v2"] == "9,Driver Not Loaded"
    # CUDA_ERROR_NO_DEVICE; 390 says CUDA_ERROR_UNKNOWN.
    assert told["cuInit"] == ("999" if branch == "390" else "100")
    assert told["cuDriverGetVersion"] == {"550": "0,12040", "470": "0,11040", "390": "0,9010"}[branch]


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("mode", MODES)
def test_a_container_gives_the_answers_of_the_bare_root(berth, pushed, trees, bare, branch, mode):
    flags = ("--gpu-driver", mode)
    assert asked(berth, trees(branch), pushed("debian"), *flags) == bare(branch)
    assert asked(berth, trees(branch), pushed("debian"), *flags, "--read-only") == bare(branch)
    assert asked(berth, trees(branch), pushed("musl"), *flags) == of_musl(bare(branch))


@pytest.mark.parametrize("branch", BRANCHES)
def test_an_image_with_a_fitting_driver_gives_the_answers_of_the_bare_root(berth, pushed, trees, bare, branch):
    assert asked(berth, trees(branch), pushed(branch), "--gpu-driver", "image") == bare(branch)
    assert asked(berth, trees(branch), pushed(branch), "--immutable") == bare(branch)


@pytest.mark.parametrize("libc", ["debian", "musl"])
@pytest.mark.parametrize("branch", BRANCHES)
def test_without_driver_files_a_start_script_falls_back_to_the_processor(berth, pushed, trees, bare, branch, libc):
    told = asked(berth, trees(branch), pushed(libc), "--gpu-driver", "none")
    wanted = {**of_musl(bare(branch)), "listed": "no", "found": "no", "cpu_only": "yes", "smi": ""}
    assert {name: told[name] for name in QUESTIONS} == wanted


@pytest.mark.parametrize("libc", ["debian", "musl"])
def test_without_gpus_there_is_no_driver(berth, pushed, trees, libc):
    told = asked(berth, trees("550"), pushed(libc), gpus=())
    assert {name: told[name] for name in QUESTIONS} == {
        "listed": "no", "found": "no", "module": "", "needs": "unknown", "compat": "no", "cpu_only": "yes", "smi": ""}


@pytest.mark.parametrize("mode", MODES)
def test_a_mount_in_the_place_of_the_driver_changes_no_answer(berth, pushed, trees, bare, work, mode):
    mine = berth.account.own(work / "mine")
    told = asked(berth, trees("550"), pushed("debian"), "--gpu-driver", mode, "-v", f"{mine}:/usr/local")
    assert told == bare("550")


@pytest.mark.parametrize("branch", ["550", "390"])
def test_a_compatibility_package_would_be_put_in_front_of_an_older_driver_only(berth, pushed, trees, branch):
    told = asked(berth, trees(branch), pushed("compat"))
    assert (told["compat"], told["needs"]) == (("yes", "newer") if branch == "390" else ("no", "nothing"))


@pytest.mark.profiles("root")
def test_an_image_of_a_newer_cuda_is_refused_with_both_versions_unless_it_is_told_not_to_be(berth, pushed, trees, bare):
    env = [*ENV, "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=12.2"]
    image = pushed("debian", env)
    berth.ok("pull", "--quiet", image)
    for branch, cuda in (("390", "9.1"), ("470", "11.4")):
        berth.run("--driver-root", trees(branch).root, "gpu", "list")
        line = berth.fail("--driver-root", trees(branch).root, "run", "--rm", "--gpus", "all", image, "/start")
        assert "cuda>=12.2" in line and f"CUDA {cuda}" in line, line
    assert asked(berth, trees("550"), image) == bare("550")
    assert asked(berth, trees("470"), image, "-e", "NVIDIA_DISABLE_REQUIRE=1") == bare("470")


# ---- under other engines ------------------------------------------------------------------------

@pytest.mark.profiles()
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("name", ENGINES)
def test_under_another_engine_the_answers_are_those_of_the_bare_root(request, view, trees, bare, pushed, name, branch):
    root = trees(branch).root
    if name in ("docker", "podman"):
        engine, site, directory = request.getfixturevalue("started")(name), Site(view, root), "/etc/berth"
        site.write(environment="grant")
        asks_all(engine, pushed, bare(branch))
        site.shell("rm -rf /etc/berth /run/berth/gpu")
        return
    engine = request.getfixturevalue("users_podman")[name]
    directory = engine.directory / "site"
    Site([], root).write(directory, environment="grant")
    with engine.running():
        engine.client = [*engine.client, f"--runtime-flag=config-dir={directory}"]
        asks_all(engine, pushed, bare(branch))


def asks_all(engine, pushed, wanted):
    insecure = ["--tls-verify=false"] if isinstance(engine, callers.Podman) else []
    try:
        for libc in ("debian", "musl"):
            engine.ok("pull", "--quiet", *insecure, pushed(libc))
            for more in ([], ["--read-only"]):
                argv = engine.argv_to_run("start", "/start")
                argv[argv.index(callers.IMAGE)] = pushed(libc)
                argv[1:1] = ["--env", "NVIDIA_VISIBLE_DEVICES=all", *more]
                done = engine.call(*argv)
                assert done.returncode == 0, done
                assert start_images.answers(done.stdout) == (wanted if libc == "debian" else of_musl(wanted))
    finally:
        engine.remove_all()


# ---- an image that carries another driver than the node's ----------------------------------------

# Image, node.
PAIRS = [("390", "550"), ("550", "390"), ("390", "470"), ("470", "550")]


@pytest.mark.profiles("root")
@pytest.mark.parametrize("image, node", PAIRS)
class TestImagesOfAnotherDriver:
    def test_match_says_so_before(self, berth, pushed, trees, image, node):
        reference = pushed(image, ASKING)
        at = ("--driver-root", trees(node).root)
        berth.ok("pull", "--quiet", reference)
        versions = [reachable_trees.driver(one).version for one in (image, node)]
        told = berth.run(*at, "why", "--gpu-driver", "image", reference)
        assert "user-land driver {} in the image, kernel module {}".format(*versions) in told.stdout, told
        assert "fails with --gpu-driver image; with bind it has the driver of the node" in told.stdout
        listed = berth.run(*at, "match", "--gpu-driver", "image", reference)
        assert listed.returncode == 10 and " runs, but " in listed.stdout, listed  # without a GPU
        assert berth.ok(*at, "match", reference).split()[-1] == "pass"

    def test_its_own_driver_is_refused_with_both_versions(self, berth, pushed, trees, image, node):
        reference = pushed(image)
        berth.ok("pull", "--quiet", reference)
        berth.run("--driver-root", trees(node).root, "gpu", "list")
        line = berth.fail("--driver-root", trees(node).root, "run", "--rm", "--gpus", "all", "--gpu-driver", "image",
                          reference, "/start")
        versions = [reachable_trees.driver(one).version for one in (image, node)]
        assert line == ("berth: the image's '/usr/lib/x86_64-linux-gnu/libcuda.so.1' (by its loader cache) is {} but "
                        "the kernel module is {}; try: --gpu-driver bind, or an image with that driver"
                        ).format(*versions)

    @pytest.mark.parametrize("mode", MODES)
    def test_the_nodes_driver_wins_over_its_own(self, berth, pushed, trees, bare, image, node, mode):
        assert asked(berth, trees(node), pushed(image), "--gpu-driver", mode) == bare(node)

    def test_with_none_it_loads_its_own(self, berth, pushed, trees, bare, image, node):
        versions = [reachable_trees.driver(one).version for one in (image, node)]
        berth.ok("pull", "--quiet", pushed(image))
        berth.run("--driver-root", trees(node).root, "gpu", "list")  # which warns of NVML
        line = berth.fail("--driver-root", trees(node).root, "run", "--rm", "--gpus", "all", "--gpu-driver", "none",
                          pushed(image), "/start")
        assert "user-land driver {} in the image, kernel module {}; try: --force".format(*versions) in line
        told = asked(berth, trees(node), pushed(image), "--gpu-driver", "none", "--force")
        own = bare(image)
        assert (told["cuInit"], told["cuDriverGetVersion"]) == (own["cuInit"], own["cuDriverGetVersion"])
        assert told["module"] == bare(node)["module"]


@pytest.mark.profiles("root")
def test_match_says_so_of_an_image_that_declares_nothing(berth, pushed, trees):
    """As a site's own image is that somebody has built on a machine with a driver."""
    at = ("--driver-root", trees("550").root)
    berth.ok("pull", "--quiet", pushed("390"))
    assert "390.157" in berth.ok("scan", pushed("390"))
    told = berth.run(*at, "why", "--gpu-driver", "image", pushed("390"))
    assert f"user-land driver 390.157 in the image, kernel module {trees('550').version}" in told.stdout, told


# ---- the kernel module 396.37 is synthetic, the files are those of 390 ---------------------------

@pytest.fixture(scope="module")
def upgraded(trees):
    return reachable_trees.with_module(trees("390", private=True), "396.37")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("mode", ["bind", "volume", "copy", "image"])
def test_files_that_are_not_the_modules_start_nothing(berth, pushed, upgraded, mode):
    berth.ok("pull", "--quiet", pushed("390"))
    line = berth.fail("--driver-root", upgraded.root, "run", "--rm", "--gpus", "all", "--gpu-driver", mode,
                      pushed("390"), "/start")
    assert "is 390.157 but the kernel module is 396.37" in line or \
        "driver files are 390.157 but the kernel module is 396.37; try: reboot or reload the module" in line, line
    assert berth.ok("ps", "--all", "--quiet") == ""


@pytest.mark.profiles("root")
def test_doctor_and_list_name_both_versions(berth, upgraded):
    told = "driver files are 390.157 but the kernel module is 396.37"
    assert told in berth.run("--driver-root", upgraded.root, "doctor", "gpu").stdout
    assert told in berth.run("--driver-root", upgraded.root, "gpu", "list").stderr


@pytest.mark.profiles("root")
def test_with_none_the_images_library_says_what_it_says_on_a_bare_root(berth, pushed, upgraded):
    told = asked(berth, upgraded, pushed("390"), "--gpu-driver", "none", "--force")
    bare = start_images.bare(upgraded.root, WANTED)
    assert {**told, "smi_says": ""} == {**bare, "smi_says": ""} and told["module"] == "396.37"


# ---- NVIDIA's words for it, from the libraries themselves ----------------------------------------

ERROR_TEXT = """
import ctypes, sys
said = ctypes.CDLL(sys.argv[1]).nvmlErrorString
said.restype = ctypes.c_char_p
print(said(18).decode())  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
"""


def file_of(branch, name):
    driver = reachable_trees.driver(branch)
    (found,) = {(driver.root / file).resolve() for file in driver.libraries if f"/{name}.so.{driver.version}" in file
                and "i386" not in file}
    return found


def diagnosed(berth, text):
    done = berth.run("doctor", "--log", "-", "--format", "json", input=text)
    assert done.returncode in (0, 1), done
    return done.stdout


@pytest.mark.profiles("root")
@pytest.mark.parametrize("branch", ["340", *reversed(BRANCHES), "535"])
class TestWordsOfTheLibraries:
    def test_what_nvml_calls_a_mismatch_is_known(self, berth, branch):
        library = file_of(branch, "libnvidia-ml")
        text = subprocess.run([sys.executable, "-c", ERROR_TEXT, library], check=True, capture_output=True,
                              text=True).stdout
        if branch == "340":  # it has no word for this yet
            assert text == "Unknown Error\n"
            return
        assert "mismatch" in text
        for line in (text, f"Failed to initialize NVML: {text}"):
            assert "version-mismatch" in diagnosed(berth, line), line

    @pytest.mark.parametrize("library", ["libnvidia-ml", "libcuda"])
    def test_what_a_library_writes_about_a_mismatch_is_known(self, berth, branch, library):
        data = file_of(branch, library).read_bytes()
        texts = re.findall(rb"NVIDIA: API mismatch: [^\0]*", data)
        assert len(texts) == 2
        for text in texts:
            text = text.decode()
            shown = text % (("396.37", "390.157")[-text.count("%s"):])
            assert "version-mismatch" in diagnosed(berth, shown), shown

    def test_what_nvidia_smi_writes_about_a_mismatch_is_known(self, berth, branch):
        driver = reachable_trees.driver(branch)
        (smi,) = {driver.root / file for file in driver.files
                  if file.endswith("/nvidia-smi") and not file.startswith("usr/share/")
                  and not (driver.root / file).is_symlink()}
        text = b"Mismatch in versions between nvidia-smi and NVML."
        assert text in smi.read_bytes()
        assert "version-mismatch" in diagnosed(berth, text.decode())
