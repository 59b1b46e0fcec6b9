// SPDX-License-Identifier: Apache-2.0
// The JSON form of an Error that one of our programs sends to another: with the name of the kind,
// without the source location.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.hpp"
#include "base/result.hpp"

namespace berth {

inline std::string to_json_text(const Kind& kind) {
  return std::string(kind_name(kind));
}
inline Result<Kind> from_json_text(std::string_view text, std::type_identity<Kind>) {
  return kind_from_name(text);
}

void fields(auto& v, Error& e) {
  v.required("kind", e.kind);
  v.optional("errno", e.sys_errno);
  v.required("what", e.what);
  v.optional("hint", e.hint);
  v.optional("context", e.context);
}

}  // namespace berth
