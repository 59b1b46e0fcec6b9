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
  /// Of a foreground container: its exit status, 128 + n for a signal. 0 when detached.
  int status = 0;
  /// Set when the command could not be started: `status` is then 126 or 127.
  std::optional<Error> command_error;
  /// Set when a standard stream could not be passed on to its end, as on a full disk.
  std::optional<Error> stream_error;
  /// The detach keys were typed: the container goes on, and `status` is 0.
  bool detached = false;
  /// Why it has failed, where that is known.
  std::optional<known_error::Found> reason = {};
};

}  // namespace berth::engine
