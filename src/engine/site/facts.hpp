// SPDX-License-Identifier: Apache-2.0
// What the site's rules (policy/rules.hpp) decide by.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "image/store.hpp"
#include "policy/rules.hpp"

namespace berth::engine {

/// `image` is null where it is not here: what only it can tell is empty. Only what `needs` names is
/// looked for beside it.
/// Errors: those of this_node(), sys::find_account() and sys::group_names().
Result<policy::Facts> facts_of(const Context& context, const RunRequest& request,
                               const image::Image* image, policy::Needs needs);

/// "K=V" of what the flags say.
std::vector<std::string> typed_variables(const RunRequest& request);

/// Whether the flags ask for GPUs, in one way or another.
bool asks_gpus(const RunRequest& request);

}  // namespace berth::engine
