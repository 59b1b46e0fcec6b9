// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "json/value.hpp"

namespace berth::yaml {

/// What a plain scalar means; a text where it means nothing else. A number that does not fit or has
/// a fraction stays text: a reader that wants a number reports it, and "1.0" is a version more
/// often. YAML 1.2.2, 10.3.2
json::Value resolve(std::string_view text);

/// What `text` means as "str", "int", "bool" or "null"; nothing when it is no such thing.
std::optional<json::Value> resolve_as(std::string_view type, std::string_view text);

}  // namespace berth::yaml
