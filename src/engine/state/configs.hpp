// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The configuration (config.json) that container `id` was last given; nothing where it cannot be
/// read.
std::optional<std::string> config_of(const Paths& paths, const std::string& id);

/// The ids of containers whose configuration has `needle` in it, as it has paths of the host. One
/// that cannot be read may be one that is being made, and counts.  Errors: io.
Result<std::vector<std::string>> containers_with(const Paths& paths, const std::string& needle);

}  // namespace berth::engine
