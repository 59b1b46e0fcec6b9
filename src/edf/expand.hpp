// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::edf {

/// The value of an environment variable, valid as long as the environment.
using LookUp = std::function<std::optional<std::string_view>(std::string_view name)>;

/// Substitutes variables in `text`: "${NAME}", "${NAME:-DEFAULT}" (the default if the variable is
/// unset or empty), "$$" for a dollar sign. Values are not expanded again. The result has at most
/// 128 KiB, the limit for one variable of a program.
/// Errors: usage (an unset variable, another form of reference, a NUL, too long).
/// Source: https://docs.cscs.ch/software/container-engine/edf "Environment variable expansion"
Result<std::string> expand(std::string_view text, const LookUp& look_up);

}  // namespace berth::edf
