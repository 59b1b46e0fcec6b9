// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/reason.hpp"
#include "gpu/grant/request.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/grant/user_mounts.hpp"
#include "gpu/inventory/inventory.hpp"
#include "oci/edit.hpp"
#include "policy/policy.hpp"
#include "scan/driver_files.hpp"
#include "scan/loader_cache.hpp"

namespace berth::gpu {

/// Where the driver's files appear in a container, but for Grant::directory. NVIDIA's own images
/// name this directory in PATH and LD_LIBRARY_PATH already. See docs/decisions/0006.
inline constexpr const char* kDriverDirectory = scan::kDriverPlaces[0].data();

/// A file of the host that is bound, read-only, at a path of the container.
struct GrantedFile {
  FileKind kind = FileKind::library;
  std::string host_path;
  std::string container_path;
};

/// A symbolic link below Grant::directory.
struct GrantedLink {
  std::string path;
  std::string target;
};

/// A file of /proc/driver as the container sees it.
struct ProcFile {
  std::string path;  ///< below /proc/driver
  std::string text;
};

/// All that a container gets.
struct Grant {
  Vendor vendor = Vendor::nvidia;
  std::vector<uint32_t> gpus;  ///< indices, for messages
  bool synthetic = false;
  /// `none` for GPUs of AMD and Intel, whose libraries lie in the images.
  policy::DriverMode mode = policy::DriverMode::bind;
  std::string driver_version;  ///< of NVIDIA's files
  /// Where the driver's files are: kDriverDirectory, or elsewhere if a mount of the user's is
  /// there.
  std::string directory = kDriverDirectory;
  std::vector<Node> nodes;
  std::vector<NodeLink> node_links;  ///< in /dev
  std::vector<GrantedFile> files;
  std::vector<GrantedLink> links;
  std::vector<GrantedLink> program_links;  ///< of a volume's programs, where a PATH leads
  std::vector<std::string> env;
  std::vector<scan::LoaderEntry> loader_entries;
  /// Whether the image's compat libraries are used is for the container's first process to say.
  std::optional<oci::CompatRequest> compat;
  /// EGL and Vulkan are to be told which GPUs these are: they would ask for all of the machine.
  bool egl_gpus = false;
  /// nvidia/params of `proc` says ModifyDeviceFiles: 0 where the machine's says 1, without which
  /// NVML tries to make the nodes of every GPU.
  bool frozen_params = false;
  std::vector<ProcFile> proc;  ///< all of /proc/driver that is seen; empty: it is as the host's
  std::vector<Reason> reasons;
  std::vector<std::string> warnings;  ///< for people, on the way
};

struct GrantOptions {
  policy::DriverMode mode = policy::DriverMode::bind;
  /// What the image brings with it; null: nobody has looked.
  const scan::DriverFiles* image = nullptr;
  bool forward_compatibility = true;  ///< the image's compat libraries may be used
  /// Nothing of ours goes there: it would be made on the host, or in the user's volume.
  std::vector<UserMount> user_mounts;
  RealPath real_path = [](const std::string& path) { return path; };
  /// What was chosen already; null: select() chooses, as if nobody had any.
  const std::vector<Selected>* selected = nullptr;
  /// There is a directory of that name, and nobody may look into it before the container does.
  bool compat_later = false;
};

/// Decides what `request` gets from `inventory`. Pure. A request for nothing gives an empty
/// grant. Errors: those of select() and find_features(), not_found (no driver), unsupported (driver
/// files of another version than the module; a requirement of the image fails; a driver of the
/// image that does not fit the module, with DriverMode::image; one that cannot be hidden).
Result<Grant> make_grant(const Request& request, const Inventory& inventory,
                         const GrantOptions& options = {});

}  // namespace berth::gpu
