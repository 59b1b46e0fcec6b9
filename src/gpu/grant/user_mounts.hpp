// SPDX-License-Identifier: Apache-2.0
// The mounts that the user of a container asked for: no driver file goes there. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

/// A mount of the user's.
struct UserMount {
  std::string destination;  ///< in the container, absolute, without links
  std::string source;  ///< of the host; empty: a file system of the container's own, e.g. a tmpfs
};

/// Resolves an absolute path of the container by the links of its image; a missing part keeps its
/// name.
using RealPath = std::function<std::string(const std::string& path)>;

/// The mounts of a configuration, in its order: later ones cover earlier ones.
std::vector<UserMount> user_mounts(const oci::Spec& spec, const RealPath& real_path);

/// The user's mount, of a host path or a volume, that contains `path` of the container, which has
/// no links; null: none, or a file system of the container's own covers it.
const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path);

/// Chooses the directory of the driver's files: the first of scan::kDriverPlaces without a host
/// mount at, above or below it.  Errors: unsupported (none is free). docs/decisions/0174
Result<std::string> choose_directory(const std::vector<UserMount>& mounts,
                                     const RealPath& real_path);

/// The type of a host path.
enum class HostFile { absent, socket, other };

/// The type of `below`, "" or "/a/b", in the absolute host directory `path`; links below cannot
/// lead out of it, as in the container.
using LookAtHost = std::function<HostFile(const std::string& path, const std::string& below)>;

/// Removes from the mounts that others add to a container those of sockets without a mount point:
/// in a user's mount the mount point would have to be made on the host. Returns the paths of the
/// removed ones.  Errors: denied (another file without a mount point). docs/decisions/0174
Result<std::vector<std::string>> fit_places(std::vector<oci::Mount>& given,
                                            const std::vector<UserMount>& mounts,
                                            const RealPath& real_path, const LookAtHost& look);

/// Whether that device exists there.
using IsDevice = std::function<bool(const std::string& path, const std::string& below,
                                    const oci::Device& device)>;

/// Errors: denied, for the first device with a path in a user's mount and no node there: it would
/// have to be made on the host. docs/decisions/0174
Result<void> check_devices(std::span<const oci::Device> devices,
                           const std::vector<UserMount>& mounts, const IsDevice& is_device);

/// "'/run/a', '/run/b': something else is mounted there, ignoring"
std::string left_out_text(const std::vector<std::string>& places);

}  // namespace berth::gpu
