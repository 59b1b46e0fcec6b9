// SPDX-License-Identifier: Apache-2.0
// What the flags of `berth hub` say, which wins over the file's each time that is read. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/config/config.hpp"

namespace berth::hub {

/// Puts them over a file's.
/// Errors: usage (`repositories` without `upstream`), corrupt (no such way, no such form).
Result<void> add_flags(Config& config, const Flags& flags);

/// Takes into `next` what a hub that serves cannot change, from `running`, and gives the keys whose
/// values were others: "listen", "limits.transfers".
std::vector<std::string> keep_fixed(const Config& running, Config& next);

}  // namespace berth::hub
