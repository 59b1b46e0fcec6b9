// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/berth/verb.hpp"

/// The verbs and flags of other engines, and their equivalents here.
namespace berth::cli {

/// The equivalent of another engine's verb that Berth lacks, "pod" or "volume export", and the
/// reason. Nothing if no known engine has it.
std::optional<Error> verb_elsewhere(std::string_view name);

/// The equivalents of flags of other engines' verbs of this name: the verb's own, and common ones.
std::vector<Elsewhere> flags_elsewhere(const Verb& verb);

}  // namespace berth::cli
