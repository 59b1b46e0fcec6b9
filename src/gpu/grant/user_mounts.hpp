// SPDX-License-Identifier: Apache-2.0
// What the user of a container has mounted in it, where nothing of the driver goes. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

/// Something of the host, or a volume, that the container's user has mounted.
struct UserMount {
  std::string destination;  ///< in the container, absolute
  std::string source;       ///< of the host
};

/// Those of a configuration. A file system of the container's own, as a tmpfs, is none.
std::vector<UserMount> user_mounts(const oci::Spec& spec);

/// The mount in which `path` of the container lies; null: none.
const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path);

/// Where the driver's files go: the first of scan::kDriverPlaces at, above and below which nothing
/// is mounted.  Errors: unsupported (there is none). docs/decisions/0174
Result<std::string> choose_directory(const std::vector<UserMount>& mounts);

}  // namespace berth::gpu
