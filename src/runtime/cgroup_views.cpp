// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup_views.hpp"

namespace berth::runtime {

CgroupViews cgroup_views(const CgroupLayout& layout, const CgroupSet& cgroups) {
  CgroupViews views;
  for (const std::string& path : cgroups.paths()) {
    const CgroupHierarchy* home = nullptr;
    for (const auto& hierarchy : layout.hierarchies) {
      if (path.starts_with(hierarchy.mount + "/") &&
          (home == nullptr || hierarchy.mount.size() > home->mount.size())) {
        home = &hierarchy;
      }
    }
    if (home == nullptr) continue;
    bool whole = layout.kind() == CgroupLayout::Kind::unified;
    views.emplace_back(path, whole ? "" : home->mount.substr(home->mount.rfind('/') + 1));
  }
  return views;
}

}  // namespace berth::runtime
