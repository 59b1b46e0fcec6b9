// SPDX-License-Identifier: Apache-2.0
// Runs as: a thread of srun, as the user. Hostile: any client of the port. Clients that are not
// part of the step do not know the step's door secret; every line is bounded.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace berth::spank {

/// The board of a step (slurm/board.hpp), which the nodes of the step find through a variable.
class BoardServer {
 public:
  /// Listens at a free port on all addresses of this machine.  Errors: io.
  static Result<std::unique_ptr<BoardServer>> open();
  virtual ~BoardServer() = default;

  /// The value of slurm::kBoardVariable.
  virtual std::string invitation() const = 0;
};

}  // namespace berth::spank
