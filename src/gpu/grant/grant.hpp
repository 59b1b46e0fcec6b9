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
#include "scan/loader.hpp"

namespace berth::gpu {

/// The default container directory of the driver's files; Grant::directory may be another one.
/// NVIDIA's own images already have this directory in PATH and LD_LIBRARY_PATH. See
/// docs/decisions/0006.
inline constexpr const char* kDriverDirectory = scan::kDriverPlaces[0].data();

/// A file of the host, bound read-only at a path of the container.
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

/// Everything that a container is granted.
struct Grant {
  Vendor vendor = Vendor::nvidia;
  std::vector<uint32_t> gpus;  ///< indices, for messages
  bool synthetic = false;
  /// `none` for GPUs of AMD and Intel: their libraries are in the images.
  policy::DriverMode mode = policy::DriverMode::bind;
  std::string driver_version;  ///< of NVIDIA's driver files
  /// The directory of the driver's files: kDriverDirectory, or another one if the user has a mount
  /// there.
  std::string directory = kDriverDirectory;
  std::vector<Node> nodes;
  std::vector<NodeLink> node_links;  ///< in /dev
  std::vector<GrantedFile> files;
  std::vector<GrantedLink> links;
  /// Mode volume: "/usr/bin/nvidia-smi", where the file `target` of the volume is mounted too.
  std::vector<GrantedLink> volume_programs;
  std::vector<std::string> env;
  std::vector<scan::LoaderEntry> loader_entries;
  /// Set if the container's first process decides whether the image's compat libraries are used.
  std::optional<oci::CompatRequest> compat;
  /// Restrict EGL and Vulkan to these GPUs; by default they enumerate all GPUs of the machine.
  bool egl_gpus = false;
  /// nvidia/params of `proc` has ModifyDeviceFiles: 0 though the machine's has 1; otherwise NVML
  /// tries to make the nodes of every GPU.
  bool frozen_params = false;
  std::vector<ProcFile> proc;  ///< the whole visible /proc/driver; empty: the host's
  std::vector<Reason> reasons;
  std::vector<std::string> warnings;  ///< for people
};

struct GrantOptions {
  policy::DriverMode mode = policy::DriverMode::bind;
  /// The driver files that the image contains; null: not examined.
  const scan::DriverFiles* image = nullptr;
  bool forward_compatibility = true;  ///< the image's compat libraries may be used
  /// No file is put below these mounts: it would be created on the host or in the user's volume.
  std::vector<UserMount> user_mounts;
  RealPath real_path = [](const std::string& path) { return path; };
  /// The GPUs, if they are chosen already. Null: select() chooses them as if all GPUs were free.
  const std::vector<Selected>* selected = nullptr;
  /// A compat directory exists, but it must not be read before the container starts.
  bool compat_later = false;
};

/// Decides what `request` gets from `inventory`. Pure. An empty request gives an empty grant.
/// Errors: those of select() and find_extra_devices(), not_found (no driver), unsupported (driver
/// files of another version than the module; a requirement of the image fails; a driver of the
/// image that does not fit the module, with DriverMode::image; a driver of the image that cannot be
/// hidden).
Result<Grant> make_grant(const Request& request, const Inventory& inventory,
                         const GrantOptions& options = {});

}  // namespace berth::gpu
