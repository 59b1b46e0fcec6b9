// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/container/volumes.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"

/// The queries of `volume ls` and `inspect`.
namespace berth::engine {

/// Sorted by name. Filters: dangling, driver, label, name.  Errors: usage (a filter), io.
Result<std::vector<VolumeRecord>> query_volumes(const Context& context, const Filters& filters);

/// One JSON object with the members of `docker volume inspect`.
/// Errors: not_found ("no such volume: X").
Result<std::string> inspect_volume(const Context& context, const std::string& name);

}  // namespace berth::engine
