// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// The latest configuration (config.json) of container `id`; nothing if it cannot be read.
std::optional<std::string> config_of(const Paths& paths, const std::string& id);

/// The ids of containers with `needle`, such as a host path, in their configuration. A container
/// with an unreadable configuration may be unfinished, and is included.  Errors: io.
Result<std::vector<std::string>> containers_with(const Paths& paths, const std::string& needle);

}  // namespace berth::engine
