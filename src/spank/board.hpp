// SPDX-License-Identifier: Apache-2.0
// Runs as: a thread of srun's, as the user. Hostile: any client of its port; clients from outside
// of this step do not know its door secret, and every line is bounded.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// The board of a step (slurm/board.hpp), which its nodes find through a variable.
class BoardServer {
 public:
  /// Listens at a free port on all addresses of this machine.  Errors: io.
  static Result<std::unique_ptr<BoardServer>> open();
  virtual ~BoardServer() = default;

  /// The value of slurm::kBoardVariable.
  virtual std::string invitation() const = 0;
};

}  // namespace berth::spank
