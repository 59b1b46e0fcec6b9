// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace berth::transfer {

/// Runs `work` in `count` threads, in fewer if the system grants no more, in this one if it grants
/// none, and returns when all have ended. `work` takes its tasks from a queue of its own.
void run_in_threads(size_t count, const std::function<void()>& work);

}  // namespace berth::transfer
