// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/network/networks.hpp"

/// The queries of `network ls` and `network inspect`.
namespace berth::engine {

/// Sorted by name, with bridge, host and none. Filters: dangling, driver, id, label, name, scope,
/// type.
/// Errors: usage (a filter), io.
Result<std::vector<NetworkRecord>> query_networks(const Context& context, const Filters& filters);

/// One JSON object with the members of `docker network inspect`.
/// Errors: not_found ("No such network: X").
Result<std::string> inspect_network(const Context& context, const std::string& reference);

}  // namespace berth::engine
