// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/runtime_spec.hpp"

namespace berth::oci {

/// How one more process in a container differs from that of its config.
struct ProcessChanges {
  std::vector<std::string> args;
  bool terminal = false;
  std::optional<std::string> cwd;
  std::vector<std::string> env;   ///< "K=V", added behind the container's, or "K": taken away
  std::optional<uint32_t> uid{};  ///< without one, user and groups are the config's
  std::optional<uint32_t> gid{};
  std::vector<uint32_t> additional_gids{};
  std::vector<std::string> capabilities{};  ///< "CAP_NET_ADMIN", added
  std::string apparmor_profile;
  std::string selinux_label;
  bool no_new_privileges = false;
};

/// `process` with `changes`. Another user has none of the groups of the former. Added capabilities
/// are not inheritable (CVE-2022-29162). Pure.
Process with_changes(Process process, const ProcessChanges& changes);

}  // namespace berth::oci
