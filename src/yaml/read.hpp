// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::yaml {

/// Lower limits than those for JSON: YAML is only used for configuration, written by people or
/// programs.
inline constexpr json::Limits kLimits{
    .max_bytes = size_t{16} << 20, .max_depth = 32, .max_values = 500'000};

/// Parses one YAML document into JSON values. Plain scalars follow the core schema of YAML 1.2
/// (null, true and false, integers), but a number with a fraction is a string. Integers may also
/// have the forms that Go's readers accept: 0644 and 0o644 are octal, 0b1 is binary, 1_000 has a
/// separator. Quoted scalars are text. Refuses what can turn a small file into a large value or
/// change the type of a value: anchors and aliases, tags except those of the core schema, merge
/// keys, duplicate keys, keys that are not scalars, a second document. `document` names it in
/// errors: "gpu.yaml: line 3, column 7: …". Errors: corrupt.
Result<json::Value> parse(std::string_view text, std::string_view document,
                          const json::Limits& limits = kLimits);

/// Writes `value` in block style. Every string is in double quotes, so that no reader takes it for
/// another type. Equal values give equal bytes.
std::string dump(const json::Value& value);

}  // namespace berth::yaml
