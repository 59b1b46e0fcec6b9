// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::yaml {

/// Like JSON's, but smaller: what people write and programs generate in YAML is configuration.
inline constexpr json::Limits kLimits{
    .max_bytes = size_t{16} << 20, .max_depth = 32, .max_values = 500'000};

/// Parses one YAML document into the values that JSON has. Plain scalars mean what the core schema
/// of YAML 1.2 says (null, true and false, integers; a number with a fraction is text), and
/// integers also what Go's readers take: 0644 and 0o644 are octal, 0b1 binary, 1_000 has a
/// separator. Quoted scalars are text. Refused, because they let a small file become a large one or
/// a value another type: anchors and aliases, tags but those of the core schema, merge keys,
/// duplicate keys, keys that are no scalars, a second document. `document` names it in errors:
/// "gpu.yaml: line 3, column 7: …". Errors: corrupt.
Result<json::Value> parse(std::string_view text, std::string_view document,
                          const json::Limits& limits = kLimits);

/// Writes `value` in block style; every text between double quotes, so that no reader takes it for
/// anything else. Of one value always the same bytes.
std::string dump(const json::Value& value);

}  // namespace berth::yaml
