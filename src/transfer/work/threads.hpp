// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace berth::transfer {

/// Runs `work` in `count` threads, or in fewer if the system grants no more, or in the calling
/// thread if it grants none. Returns when all have ended. `work` takes its tasks from a queue of
/// its own.
void run_in_threads(size_t count, const std::function<void()>& work);

}  // namespace berth::transfer
