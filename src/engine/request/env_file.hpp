// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::engine {

/// The entries of the --env-file at `path`.
/// Errors: those of opening the file, and of parse_env_file().
Result<std::vector<std::string>> read_env_file(const std::string& path);

/// The entries of an --env-file: blank lines and those starting with '#' are dropped, "K" stays
/// "K".
/// `file`: its name in errors.
/// Errors: usage (a line that has no name, or a blank in its name).
Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file);

}  // namespace berth::engine
