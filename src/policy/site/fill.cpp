// SPDX-License-Identifier: Apache-2.0
#include "policy/site/fill.hpp"

namespace berth::policy {

json::Value alone(const TomlEntry& entry) {
  json::Value value = entry.value;
  for (auto name = entry.path.rbegin(); name != entry.path.rend(); ++name) {
    json::Object object;
    object.emplace_back(*name, std::move(value));
    value = json::Value(std::move(object));
  }
  return value;
}

}  // namespace berth::policy
