// SPDX-License-Identifier: Apache-2.0
#include "plan/cgroup_owner.hpp"

#include <algorithm>

namespace berth::plan {
namespace {

bool is_new(const oci::Spec& spec, std::string_view type) {
  const auto& spaces = spec.linux_.namespaces;
  return std::ranges::any_of(spaces, [&](const oci::Namespace& space) {
    return space.type == type && space.path.empty();
  });
}

bool is_writable_cgroup(const oci::Mount& mount) {
  auto has = [&](std::string_view option) {
    return std::ranges::find(mount.options, option) != mount.options.end();
  };
  return (mount.type == "cgroup" || mount.type == "cgroup2") &&
         mount.destination == "/sys/fs/cgroup" && !has("ro") && !has("rro");
}

}  // namespace

std::optional<uint32_t> cgroup_owner(const oci::Spec& spec) {
  bool is_writable = std::ranges::any_of(spec.mounts, is_writable_cgroup);
  if (!is_writable || !spec.process || !is_new(spec, "cgroup") || !is_new(spec, "user")) {
    return std::nullopt;
  }
  uint32_t uid = spec.process->user.uid;
  for (const auto& mapping : spec.linux_.uid_mappings) {
    if (uid >= mapping.container_id && uid - mapping.container_id < mapping.size) {
      return mapping.host_id + (uid - mapping.container_id);
    }
  }
  return std::nullopt;
}

}  // namespace berth::plan
