# SPDX-License-Identifier: Apache-2.0
"""Package managers, programs that ask for a library without its number, and linkers in containers
with a (synthetic) driver: as in any other container, and nothing of it in what is committed."""

import os
import pathlib
import shutil
import subprocess

import pytest

from support import debian_images, images, loader_images
from support import registry as registries

DRIVER = "/usr/local/nvidia/lib64"
MODES = ("bind", "volume", "copy")
NAMES = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so")


def unmerged():
    """An image whose /lib is a directory of its own."""
    entries = loader_images.glibc_layout("lib/x86_64-linux-gnu", {})
    entries = [images.directory("lib"), images.directory("lib/x86_64-linux-gnu"), images.directory("lib64"), *entries]
    for info, _ in entries:
        if "ld-linux" in info.name:
            info.name = info.name.replace("usr/lib64", "lib64")
    return entries


def with_ldconfig(layers):
    """The layers with ldconfig and, where a merged and an unmerged /usr have them, a shell's programs."""
    program = pathlib.Path("/sbin/ldconfig").read_bytes()
    applets = ("sh", "cp", "echo", "mkdir", "touch", "sleep", "true", "ls", "grep")
    return [*layers, images.layer([
        images.file("usr/bin/busybox", pathlib.Path("/bin/busybox").read_bytes(), mode=0o755),
        *[images.symlink(f"usr/bin/{name}", "busybox") for name in applets],
        images.directory("etc"), images.directory("etc/ld.so.conf.d"), images.directory("var"),
        images.directory("var/cache"), images.directory("var/cache/ldconfig"),
        images.file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
        images.file("etc/ld.so.conf.d/here.conf", "/usr/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu\n/usr/lib64\n"),
        images.file("ldconfig", program, mode=0o755)])]


@pytest.fixture(scope="module")
def layouts(registry):
    made = {}
    for name, layers in {"merged": with_ldconfig(loader_images.debian()),
                         "unmerged": with_ldconfig([images.layer(unmerged())]),
                         "rhel": with_ldconfig(loader_images.rhel()),
                         "musl": [images.busybox_layer(), *loader_images.alpine()]}.items():
        images.build(layers).push(registry, f"test/ldconfig-{name}")
        made[name] = f"{registry.address}/test/ldconfig-{name}:latest"
    return made


@pytest.fixture(scope="module")
def new_library(session_directory):
    library = session_directory / "libnew.so.1"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libnew.so.1", "-o", library, "-xc", "/dev/null"],
                   check=True)
    library.chmod(0o755)
    return library


def gpu_run(berth, tree, *words):
    return berth.ok("--driver-root", tree, "run", "--gpus", "all", *words)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["merged", "unmerged", "rhel"])
def test_ldconfig_works_and_the_driver_and_the_new_library_are_found(berth, layouts, driver_tree, new_library,
                                                                     layout, mode):
    script = ("mkdir -p /opt/new && cp /libnew.so.1 /opt/new && echo /opt/new >/etc/ld.so.conf.d/new.conf &&"
              f"/ldconfig && /probe {' '.join(NAMES)} libnew.so.1")
    out = gpu_run(berth, driver_tree("one"), "--rm", "--gpu-driver", mode, "-v", f"{new_library}:/libnew.so.1:ro",
                  layouts[layout], "sh", "-c", script)
    *driver, new = out.splitlines()
    assert len(driver) == 3 and all(f" => {DRIVER}/" in line for line in driver), out
    assert new == "libnew.so.1 => /opt/new/libnew.so.1"


@pytest.mark.parametrize("layout", ["merged", "unmerged", "rhel", "musl"])
@pytest.mark.parametrize("mode", MODES)
def test_a_name_without_a_number_is_the_drivers(berth, layouts, driver_tree, layout, mode):
    for flags in ((), ("--read-only",)):
        out = gpu_run(berth, driver_tree("one"), "--rm", "--gpu-driver", mode, *flags, layouts[layout],
                      "/probe", *NAMES)
        assert all(f" => {DRIVER}/" in line for line in out.splitlines()), out
        assert len(out.splitlines()) == 3


