// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// How to attach to a container that has a monitor.
struct AttachOptions {
  bool input = false;       ///< copy our standard input to the container
  bool output = true;       ///< copy the container's standard output to ours
  bool errors = true;       ///< copy the container's standard error to ours
  bool terminal = false;    ///< the container has a terminal
  bool ends_input = false;  ///< the end of our standard input ends the container's
  /// A slow reader of our output blocks the container, so that no output is lost: for output that a
  /// program reads.
  bool must_see_all = false;
  bool signal_proxy = true;  ///< pass signals to this process on to the container
  std::string detach_keys;   ///< bytes (engine/request/detach_keys.hpp); empty: none
};

/// How an attachment ended.
struct Attached {
  bool detached = false;      ///< the detach keys were typed; the container keeps running
  std::optional<int> status;  ///< the container's exit status; none: unknown, or it keeps running
  bool lost = false;          ///< the monitor has ended; see the container's record
  std::optional<Error> stream_error;  ///< why one of our streams was cut short
  std::string printed = {};           ///< the last output of the container
  bool asked = false;                 ///< a signal asked this process to end
};

/// Sends the attach options to the monitor at the other end of `socket`. They may be sent before
/// the monitor runs.  Errors: io.
Result<void> greet_monitor(const sys::Fd& socket, const AttachOptions& options);

/// Copies our standard streams to and from the container until it ends, the detach keys are typed,
/// or no reader is left. Meanwhile our terminal is in raw mode.
/// Errors: io.
Result<Attached> stay_attached(const Context& context, sys::Fd socket, AttachOptions options);

}  // namespace berth::engine
