// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::engine {

/// Checks a container's name: [a-zA-Z0-9][a-zA-Z0-9_.-]+, at most 255 bytes (it is a file name).
/// Errors: usage.
Result<void> check_name(std::string_view name);

/// "calm_noether": a pronounceable name, chosen by `random`.
std::string name_from(uint64_t random);

}  // namespace berth::engine
