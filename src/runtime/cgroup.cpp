// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none at create; a container that may write to its cgroup can make others in it.
#include "runtime/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "runtime/cgroup_files.hpp"
#include "runtime/cgroup_limits.hpp"
#include "runtime/device_filter.hpp"
#include "sys/file.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;

bool is_permission(int code) {
  return code == EACCES || code == EPERM || code == EROFS;
}

/// "berth/c1" for "/berth/c1".
Result<std::string> parse_path(const std::string& path) {
  std::string name;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || part.find('\0') != std::string_view::npos) {
      return make_error(Kind::usage, "use cgroup path " + quoted(path));
    }
    if (!name.empty()) name += '/';
    name += part;
  }
  if (name.empty()) return make_error(Kind::usage, "use cgroup path " + quoted(path));
  return name;
}

/// The directories below which a container's directory may be: the mount, and beside ourselves.
std::vector<std::string> bases(const CgroupHierarchy& hierarchy) {
  std::vector<std::string> found{hierarchy.mount};
  size_t slash = hierarchy.own.rfind('/');
  if (hierarchy.version == Version::v2 && slash != std::string::npos && slash > 0) {
    found.push_back(hierarchy.mount + hierarchy.own.substr(0, slash));
  }
  return found;
}

/// The lines of one file after the other; both are kept open, because there are a dozen of them.
Result<void> write_device_lines(const sys::Fd& directory,
                                const std::vector<std::pair<std::string, std::string>>& lines) {
  sys::Fd allow = TRY(sys::open_at(directory, "devices.allow", O_WRONLY));
  sys::Fd deny = TRY(sys::open_at(directory, "devices.deny", O_WRONLY));
  for (const auto& [name, line] : lines) {
    const sys::Fd& file = name == "devices.allow" ? allow : deny;
    if (::write(file.get(), line.data(), line.size()) < 0) {
      int saved = errno;
      return sys_error(saved, "write " + quoted(line) + " to " + quoted(name));
    }
  }
  return {};
}

// In v1 a new cpuset has no processors and takes no process until it has some.
Result<void> inherit_cpuset(const sys::Fd& parent, const sys::Fd& directory) {
  for (const std::string name : {"cpuset.cpus", "cpuset.mems"}) {
    auto own = TRY(sys::read_file(directory, name));
    if (!trim(own).empty()) continue;
    auto value = TRY(sys::read_file(parent, name));
    TRY(write_cgroup_file(directory, name, std::string(trim(value))));
  }
  return {};
}

/// Lets the children of `directory` have `controllers`. What cannot be had shows when the files of
/// the controller are missing.
void enable_controllers(const sys::Fd& directory, const std::set<std::string>& controllers) {
  std::string all;
  for (const auto& name : controllers) {
    all += all.empty() ? "+" : " +";
    all += name;
  }
  if (all.empty() || write_cgroup_file(directory, "cgroup.subtree_control", all).ok()) return;
  // One that is refused makes the kernel refuse the whole line.
  for (const auto& name : controllers) {
    ignore(write_cgroup_file(directory, "cgroup.subtree_control", "+" + name));
  }
}

/// Whether a directory cannot be made for a reason that is the machine's: the place is not ours, or
/// the mount is hidden. A parent that is gone is another matter: it went with its last child.
bool is_out_of_reach(const Error& error, size_t depth) {
  return is_permission(error.sys_errno) || (error.sys_errno == ENOENT && depth == 0);
}

/// Whether a limit on the container can be told from its absence: an allow-all list cannot.
bool restricts(const std::vector<oci::DeviceRule>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const auto& rule) { return !rule.allow; });
}

/// What is to be written into one hierarchy.
struct Share {
  const CgroupHierarchy* hierarchy = nullptr;
  std::vector<CgroupWrite> writes;
};

/// Why no hierarchy takes `write`.
std::string why_left(const CgroupLayout& layout, const CgroupWrite& write) {
  const auto* home = layout.find(write.controller);
  if (write.controller.empty()) return "no cgroup v2";
  if (home == nullptr) return "no cgroup controller '" + write.controller + "'";
  return home->version == Version::v1
             ? "controller '" + write.controller + "' is one of cgroup v1 here"
             : "cgroup v2 has no such limit";
}

