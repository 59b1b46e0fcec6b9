// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "policy/policy.hpp"

namespace berth::policy {

/// The policy in force below `config_dir`: that of policy.json, else the defaults (with an empty
/// `source`). The file has to belong to root or the effective user, and no other user may write it:
/// checked on the open file. Errors: denied (that check), and those of parse_compiled().
Result<Compiled> read_compiled(const std::string& config_dir);

}  // namespace berth::policy