@pytest.fixture(scope="module")
def linker(session_directory):
    """The host's ld with all that it needs, in a directory of its own: for an image of any libc."""
    place = session_directory / "linker"
    place.mkdir()
    for path, real in loader_images.loaded_files("/usr/bin/ld"):
        (place / os.path.basename(path)).write_bytes(pathlib.Path(real).read_bytes())
    (place / "ld").write_bytes(pathlib.Path("/usr/bin/ld").read_bytes())
    for path in place.iterdir():
        path.chmod(0o755)
    place.chmod(0o755)
    return place


@pytest.mark.parametrize("layout", ["merged", "unmerged", "rhel", "musl"])
def test_a_linker_finds_the_driver_without_being_told_where(berth, layouts, driver_tree, linker, layout):
    script = ("cd /tmp; /linker/ld-linux-x86-64.so.2 --library-path /linker /linker/ld -shared --no-as-needed"
              " -o made.so -lcuda -lnvidia-ml && grep -c libcuda.so.1 made.so")
    out = gpu_run(berth, driver_tree("one"), "--rm", "-v", f"{linker}:/linker:ro", "--tmpfs", "/tmp", layouts[layout],
                  "sh", "-c", script)
    assert out == "1\n"


@pytest.mark.parametrize("driver", [(), ("--rootfs-driver", "copy")])
def test_a_container_that_only_ran_has_changed_nothing(berth, layouts, driver_tree, driver):
    berth.ok(*driver, "--driver-root", driver_tree("one"), "run", "--name=only", "--gpus=all", layouts["merged"],
             "true")
    assert berth.ok("diff", "only") == ""
    berth.ok(*driver, "--driver-root", driver_tree("one"), "run", "--detach", "--name=runs", "--gpus=all",
             layouts["merged"], "sleep", "100")
    try:
        assert berth.ok("diff", "runs") == ""
    finally:
        berth.ok("rm", "--force", "runs", "only")


@pytest.mark.parametrize("driver", [(), ("--rootfs-driver", "copy")])
@pytest.mark.parametrize("state", ["stopped", "running"])
def test_a_commit_has_what_ldconfig_made_and_not_the_driver(berth, layouts, driver_tree, new_library, driver, state):
    script = ("mkdir -p /opt/x; cp /libnew.so.1 /opt/x;"
              "echo /opt/x >/etc/ld.so.conf.d/x.conf; /ldconfig; echo done")
    words = ["--detach", "--name=made", "--gpus=all", "-v", f"{new_library}:/libnew.so.1:ro", layouts["merged"],
             "sh", "-c", script + "; sleep 100"]
    berth.ok(*driver, "--driver-root", driver_tree("one"), "run", *words)
    try:
        for _ in range(100):
            if berth.ok("logs", "made") == "done\n":
                break
        if state == "stopped":
            berth.ok("stop", "--time=0", "made")
        changes = berth.ok("diff", "made").splitlines()
        assert "C /etc/ld.so.cache" in changes
        assert not [line for line in changes if "nvidia" in line or "cuda" in line or "00-berth" in line]
        berth.ok("commit", "made", "committed")
    finally:
        berth.ok("rm", "--force", "made")
    shown = berth.ok("run", "--rm", "committed", "/ldconfig", "-p")
    assert "libnew.so.1 (libc6,x86-64) => /opt/x/libnew.so.1" in shown, shown
    assert "cuda" not in shown and "nvidia" not in shown
    assert berth.ok("run", "--rm", "committed", "ls", "/etc/ld.so.conf.d").split() == ["here.conf", "x.conf"]
    berth.ok("rmi", "committed")


@pytest.mark.parametrize("script", ["rm -r /etc; ln -s /opt /etc", "rm -r /etc", "rm -r /etc; echo x >/etc"])
def test_a_commit_of_what_the_container_made_of_etc(berth, layouts, driver_tree, script):
    for flags in ((), ("--gpus=all",)):
        berth.run("--driver-root", driver_tree("one"), "run", "--name=torn", *flags, layouts["merged"],
                  "sh", "-c", f"/usr/bin/busybox sh -c '{script}'; true")
        assert berth.ok("commit", "torn", "committed")
        berth.ok("rm", "torn")
        berth.ok("rmi", "committed")