/// Deals what `resources` asks for to the hierarchies that have the controllers.
Result<std::vector<Share>> deal(const CgroupLayout& layout, const oci::Resources& resources,
                                std::vector<UnmetLimit>& unmet) {
  std::vector<Share> shares;
  for (const auto& hierarchy : layout.hierarchies) shares.push_back({&hierarchy, {}});
  std::set<std::string> met;
  std::vector<CgroupWrite> left;
  auto deal_to = [&](std::vector<CgroupWrite> writes, Version version) {
    for (auto& write : writes) {
      const auto* home =
          write.controller.empty() ? layout.unified() : layout.find(write.controller);
      if (home == nullptr || home->version != version) {
        left.push_back(std::move(write));
        continue;
      }
      met.insert(write.limit);
      shares[static_cast<size_t>(home - layout.hierarchies.data())].writes.push_back(
          std::move(write));
    }
  };
  deal_to(TRY(v1_writes(resources)), Version::v1);
  auto of_v2 = resources;
  const auto* memory = layout.find("memory");
  if (memory == nullptr || memory->version == Version::v1) of_v2.memory.reset();
  deal_to(TRY(v2_writes(of_v2)), Version::v2);

  for (const auto& write : left) {
    if (!met.insert(write.limit).second) continue;
    unmet.push_back({write.limit, why_left(layout, write)});
  }
  return shares;
}

}  // namespace

// ---- making -------------------------------------------------------------------------------------

/// Makes one directory after the other and takes all back unless the last step succeeds.
class CgroupMaker {
 public:
  CgroupMaker(const CgroupLayout& layout, std::string name, CgroupSet& made)
      : layout_(layout), name_(std::move(name)), made_(made) {}

  Result<void> make(const oci::Resources& resources);
  /// Nothing when the rules hold.
  Result<std::optional<UnmetLimit>> restrict_devices(const std::vector<oci::DeviceRule>& rules);

 private:
  bool is_needed(const Share& share) const;
  Result<void> make_share(const Share& share);
  Result<bool> make_directory(const CgroupHierarchy& hierarchy, const std::string& base,
                              const std::set<std::string>& controllers);
  Result<bool> make_one(const std::string& path);
  Result<void> filter_devices(const std::vector<oci::DeviceRule>& rules);
  Result<void> list_devices(const std::vector<oci::DeviceRule>& rules);
  void lacks(const Share& share, const std::string& reason);

  const CgroupLayout& layout_;
  std::string name_;
  CgroupSet& made_;
  Rollback undo_;
};

void CgroupMaker::lacks(const Share& share, const std::string& reason) {
  std::set<std::string> named;
  for (const auto& write : share.writes) {
    if (named.insert(write.limit).second) made_.unmet_.push_back({write.limit, reason});
  }
}

bool CgroupMaker::is_needed(const Share& share) const {
  if (!share.writes.empty() || share.hierarchy->version == Version::v2) return true;
  return layout_.unified() == nullptr && share.hierarchy == layout_.find("freezer");
}

/// False when it was there already.
Result<bool> CgroupMaker::make_one(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) {
    undo_.add([path] { ::rmdir(path.c_str()); });
    return true;
  }
  int saved = errno;
  if (saved == EEXIST) return false;
  return sys_error(saved, "make cgroup " + quoted(path));
}

