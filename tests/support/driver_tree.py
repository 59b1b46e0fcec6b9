#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a synthetic driver tree: a root for `berth --driver-root`.

    driver_tree.py KIND DIR [options]      KIND: one | eight | mig | boards | amd | intel

NVIDIA: one H100; eight of them, linked by NVSwitch; one with seven MIG slices; two K80 boards with two GPUs
each. AMD: four MI250X boards, which are eight GPUs. Intel: two GPUs.

The libraries are small ELF files without code that the loader can map; nothing here can reach a GPU. The list
of files comes from a manifest (tests/data/driver-synthetic.txt documents the format). As root the device
nodes below dev/ are real character devices; otherwise only the table dev/nodes is written.
"""
import argparse
import os
import shutil
import socket
import stat
import struct
import sys
import uuid

import synthetic_drm
from synthetic_elf import MACHINES, MACHINES_32, elf, loader_cache, note

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_MANIFEST = os.path.join(HERE, "..", "data", "driver-synthetic.txt")

TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
CACHE_FLAGS = {("x86_64", 64): 0x0303, ("x86_64", 32): 0x0003,
               ("aarch64", 64): 0x0A03, ("aarch64", 32): 0x0903}

# H100 SXM: 10de:2330, 3D controller.
MODEL, PCI_DEVICE, PCI_CLASS = "NVIDIA H100 80GB HBM3", "0x2330", "0x030200"
MEMORY_BYTES = 85520809984
PCI_EIGHT = ["0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0",
             "0000:9d:00.0", "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"]
MINORS_EIGHT = [2, 5, 0, 7, 1, 4, 3, 6]  # another order than the PCI addresses'
PCI_BOARDS = ["0000:06:00.0", "0000:07:00.0", "0000:84:00.0", "0000:85:00.0"]
KERNEL = "6.1.0-synthetic"
WITHOUT_GLVND = [("libGL.so.{v}", "libGL.so.1"), ("libEGL.so.{v}", "libEGL.so.1"),
                 ("libGLESv2.so.{v}", "libGLESv2.so.2"), ("libGLESv1_CM.so.{v}", "libGLESv1_CM.so.1")]
MIG_SLICES = [(7 + i, 0, "1g.10gb", 10468982784) for i in range(7)]  # gi, ci, profile, bytes


# ---- manifest -----------------------------------------------------------------------------------

class Manifest:
    def __init__(self, path):
        self.libs, self.libs32, self.links, self.bins = [], [], [], []
        self.configs, self.firmware, self.sockets, self.params = [], [], [], []
        self.version = self.arch = self.origin = ""
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.split()
                if words and not words[0].startswith("#"):
                    try:
                        self.record(words)
                    except (KeyError, IndexError, ValueError):
                        sys.exit(f"{path}:{number}: not a record: {line.strip()!r}")
        if not self.version or not self.libs:
            sys.exit(f"{path}: a manifest needs a version and libraries")

    def record(self, words):
        key, rest = words[0], words[1:]
        if key in ("version", "arch"):
            setattr(self, key, rest[0])
        elif key == "origin":
            self.origin = " ".join(rest)
        elif key in ("lib", "lib32"):
            soname = rest[1] if len(rest) > 1 and rest[1] != "-" else ""
            (self.libs if key == "lib" else self.libs32).append((rest[0], soname))
        elif key == "link":
            self.links.append((rest[0], rest[1]))
        elif key == "param":
            self.params.append((rest[0], " ".join(rest[1:])))
        else:
            {"bin": self.bins, "config": self.configs, "firmware": self.firmware,
             "socket": self.sockets}[key].append(rest[0])


# ---- the tree -----------------------------------------------------------------------------------

class Gpu:
    def __init__(self, index, pci, minor, slices=()):
        self.index, self.pci, self.minor, self.slices = index, pci, minor, slices
        self.uuid = "GPU-" + str(uuid.uuid5(uuid.NAMESPACE_OID, f"berth synthetic gpu {index}"))
        self.numa = 0 if index < 4 else 1
        self.model, self.pci_device, self.capability = MODEL, PCI_DEVICE, "9.0"
        self.facts = []  # more lines for the stub NVML

    def mig_uuid(self, gi, ci):
        return "MIG-" + str(uuid.uuid5(uuid.NAMESPACE_OID, f"berth slice {self.index} {gi} {ci}"))


def gpus_of(kind):
    if kind == "eight":
        gpus = [Gpu(i, pci, MINORS_EIGHT[i]) for i, pci in enumerate(PCI_EIGHT)]
        for gpu in gpus:
            gpu.facts.append("fabric=1")
        return gpus
    if kind == "boards":
        gpus = [Gpu(i, pci, i) for i, pci in enumerate(PCI_BOARDS)]
        for gpu in gpus:
            gpu.model, gpu.pci_device, gpu.capability = "Tesla K80", "0x102d", "3.7"
            gpu.numa = -1
            gpu.facts.append(f"board={0x300 if gpu.index < 2 else 0x8100}")
        return gpus
    if kind in synthetic_drm.KINDS:
        return []
    return [Gpu(0, "0000:1b:00.0", 0, MIG_SLICES if kind == "mig" else ())]


class Layout:
    """The paths of the driver's files in a distribution or at a site, below the root."""

    def __init__(self, name, arch, version):
        triplet = TRIPLETS[arch]
        twin = "i386-linux-gnu" if arch == "x86_64" else "arm-linux-gnueabihf"
        prefix = {"prefix": "opt/driver", "local": "usr/local/nvidia",
                  "nixos": f"nix/store/0a1b2c3d-nvidia-x11-{version}"}.get(name)
        self.name = name
        self.libdir, self.libdir32 = {
            "multiarch": (f"usr/lib/{triplet}", f"usr/lib/{twin}"),
            "lib64": ("usr/lib64", "usr/lib"),
            "current": (f"usr/lib/{triplet}/nvidia/current", f"usr/lib/{twin}/nvidia/current"),
            "nixos": (f"{prefix}/lib", f"{prefix}/lib32"),
        }.get(name, (f"{prefix}/lib64", f"{prefix}/lib"))
        self.bindir = f"{prefix}/bin" if prefix else "usr/bin"
        self.prefix = prefix
        # NixOS has neither a loader cache nor ld.so.conf; another container engine mounted the files below
        # /usr/local/nvidia, without running ldconfig.
        self.has_loader_files = name not in ("local", "nixos")

    def config(self, path):
        """"etc/OpenCL/…" and "usr/share/…" move with a prefix."""
        return f"{self.prefix}/{path.removeprefix('usr/')}" if self.prefix else path


