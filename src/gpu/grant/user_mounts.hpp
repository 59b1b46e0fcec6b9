// SPDX-License-Identifier: Apache-2.0
// The mounts that the user of a container requested. No driver file is put below them. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

/// A mount that the user requested.
struct UserMount {
  std::string destination;  ///< in the container, absolute, without links
  std::string source;  ///< on the host; empty: a file system of the container only, e.g. a tmpfs
};

/// Resolves the symbolic links in an absolute path of the container, as they are in its image.
/// Components that do not exist are kept as they are.
using RealPath = std::function<std::string(const std::string& path)>;

/// The mounts of a configuration, in its order: later ones cover earlier ones.
std::vector<UserMount> user_mounts(const oci::Spec& spec, const RealPath& real_path);

/// The user's mount of a host path or a volume that contains `path` of the container; `path` has no
/// links. Null: there is none, or a file system of the container only (a tmpfs) covers it.
const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path);

/// Chooses the directory of the driver's files: the first of scan::kDriverPlaces without a host
/// mount at, above or below it.  Errors: unsupported (none is free). docs/decisions/0174
Result<std::string> choose_directory(const std::vector<UserMount>& mounts,
                                     const RealPath& real_path);

/// The type of a host path.
enum class HostFile { absent, socket, other };

/// The type of the file `below` ("" or "/a/b") in the absolute host directory `path`. As in the
/// container, links in `below` cannot lead out of `path`.
using LookAtHost = std::function<HostFile(const std::string& path, const std::string& below)>;

/// Removes from `given` (mounts that the user did not request) every mount of a socket that needs a
/// new mount point below a mount of the user: the mount point would have to be made on the host.
/// Returns the paths of the removed mounts. Errors: denied (a file other than a socket has no mount
/// point). docs/decisions/0174
Result<std::vector<std::string>> fit_places(std::vector<oci::Mount>& given,
                                            const std::vector<UserMount>& mounts,
                                            const RealPath& real_path, const LookAtHost& look);

/// Whether the device exists at `below` in `path`.
using IsDevice = std::function<bool(const std::string& path, const std::string& below,
                                    const oci::Device& device)>;

/// Errors: denied, for the first device with a path below a mount of the user that has no node
/// there: the node would have to be made on the host. docs/decisions/0174
Result<void> check_devices(std::span<const oci::Device> devices,
                           const std::vector<UserMount>& mounts, const IsDevice& is_device);

/// "'/run/a', '/run/b': something else is mounted there, ignoring"
std::string left_out_text(const std::vector<std::string>& places);

}  // namespace berth::gpu
