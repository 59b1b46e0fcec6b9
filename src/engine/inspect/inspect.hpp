// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Looking at all files of a container costs time.
enum class Sizes { no, yes };

/// All that is known of a container: one JSON object with the members of `docker container
/// inspect`. What it was asked to be comes from its saved request.
/// Errors: as get_container().
Result<std::string> inspect_container(const Context& context, std::string_view reference,
                                      Sizes sizes = Sizes::no);

}  // namespace berth::engine
