// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// In double quotes, with control characters, quotes and backslashes escaped, as Go's %q.
std::string quote_as_go(std::string_view text);

}  // namespace berth::cli
