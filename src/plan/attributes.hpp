// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/plan.hpp"

// Translates the spec's settings for scheduling, I/O priority and memory of a process into the
// kernel's numbers. Errors of each function: usage (an unknown keyword, a number out of range;
// names the member), unsupported. Pure. Source: runtime-spec config.md "scheduler", "ioPriority",
// config-linux.md "memoryPolicy", "personality", "intelRdt".
namespace berth::plan {

Result<SetScheduler> scheduler_step(const oci::Scheduler& scheduler);
Result<SetIoPriority> io_priority_step(const oci::IoPriority& priority);
Result<SetMemoryPolicy> memory_policy_step(const oci::MemoryPolicy& policy);
Result<SetPersonality> personality_step(const oci::Personality& personality);
/// The group has the name of the container if `rdt` has no closID.
Result<JoinResctrl> resctrl_step(const oci::IntelRdt& rdt, const std::string& container_id);

/// The modes of memory_policy_step().
std::vector<std::string> memory_policy_modes();
std::vector<std::string> memory_policy_flags();

/// "0-3,7" → {0, 1, 2, 3, 7}; the empty string is an empty list. `member` is for errors. Each
/// number is below 65536. Source: cpuset(7) "List format".
Result<std::vector<unsigned>> parse_cpu_list(std::string_view text, std::string_view member);

}  // namespace berth::plan
