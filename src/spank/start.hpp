// SPDX-License-Identifier: Apache-2.0
// Runs as: the same as join.hpp.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::spank {

/// The program of a step, and what it is given.
struct Program {
  std::string path;
  std::vector<std::string> words;  ///< without the program's name
  std::vector<std::string> environment;
  int step = -1;              ///< the container's end of the step's socket
  int rights = -1;            ///< slurm::kRightsFile
  bool shows_output = false;  ///< its standard output is this process's standard error
};

/// Starts berth beside this process, which is about to become the user's program: as nobody's child
/// and in a session of its own, with this process's standard error. Its descriptors are those of
/// slurm/hold.hpp.  Errors: io, and those of executing it.
Result<void> start_berth(const Program& program);

}  // namespace berth::spank
