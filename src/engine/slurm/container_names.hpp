// SPDX-License-Identifier: Apache-2.0
// The beginnings of the names of steps' containers: pyxis's, which scripts use.
#pragma once

#include <string>

namespace berth::engine {

inline constexpr const char* kPyxisPrefix = "pyxis_";

/// Slurm's name of this node; a container that ends with its step is named after it.
inline constexpr const char* kNodeVariable = "SLURMD_NODENAME";

/// The prefix of a named container of job "12", if names belong to a job.
inline std::string job_prefix(const std::string& job) {
  return kPyxisPrefix + job + "_";
}

}  // namespace berth::engine
