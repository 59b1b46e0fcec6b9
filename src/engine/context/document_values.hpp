// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/value.hpp"

/// Values as docker writes them in documents. Pure.
namespace berth::engine {

inline json::Value strings(const std::vector<std::string>& texts) {
  return json::Array(texts.begin(), texts.end());
}

/// Docker writes null, not an empty list, for a flag that was not used.
inline json::Value strings_or_null(const std::vector<std::string>& texts) {
  return texts.empty() ? json::Value() : strings(texts);
}

inline json::Value text_map(const std::map<std::string, std::string>& map) {
  json::Object object;
  for (const auto& [name, value] : map) object.emplace_back(name, value);
  return object;
}

/// {"80/tcp": {}, …} with the keys of `map`.
template <class Map>
json::Value empty_objects(const Map& map) {
  json::Object object;
  for (const auto& [name, nothing] : map) object.emplace_back(name, json::Object{});
  return object;
}

}  // namespace berth::engine
