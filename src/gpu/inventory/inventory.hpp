// SPDX-License-Identifier: Apache-2.0
// The GPUs and drivers of this machine as plain structs: filled by gpu/probe, read by gpu/grant and
// by `berth gpu list`. The tables at the end define the form of `--format json` and of the cache
// file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"

namespace berth::gpu {

/// A character device of the driver.
struct Node {
  std::string path;       ///< where programs expect it: "/dev/nvidia0"
  std::string host_path;  ///< its path on this machine; empty if root has to make the node
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t mode = 0666;  ///< permission bits
  uint32_t gid = 0;
};

/// A slice of a GPU in MIG mode (NVIDIA's hardware partition).
struct MigDevice {
  uint32_t index = 0;         ///< among the slices of its GPU, as in "0:1"
  uint32_t gpu_instance = 0;  ///< as in /proc/driver/nvidia/capabilities/gpu0/mig/gi7
  uint32_t compute_instance = 0;
  std::string uuid;     ///< "MIG-…"; empty without NVML, the only source
  std::string profile;  ///< "1g.10gb"; empty without NVML
  std::optional<uint64_t> memory_bytes;
  std::vector<Node> nodes;  ///< /dev/nvidia-caps/nvidia-cap<N> of the GPU instance and of the slice
};

/// A slice of an AMD GPU in a compute mode other than SPX: a device with its own nodes.
struct Partition {
  uint32_t index = 0;       ///< among the partitions of its GPU, as in "0:1"
  std::vector<Node> nodes;  ///< /dev/dri/card<N>, /dev/dri/renderD<N>
};

/// A symbolic link to a node that programs use.
struct NodeLink {
  std::string path;    ///< "/dev/dri/by-path/pci-0000:1b:00.0-render"
  std::string target;  ///< "../renderD128"
};

enum class Vendor { nvidia, amd, intel };
constexpr EnumNames<Vendor, 3> names_of(std::type_identity<Vendor>) {
  return {{{Vendor::nvidia, "nvidia"}, {Vendor::amd, "amd"}, {Vendor::intel, "intel"}}};
}

/// A GPU as programs see it. A board (graphics card) may have several.
struct Gpu {
  Vendor vendor = Vendor::nvidia;
  uint32_t index = 0;       ///< among the GPUs of its vendor, in PCI order, as nvidia-smi counts
  std::string uuid;         ///< "GPU-…"; AMD: "GPU-<unique_id>"; empty if the driver has none
  std::string pci_address;  ///< "0000:1b:00.0", as the kernel writes it
  uint32_t minor = 0;       ///< of /dev/nvidia<minor>, not the index; other vendors: of `node`
  std::string model;
  std::string kernel_driver;                      ///< "nvidia", "amdgpu", "i915", "xe"
  std::optional<std::string> compute_capability;  ///< NVIDIA: "9.0"
  std::optional<std::string> architecture;        ///< AMD: "gfx90a"
  std::optional<uint64_t> memory_bytes;
  std::optional<std::string> brand;    ///< as NVIDIA_REQUIRE_* spells it: "tesla"
  std::optional<int> numa_node;        ///< absent: unknown (the kernel writes -1)
  std::string board;                   ///< the same for GPUs on one board; empty: unknown or alone
  std::vector<uint32_t> nvlink_peers;  ///< indices of the GPUs that it has an NVLink to (AMD: XGMI)
  bool mig_mode = false;
  Node node;                        ///< /dev/nvidia<minor>; AMD, Intel: /dev/dri/renderD<N>
  std::vector<Node> drm_nodes;      ///< /dev/dri/card<N>, /dev/dri/renderD<N>
  std::vector<NodeLink> drm_links;  ///< /dev/dri/by-path/…, one for each of drm_nodes
  std::vector<MigDevice> mig;
  std::string compute_partition;      ///< AMD: "SPX", "CPX", …; empty if the GPU has no such mode
  std::string memory_partition;       ///< AMD: "NPS1", …
  std::vector<Partition> partitions;  ///< AMD: empty, or at least two; the first one has `node`
};

enum class FileKind {
  library,  ///< for the loader
  binary,
  socket,
  config,
  firmware,
  module,     ///< a shared object that the X server or libgbm loads by path
  directory,  ///< bound as a whole: services create and remove sockets in it
};

/// A file of the driver, resolved: no component of `host_path` is a symbolic link.
struct DriverFile {
  FileKind kind = FileKind::library;
  std::string host_path;
  std::string name;            ///< "libcuda.so.570.133.20", "nvidia-smi"
  std::string container_path;  ///< where programs expect it; empty for a library
  std::string soname;          ///< library: "libcuda.so.1"; may equal `name`
  int32_t loader_flags = 0;    ///< library: of scan::LoaderEntry
  bool elf32 = false;
  std::vector<std::string> capabilities;  ///< any of these needs it: "compute", "utility", …
};

/// Devices other than GPUs, granted by name: NVIDIA_GDS=enabled and similar variables.
struct DeviceGroup {
  std::string name;               ///< "gds", "gdrcopy", "mofed", "nvswitch", "imex"
  std::vector<Node> nodes;        ///< the nodes that exist on this machine
  std::vector<DriverFile> files;  ///< needed together with the nodes; they belong to no capability
  /// imex: the major of /dev/nvidia-caps-imex-channels/channel<N>; the minor is N, and root makes
  /// the node.
  std::optional<uint32_t> major;
};

/// A file of /proc/driver that a container may see. Entries with the same path are parts of one
/// file, in this order; equal parts appear once (two slices of one GPU instance share its access
/// file).
struct ProcText {
  std::string path;  ///< below /proc/driver: "nvidia/gpus/0000:1b:00.0/information"
  std::string text;
  std::optional<uint32_t> gpu;    ///< index of the NVIDIA GPU in question; absent: the driver
  std::optional<uint32_t> slice;  ///< index of the slice of `gpu` in question
};

/// The driver's versions, each empty when unknown.
struct Driver {
  std::string module_version;   ///< of the loaded kernel module; empty: no module is loaded
  std::string library_version;  ///< of the libcuda (or libnvidia-ml) on disk
  std::string cuda_version;     ///< "12.8"
  std::string cuda_source;      ///< "nvml", or "branch": derived from the driver's branch
  /// The highest version of glibc that the driver's compute libraries require: "2.17".
  std::string glibc_needed = {};
};

/// A file with the name of a driver file that no container can get: a damaged one, one of another
/// driver or architecture where this driver has none, or a link that leads nowhere.
struct UnusableFile {
  std::string path;                       ///< on the host
  std::string why;                        ///< after the path and a colon
  std::vector<std::string> capabilities;  ///< as in DriverFile
};

/// The devices and drivers of a machine. It is cached as a whole.
struct Inventory {
  bool synthetic = false;  ///< read from a tree made for tests
  std::string driver_root = "/";
  Driver driver;
  std::string nvml;       ///< "ok", "missing", or the reason for its failure
  std::vector<Gpu> gpus;  ///< NVIDIA's GPUs by index, then AMD's, then Intel's
  uint32_t left_out = 0;  ///< GPUs that procfs lists but we do not: excluded, or without a node
  std::vector<Node> control_nodes;      ///< nvidiactl, nvidia-uvm, nvidia-uvm-tools, nvidia-modeset
  std::vector<Node> mig_control_nodes;  ///< for mig/config and mig/monitor, in this order
  std::vector<Node> amd_control_nodes;  ///< /dev/kfd
  std::vector<DriverFile> files;
  std::vector<UnusableFile> unusable;  ///< not in `files`
  std::vector<DeviceGroup> groups;     ///< the groups that this machine has
  std::vector<ProcText> proc_texts;    ///< as the NVIDIA driver shows them
  std::vector<std::string> problems;   ///< for people: problems of the probe
};

/// The devices of a machine, and which of them this process can open.
struct Machine {
  Inventory ours;
  uint32_t denied = 0;      ///< number of GPUs, slices and partitions that it cannot open
  Inventory with_denied{};  ///< the full inventory, if `denied` > 0

