// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// One JSON object with the members of `docker image inspect`.  Errors: not_found.
Result<std::string> inspect_image(const Context& context, std::string_view reference);

}  // namespace berth::engine
