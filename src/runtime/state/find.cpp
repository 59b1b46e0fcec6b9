// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/find.hpp"

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

/// "pid:[4026531836]" of a process.
Result<std::string> pid_namespace(const std::string& pid) {
  return sys::read_link(sys::cwd(), "/proc/" + pid + "/ns/pid");
}

Result<std::string> mount_namespace(pid_t pid) {
  return sys::read_link(sys::cwd(), "/proc/" + std::to_string(pid) + "/ns/mnt");
}

/// The last word of line `name` of /proc/PID/status; empty if there is no such line or no such
/// process.
/// Source: proc_pid_status(5).
std::string status_word(pid_t pid, std::string_view name) {
  auto text = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/status", 65536);
  if (!text.ok()) return "";
  for (std::string_view line : split(*text, '\n')) {
    if (line.starts_with(name)) return std::string(split_blank(line).back());
  }
  return "";
}

/// The processes in the pid namespace of `first`; only `first` if that is our own pid namespace.
Result<std::vector<pid_t>> pid_namespace_members(pid_t first) {
  auto theirs = pid_namespace(std::to_string(first));
  std::string ours = TRY(pid_namespace("self"));
  if (!theirs.ok() || *theirs == ours) return std::vector<pid_t>{first};
  std::vector<pid_t> members;
  std::vector<std::string> names = TRY(sys::list_directory(sys::cwd(), "/proc"));
  for (const auto& name : names) {
    auto pid = parse_i64(name);
    if (!pid) continue;
    auto space = pid_namespace(name);
    if (space.ok() && *space == *theirs) members.push_back(static_cast<pid_t>(*pid));
  }
  return members;
}

}  // namespace

Result<CgroupLayout> cgroup_layout_of(const State& state) {
  CgroupLayout layout = TRY(detect_cgroup_layout());
  begin_at(state.cgroup_starts, layout);
  return layout;
}

Result<std::string> whole_cgroup_path(const State& state) {
  if (state.cgroup_starts.empty()) return state.cgroup_path;
  CgroupLayout layout = TRY(cgroup_layout_of(state));
  const CgroupHierarchy* home = layout.unified();
  if (home == nullptr) home = layout.find("pids");
  if (home == nullptr || home->start.empty()) return state.cgroup_path;
  return home->start + "/" + state.cgroup_path;
}

Result<CgroupSet> cgroups_of(const State& state) {
  if (state.cgroup_path.empty()) return CgroupSet();
  CgroupLayout layout = TRY(cgroup_layout_of(state));
  return CgroupSet::open(layout, state.cgroup_path);
}

Unmet unmet_limits(const State& state) {
  auto told = state.annotations.find(std::string(oci::kStrictLimitsAnnotation));
  bool strict = state.of_engine && told != state.annotations.end() && told->second == "yes";
  return strict ? Unmet::is_error : Unmet::warns_users;
}

Result<Found> find(const Store& store, const std::string& id) {
  Entry entry = TRY(store.get(id));
  State state = TRY(entry.read());
  CgroupSet cgroups = TRY(cgroups_of(state));
  Status status = entry.status(state);
  // Asks the freezer itself: the container may have been thawed by other means.
  bool can_pause = status == Status::running || status == Status::created;
  if (can_pause && TRY(cgroups.is_frozen())) status = Status::paused;
  return Found{std::move(entry), std::move(state), std::move(cgroups), status};
}

Result<sys::Process> first_process(const State& state) {
  sys::Fd pidfd = TRY(sys::open_pidfd(state.pid));
  uint64_t start = TRY(sys::process_start_time(state.pid));
  if (start != state.start_time) {
    return make_error(Kind::not_found, "open process " + std::to_string(state.pid));
  }
  return sys::Process(state.pid, std::move(pidfd));
}

bool outlives_first_process(const Found& found) {
  if (found.status == Status::stopped || found.state.pid == 0) {
    // A pid namespace ends with its first process.
    auto left = found.cgroups.processes();
    return left.ok() && !left->empty();
  }
  // The pid of the first process in each of its pid namespaces, the innermost last.
  std::string number = status_word(found.state.pid, "NSpid:");
  return !number.empty() && number != "1";
}

Result<bool> shares_pid_namespace(const Found& found) {
  if (outlives_first_process(found)) return true;
  auto space = pid_namespace(std::to_string(found.state.pid));
  auto mounts = mount_namespace(found.state.pid);
  if (!space.ok() || !mounts.ok()) return false;  // the process has ended
  for (pid_t pid : TRY(pid_namespace_members(found.state.pid))) {
    auto parents = pid_namespace(status_word(pid, "PPid:"));
    if (pid == found.state.pid || (parents.ok() && *parents == *space)) continue;
    // Its parent is outside of the namespace: the process came by 'exec', which joins all
    // namespaces, or belongs to another container.
    auto theirs = mount_namespace(pid);
    if (theirs.ok() && *theirs != *mounts) return true;
  }
  return false;
}

Result<std::vector<pid_t>> processes_of(const Found& found) {
  if (!found.cgroups.empty()) return found.cgroups.processes();
  if (found.status == Status::stopped || found.state.pid == 0) return std::vector<pid_t>();
  return pid_namespace_members(found.state.pid);
}

Result<std::vector<pid_t>> shown_processes_of(const Found& found) {
  std::vector<pid_t> processes = TRY(processes_of(found));
  auto theirs = pid_namespace(std::to_string(found.state.pid));
  std::string ours = TRY(pid_namespace("self"));
  if (!theirs.ok() || *theirs == ours) return processes;
  // No process of the container can leave its pid namespace.
  std::erase_if(processes, [&](pid_t pid) {
    auto space = pid_namespace(std::to_string(pid));
    return space.ok() && *space == ours;
  });
  return processes;
}

}  // namespace berth::runtime
