// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none.
#include "runtime/cgroup/unmet_limit.hpp"

#include <utility>

#include "runtime/cgroup/limits.hpp"
#include "runtime/cgroup/scope.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::runtime {

std::string why_no_permission(const CgroupLayout& layout, const CgroupHierarchy& hierarchy) {
  std::string why = "no permission for '" + hierarchy.mount + "'";
  if (!hierarchy.start.empty()) return why + ", where the limits of a batch job are its system's";
  if (sys::in_initial_user_namespace() && sys::effective_uid() == 0) return why;
  if (hierarchy.version == CgroupHierarchy::Version::v1)
    return why + ", because only root can use cgroup v1";
  auto systemd = sys::stat_entry(sys::cwd(), "/run/systemd/system");
  bool is_systemds = layout.kind() == CgroupLayout::Kind::unified && systemd.ok() && *systemd;
  if (!is_systemds || user_manager()) return why;
  return why + ", and no systemd of this user runs that makes cgroups; try: loginctl enable-linger";
}

std::string why_left(const CgroupLayout& layout, const CgroupWrite& write) {
  const auto* home = layout.find(write.controller);
  if (write.controller.empty()) return "no cgroup v2";
  if (home == nullptr) return "no cgroup controller '" + write.controller + "'";
  return home->version == CgroupHierarchy::Version::v1
             ? "controller '" + write.controller + "' is one of cgroup v1 here"
             : "cgroup v2 has no such limit";
}

Result<void> refuse_or_warn(const UnmetLimit& unmet, Unmet strictly, Log& log) {
  std::string line = "linux.resources." + unmet.name + ": " + unmet.reason;
  bool is_root = sys::in_initial_user_namespace() && sys::effective_uid() == 0;
  is_root = is_root || (strictly == Unmet::is_error && unmet.name != "devices");
  // Many kernels do not count swap, Ubuntu's 5.15 among them.
  bool may_lack = unmet.name == "memory.swap";
  if ((is_root && !may_lack) || unmet.name.starts_with("unified.")) {
    return make_error(Kind::unsupported, std::move(line));
  }
  if (unmet.name != "devices") log.warn(line + "; ignoring");
  return {};
}

}  // namespace berth::runtime
