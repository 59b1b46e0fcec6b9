// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "node/differences.hpp"
#include "node/profile.hpp"

namespace berth::engine {

/// The profile of this machine, with the GPUs that this process may open.
/// Errors: those of list_gpus().
Result<node::Profile> this_node(const Context& context);

/// The profile in `file`, or this machine's where there is none.
/// Errors: those of this_node() and node::load_profile().
Result<node::Profile> node_of(const Context& context, const std::optional<std::string>& file);

/// Writes this machine's profile to a file of that ending, in one go.
/// Errors: those of this_node() and node::save_profile().
Result<void> save_node(const Context& context, const std::string& file);

/// Where this machine is not what the profile in `file` says.
/// Errors: those of this_node() and node::load_profile().
Result<std::vector<node::Difference>> compare_node(const Context& context, const std::string& file);

}  // namespace berth::engine
