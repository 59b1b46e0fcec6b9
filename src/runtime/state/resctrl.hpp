// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: root of the machine; resctrl knows no other user. Hostile:
// nothing; the plan has checked the names.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace berth::runtime {

/// Puts `pid` into the control group that `step` names, made when missing, with its schemata, and
/// for monitoring into a group below, named after the container. Returns the directory to remove
/// with the container, or "". Leaves nothing on failure.
/// Errors: denied, io (the hardware does not have what the schemata ask for).
/// Source: kernel resctrl.rst; runtime-spec config-linux.md "IntelRdt".
Result<std::string> join_resctrl(const plan::JoinResctrl& step, const std::string& id, pid_t pid);

/// Removes the directory that join_resctrl() returned; absent is fine.
void remove_resctrl(const std::string& directory);

}  // namespace berth::runtime
