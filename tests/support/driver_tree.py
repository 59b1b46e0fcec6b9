#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a synthetic NVIDIA driver tree: a root for `berth --driver-root`.

    driver_tree.py KIND DIR [options]      KIND: one | eight | mig

The libraries are small ELF files that the loader can map and that contain no code; nothing here can
reach a GPU. The list of files comes from a manifest (tests/data/driver-synthetic.txt documents the
form). As root the device nodes below dev/ are real character devices, otherwise only the table
dev/nodes is written.
"""
import argparse
import os
import shutil
import socket
import stat
import struct
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_MANIFEST = os.path.join(HERE, "..", "data", "driver-synthetic.txt")

MACHINES = {"x86_64": 62, "aarch64": 183}
TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
MACHINES_32 = {"x86_64": 3, "aarch64": 40}
CACHE_FLAGS = {("x86_64", 64): 0x0303, ("x86_64", 32): 0x0003,
               ("aarch64", 64): 0x0A03, ("aarch64", 32): 0x0903}

# H100 SXM: 10de:2330, 3D controller.
MODEL, PCI_DEVICE, PCI_CLASS = "NVIDIA H100 80GB HBM3", "0x2330", "0x030200"
MEMORY_BYTES = 85520809984
PCI_EIGHT = ["0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0",
             "0000:9d:00.0", "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"]
MINORS_EIGHT = [2, 5, 0, 7, 1, 4, 3, 6]  # differ from the order of the PCI addresses
MIG_SLICES = [(7 + i, 0, "1g.10gb", 10468982784) for i in range(7)]  # gi, ci, profile, bytes


# ---- ELF ----------------------------------------------------------------------------------------

def note(owner, kind, content):
    owner = owner.encode() + b"\0"
    pad = lambda data: data + b"\0" * (-len(data) % 4)
    return struct.pack("<III", len(owner), len(content), kind) + pad(owner) + pad(content)


def elf(machine, bits, soname, needed=(), note_section=None, note_bytes=b""):
    """A shared object that ld.so and musl's loader accept: one segment, a dynamic section, a hash
    table with the null symbol only; and section headers for readers that want those."""
    wide = bits == 64
    header_size, phdr_size, shdr_size = (64, 56, 64) if wide else (52, 32, 40)
    word = "Q" if wide else "I"
    strings = b"\0" + soname.encode() + b"\0"
    needed_at = []
    for name in needed:
        needed_at.append(len(strings))
        strings += name.encode() + b"\0"
    segments = 4 if note_bytes else 3
    at = header_size + segments * phdr_size
    align = lambda value: (value + 7) & ~7
    dynsym_at = align(at)
    dynsym = b"\0" * (24 if wide else 16)
    hash_at = align(dynsym_at + len(dynsym))
    hash_table = struct.pack("<IIII", 1, 1, 0, 0)
    strings_at = align(hash_at + len(hash_table))
    note_at = align(strings_at + len(strings))
    dynamic_at = align(note_at + len(note_bytes))
    tags = [(14, 1)] + [(1, offset) for offset in needed_at] + [
        (4, hash_at), (5, strings_at), (6, dynsym_at), (10, len(strings)), (11, len(dynsym)), (0, 0)]
    dynamic = b"".join(struct.pack("<" + word * 2, tag, value) for tag, value in tags)
    loaded_end = dynamic_at + len(dynamic)
    names = b"\0.dynsym\0.hash\0.dynstr\0.dynamic\0.shstrtab\0"
    note_name = len(names)
    if note_section:
        names += note_section.encode() + b"\0"
    names_at = loaded_end
    sections_at = align(names_at + len(names))

    def segment(kind, flags, offset, size, alignment):
        if wide:
            return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, alignment)
        return struct.pack("<IIIIIIII", kind, offset, offset, offset, size, size, flags, alignment)

    def section(name, kind, flags, offset, size, link=0, info=0, entry=0, alignment=8):
        form = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
        return struct.pack(form, name, kind, flags, offset if flags else 0, offset, size, link, info,
                           alignment, entry)

    headers = segment(1, 6, 0, loaded_end, 0x1000)                       # PT_LOAD, read and write
    headers += segment(2, 6, dynamic_at, len(dynamic), 8)                # PT_DYNAMIC
    headers += segment(0x6474E551, 6, 0, 0, 16)                          # PT_GNU_STACK, no execution
    if note_bytes:
        headers += segment(4, 4, note_at, len(note_bytes), 4)            # PT_NOTE
    at_name = lambda name: names.index(name)
    table = section(0, 0, 0, 0, 0, alignment=0)
    table += section(at_name(b".dynsym"), 11, 2, dynsym_at, len(dynsym), 3, 1, len(dynsym))
    table += section(at_name(b".hash"), 5, 2, hash_at, len(hash_table), 1, entry=4)
    table += section(at_name(b".dynstr"), 3, 2, strings_at, len(strings), alignment=1)
    table += section(at_name(b".dynamic"), 6, 3, dynamic_at, len(dynamic), 3, entry=16 if wide else 8)
    table += section(at_name(b".shstrtab"), 3, 0, names_at, len(names), alignment=1)
    count = 6
    if note_section:
        table += section(note_name, 7, 2, note_at, len(note_bytes), alignment=4)
        count += 1

    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1, 0]) + b"\0" * 8
    head = ident + struct.pack("<HHI" + word * 3 + "IHHHHHH", 3, machine, 1, 0, header_size,
                               sections_at, 0, header_size, phdr_size, segments, shdr_size, count, 5)
    image = bytearray(sections_at + len(table))
    for offset, part in ((0, head), (header_size, headers), (dynsym_at, dynsym), (hash_at, hash_table),
                         (strings_at, strings), (note_at, note_bytes), (dynamic_at, dynamic),
                         (names_at, names), (sections_at, table)):
        image[offset:offset + len(part)] = part
    return bytes(image)


# ---- loader cache -------------------------------------------------------------------------------

def cache_key(name):
    """Sorts as glibc's _dl_cache_libcmp does: runs of digits as numbers, after other characters."""
    parts, i = [], 0
    while i < len(name):
        if name[i].isdigit():
            j = i
            while j < len(name) and name[j].isdigit():
                j += 1
            parts.append((2, int(name[i:j])))
            i = j
        else:
            parts.append((1, ord(name[i])))
            i += 1
    return parts + [(0, 0)]


