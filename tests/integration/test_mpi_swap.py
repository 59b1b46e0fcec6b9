# SPDX-License-Identifier: Apache-2.0
"""`berth run --mpi`: whose MPI a program gets, why, and what a rank gets of its launcher.

The MPIs are two functions that say whose they are: the host's are found by LD_LIBRARY_PATH, as after
'module load'. /app is always called by its path, so that no MPI that is installed on this machine
fits it."""

import json
import os
import pathlib
import re
import socket
import subprocess

import pytest

from support import images, loader_images, mpi_images

OURS = "image image\n"
THEIRS = "host host\n"


@pytest.fixture
def host(work):
    """An Open MPI of the host, newer than that of the images."""
    return mpi_images.openmpi(work / "host", "host", "40.30.4")


@pytest.fixture
def own(push, work):
    """own(…) → an image with an Open MPI of its own."""
    def make(numbers="40.20.1", defines=(), **place):
        mpi = mpi_images.openmpi(work / "own", "image", numbers, defines)
        return push(mpi_images.image(mpi, work, defines=defines, **place))
    return make


def module(directory):
    return {"LD_LIBRARY_PATH": directory}


def says(berth, mode, image, host, *flags):
    return berth.ok("run", "--rm", "--mpi", mode, *flags, image, "/app", env=module(host))


def refused(berth, image, host, *flags):
    return berth.fail("run", "--rm", "--mpi", "host", *flags, image, "/app", env=module(host))


def warned(berth, image, host, *flags):
    done = berth.run("run", "--rm", "--mpi", "auto", *flags, image, "/app", env=module(host))
    assert (done.returncode, done.stdout) == (0, OURS), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "--mpi auto" in line]
    return line


# ---- whose MPI ----------------------------------------------------------------------------------

def test_the_hosts_mpi_takes_the_place_of_the_images(berth, own, host):
    image = own()
    assert says(berth, "auto", image, host) == THEIRS
    assert says(berth, "host", image, host) == THEIRS
    assert says(berth, "image", image, host) == OURS
    assert says(berth, "none", image, host) == OURS
    assert berth.ok("run", "--rm", image, "/app", env=module(host)) == OURS
    assert berth.ok("run", "--rm", image, "/app", env={**module(host), "BERTH_MPI": "host"}) == THEIRS


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("how", ["rpath", "LD_LIBRARY_PATH"])
def test_also_where_the_program_looks_before_the_loaders_cache(berth, push, work, host, how):
    mpi = mpi_images.openmpi(work / "own", "image")
    variables = {"Env": ["PATH=/bin", "LD_LIBRARY_PATH=/srv/mpi"]} if how == "LD_LIBRARY_PATH" else {}
    image = push(mpi_images.image(mpi, work, variables, "/srv/mpi" if how == "rpath" else "",
                                  where="srv/mpi", cached=False))
    assert berth.ok("run", "--rm", image, "/app") == OURS
    assert says(berth, "host", image, host) == THEIRS


@pytest.mark.profiles("root", "user")
def test_a_library_of_the_hosts_mpi_comes_along(berth, push, work):
    """MPICH's neighbours have other names: the image has none of them."""
    theirs = mpi_images.mpich(work / "host", "host", "libmpi", "12.2.1")
    mpi = mpi_images.mpich(work / "own", "image", "libmpich")
    image = push(mpi_images.image(mpi, work))
    assert berth.ok("run", "--rm", image, "/app") == OURS
    assert says(berth, "host", image, theirs) == THEIRS
    listed = berth.ok("run", "--rm", "--mpi", "host", image, "ls", "-l", "/usr/local/berth/mpi/lib", env=module(theirs))
    names = re.findall(r"\S+\.so\.\d+$|\S+ -> \S+$", listed, re.MULTILINE)
    assert sorted(names) == ["libhost-below.so.1", "libmpi.so.12", "libmpich.so.12 -> libmpi.so.12"]


