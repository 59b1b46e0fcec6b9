// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::oci {

/// The user of the container's first process.
struct ContainerUser {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> additional_gids;
  std::string home = "/";
  bool operator==(const ContainerUser&) const = default;
};

/// Resolves "uid", "name", "uid:gid", "name:group" or "" (root) with the text of the image's
/// /etc/passwd and /etc/group (foreign; malformed lines are skipped). A number is always an id and
/// need not be listed; its group is then 0. Supplementary groups are the primary group and, unless
/// `wish` names a group, the groups that list the user.
/// Errors: not_found (an unknown name), usage (not of this form, an id above 2^31-1).
/// Source: runc libcontainer/user GetExecUser.
Result<ContainerUser> resolve_user(std::string_view wish, std::string_view passwd,
                                   std::string_view group);

/// Adds the groups of --group-add, by name or number, to those of `user`, without duplicates.
/// Errors: not_found, usage (an id above 2^31-1), with docker's messages.
Result<void> add_groups(const std::vector<std::string>& wishes, std::string_view group,
                        ContainerUser& user);

}  // namespace berth::oci
