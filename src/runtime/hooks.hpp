// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, or the container's first process for createContainer and startContainer.
// Capabilities: the caller's. Hostile: for startContainer the program itself, which is the
// container's; it gets no descriptor and no variable that the config does not name.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::runtime {

/// Runs `hooks` one after the other, each with the state on its standard input, with its own env
/// and nothing else, in "/". Stops at the first that fails.
/// Errors: denied (it ended with another status than 0), interrupted (its timeout), not_found.
/// Source: runtime-spec config.md "POSIX-platform Hooks", runtime.md "Lifecycle".
Result<void> run_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                       const std::string& state);

/// The same where a failure is only told ("MUST log a warning and ... continue"): poststop.
void run_all_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                   const std::string& state, Log& log);

}  // namespace berth::runtime
