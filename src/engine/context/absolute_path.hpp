// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::engine {

/// `path` as an absolute path: a relative one is below `directory`, the caller's working directory;
/// "." is that directory itself. An empty `directory` means that the working directory was removed.
/// Errors: not_found (relative to a removed directory).
Result<std::string> absolute_path(std::string_view path, std::string_view directory);

}  // namespace berth::engine
