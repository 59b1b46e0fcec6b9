// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// Sets the compute mode of a share's exclusive GPUs: only one process, the server, computes there
/// then. The first share that takes a GPU saves its old mode beside the shares.
class Modes {
 public:
  /// `root` and `order` have to outlive this.
  Modes(std::string root, const MpsOrder& order) : root_(std::move(root)), order_(order) {}

  /// Call it under the lock of all shares; repeating it is fine. Holds the GPUs' nodes open: the
  /// driver forgets modes when no process has a GPU open.
  /// Errors: unsupported (the driver does not report the mode, or does not change it).
  Result<void> take();
  /// Restores the old modes, except of GPUs that another share has taken meanwhile. If the driver
  /// refuses, the mode stays.
  void give_back();

 private:
  using Known = std::map<std::string, std::string>;  ///< modes by the GPUs' ids
  Result<Known> ask() const;
  std::string note_of(const std::string& gpu) const;

  std::string root_;
  const MpsOrder& order_;
  std::vector<sys::Fd> nodes_;
};

}  // namespace berth::gpu
