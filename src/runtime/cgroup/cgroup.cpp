// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none at create; a container that may write to its cgroup can make others in it.
// The layout comes from files of the kernel; the mount points in them were chosen by the processes
// that mounted.
#include "runtime/cgroup/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/text.hpp"
#include "runtime/cgroup/files.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/table.hpp"
#include "sys/user/identity.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;

/// "9:name=systemd:/a" → {"name=systemd" → "/a"}; v2 has the key "".
std::map<std::string, std::string, std::less<>> own_paths(std::string_view self_cgroup) {
  std::map<std::string, std::string, std::less<>> paths;
  for (std::string_view line : split(self_cgroup, '\n')) {
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string path(line.substr(second + 1));
    for (std::string_view key : split(line.substr(first + 1, second - first - 1), ',')) {
      paths.emplace(key, path);
    }
  }
  return paths;
}

/// The path of cgroup `own` below a mount whose root is the cgroup `root`.
std::string below_root(const std::string& own, const std::string& root) {
  if (own.starts_with("/..")) return "/";  // it is outside of our cgroup namespace
  if (root == "/") return own;
  if (own == root || !own.starts_with(root + "/")) return "/";
  return own.substr(root.size());
}

bool is_v1_option_of_a_mount(std::string_view word) {
  constexpr std::string_view kWords[] = {
      "rw", "ro", "xattr", "clone_children", "noprefix", "cpuset_v2_mode", "favordynmods"};
  return std::ranges::find(kWords, word) != std::end(kWords) || word.starts_with("release_agent=");
}

}  // namespace

CgroupLayout::Kind CgroupLayout::kind() const {
  bool v1 = std::ranges::any_of(hierarchies,
                                [](const auto& entry) { return entry.version == Version::v1; });
  bool v2 = unified() != nullptr;
  if (v1) return v2 ? Kind::hybrid : Kind::legacy;
  return v2 ? Kind::unified : Kind::none;
}

const CgroupHierarchy* CgroupLayout::unified() const {
  for (const auto& hierarchy : hierarchies) {
    if (hierarchy.version == Version::v2) return &hierarchy;
  }
  return nullptr;
}

const CgroupHierarchy* CgroupLayout::find(std::string_view controller) const {
  for (const auto& hierarchy : hierarchies) {
    const auto& names = hierarchy.controllers;
    if (std::ranges::find(names, controller) != names.end()) return &hierarchy;
  }
  return nullptr;
}

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup) {
  CgroupLayout layout;
  auto own = own_paths(self_cgroup);
  for (std::string_view line : split(mountinfo, '\n')) {
    // "36 35 98:0 /root /mount options optional… - type source super-options"
    if (line.find(" - cgroup") == std::string_view::npos) continue;
    auto words = split_blank(line);
    auto dash = std::ranges::find(words, "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    std::string root = sys::unescape_mount_path(words[3]);
    CgroupHierarchy hierarchy;
    hierarchy.mount = sys::unescape_mount_path(words[4]);
    std::string key;
    if (dash[1] == "cgroup") {
      for (std::string_view word : split(dash[3], ',')) {
        if (!is_v1_option_of_a_mount(word)) hierarchy.controllers.emplace_back(word);
      }
      if (hierarchy.controllers.empty()) continue;
      key = hierarchy.controllers.front();
    } else if (dash[1] == "cgroup2") {
      hierarchy.version = Version::v2;
    } else {
      continue;
    }
    auto path = own.find(key);
    hierarchy.own = path == own.end() ? "/" : below_root(path->second, root);
    // The same hierarchy may be mounted again elsewhere: the first mount is the one that the system
    // made.
    bool known = hierarchy.version == Version::v2 ? layout.unified() != nullptr
                                                  : layout.find(key) != nullptr;
    if (!known) layout.hierarchies.push_back(std::move(hierarchy));
  }
  return layout;
}

CgroupStarts own_cgroups(const CgroupLayout& layout) {
  CgroupStarts starts;
  for (const auto& hierarchy : layout.hierarchies) {
    if (hierarchy.own != "/") starts[hierarchy.mount] = hierarchy.own;
  }
  return starts;
}

void begin_at(const CgroupStarts& starts, CgroupLayout& layout) {
  for (auto& hierarchy : layout.hierarchies) {
    auto start = starts.find(hierarchy.mount);
    if (start != starts.end()) hierarchy.start = start->second;
  }
}

Result<CgroupLayout> detect_cgroup_layout() {
  auto own = TRY(sys::read_file_if_exists(sys::cwd(), "/proc/self/cgroup"));
  if (!own) return CgroupLayout();
  auto mounts = TRY(sys::read_file(sys::cwd(), "/proc/self/mountinfo"));
  auto layout = parse_cgroup_layout(mounts, *own);
  for (auto& hierarchy : layout.hierarchies) {
    if (hierarchy.version != Version::v2) continue;
    auto names =
        sys::read_file_if_exists(sys::cwd(), hierarchy.mount + "/cgroup.controllers", 4096);
    if (!names.ok() || !*names) continue;  // hidden: no controller can be used
    for (std::string_view name : split_blank(**names)) hierarchy.controllers.emplace_back(name);
  }
  return layout;
}

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
