// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, or the container's first process for createContainer and startContainer.
// Capabilities: the caller's. Hostile: the program of a startContainer hook, which is a file of the
// container; it gets no descriptors, and no variables except those that the config names.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/state/state.hpp"

namespace berth::runtime {

/// The environment in which a hook runs, besides its own `env`.
struct HookPlace {
  std::string directory = "/";  ///< its working directory, or "/" if that cannot be entered
  /// A hook without `env` inherits the environment of this process. The caller of berth-runtime
  /// sets that environment; no image can.
  bool inherits = false;
  std::vector<std::string> env{};  ///< its environment if it has no `env` and `inherits` is false;
                                   ///< for a hook inside the container, the container's
  // Files to which the output of the hook is appended; made with mode 0600; empty: none.
  std::string output_file{};
  std::string error_file{};
};

/// The place of hooks that run on the host, with the files that the annotations
/// run.oci.hooks.stdout and run.oci.hooks.stderr name, as under crun. The annotations are ignored
/// where an engine may have copied them from the image (docs/decisions/0083).
HookPlace place_on_host(const State& state);

/// Runs `hooks` one by one, each with the state on its standard input. Stops at the first failure.
/// Errors: denied (a hook ended with another status than 0), interrupted (the hook's timeout),
/// not_found.
/// Source: runtime-spec config.md "POSIX-platform Hooks", runtime.md "Lifecycle".
Result<void> run_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                       const std::string& state, const HookPlace& place);

/// The same for poststop, where a failure is only a warning ("MUST log a warning and ...
/// continue").
void run_all_hooks(const std::string& stage, const std::vector<oci::Hook>& hooks,
                   const std::string& state, const HookPlace& place, Log& log);

}  // namespace berth::runtime