/// False when the caller may not make it there.
Result<bool> CgroupMaker::make_directory(const CgroupHierarchy& hierarchy, const std::string& base,
                                         const std::set<std::string>& controllers) {
  bool is_v2 = hierarchy.version == Version::v2;
  const auto& names = hierarchy.controllers;
  bool is_cpuset = !is_v2 && std::find(names.begin(), names.end(), "cpuset") != names.end();
  std::string path = base;
  auto parts = split(name_, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    bool is_last = i + 1 == parts.size();
    sys::Fd parent;
    if (is_cpuset || !controllers.empty()) {
      auto opened = sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY);
      if (!opened.ok() && is_out_of_reach(opened.error(), i)) return false;
      parent = TRY(std::move(opened));
    }
    if (is_v2) enable_controllers(parent, controllers);
    path += "/" + std::string(parts[i]);
    auto made = make_one(path);
    if (!made.ok() && is_out_of_reach(made.error(), i)) return false;
    bool is_new = TRY(std::move(made));
    if (!is_last && !is_cpuset) continue;

    sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
    if (is_cpuset) TRY(inherit_cpuset(parent, directory));
    if (!is_last) continue;
    std::vector<pid_t> inside;
    if (!is_new) TRY(append_processes(directory, inside));
    if (!inside.empty()) {
      return make_error(Kind::exists, "make cgroup " + quoted(path) + ": it has processes");
    }
    made_.directories_.push_back({path, hierarchy.version, names, std::move(directory)});
  }
  return true;
}

Result<void> CgroupMaker::make_share(const Share& share) {
  std::set<std::string> controllers;  // to enable, which v1 does not know
  for (const auto& write : share.writes) {
    if (share.hierarchy->version == Version::v2 && !write.controller.empty()) {
      controllers.insert(write.controller);
    }
  }
  bool made = false;
  for (const auto& base : bases(*share.hierarchy)) {
    made = TRY(make_directory(*share.hierarchy, base, controllers));
    if (made) break;
  }
  if (!made) {
    lacks(share, "no permission for '" + share.hierarchy->mount + "'");
    return {};
  }
  return made_.apply(made_.directories_.back(), share.writes);
}

/// By a BPF program on the v2 directory, into which the process is born.
Result<void> CgroupMaker::filter_devices(const std::vector<oci::DeviceRule>& rules) {
  const auto* v2 = made_.find_unified();
  if (v2 == nullptr) return make_error(Kind::unsupported, "find a cgroup for the rules");
  return attach_device_filter(v2->fd, TRY(compile_device_filter(rules)));
}

/// By the v1 files, into whose directory the process has to migrate.
Result<void> CgroupMaker::list_devices(const std::vector<oci::DeviceRule>& rules) {
  const auto* hierarchy = layout_.find("devices");
  if (hierarchy == nullptr || hierarchy->version != Version::v1) {
    return make_error(Kind::unsupported, "find a cgroup for the rules");
  }
  if (made_.find("devices") == nullptr) TRY(make_share({hierarchy, {}}));
  const auto* v1 = made_.find("devices");
  if (v1 == nullptr) {
    return make_error(Kind::denied, "no permission for '" + hierarchy->mount + "'");
  }
  return write_device_lines(v1->fd, TRY(device_lines(rules)));
}

Result<std::optional<UnmetLimit>> CgroupMaker::restrict_devices(
    const std::vector<oci::DeviceRule>& rules) {
  auto is_absent = [](const Result<void>& done) {
    return !done.ok() &&
           (done.error().kind == Kind::denied || done.error().kind == Kind::unsupported);
  };
  auto all = with_default_devices(rules);
  auto done = filter_devices(all);
  if (is_absent(done)) done = list_devices(all);
  std::optional<UnmetLimit> unmet;
  if (!is_absent(done)) {
    TRY(std::move(done));
  } else if (restricts(rules)) {
    unmet = UnmetLimit{"devices", to_line(done.error())};
  }
  undo_.commit();
  return unmet;
}

Result<void> CgroupMaker::make(const oci::Resources& resources) {
  auto shares = TRY(deal(layout_, resources, made_.unmet_));
  for (const auto& share : shares) {
    if (is_needed(share)) TRY(make_share(share));
  }
  undo_.commit();
  return {};
}

Result<CgroupSet> CgroupSet::create(const CgroupLayout& layout, const std::string& path,
                                    const oci::Resources& resources) {
  std::string name = TRY(parse_path(path));
  // The common parent may go, with the last of its other containers, between two calls of ours.
  for (int attempt = 0;; ++attempt) {
    CgroupSet made;
    auto result = CgroupMaker(layout, name, made).make(resources);
    if (result.ok()) return made;
    if (result.error().kind != Kind::not_found || attempt == 5) return std::move(result).error();
  }
}

