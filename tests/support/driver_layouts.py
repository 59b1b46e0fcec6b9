# SPDX-License-Identifier: Apache-2.0
"""Roots for `berth --driver-root` from the files of a kept driver (real_drivers.py), as distributions lay them out.

    tree = driver_layouts.make("ubuntu", real_drivers.get("550"), path, gpus=2)
    berth.ok("--driver-root", tree.root, "gpu", "list")

All but "debian" are put together from public lists of files and installers, not copied from a machine: of each the
places of the driver's files and the loader's configuration. They are hard links if `path` is on the file system of
the tests' cache (room()), else copies. proc, sys and dev are synthetic, and Berth's output says so.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support import kept

HERE = pathlib.Path(__file__).resolve().parent
TRIPLET, TWIN = "x86_64-linux-gnu", "i386-linux-gnu"
KERNEL = "6.1.0-synthetic"  # of driver_tree.py


@dataclasses.dataclass(frozen=True)
class Layout:
    """The places of a driver's files below a root. Empty: such files are not there."""
    libraries: str
    twins: str = ""          # 32-bit libraries
    programs: str = "usr/bin"
    modules: str = ""        # of the X server: directories of drivers and of extensions
    extensions: str = ""
    firmware: str = "usr/lib/firmware"
    vulkan: str = "usr/share/vulkan"
    share: str = "usr/share"  # glvnd, egl, nvidia
    opencl: str = "etc/OpenCL/vendors"
    system: str = ""         # libraries of the distribution
    conf: str = ""           # a line of /etc/ld.so.conf.d/nvidia.conf
    has_cache: bool = True   # /etc/ld.so.cache
    below: str = ""          # the driver's root in that of the machine
    firmware_path: str = ""  # told to the kernel


LAYOUTS = {
    # As apt left it: links through /etc/alternatives.
    "debian": None,
    # Ubuntu's packages nvidia-*, libnvidia-*.
    "ubuntu": Layout(f"usr/lib/{TRIPLET}", f"usr/lib/{TWIN}", modules=f"usr/lib/{TRIPLET}/nvidia/xorg",
                     extensions=f"usr/lib/{TRIPLET}/nvidia/xorg", system=f"usr/lib/{TRIPLET}"),
    # NVIDIA's installer (.run) on a distribution with lib64.
    "run": Layout("usr/lib64", "usr/lib", modules="usr/lib64/xorg/modules/drivers",
                  extensions="usr/lib64/xorg/modules/extensions", vulkan="etc/vulkan",
                  system="usr/lib64"),
    # The packages for RHEL and Fedora.
    "rhel": Layout("usr/lib64", "usr/lib", modules="usr/lib64/xorg/modules/drivers",
                   extensions="usr/lib64/xorg/modules/extensions", system="usr/lib64"),
    # Flatcar's setup-nvidia, which copies the installer's *.so.* and eight programs, and nothing else.
    "flatcar": Layout("opt/nvidia/{version}/{kernel}/usr/lib64", programs="opt/bin", firmware="", vulkan="", share="",
                      opencl="", system="usr/lib64", conf="/opt/nvidia/current/usr/lib64"),
    # The driver container of NVIDIA's GPU operator, a whole Ubuntu on the machine's /run/nvidia/driver.
    "operator": Layout(f"usr/lib/{TRIPLET}", modules=f"usr/lib/{TRIPLET}/nvidia/xorg",
                       extensions=f"usr/lib/{TRIPLET}/nvidia/xorg", system=f"usr/lib/{TRIPLET}",
                       below="run/nvidia/driver"),
    # NixOS: the store, and links to it in /run.
    "nixos": Layout("nix/store/{hash}-nvidia-x11-{version}-{kernel}/lib",
                    "nix/store/{hash}-nvidia-x11-{version}-{kernel}-lib32/lib",
                    programs="nix/store/{hash}-nvidia-x11-{version}-{kernel}-bin/bin",
                    modules="nix/store/{hash}-nvidia-x11-{version}-{kernel}-bin/lib/xorg/modules/drivers",
                    extensions="nix/store/{hash}-nvidia-x11-{version}-{kernel}-bin/lib/xorg/modules/extensions",
                    firmware="run/current-system/firmware",
                    vulkan="nix/store/{hash}-nvidia-x11-{version}-{kernel}/share/vulkan",
                    share="nix/store/{hash}-nvidia-x11-{version}-{kernel}/share",
                    opencl="nix/store/{hash}-nvidia-x11-{version}-{kernel}/etc/OpenCL/vendors",
                    has_cache=False, firmware_path="/run/current-system/firmware"),
}
# Two drivers in one tree; the kernel module is the first one's, the links without a version lead to the second.
PAIRS = ("two-ubuntu", "two-debian")


