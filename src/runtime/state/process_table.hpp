// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's, which ps gets too. Hostile: the names of the
// processes in the output of ps; they are only passed on.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::runtime {

/// The heading of `table`, and the lines in which the column PID has one of `processes`. Pure.
/// Errors: usage (no such column).
Result<std::string> rows_of(const std::string& table, const std::vector<pid_t>& processes);

/// The output of the host's ps about `processes`; ps is called with the arguments `words`, or with
/// "-ef" if there are none. Errors: not_found (no ps), usage (ps refuses the arguments, or its
/// output has no column PID).
Result<std::string> process_table(const std::vector<pid_t>& processes,
                                  const std::vector<std::string>& words);

}  // namespace berth::runtime
