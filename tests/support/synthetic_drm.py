# SPDX-License-Identifier: Apache-2.0
"""The parts of a synthetic tree that belong to DRM, and the trees of AMD's and Intel's GPUs."""
import os

KINDS = ("amd", "intel")

AMD_PCI = ["0000:29:00.0", "0000:2c:00.0", "0000:49:00.0", "0000:4c:00.0",
           "0000:a9:00.0", "0000:ac:00.0", "0000:c9:00.0", "0001:cc:00.0"]
AMD_MEMORY_BYTES = 68702699520
INTEL_PCI = ["0000:3a:00.0", "0000:9a:00.0"]
XGMI, PCIE = 11, 2  # types of io_links


def write_drm(tree, device, card, render):
    """sysfs of one device with /dev/dri/card<card> and renderD<128 + render>; with the kernel's names and
    links."""
    for name in (f"card{card}", f"renderD{128 + render}"):
        os.makedirs(tree.path(f"{device}/drm/{name}"), exist_ok=True)
        tree.link(f"{device}/drm/{name}/device", f"../../../{os.path.basename(device)}")
        up = "../" * len("sys/class/drm".split("/"))
        tree.link(f"sys/class/drm/{name}", f"{up}{device}/drm/{name}")


def node_rows(card, render):
    return [(f"/dev/dri/card{card}", 226, card, 0o660),
            (f"/dev/dri/renderD{128 + render}", 226, 128 + render, 0o666)]


def link_by_path(tree, pci, card, render):
    """As udev does."""
    tree.link(f"dev/dri/by-path/pci-{pci}-card", f"../card{card}")
    tree.link(f"dev/dri/by-path/pci-{pci}-render", f"../renderD{128 + render}")


def write_values(tree, base, values):
    for name, value in values.items():
        tree.write(f"{base}/{name}", f"{value}\n")


def properties(tree, where, values):
    tree.write(where, "".join(f"{name} {value}\n" for name, value in values.items()))


class Amd:
    """MI250X: two GPUs per board, all linked by XGMI. With partitions each is that many KFD nodes."""

    def __init__(self, tree):
        self.tree, self.partitions = tree, tree.options.partitions
        self.rows = [("/dev/kfd", tree.options.kfd_major, 0, 0o666)]
        self.kfd = []  # (GPU, partition, render) by their place in the topology

    def gpu(self, index, pci):
        base = f"sys/bus/pci/devices/{pci}"
        first = index * self.partitions
        write_values(self.tree, base, {
            "vendor": "0x1002", "device": "0x740c", "class": "0x038000",
            "numa_node": index // 2 if self.tree.options.numa is None else self.tree.options.numa,
            "product_name": "AMD INSTINCT MI250X", "serial_number": f"PCB0{index // 2}",
            "mem_info_vram_total": AMD_MEMORY_BYTES,
            "current_compute_partition": "SPX" if self.partitions == 1 else "CPX",
            "current_memory_partition": "NPS1",
            "gpu_busy_percent": 0, "mem_info_vram_used": 10 << 20, "power/runtime_status": "active",
            f"hwmon/hwmon{index + 3}/temp1_input": 41000,
            f"hwmon/hwmon{index + 3}/power1_average": 92000000})
        self.tree.link(f"{base}/driver", "../../drivers/amdgpu")
        link_by_path(self.tree, pci, first, first)
        for partition in range(self.partitions):
            number = first + partition
            device = base if partition == 0 else f"sys/devices/platform/amdgpu_xcp_{number}"
            write_drm(self.tree, device, number, number)
            self.rows += node_rows(number, number)
            self.kfd.append((index, partition, number))

    def location(self, index, partition):
        bus, device = (int(part.split(".")[0], 16) for part in AMD_PCI[index].split(":")[1:])
        return partition << 28 | bus << 8 | device << 3

    def topology(self):
        device = "sys/devices/virtual/kfd/kfd"
        self.tree.link("sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd")
        self.tree.write("sys/module/amdgpu/initstate", "live\n")
        base = f"{device}/topology"
        self.tree.write(f"{base}/generation_id", "2\n")
        properties(self.tree, f"{base}/system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
        os.makedirs(self.tree.path(f"{device}/proc"), exist_ok=True)
        self.tree.write(f"{base}/nodes/0/gpu_id", "0\n")
        properties(self.tree, f"{base}/nodes/0/properties",
                   {"cpu_cores_count": 64, "simd_count": 0, "drm_render_minor": 0})
        for place, (index, partition, render) in enumerate(self.kfd, 1):
            node = f"{base}/nodes/{place}"
            properties(self.tree, f"{node}/properties", {
                "cpu_cores_count": 0, "simd_count": 440, "gfx_target_version": 90010,
                "vendor_id": 4098, "device_id": 29708,
                "location_id": self.location(index, partition),
                "domain": int(AMD_PCI[index].split(":")[0], 16), "drm_render_minor": 128 + render,
                "unique_id": 0x9C3F1A5500000000 + index})
            self.tree.write(f"{node}/name", "aldebaran\n")
            self.tree.write(f"{node}/gpu_id", f"{4000 + place}\n")
            properties(self.tree, f"{node}/io_links/0/properties",
                       {"type": PCIE, "node_from": place, "node_to": 0})
            for link, peer in enumerate(self.peers(place, index), 1):
                properties(self.tree, f"{node}/io_links/{link}/properties",
                           {"type": XGMI, "node_from": place, "node_to": peer})

    def peers(self, place, index):
        """The other GPU of the board, and the first of the next board."""
        wanted = {index ^ 1, (index + 2) % len(AMD_PCI)}
        return [other for other, (gpu, partition, _) in enumerate(self.kfd, 1)
                if gpu in wanted and partition == 0 and other != place]

    def make(self):
        for index, pci in enumerate(AMD_PCI):
            self.gpu(index, pci)
        self.topology()
        major = self.tree.options.kfd_major
        self.tree.write("proc/devices", f"Character devices:\n  1 mem\n226 drm\n{major:3d} kfd\n\n"
                                        "Block devices:\n  8 sd\n")
        self.tree.devices(self.rows)


def make_intel(tree):
    rows = []
    for index, (pci, driver) in enumerate(zip(INTEL_PCI, ("i915", "xe"))):
        base = f"sys/bus/pci/devices/{pci}"
        write_values(tree, base, {"vendor": "0x8086", "device": "0x56c0", "class": "0x038000",
                                  "numa_node": index if tree.options.numa is None
                                  else tree.options.numa})
        tree.link(f"{base}/driver", f"../../drivers/{driver}")
        write_drm(tree, base, index, index)
        link_by_path(tree, pci, index, index)
        rows += node_rows(index, index)
    tree.write("proc/devices", "Character devices:\n  1 mem\n226 drm\n\nBlock devices:\n  8 sd\n")
    tree.devices(rows)


def make(tree):
    if tree.options.kind == "amd":
        Amd(tree).make()
    else:
        make_intel(tree)
