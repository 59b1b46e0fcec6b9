// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/berth/verb.hpp"

/// What people type for other engines, and what to type here instead.
namespace berth::cli {

/// What to type here for a verb of another engine that Berth has not, "pod" or "volume export", and
/// why it has not. Nothing where no engine is known to have it.
std::optional<Error> verb_elsewhere(std::string_view name);

/// What to type here for flags of other engines' verbs of this name: the verb's own, and those that
/// mean the same for many.
std::vector<Elsewhere> flags_elsewhere(const Verb& verb);

}  // namespace berth::cli
