// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "known_error/find.hpp"

namespace berth::engine {

/// How a run ended.
struct RunOutcome {
  std::string id;  ///< 64 hex digits
  /// For a foreground container: its exit status, 128 + n for a signal. 0 if detached.
  int status = 0;
  /// Set if the command could not be started: `status` is then 126 or 127.
  std::optional<Error> command_error;
  /// Set if a standard stream could not be copied to its end, for example because a disk is full.
  std::optional<Error> stream_error;
  /// The detach keys were typed: the container keeps running, and `status` is 0.
  bool detached = false;
  /// The cause of a failure, if Berth recognises it.
  std::optional<known_error::Found> reason = {};
};

}  // namespace berth::engine
