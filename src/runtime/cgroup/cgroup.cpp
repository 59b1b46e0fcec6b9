// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none at create; a container that may write to its cgroup can make others in it.
// The layout comes from files of the kernel; the mount points in them were chosen by the processes
// that mounted.
#include "runtime/cgroup/cgroup.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "runtime/cgroup/files.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;

}  // namespace

const CgroupSet::Directory* CgroupSet::find(std::string_view controller) const {
  for (const auto& directory : directories_) {
    const auto& names = directory.controllers;
    if (std::ranges::find(names, controller) != names.end()) return &directory;
  }
  return nullptr;
}

const CgroupSet::Directory* CgroupSet::find_unified() const {
  for (const auto& directory : directories_) {
    if (directory.version == Version::v2) return &directory;
  }
  return nullptr;
}

const sys::Fd* CgroupSet::directory(std::string_view controller) const {
  const auto* found = controller.empty() ? find_unified() : find(controller);
  return found != nullptr ? &found->fd : nullptr;
}

bool CgroupSet::is_v2(std::string_view controller) const {
  const auto* found = controller.empty() ? find_unified() : find(controller);
  return found != nullptr && found->version == Version::v2;
}

int CgroupSet::unified_fd() const {
  const auto* directory = find_unified();
  return directory != nullptr ? directory->fd.get() : -1;
}

std::vector<std::string> CgroupSet::paths() const {
  std::vector<std::string> list;
  for (const auto& directory : directories_) list.push_back(directory.path);
  return list;
}

Result<std::vector<sys::Fd>> CgroupSet::open_tasks_files() const {
  std::vector<sys::Fd> tasks_files;
  for (const auto& directory : directories_) {
    if (directory.version == Version::v2) continue;
    tasks_files.push_back(TRY(sys::open_at(directory.fd, "tasks", O_WRONLY)));
  }
  return tasks_files;
}

Result<void> CgroupSet::move(pid_t pid, const Directory& directory) {
  TRY_CTX(write_cgroup_file(directory.fd, "cgroup.procs", std::to_string(pid)),
          "cannot move process " + std::to_string(pid) + " into " + quote(directory.path));
  return {};
}

Result<void> CgroupSet::add(pid_t pid, Unified unified) const {
  for (const auto& directory : directories_) {
    if (directory.version == Version::v2 && unified == Unified::already_inside) continue;
    TRY(move(pid, directory));
  }
  return {};
}

Result<void> CgroupSet::add_to_unified(pid_t pid) const {
  const auto* directory = find_unified();
  return directory == nullptr ? Result<void>() : move(pid, *directory);
}

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
