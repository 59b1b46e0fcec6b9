// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// Checks that the options fit together, and that this machine has the requested processors.
/// Errors: usage, with docker's message where scripts depend on it; unsupported.
Result<void> check_request(const RunRequest& request);
Result<void> check_call(const RunRequest& request, const RunCall& call);

/// The paths of the namespaces of other containers in `request`, by type ("pid").
/// Errors: not_found, usage (not running).
Result<std::map<std::string, std::string>> find_namespaces(const Context& context,
                                                           const RunRequest& request);

}  // namespace berth::engine
