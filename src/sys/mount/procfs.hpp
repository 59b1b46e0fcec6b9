// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace berth::sys {

/// Whether this process may mount a procfs for a new pid namespace, as every container has. Tries
/// it in a child; for processes without threads. If a mount covers part of the visible procfs, only
/// root of the machine may (mount_too_revealing() in fs/namespace.c).
/// Errors: denied, unsupported.
Result<void> try_procfs();

}  // namespace berth::sys
