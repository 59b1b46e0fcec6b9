// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/context/context.hpp"

namespace berth::engine {

/// The program `name` in the caller's PATH, absolute; empty: none.
std::string find_in_path(const Context& context, const std::string& name);

}  // namespace berth::engine
