// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// The directories of an overlay by handle: names of any length and with any character fit then.
struct OverlayLayers {
  std::vector<Fd> lower;             ///< highest first
  Fd upper;                          ///< empty: it is read-only
  Fd work;                           ///< beside `upper`
  std::vector<std::string> options;  ///< "userxattr"
};

/// Mounts an overlay at `target` and gives a handle of its root.
/// Errors: denied, busy (another mount writes there), io.  fsconfig(2), else mount(2)
Result<Fd> mount_overlay(const OverlayLayers& layers, const std::string& target);

}  // namespace berth::sys
