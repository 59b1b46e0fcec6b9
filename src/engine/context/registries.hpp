// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/registry_access.hpp"

namespace berth::engine {

/// Parses the rules of a registries.toml; errors call the file `document`. docs/registries.md
/// Errors: usage ("registries.toml:3: …"), corrupt (not TOML).
Result<std::vector<image::RegistryRule>> parse_registries(std::string_view text,
                                                          std::string_view document);

/// Adds the rules of the user's $XDG_CONFIG_HOME/berth/registries.toml, then those of the site, and
/// the directories of certificates.
/// Errors: those of parse_registries(), io.
Result<void> add_registries(const Context& context, image::RegistryAccess& access);

}  // namespace berth::engine
