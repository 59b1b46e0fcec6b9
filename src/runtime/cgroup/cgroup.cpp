// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none at create; a container that may write to its cgroup can make others in it.
#include "runtime/cgroup/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/cgroup/files.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

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

}  // namespace berth::runtime
