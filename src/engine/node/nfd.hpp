// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "bake/nfd.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

/// Converts a file of NFD's image compatibility rules to Berth's labels; warns of each rule without
/// an equivalent.
/// Errors: not_found, denied, those of bake::read_nfd().
Result<bake::NfdRules> rules_of_file(const Context& context, const std::string& path,
                                     const std::optional<std::string>& tag);

}  // namespace berth::engine
