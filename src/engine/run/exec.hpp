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

/// `berth exec` after its flags were read; the members are named as the flags.
struct ExecRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "K=V", or "K" for the caller's value
  std::optional<std::string> user;       ///< "uid", "name", "uid:gid", "name:group"
  std::optional<std::string> workdir;
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool privileged = false;  ///< with every capability that the caller has
  bool held = false;        ///< the command is berth-hold, as in RunCall
};

/// Runs one more process in a running container, as its user and with its environment where the
/// request says nothing else. It stays to its end, or detached until it runs. This process has to
/// be in the container's user namespace (Needs::container). Errors: not_found (container, user),
/// usage (it does not run, it is paused), and those of berth-runtime.
Result<RunOutcome> exec(const Context& context, std::string_view reference,
                        const ExecRequest& request);

}  // namespace berth::engine
