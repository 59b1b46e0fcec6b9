// SPDX-License-Identifier: Apache-2.0
// Descriptors that become readable on events of the kernel.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A counter that other processes or the kernel add to. A read returns the counter (8 bytes) and
/// resets it. Reads do not block. eventfd(2)
Result<Fd> make_event_counter();

/// A descriptor that becomes readable whenever the file `path` is modified. Reads do not block.
/// Errors: not_found, denied.  inotify(7) IN_MODIFY
Result<Fd> watch_file(const std::string& path);

/// A descriptor that becomes readable whenever a file in the directory `path` is modified, created
/// or removed.
/// Errors: not_found, denied, io (no more watches for this user).
/// inotify(7) IN_MODIFY IN_CREATE IN_MOVED_TO IN_DELETE
Result<Fd> watch_directory(const std::string& path);

/// Discards the pending events of one of these descriptors.
void forget_events(const Fd& watch);

}  // namespace berth::sys
