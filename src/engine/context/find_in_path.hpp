// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/context/context.hpp"

namespace berth::engine {

/// The absolute path of the program `name` in the caller's PATH; empty: not found.
std::string find_in_path(const Context& context, const std::string& name);

}  // namespace berth::engine
