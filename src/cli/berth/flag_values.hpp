// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/berth/verb.hpp"

/// Makes readers of flag values from parse functions.
namespace berth::cli {

/// Parses a value with `parse` into `target`. A list collects all values; a map keeps the last
/// value of a key.
template <class T, class Parse>
ReadValue read_into(T& target, Parse parse) {
  return [&target, parse](std::string_view text) -> Result<void> {
    target = TRY(parse(text));
    return {};
  };
}
template <class T, class Parse>
ReadValue append_to(std::vector<T>& target, Parse parse) {
  return [&target, parse](std::string_view text) -> Result<void> {
    target.push_back(TRY(parse(text)));
    return {};
  };
}
template <class Parse>
ReadValue add_to(std::map<std::string, std::string>& target, Parse parse) {
  return [&target, parse](std::string_view text) -> Result<void> {
    auto [key, value] = TRY(parse(text));
    target[key] = std::move(value);
    return {};
  };
}

/// docker's --isolation, which has only one value on Linux. `wanted` is the end of the error for
/// any other value.
inline ReadValue read_isolation(std::string wanted) {
  return [wanted = std::move(wanted)](std::string_view text) -> Result<void> {
    if (text.empty() || text == "default") return {};
    return make_error(Kind::usage, "expected default" + wanted);
  };
}

/// "linux/arm64". An empty value means no platform, as in docker: scripts write --platform
/// "$PLATFORM".
inline ReadValue read_platform(std::optional<std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target.reset();
    if (!text.empty()) target = text;
    return {};
  };
}

}  // namespace berth::cli
