// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/views.hpp"

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
    CgroupView view{path, whole ? "" : home->mount.substr(home->mount.rfind('/') + 1)};
    bool has_links = home->version == CgroupHierarchy::Version::v1 && home->controllers.size() > 1;
    for (const std::string& controller : home->controllers) {
      if (has_links && controller != view.name) view.links.push_back(controller);
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace berth::runtime
