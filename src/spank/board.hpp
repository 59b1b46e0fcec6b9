// SPDX-License-Identifier: Apache-2.0
// Runs as: a thread of srun's, as the user. Hostile: whoever reaches its port; what is not of this
// step does not know its door, and every line is bounded.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// The board of a step (slurm/board.hpp), which its nodes find by a variable.
class BoardServer {
 public:
  /// Listens at a free port of every address of this machine.  Errors: io.
  static Result<std::unique_ptr<BoardServer>> open();
  virtual ~BoardServer() = default;

  /// The value of slurm::kBoardVariable.
  virtual std::string invitation() const = 0;
};

}  // namespace berth::spank
