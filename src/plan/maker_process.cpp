// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "oci/capabilities.hpp"
#include "plan/attributes.hpp"
#include "plan/maker.hpp"

namespace berth::plan {
namespace {

std::string search_path(const std::vector<std::string>& env) {
  constexpr std::string_view kName = "PATH=";
  for (auto assignment = env.rbegin(); assignment != env.rend(); ++assignment) {
    if (assignment->starts_with(kName)) return assignment->substr(kName.size());
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// Keeps only the last value of each name, as runc and crun do: exec and users append values, but
// getenv(3) finds the first value.
std::vector<std::string> without_repeats(const std::vector<std::string>& env) {
  std::set<std::string_view> seen;
  std::vector<std::string> kept;
  for (auto entry = env.rbegin(); entry != env.rend(); ++entry) {
    std::string_view name = std::string_view(*entry).substr(0, entry->find('='));
    if (seen.insert(name).second) kept.push_back(*entry);
  }
  std::ranges::reverse(kept);
  return kept;
}

// Whether the filter has a listener. Such a filter is loaded before the wait for `start`: `create`
// sends the listener to the agent, and has ended when `start` is called.
bool notifies(const oci::Seccomp& profile) {
  constexpr std::string_view kNotify = "SCMP_ACT_NOTIFY";
  return !profile.listener_path.empty() || profile.default_action == kNotify ||
         std::ranges::any_of(profile.syscalls,
                             [&](const auto& rule) { return rule.action == kNotify; });
}

}  // namespace

void Maker::console(bool named) {
  if (process_.terminal) add(MakeConsole{process_.console_size, named});
}

Result<void> Maker::labels() {
  SetLabels step{process_.apparmor_profile, process_.selinux_label};
  // Without AppArmor every process is unconfined.
  if (step.apparmor == "unconfined" && !facts_.apparmor) step.apparmor.clear();
  if (!step.apparmor.empty() && !facts_.apparmor) {
    return unsupported("process.apparmorProfile: AppArmor is not enabled on this machine");
  }
  if (!step.selinux.empty() && !facts_.selinux) {
    return unsupported("process.selinuxLabel: SELinux is not enabled on this machine");
  }
  if (!step.apparmor.empty() || !step.selinux.empty()) add(std::move(step));
  return {};
}

std::vector<unsigned> Maker::wished_numbers(std::string_view annotation) {
  auto said = spec_.annotations.find(std::string(annotation));
  if (said == spec_.annotations.end()) return {};
  auto numbers = parse_cpu_list(said->second, annotation);
  if (numbers.ok()) return std::move(*numbers);
  plan_.warnings.push_back("annotations: " + quote(annotation) + ": no list of numbers, ignoring");
  return {};
}

// The container keeps its caller's CPU affinity, as set by Slurm or numactl, unless a cpuset is
// requested, or another engine names a cgroup that is not below that of the caller. Such an engine
// is a service: its affinity (CPUAffinity= of systemd) is not meant for the containers.
void Maker::free_affinity() {
  if (spec_.annotations.contains(std::string(oci::kProcessorsAnnotation))) return;
  const auto& resources = spec_.linux_.resources;
  if (resources && resources->cpu && !resources->cpu->cpus.empty()) {
    auto asked = parse_cpu_list(resources->cpu->cpus, "linux.resources.cpu.cpus");
    if (asked.ok()) add(PreferPlace{std::move(*asked), {}});
    return;
  }
  const std::string& path = spec_.linux_.cgroups_path;
  bool is_elsewhere = path.starts_with('/') || path.find(':') != std::string::npos;
  if (!container_.of_engine && is_elsewhere) add(ResetAffinity{});
}

void Maker::place() {
  PreferPlace step{wished_numbers(oci::kProcessorsAnnotation),
                   wished_numbers(oci::kMemoryNodesAnnotation)};
  if (!step.processors.empty() || !step.memory_nodes.empty()) add(std::move(step));
}

// Comes after joining the cgroup, which limits these attributes, and before dropping the privileges
// that they need.
Result<void> Maker::attributes() {
  if (process_.scheduler) add(TRY(scheduler_step(*process_.scheduler)));
  if (process_.io_priority) add(TRY(io_priority_step(*process_.io_priority)));
  const auto& on_linux = spec_.linux_;
  if (on_linux.memory_policy) add(TRY(memory_policy_step(*on_linux.memory_policy)));
  if (on_linux.personality) add(TRY(personality_step(*on_linux.personality)));
  return {};
}

Result<void> Maker::affinity() {
  const auto& wanted = process_.exec_cpu_affinity;
  if (!wanted || (wanted->initial.empty() && wanted->final_.empty())) {
    free_affinity();
    return {};
  }
  auto processors = TRY(parse_cpu_list(wanted->final_, "process.execCPUAffinity.final"));
  if (!processors.empty()) add(SetAffinity{std::move(processors)});
  return {};
}

// Comes while the process has the caller's ids: in another user namespace it does not own
// oom_score_adj.
void Maker::oom_score() {
  if (process_.oom_score_adj) add(SetOomScore{*process_.oom_score_adj});
}

Result<void> Maker::hooks(const char* stage, const std::vector<oci::Hook>& list) {
  for (const auto& hook : list) {
    if (!hook.path.starts_with("/")) {
      return usage("hooks." + std::string(stage) + ": expected an absolute path, got " +
                   quote(hook.path));
    }
    if (hook.timeout && *hook.timeout <= 0) {
      return usage("hooks." + std::string(stage) + ": the timeout must be positive");
    }
  }
  if (!list.empty()) add(RunHooks{stage, list});
  return {};
}

Result<void> Maker::limits() {
  struct Name {
    std::string_view name;
    int resource;
  };
  static constexpr std::array kNames = {Name{"RLIMIT_AS", RLIMIT_AS},
                                        Name{"RLIMIT_CORE", RLIMIT_CORE},
                                        Name{"RLIMIT_CPU", RLIMIT_CPU},
                                        Name{"RLIMIT_DATA", RLIMIT_DATA},
                                        Name{"RLIMIT_FSIZE", RLIMIT_FSIZE},
                                        Name{"RLIMIT_LOCKS", RLIMIT_LOCKS},
                                        Name{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
                                        Name{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
                                        Name{"RLIMIT_NICE", RLIMIT_NICE},
                                        Name{"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                        Name{"RLIMIT_NPROC", RLIMIT_NPROC},
                                        Name{"RLIMIT_RSS", RLIMIT_RSS},
                                        Name{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
                                        Name{"RLIMIT_RTTIME", RLIMIT_RTTIME},
                                        Name{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
                                        Name{"RLIMIT_STACK", RLIMIT_STACK}};
  std::set<std::string> seen;
  for (const auto& limit : process_.rlimits) {
    auto found = std::ranges::find(kNames, limit.type, &Name::name);
    if (found == kNames.end()) {
      return usage("process.rlimits: unknown type " + quote(limit.type));
    }
    if (!seen.insert(limit.type).second) {
      return usage("process.rlimits: " + quote(limit.type) + " is given twice");
    }
    add(SetRlimit{limit.type, found->resource, limit.soft, limit.hard});
  }
  return {};
}

uint64_t Maker::capability_set(const std::vector<std::string>& names, const char* member) {
  std::vector<std::string> unknown;
  uint64_t set = oci::capability_bits(names, unknown);
  for (const auto& name : unknown) {
    plan_.warnings.push_back("process.capabilities." + std::string(member) +
                             ": unknown capability " + quote(name) + ", ignoring");
  }
  return set;
}

void Maker::identity(Missing directory) {
  const auto& process = process_;
  SetCapabilities capabilities;
  if (process.capabilities) {
    capabilities.bounding = capability_set(process.capabilities->bounding, "bounding");
    capabilities.effective = capability_set(process.capabilities->effective, "effective");
    capabilities.permitted = capability_set(process.capabilities->permitted, "permitted");
    capabilities.inheritable = capability_set(process.capabilities->inheritable, "inheritable");
    capabilities.ambient = capability_set(process.capabilities->ambient, "ambient");
    std::vector<std::string> lost;
    for (const auto& name : process.capabilities->ambient) {
      std::vector<std::string> unknown;
      uint64_t bit = oci::capability_bits({name}, unknown);
      if ((bit & ~(capabilities.inheritable & capabilities.permitted)) != 0)
        lost.push_back(quote(name));
    }
    // No warning if no inheritable capabilities are requested: such an engine, like buildah, does
    // not rely on ambient ones.
    if (!lost.empty() && capabilities.inheritable != 0) {
      plan_.warnings.push_back("process.capabilities.ambient: " + join(lost, ", ") +
                               (lost.size() == 1 ? " is" : " are") +
                               " not inheritable and permitted, ignoring");
    }
  }
  // Without no_new_privs only a privileged process may load a filter, so the filter has to be
  // loaded before the privileges are dropped. With no_new_privs the filter is loaded last, and need
  // not allow the steps in between.
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && !process.no_new_privileges) add(load_seccomp(*seccomp));
  add(LimitCapabilities{capabilities.bounding});
  add(EnterDirectory{tidy(process.cwd), directory});
  bool keep = keeps_groups();
  add(SetIdentity{process.user.uid, process.user.gid,
                  keep ? std::vector<uint32_t>() : process.user.additional_gids, keep});
  add(capabilities);
  fill_loader_files();
  add(SetUmask{process.user.umask.value_or(0022) & 0777});
  if (process.no_new_privileges) add(ForbidNewPrivileges{});
}

void Maker::find_program() {
  if (!spec_.process) return;
  add(FindProgram{process_.args[0], search_path(process_.env)});
  const auto env = without_repeats(process_.env);
  bool has_home = std::ranges::any_of(
      env, [](const auto& entry) { return entry.starts_with("HOME=") && entry != "HOME="; });
  if (!has_home) add(FindHome{process_.user.uid});
}

void Maker::await_start() {
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && process_.no_new_privileges && notifies(*seccomp)) add(load_seccomp(*seccomp));
  if (container_.await_start) add(AwaitStart{});
}

void Maker::late_filter() {
  const auto& seccomp = spec_.linux_.seccomp;
  if (seccomp && process_.no_new_privileges && !notifies(*seccomp)) add(load_seccomp(*seccomp));
}

void Maker::program() {
  add(Execute{process_.args, without_repeats(process_.env)});
}

}  // namespace berth::plan
