// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "node/profile.hpp"

namespace berth::node {

/// A member that two profiles do not agree about.
struct Difference {
  std::string member;   ///< "driver.module_version", "gpus[1].model", "cpu.features"
  std::string written;  ///< for people; "none" where there is nothing
  std::string here;
};

/// Where `here` is not what `written` says. What a written one leaves out says nothing, but its
/// GPUs are all that it has. Of features it is those that are missing on one side. Pure.
std::vector<Difference> differences(const Profile& written, const Profile& here);

}  // namespace berth::node
