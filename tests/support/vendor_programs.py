# SPDX-License-Identifier: Apache-2.0
"""What AMD's and Intel's real programs open, by strace: in a suite's root (vendor_roots.py), and in a container of the
same files. The cards are synthetic; card_stand_in.c opens their nodes where the kernel lets it.

    world = vendor_programs.World(root, tree, directory)    # a writable view of the root, with the tools
    bare = world.bare("amdgpu")                             # {program: Seen}
    inside = world.inside(berth, "amdgpu", "--gpus", "all")
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from support import loader_images, opened_files

SOURCE = pathlib.Path(__file__).with_name("card_stand_in.c")
_COUNT = "python3 -c 'import ctypes; one = ctypes.CDLL(\"{library}\"); {call}'"
_HIP = "count = ctypes.c_int(-1); print(one.hipGetDeviceCount(ctypes.byref(count)), count.value)"
# Program: the package that has it, and its command line.
PROGRAMS = {
    "rocminfo": ("rocminfo", "rocminfo"),
    "rocm-smi": ("rocm-smi", "rocm-smi --showid --showbus"),
    "rocm_agent_enumerator": ("rocminfo", "rocm_agent_enumerator"),
    "HIP 5": ("libamdhip64-5", _COUNT.format(library="libamdhip64.so.5", call=_HIP)),
    "HIP 6": ("libamdhip64-6", _COUNT.format(library="libamdhip64.so.6", call=_HIP)),
    "clinfo": ("clinfo", "clinfo --list"),
    "Level Zero": ("libze1", _COUNT.format(library="libze_loader.so.1", call="print(one.zeInit(0))")),
    "vulkaninfo": ("mesa-vulkan-drivers", "vulkaninfo --summary"),
}
# What a program looks at beside the files of its image: devices, and what the kernel says of them.
_OF_THE_HOST = re.compile(r"/(dev/(kfd|dri|nvidia|accel)|sys/(class|bus|dev|devices|module)/)")


@dataclasses.dataclass(frozen=True)
class Seen:
    opened: frozenset   # paths of devices and of sysfs
    lacking: frozenset  # those that are not there: (path, error)
    files: frozenset    # other files
    said: str


class World:
    """A view of a suite's root in which files can be made: an overlay in memory. `close()` removes it."""

    def __init__(self, there, tree, place):
        self.there, self.tree, self.place, self.root = there, tree, place, place / "root"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "vendor-root", place], check=True)
        for name in ("upper", "work", "root", "out", "tools", "tools/lib"):
            (place / name).mkdir()
        subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={there.root},upperdir={place}/upper,"
                        f"workdir={place}/work", "overlay", self.root], check=True)
        for name in ("tools", "out"):
            (self.root / name).mkdir()
        self._make_tools()

    def close(self):
        subprocess.run(["umount", self.root], check=True)
        subprocess.run(["umount", self.place], check=True)
        self.place.rmdir()

    def programs(self):
        """Those that the suite has."""
        return [name for name, (package, _) in PROGRAMS.items() if self.there.has(package)]

    def _make_tools(self):
        tools = self.place / "tools"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", tools / "stand_in.so", SOURCE, "-ldl"], check=True)
        strace = shutil.which("strace")
        shutil.copy2(strace, tools / "strace")
        for name, real in loader_images.loaded_files(strace):
            shutil.copy2(real, tools / "ld.so" if "ld-linux" in name else tools / "lib" / os.path.basename(name))
        lines = ["export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nowhere LC_ALL=C", "cd /",
                 "export PYTHONDONTWRITEBYTECODE=1 MESA_SHADER_CACHE_DISABLE=1"]
        for number, name in enumerate(self.programs()):
            trace = ("/tools/ld.so --library-path /tools/lib /tools/strace -f -s 4096 -e trace=%file "
                     f"-E LD_PRELOAD=/tools/stand_in.so -o /out/{number}.trace")
            words = shlex.join(["sh", "-c", PROGRAMS[name][1]])
            lines += [f"timeout 100 {trace} {words} >/out/{number}.said 2>&1 </dev/null",
                      f"echo \"status $?\" >>/out/{number}.said"]
        for name in ("class", "devices", "bus", "module"):
            (self.tree / "sys" / name).mkdir(exist_ok=True)
        (tools / "script").write_text("\n".join(lines) + "\n")

    def bare(self, driver, *variables):
        self._empty()
        inside = ('cd "$1" && mount --bind "$2/tools" tools && mount --bind "$2/out" out && mount -t proc proc proc && '
                  'mount --rbind /sys sys && for name in class devices bus module; do mount --bind "$3/sys/$name" '
                  '"sys/$name" || exit; done && mount -t tmpfs -o mode=755 none dev && '
                  'for name in null zero full random urandom tty; do cp -a "/dev/$name" dev/; done && '
                  'cp -a "$3"/dev/[dk]* dev/ && rm -f dev/nodes && shift 3 && exec chroot . env "$@" sh /tools/script')
        subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, "sh", self.root, self.place,
                        self.tree, f"STAND_IN_DRIVER={driver}", *variables], check=True, stdin=subprocess.DEVNULL,
                       timeout=580)
        return self._read()

    def inside(self, berth, driver, *flags):
        self._empty()
        # What KFD and DRM tell in sysfs; the rest is this machine's.
        sysfs = [word for name in ("class", "devices", "bus", "module")
                 for word in ("-v", f"{self.tree}/sys/{name}:/sys/{name}:ro")]
        done = berth.run("--driver-root", self.tree, "run", "--rm", "--rootfs", "-v", f"{self.place}/tools:/tools:ro",
                         "-v", f"{self.place}/out:/out", *sysfs, "-e",
                         f"STAND_IN_DRIVER={driver}", *flags, self.root, "sh", "/tools/script", timeout=580)
        assert done.returncode == 0, done.stderr
        return self._read()

    def _empty(self):
        for file in (self.place / "out").iterdir():
            file.unlink()

    def _read(self):
        out = {}
        for number, name in enumerate(self.programs()):
            opened, files, lacking = set(), set(), set()
            text = (self.place / f"out/{number}.trace").read_text(errors="replace")
            for _, path, error in opened_files.calls(text):
                if error == "ENXIO":  # a node that no driver stands behind: the stand-in opens it
                    error = ""
                if _OF_THE_HOST.match(path):
                    if error:
                        lacking.add((path, error))
                    else:
                        opened.add(path)
                elif not error and not path.startswith(("/proc/", "/out/", "/tools/", "/dev/")):
                    files.add(path)
            said = (self.place / f"out/{number}.said").read_text(errors="replace")
            out[name] = Seen(frozenset(opened), frozenset(lacking), frozenset(files), said)
        return out
