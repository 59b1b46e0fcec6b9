// SPDX-License-Identifier: Apache-2.0
#include "oci/process_changes.hpp"

#include <algorithm>
#include <utility>

namespace berth::oci {
namespace {

void change_environment(std::vector<std::string>& env, const std::vector<std::string>& changes) {
  for (const std::string& change : changes) {
    if (change.find('=') == std::string::npos) {
      std::erase_if(env, [&](const std::string& entry) { return entry.starts_with(change + "="); });
    } else {
      env.push_back(change);
    }
  }
}

void add_capability(const std::string& name, Capabilities& capabilities) {
  // Not added to the inheritable set: programs with file capabilities would get them back.
  capabilities.bounding.push_back(name);
  capabilities.effective.push_back(name);
  capabilities.permitted.push_back(name);
  const auto& inheritable = capabilities.inheritable;
  bool lasts = std::ranges::find(inheritable, name) != inheritable.end();
  if (lasts) capabilities.ambient.push_back(name);
}

}  // namespace

Process with_changes(Process process, const ProcessChanges& changes) {
  process.args = changes.args;
  process.terminal = changes.terminal;
  process.console_size.reset();
  if (changes.cwd) process.cwd = *changes.cwd;
  change_environment(process.env, changes.env);
  if (changes.uid) {
    // The groups of the former user may be those of root.
    process.user.uid = *changes.uid;
    process.user.gid = changes.gid.value_or(0);
    process.user.additional_gids.clear();
  }
  auto& groups = process.user.additional_gids;
  groups.insert(groups.end(), changes.additional_gids.begin(), changes.additional_gids.end());
  if (!changes.capabilities.empty() && !process.capabilities) process.capabilities.emplace();
  for (const auto& name : changes.capabilities) add_capability(name, *process.capabilities);
  if (!changes.apparmor_profile.empty()) process.apparmor_profile = changes.apparmor_profile;
  if (!changes.selinux_label.empty()) process.selinux_label = changes.selinux_label;
  if (changes.no_new_privileges) process.no_new_privileges = true;
  return process;
}

}  // namespace berth::oci
