// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/runtime_spec.hpp"

namespace berth::oci {

/// How a further process in a container differs from the process in its config.
struct ProcessChanges {
  std::vector<std::string> args;
  bool terminal = false;
  std::optional<std::string> cwd;
  std::vector<std::string> env;   ///< "K=V": added to the container's environment; "K": removed
  std::optional<uint32_t> uid{};  ///< absent: user and groups are those of the config
  std::optional<uint32_t> gid{};
  std::vector<uint32_t> additional_gids{};
  std::vector<std::string> capabilities{};  ///< "CAP_NET_ADMIN", added
  std::string apparmor_profile;
  std::string selinux_label;
  bool no_new_privileges = false;
};

/// `process` with `changes`. If they set another user, the groups of the old user are dropped.
/// Added capabilities are not inheritable (CVE-2022-29162). Pure.
Process with_changes(Process process, const ProcessChanges& changes);

}  // namespace berth::oci
