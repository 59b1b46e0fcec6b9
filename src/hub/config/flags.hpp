// SPDX-License-Identifier: Apache-2.0
// The flags of `berth hub`, which override the file each time it is read. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/config/config.hpp"

namespace berth::hub {

/// Applies them to a file's values.
/// Errors: usage (`repositories` without `upstream`), corrupt (an unknown way or form).
Result<void> add_flags(Config& config, const Flags& flags);

/// Keeps in `next` the values of `running` that a serving hub cannot change, and returns their keys
/// if they differed: "listen", "limits.transfers".
std::vector<std::string> keep_fixed(const Config& running, Config& next);

}  // namespace berth::hub
