// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::edf {

/// The value of an environment variable, which lives as long as what is asked.
using LookUp = std::function<std::optional<std::string_view>(std::string_view name)>;

/// `text` with the values of variables: "${NAME}", "${NAME:-DEFAULT}" (the default where the
/// variable is not set or empty), "$$" for a dollar sign. Values are not expanded again. The result
/// has at most 128 KiB, which is the most that one variable of a program may have.
/// Errors: usage (a variable that is not set, another form of reference, a NUL, too long).
/// Source: https://docs.cscs.ch/software/container-engine/edf "Environment variable expansion"
Result<std::string> expand(std::string_view text, const LookUp& look_up);

}  // namespace berth::edf
