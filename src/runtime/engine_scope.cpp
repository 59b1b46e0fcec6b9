// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine_scope.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "plan/plan.hpp"
#include "runtime/cgroup/limits.hpp"
#include "runtime/cgroup/scope.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"
#include "sys/user/identity.hpp"

namespace berth::runtime {
namespace {

bool is_machine_root() {
  return sys::in_initial_user_namespace() && sys::effective_uid() == 0;
}

bool has_scopes(const std::map<std::string, std::string>& annotations) {
  auto found = annotations.find(std::string(oci::kScopeAnnotation));
  return found != annotations.end() && found->second == "yes";
}

/// Whether a program other than the user's own manager has delegated the caller's cgroup: then the
/// caller's containers belong there.
bool is_given_by_others(const CgroupHierarchy& v2) {
  if (v2.own.find("/user@") != std::string::npos || v2.own == "/") return false;
  return sys::check_access(sys::cwd(), v2.mount + v2.own, W_OK | X_OK).ok();
}

/// Whether a scope is the right cgroup for this user here, and the user's manager listens.
bool may_ask_own_manager() {
  auto layout = detect_cgroup_layout();
  return layout.ok() && layout->kind() == CgroupLayout::Kind::unified &&
         !is_given_by_others(*layout->unified()) && user_manager().has_value();
}

}  // namespace

Result<std::vector<std::string>> asked_limits(const oci::Resources& resources) {
  std::vector<std::string> names;
  for (const auto& write : TRY(v2_writes(resources))) {
    bool is_known = std::ranges::find(names, write.limit) != names.end();
    if (!is_known && !lifts_limit(write)) names.push_back(write.limit);
  }
  bool has_memory = std::ranges::find(names, "memory.limit") != names.end();
  if (has_memory) std::erase(names, "memory.swap");
  return names;
}

Result<std::optional<plan::SystemdScope>> scope_for(const oci::Spec& spec) {
  using plan::SystemdManager;
  std::optional<plan::SystemdScope> none;
  if (!has_scopes(spec.annotations)) return none;
  if (is_machine_root()) {
    auto booted = sys::stat_entry(sys::cwd(), "/run/systemd/system");
    if (!booted.ok() || !*booted) return none;
    return plan::scope_of_path(spec.linux_.cgroups_path, SystemdManager::system);
  }
  if (!spec.linux_.resources || TRY(asked_limits(*spec.linux_.resources)).empty()) return none;
  if (!may_ask_own_manager()) return none;
  return plan::scope_of_path(spec.linux_.cgroups_path, SystemdManager::user);
}

Result<void> give_scope(Found& found) {
  State& state = found.state;
  bool wants = state.of_engine && found.cgroups.empty() && has_scopes(state.annotations);
  if (!wants || is_machine_root() || !may_ask_own_manager()) return {};
  const char* hint = "start it with a limit, as --memory: then it has a cgroup from the beginning";
  if (TRY(shares_pid_namespace(found))) {
    return make_error(Kind::unsupported,
                      "give the container a cgroup: it shares its pid namespace with others", hint);
  }
  for (pid_t pid : TRY(processes_of(found))) {
    std::string place = "/proc/" + std::to_string(pid);
    auto process = sys::stat_entry(sys::cwd(), place);
    if (!process.ok() || !*process || (*process)->st_uid == sys::effective_uid()) continue;
    return make_error(Kind::unsupported,
                      "give the container a cgroup: process " + std::to_string(pid) +
                          " has another id than its user, and systemd does not move it",
                      hint);
  }
  plan::MakeCgroup wanted;
  wanted.scope = plan::SystemdScope{"user.slice", "berth-" + state.id + ".scope", true};
  StartedScope started = TRY(start_scope(wanted, state.pid, state.id));
  state.systemd_unit = wanted.scope->unit;
  state.systemd_user = true;
  state.cgroup_path = started.control_group;
  TRY(sys::write_file(found.entry.fd(), kUpdatedMark, ""));
  TRY(found.entry.write(state));
  // A process that is not moved yet may fork outside of the scope, so this is repeated until the
  // list has nothing new.
  std::set<pid_t> moved{state.pid};
  for (bool more = true; more;) {
    more = false;
    found.cgroups = CgroupSet();
    for (pid_t pid : TRY(processes_of(found))) {
      if (!moved.insert(pid).second) continue;
      more = true;
      auto added = attach_to_scope(state.systemd_unit, true, pid);
      if (!added.ok() && added.error().kind != Kind::not_found) return added;
    }
  }
  found.cgroups = TRY(cgroups_of(state));
  return {};
}

}  // namespace berth::runtime
