// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::yaml {

/// As JSON's, but smaller: YAML is only used for configuration, written by people or programs.
inline constexpr json::Limits kLimits{
    .max_bytes = size_t{16} << 20, .max_depth = 32, .max_values = 500'000};

/// Parses one YAML document into JSON values. Plain scalars follow the core schema of YAML 1.2
/// (null, true and false, integers; a number with a fraction is text), and integers also the forms
/// of Go's readers: 0644 and 0o644 are octal, 0b1 binary, 1_000 has a separator. Quoted scalars are
/// text. Refused, because they can turn a small file into a large one or a value into another type:
/// anchors and aliases, tags except those of the core schema, merge keys, duplicate keys, keys that
/// are not scalars, a second document. `document` names it in errors: "gpu.yaml: line 3, column 7:
/// …". Errors: corrupt.
Result<json::Value> parse(std::string_view text, std::string_view document,
                          const json::Limits& limits = kLimits);

/// Writes `value` in block style; every text in double quotes, so that no reader interprets it as
/// another type. Equal values give equal bytes.
std::string dump(const json::Value& value);

}  // namespace berth::yaml
