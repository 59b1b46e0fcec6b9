// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/mps/share.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The compute mode of a share's GPUs, where it takes them: then one process computes there, the
/// server. What the mode was is written down beside the shares by the first one that takes a GPU.
class Modes {
 public:
  /// `root` and `order` outlive this.
  Modes(std::string root, const MpsOrder& order) : root_(std::move(root)), order_(order) {}

  /// While the lock of all shares is held; more than once is fine. Holds the GPUs' nodes open: the
  /// driver forgets modes when nobody has a GPU open.
  /// Errors: unsupported (the driver does not tell the mode, or does not change it).
  Result<void> take();
  /// To what they were, but for those that another share has taken meanwhile. A driver that does
  /// not do it keeps it.
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
