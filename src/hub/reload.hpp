// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "hub/config/config.hpp"

namespace berth::hub {

struct Renewed {
  Order order;                     ///< checked
  std::vector<std::string> fixed;  ///< keys that keep their old values until a restart
};

/// What the hub of `running` would be told now: its file as it is by now, with the same flags over
/// it. What is read of the site's policy stays. A file that was there has to be there still:
/// without it a hub with passwords would be one without. Errors: not_found, denied, corrupt, usage
/// (the file is not there, or not in order).
Result<Renewed> read_again(const Order& running);

}  // namespace berth::hub
