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
  bool input = false;       ///< our standard input is the container's
  bool output = true;       ///< its standard output is ours
  bool errors = true;       ///< its standard error is ours
  bool terminal = false;    ///< the container has one
  bool ends_input = false;  ///< the end of our standard input is the end of the container's
  /// Slow readers block the container rather than lose output: for output that a program reads.
  bool must_see_all = false;
  bool signal_proxy = true;  ///< signals to this process are passed on
  std::string detach_keys;   ///< bytes (engine/request/detach_keys.hpp); empty: none
};

/// How an attachment ended.
struct Attached {
  bool detached = false;              ///< by keys: the container keeps running
  std::optional<int> status;          ///< of the container; none: unknown, or it keeps running
  bool lost = false;                  ///< its monitor has ended; see the container's record
  std::optional<Error> stream_error;  ///< why one of our streams was cut short
  std::string printed = {};           ///< the last output of the container
  bool asked = false;                 ///< a signal asked this process to end
};

/// Sends the attach options to the monitor at the other end of `socket`. May be sent before the
/// monitor runs.  Errors: io.
Result<void> greet_monitor(const sys::Fd& socket, const AttachOptions& options);

/// Copies our standard streams to and from the container until it ends, the detach keys are typed,
/// or no reader is left. Our terminal is in raw mode meanwhile.
/// Errors: io.
Result<Attached> stay_attached(const Context& context, sys::Fd socket, AttachOptions options);

}  // namespace berth::engine
