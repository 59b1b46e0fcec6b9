// SPDX-License-Identifier: Apache-2.0
// How the names of steps' containers begin: as with pyxis, since scripts use these names.
#pragma once

#include <string>

namespace berth::engine {

inline constexpr const char* kPyxisPrefix = "pyxis_";

/// The variable with Slurm's name of this node. The name of a container that is removed with its
/// step ends with that name.
inline constexpr const char* kNodeVariable = "SLURMD_NODENAME";

/// The prefix of a named container of job "12", if names belong to a job.
inline std::string job_prefix(const std::string& job) {
  return kPyxisPrefix + job + "_";
}

}  // namespace berth::engine