def test_nothing_of_it_stays_in_the_container(berth, own, host):
    image = own()
    berth.ok("run", "--name", "c1", "--mpi", "host", image, "/app", env=module(host))
    changed = [line for line in berth.ok("diff", "c1").splitlines() if "mpi" in line or "ld.so" in line]
    assert changed == []
    # Whoever starts it again decides by what was asked for, not by the module that is loaded now.
    assert berth.ok("start", "-a", "c1") == THEIRS
    berth.ok("rm", "c1")


@pytest.mark.profiles("root")
def test_a_mount_of_the_users_is_his_own(berth, own, host, work):
    other = mpi_images.openmpi(work / "mine", "image", "40.10.0")
    image = own(where="opt/own", cached=False, rpath="/opt/own")
    out = says(berth, "host", image, host, "-v", f"{other}:/opt/own:ro")
    assert out == OURS


# ---- why not ------------------------------------------------------------------------------------

def test_a_version_of_glibc_that_the_image_lacks_is_named(berth, own, work):
    theirs = mpi_images.openmpi(work / "future", "host", "40.30.4", ["FUTURE"])
    image = own()
    missing = (f"the image's libc.so.6 has no {mpi_images.FUTURE} (future), needed by "
               f"{theirs}/libmpi.so.40.30.4")
    assert refused(berth, image, theirs) == (
        f"berth: --mpi host: Open MPI, libmpi.so.40 (40.20.1) stays: {missing}; try: --mpi auto, which then "
        "keeps the image's MPI")
    assert missing in warned(berth, image, theirs)
    assert warned(berth, image, theirs).endswith("using the image's MPI instead")


@pytest.mark.profiles("root")
def test_an_mpi_of_an_unknown_abi_stays(berth, push, work, host):
    mpi = mpi_images.make(work / "own", "image", ("libmpi.so.0.0.2", "libmpi.so.0"), ("libbelow.so.1", "libbelow.so.1"))
    image = push(mpi_images.image(mpi, work))
    assert "unknown ABI, libmpi.so.0 (0.0.2) stays: its ABI is not known" in refused(berth, image, host)
    assert says(berth, "auto", image, host) == OURS


@pytest.mark.profiles("root")
def test_open_mpi_1_10_is_not_taken_for_mpich(berth, own, work):
    theirs = mpi_images.mpich(work / "host", "host")
    image = own("12.0.3")
    assert "Open MPI, libmpi.so.12 (12.0.3) stays: " in refused(berth, image, theirs)
    assert says(berth, "auto", image, theirs) == OURS


@pytest.mark.profiles("root")
def test_rules_say_how_alike_they_have_to_be(berth, own, work):
    theirs = mpi_images.openmpi(work / "host", "host", "40.10.2")
    image = own()
    assert says(berth, "host", image, theirs) == THEIRS
    done = berth.run("run", "--rm", "--mpi", "host", "--mpi-compatibility", "full", image, "/app", env=module(theirs))
    assert done.stdout == THEIRS
    assert "the host's 40.10 is older than the image's 40.20" in done.stderr
    assert "by the rule 'strict' 40.10 is not 40.20" in refused(berth, image, theirs, "--mpi-compatibility", "strict")
    assert berth.fail("run", "--rm", "--mpi-compatibility", "full", image, "/app").startswith(
        "berth: '--mpi-compatibility' needs '--mpi'")


@pytest.mark.profiles("root")
def test_a_function_that_the_program_calls_and_the_host_lacks_is_named(berth, own, host):
    image = own(defines=["SESSIONS"])
    assert "/app needs MPI_Session_init, which the host's Open MPI, libmpi.so.40 (40.30.4) does not have" in \
        refused(berth, image, host)


@pytest.mark.profiles("root", "user")
def test_images_without_mpi_and_of_musl_are_left_alone(berth, push, busybox, host):
    done = berth.run("run", "--rm", "--mpi", "auto", busybox, "echo", "hello", env=module(host))
    assert (done.stdout, done.stderr.count("--mpi")) == ("hello\n", 0)
    assert "the image has no MPI" in berth.fail("run", "--rm", "--mpi", "host", busybox, "true", env=module(host))
    alpine = push(images.build(loader_images.alpine(), {"Cmd": ["/probe"]}))
    assert berth.ok("run", "--rm", "--mpi", "auto", alpine, "/probe", env=module(host)) == ""