@dataclasses.dataclass(frozen=True)
class Tree:
    layout: str
    root: pathlib.Path  # for --driver-root
    version: str        # of the kernel module, and of the files to be found
    files: dict         # path of a driver's file in its kept root → its path below `root`

    def path(self, file):
        return self.root / self.files[file]


# ---- files --------------------------------------------------------------------------------------

def put(source, target):
    """A hard link or a copy of a file; a link is copied as such."""
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
        return
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def put_tree(source, target):
    for folder, folders, names in os.walk(source):
        at = target / pathlib.Path(folder).relative_to(source)
        at.mkdir(parents=True, exist_ok=True)
        for name in [*names, *(one for one in folders if os.path.islink(os.path.join(folder, one)))]:
            put(pathlib.Path(folder, name), at / name)


def dynamic(path):
    """{"SONAME": [...], "NEEDED": [...]} as readelf says."""
    told = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    found = {"SONAME": [], "NEEDED": []}
    for kind, value in re.findall(r"\((SONAME|NEEDED)\).*\[(.*)\]", told):
        found[kind].append(value)
    return found


def soname(path):
    return next(iter(dynamic(path)["SONAME"]), path.name)


class _Place:
    """Lays one driver out below a root."""

    def __init__(self, layout, driver, root):
        self.layout, self.driver, self.root = layout, driver, root
        self.files = {}

    def at(self, template):
        return template.format(version=self.driver.version, kernel=KERNEL, hash="0a1b2c3d4e5f6g7h8i9j0k1l2m3n4p5q")

    def target(self, file):
        """The directory and name of a file of the packages in this layout; None: not there."""
        path, layout = pathlib.PurePath(file), self.layout
        name, top = path.name, file.split("/")
        if re.search(r"/(gsp[^/]*\.bin)$", file):
            return layout.firmware and f"{layout.firmware}/nvidia/{self.driver.version}/{name}"
        if name in ("nvidia_drv.so", "libnvidia-wfb.so.1") or name.startswith("libnvidia-wfb.so"):
            return layout.modules and f"{layout.modules}/{name}"
        if name.startswith(("libglxserver_nvidia.so", "libglx.so")):
            return layout.extensions and f"{layout.extensions}/{name}"
        if name == "nvidia-drm_gbm.so":
            return None  # a link to another directory: see links()
        if ".so" in name and top[:2] == ["usr", "lib"]:
            return self.library_target(path)
        if name.startswith("nv") and (top[1] in ("bin", "sbin") or top[:3] == ["usr", "lib", "nvidia"]):
            return f"{layout.programs}/{name}" if os.access(self.driver.root / file, os.X_OK) else None
        if top[:2] == ["etc", "OpenCL"]:
            return layout.opencl and f"{layout.opencl}/{name}"
        if name == "nvoptix.bin":
            return layout.share and f"{layout.share}/nvidia/{name}"
        if top[:3] == ["usr", "share", "vulkan"]:
            return layout.vulkan and f"{layout.vulkan}/{'/'.join(top[3:])}"
        if top[:2] == ["usr", "share"] and top[2] in ("glvnd", "egl", "nvidia"):
            return layout.share and f"{layout.share}/{'/'.join(top[2:])}"
        return None

    def library_target(self, path):
        directory = self.layout.twins if TWIN in path.parts else self.layout.libraries
        if not directory or (self.layout.opencl == "" and ".so." not in path.name):
            return None  # Flatcar's *.so.*
        if path.name.startswith("libvdpau_nvidia") and self.layout.programs != "opt/bin":
            return f"{directory}/vdpau/{path.name}"
        return f"{directory}/tls/{path.name}" if path.parent.name == "tls" else f"{directory}/{path.name}"

    def lay_out(self):
        for name in ("bin", "sbin", "lib", "lib64") if self.layout.system else ():
            (self.root / "usr" / name).mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(self.root / name):
                (self.root / name).symlink_to(f"usr/{name}")
        for file in self.driver.files:
            source, target = self.driver.root / file, self.target(file)
            if not target or os.path.islink(source) and "/" in os.readlink(source):
                continue
            self.files[file] = self.at(target)
            put(source, self.root / self.files[file])
        self.links()
        if self.layout.system:
            self.put_system()
        if self.layout.below or self.layout.has_cache:
            self.put_etc()

    def links(self):
        """Those by SONAME, as ldconfig and installers make them, and that of the GBM library."""
        for file, target in list(self.files.items()):
            path = self.root / target
            if path.is_symlink() or not re.search(r"\.so\.\d", path.name):
                continue
            link = path.with_name(soname(path))
            if not os.path.lexists(link):
                link.symlink_to(path.name)
        directory = self.root / self.at(self.layout.libraries)
        if (directory / "libnvidia-allocator.so.1").exists() and self.layout.share:
            (directory / "gbm").mkdir(exist_ok=True)
            (directory / "gbm/nvidia-drm_gbm.so").symlink_to("../libnvidia-allocator.so.1")
        if (directory / "libGLX_nvidia.so.0").exists():
            (directory / "libGLX_indirect.so.0").symlink_to("libGLX_nvidia.so.0")

    def put_system(self):
        """The libraries that are not the driver's."""
        ours, source = set(self.driver.files), self.driver.root / "usr/lib" / TRIPLET
        for entry in os.scandir(source):
            link = os.readlink(entry.path) if entry.is_symlink() else ""
            if f"usr/lib/{TRIPLET}/{entry.name}" in ours or "/" in link or not (link or entry.is_file()):
                continue
            put(pathlib.Path(entry.path), self.root / self.layout.system / entry.name)

    def put_etc(self):
        conf = self.root / "etc/ld.so.conf.d"
        conf.mkdir(parents=True, exist_ok=True)
        (self.root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
        # ldconfig of Debian knows no lib64.
        if self.layout.system == "usr/lib64":
            (conf / "distribution.conf").write_text("/usr/lib64\n/usr/lib\n")
        else:
            put(self.driver.root / f"etc/ld.so.conf.d/{TRIPLET}.conf", conf / f"{TRIPLET}.conf")
            if (self.root / f"usr/lib/{TWIN}").exists():
                (conf / f"{TWIN}.conf").write_text(f"/usr/lib/{TWIN}\n")
        if self.layout.conf:
            (conf / "nvidia.conf").write_text(f"{self.layout.conf}\n")


# ---- trees --------------------------------------------------------------------------------------

def _ldconfig(root):
    subprocess.run(["ldconfig", "-r", root], check=True, capture_output=True)


def _add_machine(root, version, gpus, firmware_path=""):
    branch = int(version.split(".")[0])
    kind = "boards" if branch <= 470 else "eight"  # K80 ends with 470
    subprocess.run([sys.executable, HERE / "driver_tree.py", kind, root, "--machine-only", "--version", version,
                    "--gpus", str(gpus), f"--firmware-path={firmware_path}"], check=True, capture_output=True)


def _as_installed(driver, root):
    """The root's own directories; returns {file: file}."""
    for name in ("usr", "etc"):
        put_tree(driver.root / name, root / name)
    for entry in os.scandir(driver.root):
        if entry.is_symlink():
            put(pathlib.Path(entry.path), root / entry.name)
    return {file: file for file in driver.files}


def _link_nixos(place):
    """/run/opengl-driver, a directory of links in the store, and the programs of the system."""
    root, layout = place.root, place.layout
    profiles = {"opengl-driver": [layout.libraries.rpartition("/")[0]],
                "opengl-driver-32": [layout.twins.rpartition("/")[0]]}
    for name, sources in profiles.items():
        store = f"nix/store/9z8y7x6w5v4u3t2s1r0q-{name}"
        for source in map(place.at, sources):
            for folder, _, names in os.walk(root / source):
                below = pathlib.Path(folder).relative_to(root / source)
                for one in names:
                    link = root / store / below / one
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(f"/{source}/{below}/{one}")
        if (root / store).exists():
            (root / "run").mkdir(exist_ok=True)
            (root / "run" / name).symlink_to(f"/{store}")
    for program in (root / place.at(layout.programs)).iterdir():
        put_link = root / "run/current-system/sw/bin" / program.name
        put_link.parent.mkdir(parents=True, exist_ok=True)
        put_link.symlink_to(f"/{place.at(layout.programs)}/{program.name}")


def make(name, driver, path, gpus=2):
    """A tree of a driver in a layout, at `path`, which must not exist."""
    path.mkdir(parents=True)
    layout = LAYOUTS[name]
    if layout is None:
        files = _as_installed(driver, path)
        _add_machine(path, driver.version, gpus)
        return Tree(name, path, driver.version, files)
    root = path / layout.below
    place = _Place(layout, driver, root)
    place.lay_out()
    if name == "nixos":
        _link_nixos(place)
    if name == "flatcar":
        (root / "opt/nvidia/current").symlink_to(f"{driver.version}/{KERNEL}")
    if layout.has_cache:
        _ldconfig(root)
    _add_machine(root, driver.version, gpus, layout.firmware_path)
    return Tree(name, root, driver.version, place.files)


def make_pair(name, driver, other, path, gpus=2):
    """A tree with the files of two drivers. The kernel module is of `driver`; /usr/bin and the links by SONAME
    are of `other`."""
    path.mkdir(parents=True)
    if name == "two-debian":
        _as_installed(other, path)
        files = {file: file for file in driver.files if not os.path.lexists(path / file)}
        for file in files:
            put(driver.root / file, path / file)
    else:
        _Place(LAYOUTS["ubuntu"], other, path).lay_out()
        before = {str(pathlib.Path(folder, one).relative_to(path))
                  for folder, _, names in os.walk(path) for one in names}
        place = _Place(LAYOUTS["ubuntu"], driver, path)
        for file in driver.files:
            target = place.target(file)
            if target and target not in before and not os.path.islink(driver.root / file):
                place.files[file] = target
                put(driver.root / file, path / target)
        files = place.files
    _ldconfig(path)
    _add_machine(path, driver.version, gpus)
    return Tree(name, path, driver.version, files)


@contextlib.contextmanager
def _alone(parent):
    with open(f"{parent}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def room():
    """A directory for trees beside the kept drivers, so that they are hard links; removed afterwards."""
    parent = kept.cache() / "driver-trees"
    parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        with _alone(parent):
            for left in parent.iterdir():
                _remove_if_unused(left)
            made = pathlib.Path(tempfile.mkdtemp(dir=parent))
            lock = held.enter_context(open(made / "lock", "w", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield made
        finally:
            with _alone(parent):  # or another session takes it for that of a killed one
                shutil.rmtree(made)


def _remove_if_unused(directory):
    """A killed session holds no lock any more."""
    with open(directory / "lock", "a", encoding="utf-8") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory)
