// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// How somebody looks at a container that has a monitor.
struct AttachOptions {
  bool input = false;       ///< our standard input is the container's
  bool output = true;       ///< its standard output is ours
  bool errors = true;       ///< its standard error is ours
  bool terminal = false;    ///< the container has one
  bool ends_input = false;  ///< the end of our standard input is the end of the container's
  /// The container waits for us rather than that we miss a byte: for output that a program reads.
  bool must_see_all = false;
  bool signal_proxy = true;  ///< signals that we get are the container's
  std::string detach_keys;   ///< bytes (engine/request/detach_keys.hpp); empty: none
};

/// How an attachment ended.
struct Attached {
  bool detached = false;              ///< by keys: the container goes on
  std::optional<int> status;          ///< of the container; none: nobody knows, or it goes on
  bool lost = false;                  ///< its monitor is gone; the container's record says more
  std::optional<Error> stream_error;  ///< what cut short one of our streams
  std::string printed = {};           ///< the last that the container has printed
  bool asked = false;                 ///< somebody told us to end
};

/// Introduces us to the monitor at the other end of `socket`: what it does next it may do with a
/// view to us. It may be sent before the monitor runs.  Errors: io.
Result<void> greet_monitor(const sys::Fd& socket, const AttachOptions& options);

/// Carries our standard streams to and from the container until it ends, the detach keys are typed,
/// or nobody is left to read for. A terminal of ours is raw meanwhile.
/// Errors: io.
Result<Attached> stay_attached(const Context& context, sys::Fd socket, AttachOptions options);

}  // namespace berth::engine
