// SPDX-License-Identifier: Apache-2.0
#include "plan/attributes.hpp"

#include <linux/mempolicy.h>
#include <linux/sched.h>
#include <sys/personality.h>

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace berth::plan {
namespace {

constexpr int kSchedIso = 4;            // the number that linux/sched.h reserves
constexpr int kWeightedInterleave = 6;  // linux/mempolicy.h, Linux 6.9

template <class Value>
struct NamedValue {
  std::string_view name;
  Value value;
};

constexpr std::array kPolicies = {NamedValue<uint32_t>{"SCHED_OTHER", SCHED_NORMAL},
                                  NamedValue<uint32_t>{"SCHED_FIFO", SCHED_FIFO},
                                  NamedValue<uint32_t>{"SCHED_RR", SCHED_RR},
                                  NamedValue<uint32_t>{"SCHED_BATCH", SCHED_BATCH},
                                  NamedValue<uint32_t>{"SCHED_ISO", kSchedIso},
                                  NamedValue<uint32_t>{"SCHED_IDLE", SCHED_IDLE},
                                  NamedValue<uint32_t>{"SCHED_DEADLINE", SCHED_DEADLINE}};

constexpr std::array kSchedulerFlags = {
    NamedValue<uint64_t>{"SCHED_FLAG_RESET_ON_FORK", SCHED_FLAG_RESET_ON_FORK},
    NamedValue<uint64_t>{"SCHED_FLAG_RECLAIM", SCHED_FLAG_RECLAIM},
    NamedValue<uint64_t>{"SCHED_FLAG_DL_OVERRUN", SCHED_FLAG_DL_OVERRUN},
    NamedValue<uint64_t>{"SCHED_FLAG_KEEP_POLICY", SCHED_FLAG_KEEP_POLICY},
    NamedValue<uint64_t>{"SCHED_FLAG_KEEP_PARAMS", SCHED_FLAG_KEEP_PARAMS},
    NamedValue<uint64_t>{"SCHED_FLAG_UTIL_CLAMP_MIN", SCHED_FLAG_UTIL_CLAMP_MIN},
    NamedValue<uint64_t>{"SCHED_FLAG_UTIL_CLAMP_MAX", SCHED_FLAG_UTIL_CLAMP_MAX}};

// linux/ioprio.h does not compile as C++.
constexpr std::array kIoClasses = {NamedValue<int>{"IOPRIO_CLASS_RT", 1},
                                   NamedValue<int>{"IOPRIO_CLASS_BE", 2},
                                   NamedValue<int>{"IOPRIO_CLASS_IDLE", 3}};

constexpr std::array kMemoryModes = {
    NamedValue<int>{"MPOL_DEFAULT", MPOL_DEFAULT},
    NamedValue<int>{"MPOL_BIND", MPOL_BIND},
    NamedValue<int>{"MPOL_INTERLEAVE", MPOL_INTERLEAVE},
    NamedValue<int>{"MPOL_WEIGHTED_INTERLEAVE", kWeightedInterleave},
    NamedValue<int>{"MPOL_PREFERRED", MPOL_PREFERRED},
    NamedValue<int>{"MPOL_PREFERRED_MANY", MPOL_PREFERRED_MANY},
    NamedValue<int>{"MPOL_LOCAL", MPOL_LOCAL}};

constexpr std::array kMemoryFlags = {
    NamedValue<int>{"MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING},
    NamedValue<int>{"MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES},
    NamedValue<int>{"MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES}};

Error invalid(std::string_view member, const std::string& text) {
  return make_error(Kind::usage, "config.json: " + std::string(member) + ": " + text);
}

template <class Value, size_t N>
Result<Value> find_word(const std::array<NamedValue<Value>, N>& words, std::string_view name,
                        std::string_view member) {
  auto found =
      std::ranges::find_if(words, [&](const NamedValue<Value>& word) { return word.name == name; });
  if (found == words.end()) return invalid(member, "unknown value " + quote(name));
  return found->value;
}

template <class Value, size_t N>
Result<Value> find_all(const std::array<NamedValue<Value>, N>& words,
                       const std::vector<std::string>& names, std::string_view member) {
  Value bits{};
  for (const auto& name : names) bits |= TRY(find_word(words, name, member));
  return bits;
}

template <class Value, size_t N>
std::vector<std::string> names(const std::array<NamedValue<Value>, N>& words) {
  std::vector<std::string> list;
  for (const auto& word : words) list.emplace_back(word.name);
  return list;
}

}  // namespace

std::vector<std::string> memory_policy_modes() {
  return names(kMemoryModes);
}

std::vector<std::string> memory_policy_flags() {
  return names(kMemoryFlags);
}

Result<std::vector<unsigned>> parse_cpu_list(std::string_view text, std::string_view member) {
  if (trim(text).empty()) return std::vector<unsigned>();
  auto numbers = parse_numbers(text);
  if (!numbers) return invalid(member, "expected a list such as '0-3,7', got " + quote(text));
  return std::vector<unsigned>(numbers->begin(), numbers->end());
}

namespace {

// sched(7) "SCHED_DEADLINE": runtime <= deadline <= period, and a period of 0 is the deadline.
// Checked here because the kernel only returns EINVAL.
Result<void> check_deadline(const oci::Scheduler& scheduler) {
  constexpr uint64_t kLeast = 1024;  // nanoseconds; __checkparam_dl()
  uint64_t runtime = scheduler.runtime.value_or(0);
  uint64_t deadline = scheduler.deadline.value_or(0);
  uint64_t period = scheduler.period.value_or(0);
  auto say = [](const char* member, const std::string& text) {
    return invalid("process.scheduler." + std::string(member), text);
  };
  if (runtime == 0) return say("runtime", "missing for SCHED_DEADLINE");
  if (deadline == 0) return say("deadline", "missing for SCHED_DEADLINE");
  if (runtime < kLeast) {
    return say("runtime", "expected 1024 nanoseconds or more, got " + std::to_string(runtime));
  }
  if (runtime > deadline) {
    return say("runtime",
               std::to_string(runtime) + " is more than the deadline, " + std::to_string(deadline));
  }
  if (period != 0 && deadline > period) {
    return say("deadline",
               std::to_string(deadline) + " is more than the period, " + std::to_string(period));
  }
  return {};
}

}  // namespace

Result<SetScheduler> scheduler_step(const oci::Scheduler& scheduler) {
  SetScheduler step;
  step.name = scheduler.policy;
  step.policy = TRY(find_word(kPolicies, scheduler.policy, "process.scheduler.policy"));
  step.flags = TRY(find_all(kSchedulerFlags, scheduler.flags, "process.scheduler.flags"));
  step.nice = scheduler.nice.value_or(0);
  if (step.nice < -20 || step.nice > 19) {
    return invalid("process.scheduler.nice",
                   "expected -20 to 19, got " + std::to_string(step.nice));
  }
  bool real_time = step.policy == SCHED_FIFO || step.policy == SCHED_RR;
  int priority = scheduler.priority.value_or(0);
  if (priority != 0 && !real_time) {
    return invalid("process.scheduler.priority", "only SCHED_FIFO and SCHED_RR have priorities");
  }
  if (priority < 0 || priority > 99) {
    return invalid("process.scheduler.priority",
                   "expected 1 to 99, got " + std::to_string(priority));
  }
  bool timed = scheduler.runtime.value_or(0) != 0 || scheduler.deadline.value_or(0) != 0 ||
               scheduler.period.value_or(0) != 0;
  if (timed && step.policy != SCHED_DEADLINE) {
    return invalid("process.scheduler", "runtime, deadline and period are for SCHED_DEADLINE only");
  }
  if (step.policy == SCHED_DEADLINE) TRY(check_deadline(scheduler));
  step.priority = static_cast<uint32_t>(priority);
  step.runtime = scheduler.runtime.value_or(0);
  step.deadline = scheduler.deadline.value_or(0);
  step.period = scheduler.period.value_or(0);
  return step;
}

Result<SetIoPriority> io_priority_step(const oci::IoPriority& priority) {
  SetIoPriority step;
  step.name = priority.class_;
  step.io_class = TRY(find_word(kIoClasses, priority.class_, "process.ioPriority.class"));
  if (priority.priority < 0 || priority.priority > 7) {
    return invalid("process.ioPriority.priority",
                   "expected 0 to 7, got " + std::to_string(priority.priority));
  }
  step.level = priority.priority;
  return step;
}

Result<SetMemoryPolicy> memory_policy_step(const oci::MemoryPolicy& policy) {
  SetMemoryPolicy step;
  step.name = policy.mode;
  step.mode = TRY(find_word(kMemoryModes, policy.mode, "linux.memoryPolicy.mode"));
  step.mode |= TRY(find_all(kMemoryFlags, policy.flags, "linux.memoryPolicy.flags"));
  step.nodes = TRY(parse_cpu_list(policy.nodes, "linux.memoryPolicy.nodes"));
  return step;
}

Result<SetPersonality> personality_step(const oci::Personality& personality) {
  SetPersonality step;
  step.name = personality.domain;
  if (personality.domain == "LINUX") {
    step.persona = PER_LINUX;
  } else if (personality.domain == "LINUX32") {
    step.persona = PER_LINUX32;
  } else {
    return invalid("linux.personality.domain", "unknown value " + quote(personality.domain));
  }
  // runtime-spec config-linux.md: "Currently no flag values are supported".
  if (personality.flags.empty()) return step;
  return make_error(Kind::unsupported, "config.json: linux.personality.flags: expected none, got " +
                                           quote(personality.flags[0]));
}

Result<JoinResctrl> resctrl_step(const oci::IntelRdt& rdt, const std::string& container_id) {
  JoinResctrl step;
  const std::string& id = rdt.clos_id;
  if (id.find('\0') != std::string::npos || id == "." || id == ".." ||
      (id != "/" && id.find('/') != std::string::npos)) {
    return invalid("linux.intelRdt.closID", quote(id) + " cannot name a directory");
  }
  step.group = id == "/" ? "" : id.empty() ? container_id : id;
  auto add = [&](const std::string& line, std::string_view member) -> Result<void> {
    if (line.find('\n') != std::string::npos) return invalid(member, "more than one line");
    if (!line.empty()) step.schemata.push_back(line);
    return {};
  };
  TRY(add(rdt.l3_cache_schema, "linux.intelRdt.l3CacheSchema"));
  TRY(add(rdt.mem_bw_schema, "linux.intelRdt.memBwSchema"));
  for (const auto& line : rdt.schemata) TRY(add(line, "linux.intelRdt.schemata"));
  step.monitoring = rdt.enable_monitoring;
  return step;
}

}  // namespace berth::plan
