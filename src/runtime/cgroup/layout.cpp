// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: the texts of the layout come from the kernel; the mount points in them were chosen
// by the process that mounted.
#include "runtime/cgroup/layout.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/table.hpp"

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

/// The path of `own` below a mount that shows the hierarchy from `root` on.
std::string below_root(const std::string& own, const std::string& root) {
  if (own.starts_with("/..")) return "/";  // outside of our cgroup namespace
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
    // The same hierarchy may be mounted again elsewhere: the first mount is the system's.
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

}  // namespace berth::runtime