def gi_minor(gpu, gi):
    """The driver's numbering of capability nodes: config 1, monitor 2, then by GPU and instance."""
    return 3 + gpu.minor * 135 + gi * 9


class Tree:
    def __init__(self, options):
        self.options = options
        self.root = os.path.abspath(options.dir)
        self.manifest = Manifest(options.manifest)
        self.arch = options.arch or self.manifest.arch or "x86_64"
        self.version = options.version or self.manifest.version
        self.library_version = options.library_version or self.version
        self.layout = Layout(options.layout, self.arch, self.version)
        self.libdir = options.libdir or self.layout.libdir
        self.libdir32 = self.layout.libdir32
        self.branch = int(self.version.split(".")[0])
        self.gpus = gpus_of(options.kind)[:options.gpus]
        self.groups = groups_of(options)
        self.cache = []

    def path(self, *parts):
        path = os.path.join(self.root, *[part.lstrip("/") for part in parts])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, where, content, mode=0o644):
        path = self.path(where)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)

    def link(self, where, target):
        path = self.path(where)
        if not os.path.lexists(path):
            os.symlink(target, path)

    # Files of the driver.

    def libraries(self):
        libs = self.manifest.libs + (WITHOUT_GLVND if self.options.no_glvnd else [])
        self.library_set(self.libdir, libs, 64, MACHINES[self.arch])
        self.library_set(self.libdir32, self.manifest.libs32, 32, MACHINES_32[self.arch])
        for name, target in self.manifest.links:
            self.link(f"{self.libdir}/{name}", self.named(target))

    def named(self, name):
        return name.replace("{v}", self.library_version).replace(
            self.manifest.version, self.library_version)

    def library_set(self, libdir, libraries, bits, machine):
        for template, soname in libraries:
            name = self.named(template)
            base = os.path.basename(name)
            soname = soname or base
            section, content = None, b""
            if base.startswith("libnvidia-tls"):
                # The note with which the old loader distinguished the two TLS models: Linux 2.3.99.
                section, content = ".note.ABI-tag", note("GNU", 1, struct.pack("<IIII", 0, 2, 3, 99))
            # As with real drivers, one library of many needs the newest glibc.
            glibc = self.options.glibc if base.startswith("libnvidia-ptxjitcompiler") else None
            needed = ["libc.so.6"] if self.options.needed or glibc else []
            if base.startswith(("libGL.so", "libEGL.so", "libGLES")) and "_nvidia" not in base:
                needed.append(f"libnvidia-glcore.so.{self.library_version}")
            self.write(f"{libdir}/{name}", elf(machine, bits, soname, needed, section, content, glibc))
            if soname != base:
                self.link(f"{libdir}/{os.path.dirname(name)}/{soname}".replace("//", "/"), base)
            if "/" not in name:
                self.cache.append((soname, f"/{libdir}/{soname}", CACHE_FLAGS[self.arch, bits]))

    def decoys(self):
        """Files that a careless search would mistake for the driver."""
        machine = MACHINES[self.arch]
        self.write("usr/lib/old-driver/libcuda.so.390.157", elf(machine, 64, "libcuda.so.1"))
        self.link("usr/lib/old-driver/libcuda.so.1", "libcuda.so.390.157")
        self.link(f"{self.libdir}/libcudadebugger-old.so.1", "no-such-file")
        self.write(f"{self.libdir}/libGL.so.1.7.0", elf(machine, 64, "libGL.so.1"))
        self.link(f"{self.libdir}/libGL.so.1", "libGL.so.1.7.0")
        # Another vendor's, despite its version: it needs nothing of NVIDIA's.
        if not self.options.no_glvnd:
            for name, soname in (("libEGL", "libEGL.so.1"), ("libGLESv2", "libGLESv2.so.2")):
                self.write(f"{self.libdir}/{name}.so.{self.version}",
                           elf(machine, 64, soname, ["libgallium.so"]))
        # For glibc's thread library before 2.3.
        self.write(f"{self.libdir}/tls/libnvidia-tls.so.{self.version}",
                   elf(machine, 64, f"libnvidia-tls.so.{self.version}"))
        self.write(f"{self.libdir}/libnvidia-text.so.{self.version}", "this is no library\n")
        self.write(f"{self.libdir}/libnvidia-unknown.so.{self.version}", b"\x7fELF truncated")
        other = "aarch64" if self.arch == "x86_64" else "x86_64"
        self.write(f"usr/lib/{TRIPLETS[other]}/libcuda.so.{self.version}",
                   elf(MACHINES[other], 64, "libcuda.so.1"))

    def programs_and_files(self):
        for name in self.manifest.bins:
            self.write(f"{self.layout.bindir}/{name}", f"#!/bin/sh\necho 'synthetic {name} {self.version}'\n",
                       0o4755 if name == "nvidia-modprobe" else 0o755)
        for path in self.manifest.configs:
            text = "libnvidia-opencl.so.1\n" if path.endswith(".icd") else f'{{"synthetic": "{path}"}}\n'
            self.write(self.layout.config(path), text)
        for name in self.manifest.firmware:
            self.write(f"lib/firmware/nvidia/{self.version}/{name}", b"synthetic firmware\n")
        for path in self.manifest.sockets:
            self.socket(path)

    def socket(self, where):
        path = self.path(where)
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.getcwd()
            os.chdir(os.path.dirname(path))  # sun_path holds 108 bytes
            try:
                listener.bind(os.path.basename(path))
            finally:
                os.chdir(here)

    def loader_files(self):
        if not self.layout.has_loader_files:
            return
        self.write("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.write("etc/ld.so.conf.d/nvidia.conf", f"/{self.libdir}\n")
        if self.options.cache != "none":
            entries = self.cache + [("libc.so.6", "/usr/lib/libc.so.6", 0x0303),
                                    ("libcuda.so.1", "/usr/lib/old-driver/libcuda.so.1", 0x0303)]
            self.write("etc/ld.so.cache", loader_cache(entries, self.options.cache == "both"))

    def system_profile(self):
        """NixOS: the driver is in the store, with links to it."""
        if self.layout.name != "nixos":
            return
        for name in ("lib", "share", "etc"):
            for directory, _, _ in os.walk(self.path(self.layout.prefix, name)):
                for entry in os.scandir(directory):
                    if not entry.is_dir(follow_symlinks=False):
                        below = os.path.relpath(entry.path, self.path(self.layout.prefix))
                        self.link(f"run/opengl-driver/{below}", f"/{self.layout.prefix}/{below}")
        for name in self.manifest.bins:
            self.link(f"run/current-system/sw/bin/{name}", f"/{self.layout.bindir}/{name}")

    # procfs and sysfs.

    @property
    def has_capabilities(self):
        """MIG, and nodes that only give a permission."""
        return self.branch >= 450

    def capability_minors(self):
        """Paths and minors of the existing capabilities."""
        if not self.has_capabilities:
            return []
        rows = [("config", 1), ("monitor", 2)]
        for gpu in self.gpus:
            for gi, ci, _, _ in gpu.slices:
                rows.append((f"gpu{gpu.minor}/gi{gi}/access", gi_minor(gpu, gi)))
                rows.append((f"gpu{gpu.minor}/gi{gi}/ci{ci}/access", gi_minor(gpu, gi) + 1 + ci))
        return rows

    @staticmethod
    def mig_minors():
        """The driver's table: all instances that could exist."""
        rows = ["config 1", "monitor 2"]
        for gpu in range(32):
            for gi in range(15):
                minor = 3 + gpu * 135 + gi * 9
                rows.append(f"gpu{gpu}/gi{gi}/access {minor}")
                rows += [f"gpu{gpu}/gi{gi}/ci{ci}/access {minor + 1 + ci}" for ci in range(8)]
        return "".join(row + "\n" for row in rows)

    def procfs(self):
        proc = "proc/driver/nvidia"
        self.write(f"{proc}/version",
                   f"NVRM version: NVIDIA UNIX {self.arch} Kernel Module  {self.version}  "
                   "Sun Mar 23 14:01:17 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0)\n")
        params = "".join(f"{name}: {value}\n" for name, value in self.manifest.params)
        self.write(f"{proc}/params", params)
        self.write(f"{proc}/registry", 'Binary: ""\n')
        self.write(f"{proc}/suspend", "suspend hibernate resume\n")
        self.write(f"{proc}/suspend_depth", "default modeset uvm\n")
        self.write(f"{proc}/warnings/README", "synthetic\n")
        self.write(f"{proc}/patches/README", "synthetic\n")
        for gpu in self.gpus:
            base = f"{proc}/gpus/{gpu.pci}"
            self.write(f"{base}/information", self.information(gpu))
            self.write(f"{base}/registry", 'Binary: ""\n')
            self.write(f"{base}/power", "Runtime D3 status:          Disabled by default\n"
                                        "Video Memory:               Active\n")
            if gpu.numa >= 0:
                self.write(f"{base}/numa_status", "disabled\n")
        for path, minor in self.capability_minors():
            base = f"{proc}/capabilities"
            where = f"{base}/mig/{path}" if "/" not in path else f"{base}/{path.replace('/', '/mig/', 1)}"
            self.write(where, f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        if not self.has_capabilities:
            return
        self.write(f"{proc}/capabilities/fabric-imex-mgmt",
                   "DeviceFileMinor: 0\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        self.write("proc/driver/nvidia-caps/mig-minors", self.mig_minors())
        self.write("proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt 0\n")

    def information(self, gpu):
        excluded = "Yes" if gpu.index in self.options.excluded else "No"
        lines = [("Model", gpu.model), ("IRQ", "0"), ("GPU UUID", gpu.uuid),
                 ("Video BIOS", "96.00.74.00.01"), ("Bus Type", "PCIe"), ("DMA Size", "52 bits"),
                 ("DMA Mask", "0xfffffffffffff"), ("Bus Location", gpu.pci),
                 ("Device Minor", str(gpu.minor)), ("GPU Firmware", self.version),
                 ("GPU Excluded", excluded)]
        if self.options.no_uuid:
            lines = [line for line in lines if line[0] != "GPU UUID"]
        return "".join(f"{label}: \t {value}\n" for label, value in lines)

    def majors(self):
        names = ("nvidia", "nvidia-modeset", "nvidiactl") if self.branch >= 545 else ("nvidia-frontend",)
        rows = [(1, "mem"), (5, "/dev/tty"), *((195, name) for name in names)]
        if not self.options.no_uvm:
            rows.append((self.options.uvm_major, "nvidia-uvm"))
        if self.has_capabilities:
            rows += [(self.options.caps_major, "nvidia-caps"),
                     (self.options.caps_major - 1, "nvidia-caps-imex-channels")]
        if self.options.no_module or not self.gpus:
            rows = rows[:2]
        rows += [(226, "drm")] + [(group.major, group.driver) for group in self.groups if group.driver]
        text = "".join(f"{major:3d} {name}\n" for major, name in rows)
        self.write("proc/devices", f"Character devices:\n{text}\nBlock devices:\n  8 sd\n259 blkext\n")

    def sysfs(self):
        self.write("proc/sys/kernel/osrelease", KERNEL + "\n")
        self.write("sys/module/firmware_class/parameters/path", f"{self.options.firmware_path}\n")
        if not self.options.no_module:
            self.write("sys/module/nvidia/version", self.version + "\n")
            self.write("sys/module/nvidia/initstate", "live\n")
        for gpu in self.gpus:
            base = f"sys/bus/pci/devices/{gpu.pci}"
            for name, value in (("vendor", "0x10de"), ("device", gpu.pci_device), ("class", PCI_CLASS),
                                ("numa_node", str(gpu.numa if self.options.numa is None
                                                  else self.options.numa)), ("subsystem_vendor", "0x10de"),
                                ("subsystem_device", "0x16c1")):
                self.write(f"{base}/{name}", value + "\n")
            synthetic_drm.write_drm(self, f"sys/bus/pci/devices/{gpu.pci}", gpu.index, gpu.index)
            self.link(f"{base}/driver", "../../drivers/nvidia")

    # Device nodes.

    def nodes(self):
        rows = []
        if self.options.no_module:
            return rows
        for gpu in self.gpus:
            rows.append((f"/dev/nvidia{gpu.minor}", 195, gpu.minor, 0o666))
            rows.append((f"/dev/dri/card{gpu.index}", 226, gpu.index, 0o660))
            rows.append((f"/dev/dri/renderD{128 + gpu.index}", 226, 128 + gpu.index, 0o660))
        rows += [("/dev/nvidiactl", 195, 255, 0o666), ("/dev/nvidia-modeset", 195, 254, 0o666)]
        if not self.options.no_uvm:
            rows += [("/dev/nvidia-uvm", self.options.uvm_major, 0, 0o666),
                     ("/dev/nvidia-uvm-tools", self.options.uvm_major, 1, 0o666)]
        for path, minor in self.capability_minors():
            mode = 0o400 if path == "config" else 0o444
            rows.append((f"/dev/nvidia-caps/nvidia-cap{minor}", self.options.caps_major, minor, mode))
        for group in self.groups:
            rows += group.nodes
        return rows

    def group_files(self):
        for group in self.groups:
            for path, text in group.files:
                self.write(path, text)

    def devices(self, rows=None):
        rows = self.nodes() if rows is None else rows
        self.write("dev/nodes", "".join(f"{p} {a} {i} {m:o}\n" for p, a, i, m in rows))
        if os.geteuid() != 0 or self.options.no_mknod:
            return
        for path, major, minor, mode in rows:
            node = self.path(path)
            os.mknod(node, stat.S_IFCHR | mode, os.makedev(major, minor))
            os.chmod(node, mode)

    # NVML.

    def nvml(self):
        lines = [f"driver {self.version}", "cuda 12080"]
        if self.options.nvml_mode != "ok":
            lines.append(f"mode {self.options.nvml_mode}")
        for gpu in self.gpus:
            mig = 1 if gpu.slices else 0
            words = " ".join([*gpu.facts, ""])
            lines.append(f"gpu uuid={gpu.uuid} minor={gpu.minor} pci=0000{gpu.pci.upper()} brand=14 "
                         f"cc={gpu.capability} memory={MEMORY_BYTES} mig={mig} {words}name={gpu.model}")
            for gi, ci, profile, memory in gpu.slices:
                lines.append(f"slice gi={gi} ci={ci} memory={memory} uuid={gpu.mig_uuid(gi, ci)} "
                             f"name={MODEL} MIG {profile}")
        self.write("nvml.facts", "\n".join(lines) + "\n")
        if self.options.nvml_stub:
            where = self.path(f"{self.libdir}/libnvidia-ml.so.{self.library_version}")
            os.unlink(where)
            shutil.copy(self.options.nvml_stub, where)
            os.chmod(where, 0o644)

    def make_nvidia(self):
        if not self.options.machine_only:
            self.libraries()
            self.decoys()
            self.programs_and_files()
            self.system_profile()
            self.loader_files()
        if not self.options.no_module:
            self.procfs()
        self.majors()
        self.sysfs()
        self.group_files()
        self.devices()
        if not self.options.machine_only:
            self.nvml()
        for node in self.options.node:
            number, _, cpus = node.partition("=")
            self.write(f"sys/devices/system/node/node{number}/cpulist", f"{cpus}\n")

    def make(self):
        if not self.options.machine_only and os.path.lexists(self.root) and os.listdir(self.root):
            sys.exit(f"driver_tree.py: '{self.root}' is not empty")
        os.makedirs(self.root, exist_ok=True)
        os.umask(0o022)
        if self.options.kind in synthetic_drm.KINDS:
            synthetic_drm.make(self)
        else:
            self.make_nvidia()
        origin = ("Its kernel files and devices are synthetic; the driver's files were there before.\n"
                  if self.options.machine_only else f"Its list of files is: {self.manifest.origin}\n")
        self.write("SYNTHETIC", f"A driver tree made for tests ({self.options.kind}).\n{origin}")


class Group:
    """The devices beside the GPUs."""

    def __init__(self, driver, major, nodes, files=()):
        self.driver, self.major, self.files = driver, major, files
        self.nodes = [(path, major, minor, mode) for path, minor, mode in nodes]


def groups_of(options):
    major = options.group_major
    known = {
        "imex": Group(None, options.caps_major - 1, [
            (f"/dev/nvidia-caps-imex-channels/channel{n}", n, 0o666) for n in (0, 1)],
            [("run/nvidia-imex/README", "synthetic\n")]),
        "gds": Group("nvidia-fs", major, [(f"/dev/nvidia-fs{n}", n, 0o666) for n in range(3)],
                     [("etc/cufile.json", "{}\n"), ("run/udev/data/b259:0", "E:synthetic\n")]),
        "gdrcopy": Group("gdrdrv", major - 1, [("/dev/gdrdrv", 0, 0o666)]),
        "mofed": Group("infiniband_verbs", major - 2, [
            ("/dev/infiniband/uverbs0", 192, 0o666), ("/dev/infiniband/uverbs1", 193, 0o666),
            ("/dev/infiniband/rdma_cm", 58, 0o666)]),
        "nvswitch": Group("nvidia-nvswitch", major - 3, [
            ("/dev/nvidia-nvswitchctl", 255, 0o666), ("/dev/nvidia-nvswitch0", 0, 0o666)]),
    }
    return [known[name] for name in options.group]


def free_major(names, candidates):
    """A major number that no driver of this machine uses, so that a node made here opens nothing."""
    used = set()
    try:
        with open("/proc/devices", encoding="ascii") as file:
            used = {int(line.split()[0]) for line in file if line[:4].strip().isdigit()}
    except OSError:
        pass
    for major in candidates:
        if not used & set(range(major - names + 1, major + 1)):
            return major
    return candidates[0]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=["one", "eight", "mig", "boards", *synthetic_drm.KINDS])
    parser.add_argument("dir")
    parser.add_argument("--manifest", default=DEFAULT_MANIFEST)
    parser.add_argument("--version", help="of the kernel module and the files")
    parser.add_argument("--gpus", type=int, metavar="COUNT", help="only the first COUNT GPUs")
    parser.add_argument("--machine-only", action="store_true",
                        help="NVIDIA: proc, sys and dev alone, in a directory that may have a driver's files")
    parser.add_argument("--firmware-path", default="", metavar="PATH", help="the kernel's own directory of firmware")
    parser.add_argument("--library-version", help="of the files alone: not the module's")
    parser.add_argument("--arch", choices=sorted(MACHINES))
    parser.add_argument("--layout", default="multiarch",
                        choices=["multiarch", "lib64", "current", "prefix", "local", "nixos"],
                        help="where the files are: of a distribution, /opt/driver, /usr/local/nvidia")
    parser.add_argument("--libdir", help="where the libraries are, below the root")
    parser.add_argument("--cache", choices=["new", "both", "none"], default="new",
                        help="form of etc/ld.so.cache; 'both' has the older header in front")
    parser.add_argument("--needed", action="store_true", help="libraries name libc.so.6 as needed")
    parser.add_argument("--glibc", metavar="VERSION", help="that the libraries ask for")
    parser.add_argument("--no-uuid", action="store_true", help="procfs does not tell the UUIDs")
    parser.add_argument("--no-uvm", action="store_true", help="nvidia-uvm is not loaded")
    parser.add_argument("--no-module", action="store_true", help="no kernel module is loaded")
    parser.add_argument("--no-mknod", action="store_true", help="only the table dev/nodes")
    parser.add_argument("--excluded", type=int, action="append", default=[], metavar="INDEX")
    parser.add_argument("--no-glvnd", action="store_true", help="libGL and its kin are the driver's")
    parser.add_argument("--node", action="append", default=[], metavar="N=CPUS",
                        help="the processors of a NUMA node")
    parser.add_argument("--numa", type=int, help="numa_node of every GPU; -1: unknown")
    parser.add_argument("--group", action="append", default=[],
                        choices=["imex", "gds", "gdrcopy", "mofed", "nvswitch"],
                        help="devices beside the GPUs")
    parser.add_argument("--partitions", type=int, default=1, metavar="COUNT",
                        help="AMD: of each GPU (mode CPX)")
    parser.add_argument("--group-major", type=int, default=free_major(4, range(384, 300, -1)))
    parser.add_argument("--kfd-major", type=int, default=free_major(1, range(300, 255, -1)))
    parser.add_argument("--uvm-major", type=int, default=free_major(1, range(507, 384, -1)))
    parser.add_argument("--caps-major", type=int, default=free_major(2, range(254, 235, -1)))
    parser.add_argument("--nvml-stub", metavar="SO", help="the stub NVML that answers from nvml.facts")
    parser.add_argument("--nvml-mode", choices=["ok", "hang", "init-fail", "crash", "noise", "garbage"], default="ok")
    return parser.parse_args()


if __name__ == "__main__":
    Tree(arguments()).make()