  const Inventory& all() const { return denied > 0 ? with_denied : ours; }
};

/// In the cache a driver file is one string with its members separated by tabs, for speed: a start
/// reads about eighty of them. A name that the path ends with and a SONAME equal to the name are
/// left out.
std::string to_json_text(const DriverFile& file);
Result<DriverFile> from_json_text(std::string_view text, std::type_identity<DriverFile>);

/// A ProcText is one such string too, with its text last.
std::string to_json_text(const ProcText& text);
Result<ProcText> from_json_text(std::string_view text, std::type_identity<ProcText>);

void fields(auto& v, Node& n) {
  v.required("path", n.path);
  v.optional("host_path", n.host_path);
  v.required("major", n.major);
  v.required("minor", n.minor);
  v.required("mode", n.mode);
  v.optional("gid", n.gid);
}

void fields(auto& v, MigDevice& m) {
  v.required("index", m.index);
  v.required("gpu_instance", m.gpu_instance);
  v.required("compute_instance", m.compute_instance);
  v.always("uuid", m.uuid);
  v.always("profile", m.profile);
  v.always("memory_bytes", m.memory_bytes);
  v.always("nodes", m.nodes);
}

void fields(auto& v, Partition& p) {
  v.required("index", p.index);
  v.always("nodes", p.nodes);
}

void fields(auto& v, NodeLink& l) {
  v.required("path", l.path);
  v.required("target", l.target);
}

void fields(auto& v, DeviceGroup& g) {
  v.required("name", g.name);
  v.always("nodes", g.nodes);
  v.always("files", g.files);
  v.always("major", g.major);
}

void fields(auto& v, Gpu& g) {
  v.always("vendor", g.vendor);
  v.required("index", g.index);
  v.always("uuid", g.uuid);
  v.required("pci_address", g.pci_address);
  v.required("minor", g.minor);
  v.always("model", g.model);
  v.always("kernel_driver", g.kernel_driver);
  v.always("compute_capability", g.compute_capability);
  v.always("architecture", g.architecture);
  v.always("memory_bytes", g.memory_bytes);
  v.always("brand", g.brand);
  v.always("numa_node", g.numa_node);
  v.always("board", g.board);
  v.always("nvlink_peers", g.nvlink_peers);
  v.always("mig_mode", g.mig_mode);
  v.required("node", g.node);
  v.always("drm_nodes", g.drm_nodes);
  v.always("drm_links", g.drm_links);
  v.always("mig", g.mig);
  v.always("compute_partition", g.compute_partition);
  v.always("memory_partition", g.memory_partition);
  v.always("partitions", g.partitions);
}

void fields(auto& v, Driver& d) {
  v.always("module_version", d.module_version);
  v.always("library_version", d.library_version);
  v.always("cuda_version", d.cuda_version);
  v.always("cuda_source", d.cuda_source);
  v.always("glibc_needed", d.glibc_needed);
}

void fields(auto& v, UnusableFile& f) {
  v.required("path", f.path);
  v.required("why", f.why);
  v.optional("capabilities", f.capabilities);
}

void fields(auto& v, Inventory& i) {
  v.required("synthetic", i.synthetic);
  v.required("driver_root", i.driver_root);
  v.required("driver", i.driver);
  v.always("nvml", i.nvml);
  v.always("gpus", i.gpus);
  v.optional("left_out", i.left_out);
  v.always("control_nodes", i.control_nodes);
  v.always("mig_control_nodes", i.mig_control_nodes);
  v.always("amd_control_nodes", i.amd_control_nodes);
  v.always("files", i.files);
  v.optional("unusable", i.unusable);
  v.always("groups", i.groups);
  v.always("proc_texts", i.proc_texts);
  v.always("problems", i.problems);
}

/// "'PATH': WHY", a line each, for people. Of many files of one directory that have the same reason
/// only the first is named.
std::vector<std::string> lines_of(const std::vector<UnusableFile>& files);

/// A GPU, or one MIG slice or partition of it.
struct Selected {
  const Gpu* gpu = nullptr;
  const MigDevice* slice = nullptr;
  const Partition* partition = nullptr;

  bool operator==(const Selected&) const = default;
};

/// "GPU-…", "MIG-…", else "0" or "0:1": the name for programs and people.
std::string name_of(const Selected& selected);

/// "0", "0:1": the numbers of `berth gpu list`.
std::string index_of(const Selected& selected);

/// A key that a renumbering of GPUs does not change: "0000:1b:00.0", "0000:1b:00.0/7/0" for a
/// slice, "0000:1b:00.0/1" for a partition.
std::string key_of(const Selected& selected);

/// "NVIDIA", "AMD", "Intel".
std::string_view vendor_name(Vendor vendor);

}  // namespace berth::gpu
