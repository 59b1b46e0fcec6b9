// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::policy {

/// Converts the config.toml of NVIDIA's toolkit to a policy.toml with the same effect: a line for
/// each key that has an equivalent, and for every other key a comment with the reason.
/// Errors: corrupt (invalid TOML; a value of the wrong type).
Result<std::string> import_toolkit(std::string_view text, std::string_view document);

}  // namespace berth::policy
