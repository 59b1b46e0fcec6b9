// SPDX-License-Identifier: Apache-2.0
// What the user of a container has mounted in it, where nothing of the driver goes. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::gpu {

/// What lies at a place of a container.
struct UserMount {
  std::string destination;  ///< in the container, absolute, without links
  std::string source;  ///< of the host; empty: a file system of the container's own, as a tmpfs
};

/// Where an absolute path of the container leads by the links of its image; what is missing there
/// keeps its name.
using RealPath = std::function<std::string(const std::string& path)>;

/// Those of a configuration, in its order: what comes later lies above.
std::vector<UserMount> user_mounts(const oci::Spec& spec, const RealPath& real_path);

/// The directory or file of the host, or the volume, in which `path` of the container lies, which
/// has no links; null: none, or what lies above it is the container's own.
const UserMount* mount_over(const std::vector<UserMount>& mounts, const std::string& path);

/// Where the driver's files go: the first of scan::kDriverPlaces at, above and below which nothing
/// of the host is mounted.  Errors: unsupported (there is none). docs/decisions/0174
Result<std::string> choose_directory(const std::vector<UserMount>& mounts,
                                     const RealPath& real_path);

/// What is at a path of the host.
enum class HostFile { absent, socket, other };

/// What is at `below`, "" or "/a/b", of what lies at the absolute `path` of the host; a link below
/// that leads nowhere outside, as in the container.
using LookAtHost = std::function<HostFile(const std::string& path, const std::string& below)>;

/// Takes out of the mounts that somebody else gives a container those of sockets that have no
/// place: what is not there in something of the user's would have to be made on the host. Gives
/// where they would have been.  Errors: denied (another file has no place). docs/decisions/0174
Result<std::vector<std::string>> fit_places(std::vector<oci::Mount>& given,
                                            const std::vector<UserMount>& mounts,
                                            const RealPath& real_path, const LookAtHost& look);

/// Whether that device is there.
using IsDevice = std::function<bool(const std::string& path, const std::string& below,
                                    const oci::Device& device)>;

/// Errors: denied, for the first of the devices that lies in something of the user's and is not
/// there: it would have to be made on the host. docs/decisions/0174
Result<void> check_devices(std::span<const oci::Device> devices,
                           const std::vector<UserMount>& mounts, const IsDevice& is_device);

/// "'/run/a', '/run/b': something else is mounted there, ignoring"
std::string left_out_text(const std::vector<std::string>& places);

}  // namespace berth::gpu
