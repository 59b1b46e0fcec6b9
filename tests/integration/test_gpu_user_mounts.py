# SPDX-License-Identifier: Apache-2.0
"""What a container's user has mounted against what Berth puts there for a driver: the driver is
somewhere else, or one line says what is in the way. The user's directory stays as it is."""

import io
import os
import pathlib
import subprocess
import tarfile

import pytest

from integration.test_cdi import ctk_file, flags, write
from integration.test_gpu_injection import glibc_layer
from support import images

MODES = ("bind", "volume", "copy")
# Where people mount something: all of it is in the image too.
PLACES = ("/run", "/var/run", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/local",
          "/usr/share", "/lib", "/lib/x86_64-linux-gnu", "/opt", "/srv")
NAMES = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1")


def entries():
    made = [images.directory(path) for path in
            ("etc/vulkan", "usr", "usr/bin", "usr/lib", "usr/lib/x86_64-linux-gnu", "usr/local", "usr/share", "run", "var",
             "opt", "srv", "tmp")]
    return [*made, images.symlink("var/run", "/run"), images.file("usr/share/mine", "of the image\n")]


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    return [images.busybox_layer(), glibc_layer(tmp_path_factory.mktemp("glibc")), images.layer(entries())]


@pytest.fixture(scope="module")
def image(registry, layers):
    images.build(layers).push(registry, "test/user-mounts")
    return f"{registry.address}/test/user-mounts:latest"


def unpack(layers, below, directory):
    """What the image has below a path."""
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            for member in archive:
                name = f"/{member.name}".rstrip("/")
                if name.startswith(f"{below}/"):
                    member.name = name[len(below) + 1:]
                    archive.extract(member, directory)


def listing(directory):
    return sorted((str(path.relative_to(directory)), path.lstat().st_mode, path.lstat().st_size,
                   path.lstat().st_mtime_ns) for path in pathlib.Path(directory).rglob("*"))


@pytest.fixture
def mine(berth, work, layers):
    """mine(PATH) → a directory of the user's with what the image has there."""
    def make(below):
        directory = berth.account.own(work / "mine")
        unpack(layers, {"/var/run": "/run"}.get(below, below), directory)
        if below == "/etc":  # what any container has there
            for name in ("hostname", "hosts", "resolv.conf"):
                (directory / name).write_text("")
        subprocess.run(["chown", "-R", f"{berth.account.uid}:{berth.account.gid}", directory], check=True)
        return directory
    return make


def try_to_run(berth, *words):
    done = berth.run(*words)
    errors = [line for line in done.stderr.splitlines() if line.startswith("berth: ") and " warning: " not in line]
    return done, errors


def has_driver_or_says_why_not(done, errors, where):
    if done.returncode == 0:
        lines = done.stdout.splitlines()
        assert len(lines) == len(NAMES) and all(" => " in line for line in lines), done
        assert errors == []
        return "driver"
    assert done.returncode == 125 and len(errors) == 1, done
    assert where in errors[0] or where.replace("/var/run", "/run") in errors[0], errors
    assert "; try: " in errors[0], errors
    return errors[0]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("access", ["rw", "ro"])
@pytest.mark.parametrize("mode", MODES)
def test_the_driver_is_there_and_nothing_is_made_in_what_the_user_has_mounted(berth, image, driver_tree, mine, mode,
                                                                              where, access):
    own = mine(where)
    before = listing(own)
    done, errors = try_to_run(berth, "--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all",
                              "--gpu-driver", mode, "-v", f"{own}:{where}:{access}", image, "/probe", *NAMES)
    assert has_driver_or_says_why_not(done, errors, where) == "driver", done
    assert listing(own) == before


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("read_only", [(), ("--read-only",)])
def test_so_it_is_with_a_cdi_file_of_nvidias_toolkit(berth, image, driver_tree, mine, work, where, read_only):
    own = mine(where)
    before = listing(own)
    cdi = (work / "etc-cdi", work / "run-cdi")
    write(cdi[0], "nvidia.json", ctk_file(driver_tree("one"), [0]))
    done, errors = try_to_run(berth, *flags(cdi), "run", "--rm", "--device", "nvidia.com/gpu=0", *read_only,
                              "-v", f"{own}:{where}", image, "/probe", *NAMES)
    has_driver_or_says_why_not(done, errors, where)
    assert listing(own) == before


