// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth::engine {

/// The entries of the --env-file at `path`.
/// Errors: those of opening it, and of parse_env_file() (run.hpp).
Result<std::vector<std::string>> read_env_file(const std::string& path);

}  // namespace berth::engine
