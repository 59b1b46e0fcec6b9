// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oci/runtime_spec.hpp"

namespace berth::oci {

/// The annotation that names where the host keeps the node of a device: the key is this prefix
/// followed by the path in the container, the value the path on the host. Read by plan::make() when
/// nodes have to be bound instead of made.
inline constexpr std::string_view kDeviceSourceAnnotation = "dev.berth.device-source:";

/// A device that a container is to have (CDI "deviceNodes").
struct DeviceNode {
  std::string path{};       ///< in the container
  std::string host_path{};  ///< on the host; empty: the same as `path`
  std::string type = "c";
  int64_t major = 0;
  int64_t minor = 0;
  std::string permissions = "rw";  ///< of "rwm", for the device cgroup
  std::optional<uint32_t> file_mode{};
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
};

/// What somebody else wants changed in a container's configuration (CDI "containerEdits").
struct ContainerEdits {
  std::vector<std::string> env{};  ///< "NAME=value"; replaces a variable of the same name
  std::vector<DeviceNode> device_nodes{};
  std::vector<Mount> mounts{};  ///< appended in this order
  std::vector<uint32_t> additional_gids{};
};

/// Applies `edits` to `spec`. A device node becomes an entry of linux.devices plus a rule of the
/// device cgroup, replacing an entry of the same path; where the host's path is another one, the
/// annotation says so. Source: CDI SPEC.md "OCI Edits".
void apply(const ContainerEdits& edits, Spec& spec);

/// Sets `assignment` ("NAME=value") in `env`, in the place of an earlier value of that name.
void set_env(std::vector<std::string>& env, std::string assignment);

}  // namespace berth::oci