def test_an_image_that_has_removed_its_cache_shows_no_change(berth, registry, layouts, driver_tree, push):
    bare = push(images.build([*with_ldconfig(loader_images.debian()), images.layer([images.whiteout("etc/ld.so.cache")])]))
    gpu_run(berth, driver_tree("one"), "--name=bare", bare, "true")
    assert "ld.so.cache" not in berth.ok("diff", "bare")
    berth.ok("rm", "bare")


def test_a_container_that_is_started_again_finds_both(berth, layouts, driver_tree):
    tree = driver_tree("one")
    script = f"[ -e /again ] && /probe {' '.join(NAMES)}; touch /again; /ldconfig"
    gpu_run(berth, tree, "--name=twice", layouts["merged"], "sh", "-c", script)
    out = berth.ok("--driver-root", tree, "start", "--attach", "twice")
    assert all(f" => {DRIVER}/" in line for line in out.splitlines()) and len(out.splitlines()) == 3, out
    berth.ok("rm", "twice")


# ld.so.conf, and what is at ld.so.conf.d.
ODD = {"no include": ("/usr/lib/x86_64-linux-gnu\n", []),
       "a pattern that our file does not fit": ("include /etc/ld.so.conf.d/libc*.conf\n",
                                                [images.file("etc/ld.so.conf.d/libc.conf", "/usr/lib/x86_64-linux-gnu\n")]),
       "no last newline, comments and blanks": ("# x\n\n  include  ld.so.conf.d/*.conf # y", []),
       "hwcap": ("hwcap 1 nosegneg\ninclude ld.so.conf.d/*\n", []),
       "a file in the directory's place": ("include ld.so.conf.d/*.conf\n", [images.file("etc/ld.so.conf.d", "x\n")]),
       "a link to nowhere": ("include ld.so.conf.d/*.conf\n", [images.symlink("etc/ld.so.conf.d", "/nowhere")]),
       "a link to elsewhere": ("include ld.so.conf.d/*.conf\n",
                               [images.directory("opt"), images.directory("opt/conf"),
                                images.symlink("etc/ld.so.conf.d", "../opt/conf")]),
       "the configuration is a link": (None, [images.file("usr/lib/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
                                              images.symlink("etc/ld.so.conf", "../usr/lib/ld.so.conf")]),
       "neither": (None, [])}


def odd_image(case):
    text, entries = ODD[case]
    takes_away = [images.whiteout("etc/ld.so.conf"), images.whiteout("etc/ld.so.conf.d")]
    main = [] if text is None else [images.file("etc/ld.so.conf", text)]
    return images.build([*with_ldconfig(loader_images.debian()), images.layer(takes_away), images.layer([*main, *entries])])


@pytest.mark.parametrize("case", ODD)
def test_whatever_the_configuration_of_the_loader_is_the_driver_stays_found(berth, push, driver_tree, case):
    image = push(odd_image(case))
    for mode in MODES:
        out = gpu_run(berth, driver_tree("one"), "--rm", "--gpu-driver", mode, image, "sh", "-c",
                      f"/ldconfig 2>/dev/null && /ldconfig 2>/dev/null && /probe {' '.join(NAMES)}")
        assert all(" => " in line for line in out.splitlines()) and len(out.splitlines()) == 3, out
    gpu_run(berth, driver_tree("one"), "--name=odd", image, "/ldconfig")
    assert not [line for line in berth.ok("diff", "odd").splitlines() if "nvidia" in line or "cuda" in line]
    berth.ok("commit", "odd", "committed")
    berth.ok("rm", "odd")
    shown = berth.ok("run", "--rm", "committed", "sh", "-c", "/ldconfig -p; ls /usr/lib /etc")
    assert "cuda" not in shown and "nvidia" not in shown and "00-berth" not in shown


def test_a_path_of_the_images_own_for_libraries_hides_no_driver(berth, push, driver_tree):
    image = push(images.build(with_ldconfig(loader_images.debian()),
                              {"Env": ["PATH=/bin:/usr/bin", "LD_LIBRARY_PATH=/opt/none:/usr/lib/x86_64-linux-gnu:"]}))
    out = gpu_run(berth, driver_tree("one"), "--rm", image, "sh", "-c", f"/ldconfig && /probe {' '.join(NAMES)}")
    assert all(f" => {DRIVER}/" in line for line in out.splitlines()), out


# What package managers do with the files of the loader, but for ldconfig's own.
REPLACES = ["cp /etc/ld.so.conf /etc/ld.so.conf.new && mv /etc/ld.so.conf.new /etc/ld.so.conf",
            "cp /etc/ld.so.cache /x && rm /etc/ld.so.cache && cp /x /etc/ld.so.cache",
            "rm -f /etc/ld.so.cache; /ldconfig",
            "mv /etc/ld.so.cache /etc/ld.so.cache.dpkg-old && /ldconfig",
            "cp /etc/ld.so.cache /var/cache/x && mv /var/cache/x /etc/ld.so.cache",
            "/ldconfig -C /etc/other.cache && mv /etc/other.cache /etc/ld.so.cache",
            "ln /etc/ld.so.cache /etc/ld.so.cache.saved && /ldconfig",
            "echo /usr/lib >/etc/ld.so.conf.d/.x.conf.tmp && mv /etc/ld.so.conf.d/.x.conf.tmp /etc/ld.so.conf.d/x.conf"]


@pytest.mark.parametrize("script", REPLACES)
def test_files_of_the_loader_can_be_replaced_as_package_managers_do(berth, layouts, driver_tree, script):
    out = gpu_run(berth, driver_tree("one"), "--rm", layouts["merged"], "sh", "-c",
                  f"set -e; {script.replace('rm ', 'busybox rm ').replace('mv ', 'busybox mv ').replace('ln ', 'busybox ln ')}"
                  f"; /probe {' '.join(NAMES)}")
    assert all(f" => {DRIVER}/" in line for line in out.splitlines()) and len(out.splitlines()) == 3, out


@pytest.fixture(scope="module")
def archive(session_directory):
    """Debian's own packages, for apt; readable for everybody."""
    return shutil.copytree(debian_images.kept_archive(), session_directory / "archive", copy_function=shutil.copy)


@pytest.fixture(scope="module")
def debian(session_directory):
    with registries.running(session_directory / "debian-registry", storage=debian_images.kept_storage()) as server:
        yield f"{server.address}/{debian_images.IMAGES['buildah']}"


LOAD = """print "$_ ", (DynaLoader::dl_load_file($_) ? "ok" : DynaLoader::dl_error()), "\\n" for @ARGV"""


def install(alone):
    """A script that has apt install what lies in /archive, and lists what is found then."""
    # With one id alone there is no user _apt to become.
    options = "-o APT::Sandbox::User=root" if alone else ""
    return ("rm -rf /etc/apt/sources.list.d; echo 'deb [trusted=yes] file:/archive ./' >/etc/apt/sources.list;"
            f"(apt-get {options} update && apt-get {options} install -y {debian_images.PACKAGE}) >/tmp/said 2>&1 ||"
            f" cat /tmp/said; perl -MDynaLoader -e '{LOAD}' {' '.join((*NAMES, *debian_images.LIBRARIES))}; dpkg --audit")


INSTALLED = [f"{name} ok" for name in (*NAMES, *debian_images.LIBRARIES)]


@pytest.mark.parametrize("mode", MODES)
def test_apt_get_installs_a_package_with_a_library_in_debian(berth, debian, driver_tree, archive, profile, mode):
    out = gpu_run(berth, driver_tree("one"), "--name", "made", "--gpu-driver", mode, "-v", f"{archive}:/archive:ro",
                  debian, "sh", "-c", install(profile.kind == "single_id"))
    assert out.splitlines() == INSTALLED
    berth.ok("commit", "made", "installed")
    cache = berth.ok("run", "--rm", "installed", "ldconfig", "-p")
    assert debian_images.LIBRARIES[0] in cache
    assert [line for line in cache.splitlines() if "libcuda" in line or "nvidia" in line] == []
