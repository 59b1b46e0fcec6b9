// SPDX-License-Identifier: Apache-2.0
// Descriptors that become readable when the kernel has something to tell.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// A counter that others add to; a read takes its 8 bytes and sets it to zero. Reads do not wait.
/// eventfd(2)
Result<Fd> make_event_counter();

/// Becomes readable whenever the file `path` is modified. Reads do not wait.
/// Errors: not_found, denied.  inotify(7) IN_MODIFY
Result<Fd> watch_file(const std::string& path);

}  // namespace berth::sys
