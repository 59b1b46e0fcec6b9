// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile: nothing but the processes inside.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// Freezes all processes of a container until resume(). Either all are frozen at return or none is.
/// Errors: usage ("container not running", paused ones included), unsupported (it has no cgroup
/// with a freezer), interrupted (a process could not be stopped within 10 s).
Result<void> pause(const Store& store, const std::string& id);

/// Errors: usage ("container not paused"), interrupted.
Result<void> resume(const Store& store, const std::string& id);

}  // namespace berth::runtime
