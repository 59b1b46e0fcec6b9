// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bake/nfd.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "node/differences.hpp"
#include "node/profile.hpp"

namespace berth::engine {

/// The profile of this machine, including the GPUs that this process may open.
/// Errors: those of list_gpus().
Result<node::Profile> this_node(const Context& context);

/// The profile in `file`; without `file` that of this machine.
/// Errors: those of this_node() and node::load_profile().
Result<node::Profile> node_of(const Context& context, const std::optional<std::string>& file);

/// Writes this machine's profile to a file, in the format of its suffix, atomically.
/// Errors: those of this_node() and node::save_profile().
Result<void> save_node(const Context& context, const std::string& file);

/// The differences between this machine and the profile in `file`.
/// Errors: those of this_node() and node::load_profile().
Result<std::vector<node::Difference>> compare_node(const Context& context, const std::string& file);

/// Converts a file of NFD's image compatibility rules to Berth's labels; warns of each rule that
/// has no equivalent label.
/// Errors: not_found, denied, those of bake::read_nfd().
Result<bake::NfdRules> rules_of_file(const Context& context, const std::string& path,
                                     const std::optional<std::string>& tag);

}  // namespace berth::engine
