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

/// Reads the configuration of `running` again: its file, with the same flags applied. The site's
/// policy is not read again. A file that existed has to exist still: otherwise a hub with passwords
/// would become one without. Errors: not_found, denied, corrupt, usage (the file is missing, or
/// invalid).
Result<Renewed> read_again(const Order& running);

}  // namespace berth::hub