@pytest.mark.profiles("root")
@pytest.mark.parametrize("size", [0, 64, 4096])
def test_a_library_that_is_cut_off_counts_as_none(berth, push, work, host, size):
    mpi = mpi_images.openmpi(work / "own", "image")
    app = mpi_images.program(mpi, work)
    for file in mpi.iterdir():
        if not file.is_symlink():
            file.write_bytes(file.read_bytes()[:size])
    image = push(images.build([images.busybox_layer(), mpi_images.layer(mpi, app, cached=False)]))
    assert "the image has no MPI" in berth.fail("run", "--rm", "--mpi", "host", image, "true", env=module(host))
    assert berth.ok("run", "--rm", "--mpi", "auto", image, "echo", "hello", env=module(host)) == "hello\n"


def test_explain_tells_what_was_decided_and_by_what(berth, own, host):
    image = own()
    told = json.loads(berth.ok("run", "--explain", "--format", "json", "--mpi", "auto", image, "/app", env=module(host)))
    items = {item["object"]: item for item in told["items"] if item["kind"].startswith("mpi")}
    assert items["host"]["why"] == ("Open MPI, libmpi.so.40 (40.20.1) is replaced by Open MPI, libmpi.so.40 (40.30.4) "
                                    f"of the host ({host}/libmpi.so.40.30.4)")
    assert items["libmpi.so.40"] == {"kind": "mpi-library", "object": "libmpi.so.40", "given": True,
                                     "why": "the host's MPI", "host_path": f"{host}/libmpi.so.40.30.4"}
    assert items["libopen-pal.so.40"]["given"] is True
    assert told["granted"] is bool([item for item in told["items"] if item["kind"] == "node" and item["given"]])
    berth.ok("run", "--name", "c1", "--mpi", "auto", image, "/app", env=module(host))
    assert json.loads(berth.ok("explain", "--format", "json", "c1"))["items"] == told["items"]
    berth.ok("rm", "c1")


# ---- ranks --------------------------------------------------------------------------------------

SPACES = ("net", "pid", "ipc", "uts")


def spaces(berth, image, *flags, **options):
    look = "; ".join(f"readlink /proc/self/ns/{name}" for name in SPACES)
    out = berth.ok("run", "--rm", *flags, image, "sh", "-c", look, **options)
    return out.split()


def test_ranks_share_the_nodes_namespaces_but_nobody_else_does(berth, busybox):
    ours = [os.readlink(f"/proc/self/ns/{name}") for name in SPACES]
    assert spaces(berth, busybox, "--mpi", "image") == ours
    rank = {"PMI_RANK": "1", "PMI_SIZE": "2"}
    assert not set(spaces(berth, busybox, env=rank)) & set(ours)
    alone = spaces(berth, busybox, "--mpi", "image", "--network", "none", "--pid", "private")
    assert alone[0] != ours[0] and alone[1] != ours[1] and alone[2:] == ours[2:]


def test_a_rank_has_its_launchers_variables_and_its_own_id(berth, busybox, profile):
    rank = {"PMIX_RANK": "3", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "UCX_TLS": "tcp",
            "UCX_MODULE_DIR": "/nowhere", "SECRET": "s"}
    words = ("run", "--rm", "--mpi", "image", "-e", "UCX_TLS=sm", busybox, "sh", "-c", "id -u; env")
    uid, *variables = berth.ok(*words, env=rank).splitlines()
    assert int(uid) == profile.uid
    assert {"PMIX_RANK=3", "OMPI_COMM_WORLD_RANK=3", "UCX_TLS=sm"} <= set(variables)
    assert not [line for line in variables if line.startswith(("UCX_MODULE_DIR=", "SECRET="))]


def test_rank_0_is_told_that_its_container_is_on_its_own(berth, busybox):
    done = berth.run("run", "--rm", busybox, "env", env={"PMI_RANK": "0", "PMI_SIZE": "2"})
    assert "PMI_RANK" not in done.stdout
    assert done.stderr.count("this is one of 2 ranks of PMI") == 1
    done = berth.run("run", "--rm", busybox, "true", env={"PMI_RANK": "1", "PMI_SIZE": "2"})
    assert done.stderr == ""


