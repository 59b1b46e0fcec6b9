// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::engine {

/// `path`, where it is relative below `directory`, the caller's working directory; "." is that
/// directory itself. An empty `directory` is one that has been removed: what is named relative to
/// it would be something else.  Errors: not_found (relative to a directory that is gone).
Result<std::string> absolute_path(std::string_view path, std::string_view directory);

}  // namespace berth::engine
