// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "complaint/complaint.hpp"
#include "engine/context.hpp"
#include "engine/request.hpp"
#include "engine/transfer.hpp"

namespace berth::engine {

/// How a run ended.
struct RunOutcome {
  std::string id;  ///< 64 hex digits
  /// Of a foreground container: its exit status, 128 + n for a signal. 0 when detached.
  int status = 0;
  /// Set when the command could not be started: `status` is then 126 or 127.
  std::optional<Error> command_error;
  /// Set when a standard stream could not be passed on to its end, as on a full disk.
  std::optional<Error> stream_error;
  /// The detach keys were typed: the container goes on, and `status` is 0.
  bool detached = false;
  /// Why it has failed, where that is known.
  std::optional<complaint::Found> reason = {};
};

/// Pulls the image if it has to, makes the container and starts it. In the foreground it returns
/// when the container has ended; signals that other processes send to this one are passed on.
/// Detached it returns when the command runs.
/// On failure nothing of the container is left.
/// Errors: not_found (image, user, working directory), exists (the name), usage, denied,
/// unsupported, and those of pulling and of berth-runtime.
Result<RunOutcome> run(const Context& context, const RunRequest& request, const RunCall& call,
                       const Progress& progress);

/// The lines of an --env-file: blank lines and those starting with '#' are dropped, "K" stays "K".
/// Errors: usage (a line that has no name, or a blank in its name).
Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file);

/// "1.5" → 1500, "0" → 0. Errors: usage (not a number with at most three decimals, or below 0.01).
Result<uint64_t> parse_cpus(std::string_view text);

/// "9", "KILL", "SIGKILL", "sigkill", "RTMIN+3".  Errors: usage.
Result<int> parse_signal(std::string_view text);

}  // namespace berth::engine