def test_the_directory_where_ranks_meet_is_there(berth, busybox, work, profile):
    place = profile.own(work / "pmix.17.0")
    script = f"echo from rank 0 > {place}/word"
    berth.ok("run", "--rm", "--mpi", "image", busybox, "sh", "-c", script,
             env={"PMIX_RANK": "0", "PMIX_SERVER_TMPDIR": place})
    assert (place / "word").read_text() == "from rank 0\n"
    assert (place / "word").stat().st_uid == profile.uid


def test_the_socket_of_a_launcher_reaches_the_program(berth, busybox):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        rank = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": number}
        script = "echo cmd=init >&$PMI_FD; ls /proc/self/fd | wc -l"
        process = berth.spawn("run", "--rm", "--mpi", "image", busybox, "sh", "-c", script, env=rank, pass_fds=[number])
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert ours.recv(100) == b"cmd=init\n"
        # Three streams, the socket, and the directory that ls looks at.
        assert int(out) == 5


def test_no_other_descriptor_passes_for_one(berth, busybox, work):
    with open(work / "file", "w+b") as file:
        rank = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": file.fileno()}
        process = berth.spawn("run", "--rm", "--mpi", "image", busybox, "sh", "-c", "echo ${PMI_FD-none}", env=rank,
                              pass_fds=[file.fileno()])
        out, err = process.communicate(timeout=60)
    assert out == "none\n", err
    assert f"PMI_FD={rank['PMI_FD']} is not a launcher's socket, ignoring" in err


def test_a_container_that_outlives_its_command_has_no_socket(berth, busybox):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        process = berth.spawn("run", "--mpi", "image", busybox, "true", pass_fds=[number],
                              env={"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": number})
        _, err = process.communicate(timeout=60)
    assert process.returncode == 125
    assert "PMI_FD: only a container that ends with its command can have the launcher's socket" in err


# ---- Debian's own -------------------------------------------------------------------------------

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  char line[1024];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  FILE* maps = fopen("/proc/self/maps", "r");
  const char* whose = "image";
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, "/usr/local/berth/mpi/lib/libopen-pal") || strstr(line, "/usr/local/berth/mpi/lib/libmpich"))
      whose = "host";
  }
  printf("rank %d of %d, sum %d, %s\n", rank, size, sum, whose);
  MPI_Finalize();
  return 0;
}
"""


def hello_image(push, work, family):
    """A program of Debian's MPI with the libraries that it is linked with, but with no plugin."""
    path = work / f"hello-{family}"
    subprocess.run([f"mpicc.{family}", "-O1", "-o", path, "-xc", "-"], input=HELLO, text=True, check=True)
    files = {where.lstrip("/"): real for where, real in loader_images.loaded_files(path)}
    parents = {str(parent) for name in files for parent in pathlib.PurePath(name).parents} - {"."}
    entries = [images.directory(name) for name in sorted(parents | {"etc"})]
    entries += [images.file(name, pathlib.Path(real).read_bytes(), mode=0o755) for name, real in files.items()]
    cache = loader_images.loader_cache(entries, "/lib/x86_64-linux-gnu\n")
    entries += [images.file("hello", path.read_bytes(), mode=0o755), images.file("etc/ld.so.cache", cache)]
    return push(images.build([images.busybox_layer(), images.layer(entries)]))


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("family,launcher", [("openmpi", ["mpirun.openmpi", "--oversubscribe"]),
                                             ("mpich", ["mpirun.mpich"])])
def test_two_ranks_compute_together_with_the_hosts_mpi(berth, push, work, profile, family, launcher):
    image = hello_image(push, work, family)
    berth.ok("pull", "-q", image)
    argv = [berth.programs / "berth", "--root", berth.root, "--state", berth.state, "run", "--rm", "--mpi", "host",
            image, "/hello"]
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(profile.command([*launcher, "-n", "2", *argv]), env=profile.environment(**variables),
                          cwd=berth.directory, capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2, sum 1, host", "rank 1 of 2, sum 1, host"], done.stderr
