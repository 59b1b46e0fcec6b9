// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::policy {

/// The policy.toml that does what NVIDIA's toolkit does with this config.toml: a line for each key
/// that has an equivalent, and a comment that says why for each that has none.
/// Errors: corrupt (no TOML; a value of the wrong type).
Result<std::string> import_toolkit(std::string_view text, std::string_view document);

}  // namespace berth::policy
