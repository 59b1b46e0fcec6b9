# SPDX-License-Identifier: Apache-2.0
"""A driver that berth-runtime has put into containers of Docker and podman, of root's and of users',
is found by loaders and linkers, whatever the image is laid out like, and stays found when the
container has run ldconfig or has installed a package. A commit has what was installed, and no driver."""

import os
import tempfile

import pytest

from callers.test_gpu import Site, VARIABLE
from integration.test_ldconfig import (INSTALLED, NAMES, archive, debian, install, linker,  # noqa: F401
                                       new_library, unmerged, with_ldconfig)
from support import callers, images, loader_images, users
from support import registry as registries

pytestmark = pytest.mark.skipif("RUNTIME" in os.environ, reason="of berth-runtime alone")

DRIVER = "/usr/local/nvidia/lib64"
LAYOUTS = {"merged": lambda: with_ldconfig(loader_images.debian()),
           "unmerged": lambda: with_ldconfig([images.layer(unmerged())]),
           "rhel": lambda: with_ldconfig(loader_images.rhel()),
           "linked": lambda: [*with_ldconfig(loader_images.debian()),
                              images.layer([images.symlink("opt/link", "/usr/local")])],
           "musl": lambda: [images.busybox_layer(), *loader_images.alpine()]}
ENGINES = ("docker", "podman", "podman of a user", "podman of a user with one id")


class OneIdPodman(callers.RootlessPodman):
    """podman has to be told that nobody can own what others own."""

    def command(self, *words):
        argv = super().command(*words)
        at = argv.index("vfs") + 1
        return [*argv[:at], "--storage-opt", "vfs.ignore_chown_errors=true", *argv[at:]]


@pytest.fixture(scope="module")
def pushed(session_directory):
    """layout → a reference that every engine of this machine can pull."""
    with registries.running(session_directory / "layouts") as server:
        for name, layers in LAYOUTS.items():
            images.build(layers()).push(server, f"test/{name}")
        yield lambda name: f"{server.address}/test/{name}:latest"


@pytest.fixture(scope="module")
def users_podman(session_directory, tested):
    session_directory.chmod(0o755)  # the runtime lies there
    with tempfile.TemporaryDirectory(prefix="berth-tests-", dir="/tmp") as place:
        os.chmod(place, 0o755)
        with users.accounts(place, ["user", "single_id"]) as made:
            yield {"podman of a user": callers.RootlessPodman(tested, made["user"]),
                   "podman of a user with one id": OneIdPodman(tested, made["single_id"])}


@pytest.fixture(params=ENGINES)
def engine(request, started, users_podman, view, driver_tree):
    """An engine whose containers may ask for GPUs by a variable."""
    if request.param not in users_podman:
        made = started(request.param)
        site = Site(view, driver_tree("eight"))
        site.write(environment="grant")
        yield made
        made.remove_all()
        site.shell("rm -rf /etc/berth /run/berth/gpu")
        return
    made = users_podman[request.param]
    site = Site([], driver_tree("eight"))
    site.write(made.directory / "site", environment="grant")
    with made.running():
        made.client = [*made.client, f"--runtime-flag=config-dir={made.directory}/site"]
        yield made
        made.remove_all()


def run(engine, image, script, flags=(), name="gpus", keep=False):
    pull = ["pull", "--quiet"] + ([] if isinstance(engine, callers.Docker) and not isinstance(engine, callers.Podman)
                                  else ["--tls-verify=false"])
    if "/" in image:
        engine.ok(*pull, image)
    argv = engine.argv_to_run(name, "sh", "-c", script)
    argv[argv.index(callers.IMAGE)] = image
    if keep:
        argv.remove("--rm")
    argv[1:1] = [*VARIABLE, *flags]
    done = engine.call(*argv)
    assert done.returncode == 0, done
    return done.stdout


def volume(path, inside):
    return ["--volume", f"{path}:{inside}:ro"]


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "linked"])
def test_names_with_and_without_a_number_are_found_by_loaders_and_linkers(engine, pushed, linker, layout):  # noqa: F811
    link = ("cd /tmp; /linker/ld-linux-x86-64.so.2 --library-path /linker /linker/ld -shared --no-as-needed"
            " -o made.so -lcuda -lnvidia-ml && grep -c libcuda.so.1 made.so")
    flags = [*volume(linker, "/linker"), "--tmpfs", "/tmp"]
    for more in ([], ["--read-only"]):
        out = run(engine, pushed(layout), f"/probe {' '.join(NAMES)}; {link}", [*flags, *more]).splitlines()
        assert all(f" => {DRIVER}/" in line for line in out[:3]), out
        assert out[3:] == ["1"]


@pytest.fixture
def mine():
    """An empty directory that any user of this module may write to."""
    with tempfile.TemporaryDirectory(prefix="berth-tests-", dir="/tmp") as place:
        os.chmod(place, 0o777)
        yield place


@pytest.mark.parametrize("where", ["/usr/local", "/opt/link"])
def test_the_driver_is_elsewhere_than_in_what_the_user_has_mounted(engine, pushed, mine, where):
    out = run(engine, pushed("linked"), f"/probe {' '.join(NAMES)}", ["--volume", f"{mine}:{where}"]).splitlines()
    assert len(out) == 3 and all(" => /.berth/nvidia/lib64/" in line for line in out), out
    assert os.listdir(mine) == []


def test_a_mount_at_dev_without_the_devices_is_one_line(engine, pushed, mine):
    argv = engine.argv_to_run("gpus", "true")
    argv[argv.index(callers.IMAGE)] = pushed("merged")
    argv[1:1] = [*VARIABLE, "--volume", f"{mine}:/dev"]
    run(engine, pushed("merged"), "true")  # it is pulled
    done = engine.call(*argv)
    assert done.returncode != 0 and f"is not in '{mine}', which is mounted at '/dev'" in done.stderr, done


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("musl", "linked")])
def test_ldconfig_twice_and_a_commit(engine, pushed, new_library, layout):  # noqa: F811
    script = ("mkdir -p /opt/new && cp /libnew.so.1 /opt/new && echo /opt/new >/etc/ld.so.conf.d/new.conf &&"
              f"/ldconfig && /ldconfig && /probe {' '.join(NAMES)} libnew.so.1")
    try:
        out = run(engine, pushed(layout), script, volume(new_library, "/libnew.so.1"), keep=True).splitlines()
        assert all(f" => {DRIVER}/" in line for line in out[:3]) and len(out) == 4, out
        assert out[3] == "libnew.so.1 => /opt/new/libnew.so.1"
        engine.commit("gpus", "committed")
        shown = run(engine, "committed", "/ldconfig -p; ls /etc/ld.so.conf.d /usr/lib; /probe libnew.so.1",
                    ["--env", "NVIDIA_VISIBLE_DEVICES=void"], "gpus-committed")
        assert "cuda" not in shown and "nvidia" not in shown and "00-berth" not in shown
        assert shown.endswith("libnew.so.1 => /opt/new/libnew.so.1\n")
    finally:
        engine.remove_all()
        engine.call("rmi", "committed")


@pytest.mark.long
def test_apt_get_installs_a_package_with_a_library(engine, debian, archive):  # noqa: F811
    out = run(engine, debian, install(isinstance(engine, OneIdPodman)), volume(archive, "/archive"))
    assert out.splitlines() == INSTALLED
