// SPDX-License-Identifier: Apache-2.0
// What this machine offers, as plain structs: filled by gpu/probe, read by gpu/grant and by
// `berth gpu list`. The tables at the end are the form of `--format json` and of the cache file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace berth::gpu {

/// A character device of the driver.
struct Node {
  std::string path;       ///< where programs look for it: "/dev/nvidia0"
  std::string host_path;  ///< where it is on this machine; empty when it has to be made (as root)
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
  std::string uuid;     ///< "MIG-…"; empty without NVML, which alone knows it
  std::string profile;  ///< "1g.10gb"; empty without NVML
  std::optional<uint64_t> memory_bytes;
  std::vector<Node> nodes;  ///< /dev/nvidia-caps/nvidia-cap<N>: of its GPU instance, then its own
};

enum class Vendor { nvidia, amd, intel };
std::string to_json_text(Vendor vendor);  ///< "nvidia", "amd", "intel"
Result<Vendor> from_json_text(std::string_view text, std::type_identity<Vendor>);

struct Gpu {
  Vendor vendor = Vendor::nvidia;
  uint32_t index = 0;       ///< among those of its vendor by PCI address, as nvidia-smi counts
  std::string uuid;         ///< "GPU-…"; empty when the driver does not tell
  std::string pci_address;  ///< "0000:1b:00.0", as the kernel writes it
  uint32_t minor = 0;       ///< of /dev/nvidia<minor>; differs from the index
  std::string model;
  std::optional<std::string> compute_capability;  ///< "9.0"
  std::optional<uint64_t> memory_bytes;
  std::optional<std::string> brand;  ///< as NVIDIA_REQUIRE_* spells it: "tesla"
  std::optional<int> numa_node;
  bool mig_mode = false;
  Node node;
  std::vector<Node> drm_nodes;  ///< /dev/dri/card<N>, /dev/dri/renderD<N>
  std::vector<MigDevice> mig;
};

enum class FileKind { library, binary, socket, config };

/// A file of the driver, resolved: no component of `host_path` is a symbolic link.
struct DriverFile {
  FileKind kind = FileKind::library;
  std::string host_path;
  std::string name;            ///< "libcuda.so.570.133.20", "nvidia-smi"
  std::string container_path;  ///< binary, socket, config: where programs expect it
  std::string soname;          ///< library: "libcuda.so.1"; may equal `name`
  int32_t loader_flags = 0;    ///< library: of scan::LoaderEntry
  bool elf32 = false;
  std::vector<std::string> capabilities;  ///< any of these wants it: "compute", "utility", …
};

/// The driver's versions, each empty when unknown.
struct Driver {
  std::string module_version;   ///< of the loaded kernel module; empty: none is loaded
  std::string library_version;  ///< of the libcuda (or libnvidia-ml) on disk
  std::string cuda_version;     ///< "12.8"
  std::string cuda_source;      ///< "nvml", or "branch": derived from the driver's branch
};

/// What a machine has; the unit that is cached.
struct Inventory {
  bool synthetic = false;  ///< read from a tree made for tests
  std::string driver_root = "/";
  Driver driver;
  std::string nvml;       ///< "ok", "missing", or why it gave nothing
  std::vector<Gpu> gpus;  ///< by index
  uint32_t left_out =
      0;  ///< GPUs that procfs lists and that are not ours: excluded, or without a node
  std::vector<Node> control_nodes;      ///< nvidiactl, nvidia-uvm, nvidia-uvm-tools, nvidia-modeset
  std::vector<Node> mig_control_nodes;  ///< of mig/config and mig/monitor
  std::vector<DriverFile> files;
  std::string params_path;            ///< /proc/driver/nvidia/params on the host; empty: none
  std::string params;                 ///< its text
  std::vector<std::string> problems;  ///< for people: what was found wrong on the way
};

/// A driver file is one string in the cache, its members between tabs: a start reads some sixty.
std::string to_json_text(const DriverFile& file);
Result<DriverFile> from_json_text(std::string_view text, std::type_identity<DriverFile>);

template <class V>
void fields(V& v, Node& n) {
  v.required("path", n.path);
  v.optional("host_path", n.host_path);
  v.required("major", n.major);
  v.required("minor", n.minor);
  v.required("mode", n.mode);
  v.optional("gid", n.gid);
}

template <class V>
void fields(V& v, MigDevice& m) {
  v.required("index", m.index);
  v.required("gpu_instance", m.gpu_instance);
  v.required("compute_instance", m.compute_instance);
  v.always("uuid", m.uuid);
  v.always("profile", m.profile);
  v.always("memory_bytes", m.memory_bytes);
  v.always("nodes", m.nodes);
}

template <class V>
void fields(V& v, Gpu& g) {
  v.always("vendor", g.vendor);
  v.required("index", g.index);
  v.always("uuid", g.uuid);
  v.required("pci_address", g.pci_address);
  v.required("minor", g.minor);
  v.always("model", g.model);
  v.always("compute_capability", g.compute_capability);
  v.always("memory_bytes", g.memory_bytes);
  v.always("brand", g.brand);
  v.always("numa_node", g.numa_node);
  v.always("mig_mode", g.mig_mode);
  v.required("node", g.node);
  v.always("drm_nodes", g.drm_nodes);
  v.always("mig", g.mig);
}

template <class V>
void fields(V& v, Driver& d) {
  v.always("module_version", d.module_version);
  v.always("library_version", d.library_version);
  v.always("cuda_version", d.cuda_version);
  v.always("cuda_source", d.cuda_source);
}

template <class V>
void fields(V& v, Inventory& i) {
  v.required("synthetic", i.synthetic);
  v.required("driver_root", i.driver_root);
  v.required("driver", i.driver);
  v.always("nvml", i.nvml);
  v.required("gpus", i.gpus);
  v.optional("left_out", i.left_out);
  v.required("control_nodes", i.control_nodes);
  v.always("mig_control_nodes", i.mig_control_nodes);
  v.required("files", i.files);
  v.always("params_path", i.params_path);
  v.always("params", i.params);
  v.always("problems", i.problems);
}

}  // namespace berth::gpu
