// SPDX-License-Identifier: Apache-2.0
#include "engine/image/lowest_layer.hpp"

#include <algorithm>
#include <string_view>

namespace berth::engine {
namespace {

constexpr std::string_view kLowerOption = "lowerdir+=";

}  // namespace

void add_lowest_layer(const std::string& layer, oci::Spec& spec) {
  if (layer.empty()) return;
  for (oci::Mount& mount : spec.mounts) {
    if (mount.destination != "/" || mount.type != "overlay") continue;
    auto last = std::find_if(mount.options.rbegin(), mount.options.rend(),
                             [](const std::string& o) { return o.starts_with(kLowerOption); });
    mount.options.insert(last.base(), std::string(kLowerOption) + layer);
  }
}

}  // namespace berth::engine
