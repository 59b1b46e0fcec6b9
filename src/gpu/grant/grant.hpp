// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/inventory/inventory.hpp"
#include "scan/loader_cache.hpp"

namespace berth::gpu {

/// Where the driver's files appear in a container. NVIDIA's own images name this
/// directory in PATH and LD_LIBRARY_PATH already. See docs/decisions/0006.
inline constexpr const char* kDriverDirectory = "/usr/local/nvidia";

/// A file of the host that is bound, read-only, at a path of the container.
struct GrantedFile {
  FileKind kind = FileKind::library;
  std::string host_path;
  std::string container_path;
};

/// A symbolic link below kDriverDirectory.
struct GrantedLink {
  std::string path;
  std::string target;
};

/// One thing that a container has, or has not, and why: for `--debug`, `berth explain` and
/// `berth run --explain`.
struct Reason {
  std::string kind;       ///< "gpu", "node", "library", "binary", "variable", "requirement", …
  std::string object;     ///< what it is about: "/dev/nvidia0", "libnvidia-ml.so.1"
  bool given = true;      ///< whether the container has it
  std::string why;        ///< "--gpus all", "capability graphics was not asked for"
  std::string host_path;  ///< where it comes from; empty where that says nothing
};

/// All that a container gets.
struct Grant {
  std::vector<uint32_t> gpus;  ///< indices, for messages
  bool synthetic = false;
  std::vector<Node> nodes;
  std::vector<GrantedFile> files;
  std::vector<GrantedLink> links;
  std::vector<std::string> env;
  std::vector<scan::LoaderEntry> loader_entries;  ///< for glibc's cache
  std::vector<std::string> library_directories;   ///< for musl's path file
  /// /proc/driver/nvidia/params with ModifyDeviceFiles: 0, without which NVML tries to make the
  /// nodes of every GPU; empty where the machine has no such file or it already says 0.
  std::string params;
  /// Directories of /proc/driver/nvidia/gpus that stay visible; only meant when hide_other_gpus.
  std::vector<std::string> visible_pci_addresses;
  bool hide_other_gpus = false;
  std::vector<Reason> reasons;
  std::vector<std::string> warnings;  ///< for people, on the way
};

/// Decides what `request` gets from `inventory`. Pure. A request for nothing gives an empty
/// grant. Errors: those of select(), not_found (no driver), unsupported (driver files of another
/// version than the module; a requirement of the image fails).
Result<Grant> make_grant(const Request& request, const Inventory& inventory);

}  // namespace berth::gpu
