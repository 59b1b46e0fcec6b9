// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Whether to compute sizes, which needs a walk through all files of a container.
enum class Sizes { no, yes };

/// A container as one JSON object with the members of `docker container inspect`. The container's
/// request is read from its saved file.
/// Errors: as get_container().
Result<std::string> inspect_container(const Context& context, std::string_view reference,
                                      Sizes sizes = Sizes::no);

/// One JSON object with the members of `docker image inspect`.  Errors: not_found.
Result<std::string> inspect_image(const Context& context, std::string_view reference);

}  // namespace berth::engine
