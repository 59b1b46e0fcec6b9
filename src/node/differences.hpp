// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "node/profile.hpp"

namespace berth::node {

/// A member in which two profiles differ.
struct Difference {
  std::string member;   ///< "driver.module_version", "gpus[1].model", "cpu.features"
  std::string written;  ///< for people; "none" if it is empty
  std::string here;
};

/// The differences between `here` and `written`. Members missing in `written` are ignored, except
/// that its list of GPUs counts as complete. For features, only missing and extra ones are listed.
/// Pure.
std::vector<Difference> differences(const Profile& written, const Profile& here);

}  // namespace berth::node