def loader_cache(entries, old_header):
    """entries: (soname, path, flags). Returns the bytes of an ld.so.cache."""
    entries = sorted(entries, key=lambda e: (cache_key(e[0]), e[2]), reverse=True)
    size = 48 + 24 * len(entries)
    strings, table = b"", b""
    for soname, path, flags in entries:
        key = size + len(strings)
        strings += soname.encode() + b"\0"
        value = size + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack("<iIIIQ", flags, key, value, 0, 0)
    new = b"glibc-ld.so.cache1.1" + struct.pack("<II", len(entries), len(strings))
    new += struct.pack("<B3xI12x", 2, 0) + table + strings
    if not old_header:
        return new
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 0)
    return old + b"\0" * (-len(old) % 8) + new


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

    def mig_uuid(self, gi, ci):
        return "MIG-" + str(uuid.uuid5(uuid.NAMESPACE_OID, f"berth slice {self.index} {gi} {ci}"))


def gpus_of(kind):
    if kind == "eight":
        return [Gpu(i, pci, MINORS_EIGHT[i]) for i, pci in enumerate(PCI_EIGHT)]
    return [Gpu(0, "0000:1b:00.0", 0, MIG_SLICES if kind == "mig" else ())]


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
        self.libdir = options.libdir or f"usr/lib/{TRIPLETS[self.arch]}"
        self.libdir32 = "usr/lib/i386-linux-gnu" if self.arch == "x86_64" else "usr/lib/arm-linux-gnueabihf"
        self.gpus = gpus_of(options.kind)
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
        self.library_set(self.libdir, self.manifest.libs, 64, MACHINES[self.arch])
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
                # The note by which the old loader told the two TLS models apart: Linux 2.3.99.
                section, content = ".note.ABI-tag", note("GNU", 1, struct.pack("<IIII", 0, 2, 3, 99))
            needed = ["libc.so.6"] if self.options.needed else []
            self.write(f"{libdir}/{name}", elf(machine, bits, soname, needed, section, content))
            if soname != base:
                self.link(f"{libdir}/{os.path.dirname(name)}/{soname}".replace("//", "/"), base)
            if "/" not in name:
                self.cache.append((soname, f"/{libdir}/{soname}", CACHE_FLAGS[self.arch, bits]))

    def decoys(self):
        """What a careless search would take for the driver."""
        machine = MACHINES[self.arch]
        self.write("usr/lib/old-driver/libcuda.so.390.157", elf(machine, 64, "libcuda.so.1"))
        self.link("usr/lib/old-driver/libcuda.so.1", "libcuda.so.390.157")
        self.link(f"{self.libdir}/libcudadebugger-old.so.1", "no-such-file")
        self.write(f"{self.libdir}/libGL.so.1.7.0", elf(machine, 64, "libGL.so.1"))
        self.link(f"{self.libdir}/libGL.so.1", "libGL.so.1.7.0")
        self.write(f"{self.libdir}/libnvidia-text.so.{self.version}", "this is no library\n")
        self.write(f"{self.libdir}/libnvidia-ifr.so.{self.version}", b"\x7fELF truncated")
        other = "aarch64" if self.arch == "x86_64" else "x86_64"
        self.write(f"usr/lib/{TRIPLETS[other]}/libcuda.so.{self.version}",
                   elf(MACHINES[other], 64, "libcuda.so.1"))

    def programs_and_files(self):
        for name in self.manifest.bins:
            self.write(f"usr/bin/{name}", f"#!/bin/sh\necho 'synthetic {name} {self.version}'\n",
                       0o4755 if name == "nvidia-modprobe" else 0o755)
        for path in self.manifest.configs:
            text = "libnvidia-opencl.so.1\n" if path.endswith(".icd") else f'{{"synthetic": "{path}"}}\n'
            self.write(path, text)
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
        self.write("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.write("etc/ld.so.conf.d/nvidia.conf", f"/{self.libdir}\n")
        if self.options.cache != "none":
            entries = self.cache + [("libc.so.6", "/usr/lib/libc.so.6", 0x0303),
                                    ("libcuda.so.1", "/usr/lib/old-driver/libcuda.so.1", 0x0303)]
            self.write("etc/ld.so.cache", loader_cache(entries, self.options.cache == "both"))

    # procfs and sysfs.

    def capability_minors(self):
        """Rows of mig-minors: path and minor, for the instances that exist."""
        rows = [("config", 1), ("monitor", 2)]
        for gpu in self.gpus:
            for gi, ci, _, _ in gpu.slices:
                rows.append((f"gpu{gpu.minor}/gi{gi}/access", gi_minor(gpu, gi)))
                rows.append((f"gpu{gpu.minor}/gi{gi}/ci{ci}/access", gi_minor(gpu, gi) + 1 + ci))
        return rows

    def procfs(self):
        proc = "proc/driver/nvidia"
        self.write(f"{proc}/version",
                   f"NVRM version: NVIDIA UNIX {self.arch} Kernel Module  {self.version}  "
                   "Sun Mar 23 14:01:17 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0)\n")
        params = "".join(f"{name}: {value}\n" for name, value in self.manifest.params)
        self.write(f"{proc}/params", params)
        self.write(f"{proc}/registry", 'Binary: ""\n')
        self.write(f"{proc}/suspend", "")
        self.write(f"{proc}/warnings/README", "synthetic\n")
        for gpu in self.gpus:
            self.write(f"{proc}/gpus/{gpu.pci}/information", self.information(gpu))
            self.write(f"{proc}/gpus/{gpu.pci}/registry", 'Binary: ""\n')
            self.write(f"{proc}/gpus/{gpu.pci}/power", "Runtime D3 status:          Disabled by default\n")
        for path, minor in self.capability_minors():
            base = f"{proc}/capabilities"
            where = f"{base}/mig/{path}" if "/" not in path else f"{base}/{path.replace('/', '/mig/', 1)}"
            self.write(where, f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        rows = "".join(f"{path} {minor}\n" for path, minor in self.capability_minors())
        self.write("proc/driver/nvidia-caps/mig-minors", rows)
        self.write("proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt 0\n")

    def information(self, gpu):
        excluded = "Yes" if gpu.index in self.options.excluded else "No"
        lines = [("Model", MODEL), ("IRQ", "0"), ("GPU UUID", gpu.uuid),
                 ("Video BIOS", "96.00.74.00.01"), ("Bus Type", "PCIe"), ("DMA Size", "52 bits"),
                 ("DMA Mask", "0xfffffffffffff"), ("Bus Location", gpu.pci),
                 ("Device Minor", str(gpu.minor)), ("GPU Firmware", self.version),
                 ("GPU Excluded", excluded)]
        if self.options.no_uuid:
            lines = [line for line in lines if line[0] != "GPU UUID"]
        return "".join(f"{label}: \t {value}\n" for label, value in lines)

    def majors(self):
        rows = [(1, "mem"), (5, "/dev/tty"), (195, "nvidia"), (195, "nvidia-modeset"), (195, "nvidiactl")]
        if not self.options.no_uvm:
            rows.append((self.options.uvm_major, "nvidia-uvm"))
        rows += [(self.options.caps_major, "nvidia-caps"),
                 (self.options.caps_major - 1, "nvidia-caps-imex-channels")]
        if self.options.no_module:
            rows = rows[:2]
        text = "".join(f"{major:3d} {name}\n" for major, name in rows)
        self.write("proc/devices", f"Character devices:\n{text}\nBlock devices:\n  8 sd\n259 blkext\n")

    def sysfs(self):
        if not self.options.no_module:
            self.write("sys/module/nvidia/version", self.version + "\n")
            self.write("sys/module/nvidia/initstate", "live\n")
        for gpu in self.gpus:
            base = f"sys/bus/pci/devices/{gpu.pci}"
            for name, value in (("vendor", "0x10de"), ("device", PCI_DEVICE), ("class", PCI_CLASS),
                                ("numa_node", str(gpu.numa)), ("subsystem_vendor", "0x10de"),
                                ("subsystem_device", "0x16c1")):
                self.write(f"{base}/{name}", value + "\n")
            for name in (f"card{gpu.index}", f"renderD{128 + gpu.index}"):
                os.makedirs(self.path(f"{base}/drm/{name}"), exist_ok=True)

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
        return rows

    def devices(self):
        rows = self.nodes()
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
            lines.append(f"gpu uuid={gpu.uuid} minor={gpu.minor} pci=0000{gpu.pci.upper()} brand=14 "
                         f"cc=9.0 memory={MEMORY_BYTES} mig={mig} name={MODEL}")
            for gi, ci, profile, memory in gpu.slices:
                lines.append(f"slice gi={gi} ci={ci} memory={memory} uuid={gpu.mig_uuid(gi, ci)} "
                             f"name={MODEL} MIG {profile}")
        self.write("nvml.facts", "\n".join(lines) + "\n")
        if self.options.nvml_stub:
            where = self.path(f"{self.libdir}/libnvidia-ml.so.{self.library_version}")
            os.unlink(where)
            shutil.copy(self.options.nvml_stub, where)
            os.chmod(where, 0o644)

    def make(self):
        if os.path.lexists(self.root) and os.listdir(self.root):
            sys.exit(f"driver_tree.py: '{self.root}' is not empty")
        os.makedirs(self.root, exist_ok=True)
        os.umask(0o022)
        self.libraries()
        self.decoys()
        self.programs_and_files()
        self.loader_files()
        if not self.options.no_module:
            self.procfs()
        self.majors()
        self.sysfs()
        self.devices()
        self.nvml()
        self.write("SYNTHETIC", f"A driver tree made for tests ({self.options.kind}).\n"
                                f"Its list of files is: {self.manifest.origin}\n")


def free_major(names, candidates):
    """A major number that no driver of this machine uses: a node made here must open nothing."""
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
    parser.add_argument("kind", choices=["one", "eight", "mig"])
    parser.add_argument("dir")
    parser.add_argument("--manifest", default=DEFAULT_MANIFEST)
    parser.add_argument("--version", help="of the kernel module and the files")
    parser.add_argument("--library-version", help="of the files alone: not the module's")
    parser.add_argument("--arch", choices=sorted(MACHINES))
    parser.add_argument("--libdir", help="where the libraries are, below the root")
    parser.add_argument("--cache", choices=["new", "both", "none"], default="new",
                        help="form of etc/ld.so.cache; 'both' has the older header in front")
    parser.add_argument("--needed", action="store_true", help="libraries name libc.so.6 as needed")
    parser.add_argument("--no-uuid", action="store_true", help="procfs does not tell the UUIDs")
    parser.add_argument("--no-uvm", action="store_true", help="nvidia-uvm is not loaded")
    parser.add_argument("--no-module", action="store_true", help="no kernel module is loaded")
    parser.add_argument("--no-mknod", action="store_true", help="only the table dev/nodes")
    parser.add_argument("--excluded", type=int, action="append", default=[], metavar="INDEX")
    parser.add_argument("--uvm-major", type=int, default=free_major(1, range(507, 384, -1)))
    parser.add_argument("--caps-major", type=int, default=free_major(2, range(254, 235, -1)))
    parser.add_argument("--nvml-stub", metavar="SO", help="the stub NVML that answers from nvml.facts")
    parser.add_argument("--nvml-mode", choices=["ok", "hang", "init-fail"], default="ok")
    return parser.parse_args()


if __name__ == "__main__":
    Tree(arguments()).make()
