// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace berth::bench {

/// What time(1) says: real time since `begin`, user and system time of this process so far, all in
/// seconds; as members of a JSON object without the braces.
/// Source: getrusage(2) with RUSAGE_SELF.
std::string times_as_json(std::chrono::steady_clock::time_point begin);

/// The processors that this process may use, ascending. Source: sched_getaffinity(2).
std::vector<int> allowed_processors();

/// The number of them, at least 1.
size_t allowed_processor_count();

}  // namespace berth::bench