Result<std::optional<UnmetLimit>> CgroupSet::restrict_devices(
    const CgroupLayout& layout, const std::string& path,
    const std::vector<oci::DeviceRule>& rules) {
  if (rules.empty()) return std::optional<UnmetLimit>();
  std::string name = TRY(parse_path(path));
  return CgroupMaker(layout, name, *this).restrict_devices(rules);
}

Result<CgroupSet> CgroupSet::open(const CgroupLayout& layout, const std::string& path) {
  std::string name = TRY(parse_path(path));
  CgroupSet found;
  for (const auto& hierarchy : layout.hierarchies) {
    for (const auto& base : bases(hierarchy)) {
      std::string directory = base + "/" + name;
      auto fd = TRY(sys::open_if_exists(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
      if (!fd) continue;
      found.directories_.push_back(
          {directory, hierarchy.version, hierarchy.controllers, std::move(*fd)});
      break;
    }
  }
  return found;
}

// ---- limits -------------------------------------------------------------------------------------

/// A file that is not there, or not ours to write, is an unmet limit; a value that the kernel
/// refuses is an error. Values that depend on one another (memory and memory with swap, runtime and
/// period) are tried again after the others.
Result<void> CgroupSet::apply(const Directory& directory, const std::vector<CgroupWrite>& writes) {
  auto write_one = [&](const CgroupWrite& write) {
    auto written = write_cgroup_file(directory.fd, write.file, write.value);
    if (written.ok() || written.error().kind != Kind::not_found || write.instead.empty()) {
      return written;
    }
    return write_cgroup_file(directory.fd, write.instead, write.value);
  };
  std::vector<const CgroupWrite*> again;
  for (const auto& write : writes) {
    auto written = write_one(write);
    if (written.ok()) continue;
    int code = written.error().sys_errno;
    if (code == ENOENT && write.absent == CgroupWrite::Absent::ignore) continue;
    if (code == ENOENT || is_permission(code)) {
      unmet_.push_back({write.limit, "no '" + directory.path + "/" + write.file + "'"});
    } else {
      again.push_back(&write);
    }
  }
  for (const auto* write : again) {
    TRY_CTX(write_one(*write), "cannot set " + write->limit);
  }
  return {};
}

Result<void> CgroupSet::update(const CgroupLayout& layout, const oci::Resources& resources) {
  unmet_.clear();
  auto shares = TRY(deal(layout, resources, unmet_));
  for (const auto& share : shares) {
    if (share.writes.empty()) continue;
    auto is_home = [&](const Directory& entry) {
      return entry.version == share.hierarchy->version &&
             entry.controllers == share.hierarchy->controllers;
    };
    auto home = std::find_if(directories_.begin(), directories_.end(), is_home);
    if (home == directories_.end()) {
      for (const auto& write : share.writes) {
        unmet_.push_back({write.limit, "the container is not in '" + share.hierarchy->mount + "'"});
      }
      continue;
    }
    TRY(apply(*home, share.writes));
  }
  return {};
}

// ---- members ------------------------------------------------------------------------------------

const CgroupSet::Directory* CgroupSet::find(std::string_view controller) const {
  for (const auto& directory : directories_) {
    const auto& names = directory.controllers;
    if (std::find(names.begin(), names.end(), controller) != names.end()) return &directory;
  }
  return nullptr;
}

const CgroupSet::Directory* CgroupSet::find_unified() const {
  for (const auto& directory : directories_) {
    if (directory.version == Version::v2) return &directory;
  }
  return nullptr;
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

Result<void> CgroupSet::add(pid_t pid, Unified unified) const {
  for (const auto& directory : directories_) {
    if (directory.version == Version::v2 && unified == Unified::already_inside) continue;
    TRY_CTX(write_cgroup_file(directory.fd, "cgroup.procs", std::to_string(pid)),
            "cannot move process " + std::to_string(pid) + " into " + quoted(directory.path));
  }
  return {};
}

}  // namespace berth::runtime
