// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: those of root of the machine; resctrl permits no other
// user. Hostile input: none; the plan has checked the names.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace berth::runtime {

/// Puts `pid` into the control group that `step` names; makes it when missing, and writes the
/// schemata. For monitoring, puts `pid` into a monitoring group below it that is named after the
/// container. Returns the directory to remove with the container, or "". On failure it leaves
/// nothing.
/// Errors: denied, io (the hardware cannot do what the schemata ask for).
/// Source: kernel resctrl.rst; runtime-spec config-linux.md "IntelRdt".
Result<std::string> join_resctrl(const plan::JoinResctrl& step, const std::string& id, pid_t pid);

/// Removes the directory that join_resctrl() returned; no error if it is absent.
void remove_resctrl(const std::string& directory);

}  // namespace berth::runtime
