// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// Makes `request` independent of who asks and when: the values of variables that are passed on by
/// name, the ids of other containers. Once, when a container is created, before anything of it is
/// there. Errors: not_found (such a container).
Result<void> settle(const Context& context, RunRequest& request);

/// Whether what was asked for makes sense together. Pure.
/// Errors: usage, in docker's words where scripts know them; unsupported.
Result<void> check_request(const RunRequest& request);
Result<void> check_call(const RunRequest& request, const RunCall& call);

/// The paths of the namespaces of other containers that `request` names, by type ("pid").
/// Errors: not_found, usage (it does not run).
Result<std::map<std::string, std::string>> find_namespaces(const Context& context,
                                                           const RunRequest& request);

}  // namespace berth::engine
