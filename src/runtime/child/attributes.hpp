// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, or one of exec. Capabilities: the caller's.
// Hostile input: none; the values come from a config that the plan has validated.
#pragma once

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/child/inside.hpp"

namespace berth::runtime {

// One function per step of plan/plan.hpp.

/// Makes a time namespace, shifts its clocks and enters it. time_namespaces(7)
Result<void> enter_time_namespace(Inside& inside, const plan::EnterTimeNamespace& step);
/// Sets labels that take effect at the next execve. Uses the procfs of the host, before the root is
/// entered: the image could have put anything at the container's /proc. apparmor(7), selinux(8)
Result<void> set_labels(const plan::SetLabels& step);
Result<void> set_scheduler(const plan::SetScheduler& step);
Result<void> set_io_priority(const plan::SetIoPriority& step);
Result<void> set_memory_policy(const plan::SetMemoryPolicy& step);
/// Never fails: skips what the kernel refuses, and leaves the memory policy unchanged if the caller
/// has set one.
Result<void> prefer_place(const plan::PreferPlace& step);
/// Never fails: if the kernel refuses, the affinity stays as it is.
Result<void> reset_affinity(const plan::ResetAffinity& step);
Result<void> set_personality(const plan::SetPersonality& step);

}  // namespace berth::runtime
