// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace berth::sys {

/// Whether this process may mount a procfs of a pid namespace of its own, as every container has.
/// Tried in a child; for processes without threads. Where something is mounted over a part of the
/// procfs that it sees, only root of the machine may (mount_too_revealing() in fs/namespace.c).
/// Errors: denied, unsupported.
Result<void> try_procfs();

}  // namespace berth::sys
