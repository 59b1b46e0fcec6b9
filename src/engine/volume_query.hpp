// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/filter.hpp"
#include "engine/volumes.hpp"

/// What `volume ls` and `volume inspect` ask.
namespace berth::engine {

/// By name. Filters: dangling, driver, label, name.  Errors: usage (a filter), io.
Result<std::vector<VolumeRecord>> query_volumes(const Context& context, const Filters& filters);

/// Errors: not_found ("no such volume: X").
Result<VolumeRecord> get_volume(const Context& context, const std::string& name);

}  // namespace berth::engine
