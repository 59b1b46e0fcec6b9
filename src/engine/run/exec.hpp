// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/state/outcome.hpp"

namespace berth::engine {

/// The flags of `berth exec`; the members are named after them.
struct ExecRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "K=V", or "K" for the caller's value
  std::optional<std::string> user;       ///< "uid", "name", "uid:gid", "name:group"
  std::optional<std::string> workdir;
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool privileged = false;  ///< with all of the caller's capabilities
  bool held = false;        ///< the command is berth-hold, as in RunCall
};

/// Runs one more process in a running container, by default as the container's user and with the
/// container's environment. Returns when the process ends; if detached, when it runs. This process
/// must be in the container's user namespace (Needs::container). Errors: not_found (container,
/// user), usage (not running, or paused), and those of berth-runtime.
Result<RunOutcome> exec(const Context& context, std::string_view reference,
                        const ExecRequest& request);

}  // namespace berth::engine