@pytest.mark.parametrize("where", PLACES)
def test_so_it_is_with_a_cdi_file_of_berths_own(berth, image, driver_tree, mine, work, where):
    own = mine(where)
    before = listing(own)
    cdi = (work / "etc-cdi", work / "run-cdi")
    write(cdi[0], "nvidia.yaml", berth.ok("--driver-root", driver_tree("one"), "cdi", "generate"))
    done, errors = try_to_run(berth, *flags(cdi), "run", "--rm", "--device", "nvidia.com/gpu=0",
                              "-v", f"{own}:{where}", image, "/probe", *NAMES)
    has_driver_or_says_why_not(done, errors, where)
    assert listing(own) == before


def test_a_mount_at_dev_that_has_no_such_nodes_is_one_line(berth, image, driver_tree, work):
    own = berth.account.own(work / "mine")
    cdi = (work / "etc-cdi", work / "run-cdi")
    write(cdi[0], "nvidia.json", ctk_file(driver_tree("one"), [0]))
    done, errors = try_to_run(berth, *flags(cdi), "run", "--device", "nvidia.com/gpu=0", "--rm", "-v", f"{own}:/dev",
                              image, "/probe", *NAMES)
    assert done.returncode == 125 and len(errors) == 1 and "/dev" in errors[0], done
    assert set(os.listdir(own)) <= {"shm", "mqueue", "pts"}  # what any container has there


@pytest.mark.parametrize("flags", [("--gpus", "all"), ("--gpus", "all", "--gpu-driver", "none"),
                                   ("--device", "/dev/full:/dev/mine")])
@pytest.mark.parametrize("where", ["/dev", "/dev/"])
def test_a_device_that_a_mount_at_dev_has_not_is_one_line(berth, image, driver_tree, work, where, flags):
    own = berth.account.own(work / "mine")
    done, errors = try_to_run(berth, "--driver-root", driver_tree("one"), "run", "--rm", *flags, "-v",
                              f"{own}:{where}", image, "true")
    node = "/dev/mine" if "--device" in flags else "/dev/nvidia"
    assert done.returncode == 125 and len(errors) == 1, done
    assert f"device '{node}" in errors[0] and f"is not in '{own}', which is mounted at '/dev'; try: " in errors[0]
    assert os.listdir(own) == []


def test_a_mount_of_the_hosts_dev_has_the_hosts_devices(berth, image):
    # systemd makes it on every machine; where it is not, only root's container could.
    pathlib.Path("/dev/mqueue").mkdir(exist_ok=True)
    for flags in (("--device", "/dev/full"), ("--device", "/dev/full:/dev/full:r"), ("--privileged",)):
        assert berth.ok("run", "--rm", *flags, "-v", "/dev:/dev", image, "sh", "-c",
                        "test -c /dev/full && echo there") == "there\n"


# An image's link leads from the driver's place into what the user mounts, or the other way round.
LINKS = {"the place is a link into the mount": ([("usr/local", "/data")], "/data"),
         "it is one to what the image has not": ([("usr/local", "../far/away")], "/far"),
         "a link to a link": ([("usr/local", "/one"), ("one", "two/x"), ("two", "/data")], "/data"),
         "the mount goes through a link": ([("soft", "/usr/local")], "/soft"),
         "both": ([("usr/local", "opt2"), ("usr/opt2", "/data/site"), ("mnt2", "data")], "/mnt2")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", LINKS)
def test_a_link_of_the_image_leads_nothing_into_a_mount(berth, push, layers, driver_tree, work, case, mode):
    links, where = LINKS[case]
    image = push(images.build([*layers, images.layer([images.whiteout("usr/local")] if links[0][0] == "usr/local" else []),
                               images.layer([images.symlink(*link) for link in links])]))
    own = berth.account.own(work / "mine")
    (own / "site").mkdir()
    os.chown(own / "site", berth.account.uid, berth.account.gid)
    before = listing(own)
    for access in ("ro", "rw"):
        done, errors = try_to_run(berth, "--driver-root", driver_tree("one"), "run", "--rm", "--gpus", "all",
                                  "--gpu-driver", mode, "-v", f"{own}:{where}:{access}", image, "/probe", *NAMES)
        assert has_driver_or_says_why_not(done, errors, where) == "driver"
        assert listing(own) == before
