// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing; the agent behind
// listenerPath is the caller's.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "runtime/child/child.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Passes descriptor `number` of the child, its seccomp listener, to the agent at
/// linux.seccomp.listenerPath, together with the state of the container (`status` in it), and lets
/// the child continue. Errors: not_found, denied, io (no agent listens there).
/// Source: runtime-spec config-linux.md "The Container Process State", seccomp_unotify(2).
Result<void> pass_listener(const plan::LoadSeccomp& step, const State& state,
                           std::string_view status, const Child& child, int64_t number);

}  // namespace berth::runtime
