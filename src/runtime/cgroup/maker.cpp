// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: none at create; a container that may write to its cgroup can make child cgroups.
#include "runtime/cgroup/maker.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.hpp"
#include "runtime/cgroup/device_filter.hpp"
#include "runtime/cgroup/files.hpp"
#include "runtime/cgroup/limits.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;

bool has_controller(const CgroupHierarchy& hierarchy, std::string_view controller) {
  const auto& names = hierarchy.controllers;
  return std::ranges::find(names, controller) != names.end();
}

/// The directory of our own cgroup.
std::string own_directory(const CgroupHierarchy& hierarchy) {
  return hierarchy.own == "/" ? hierarchy.mount : hierarchy.mount + hierarchy.own;
}

/// The possible parents of a container's directory: the mount, the parent of our own cgroup, and
/// our own cgroup.
std::vector<std::string> bases(const CgroupHierarchy& hierarchy) {
  if (!hierarchy.start.empty()) return {hierarchy.mount + hierarchy.start};
  std::vector<std::string> found{hierarchy.mount};
  if (hierarchy.version == Version::v1 || hierarchy.own == "/" || hierarchy.own.empty())
    return found;
  size_t slash = hierarchy.own.rfind('/');
  if (slash > 0) found.push_back(hierarchy.mount + hierarchy.own.substr(0, slash));
  found.push_back(own_directory(hierarchy));
  return found;
}

/// Writes the lines to the two files. Keeps both files open, because there are a dozen lines.
Result<void> write_device_lines(const sys::Fd& directory,
                                const std::vector<std::pair<std::string, std::string>>& lines) {
  sys::Fd allow = TRY(sys::open_at(directory, "devices.allow", O_WRONLY));
  sys::Fd deny = TRY(sys::open_at(directory, "devices.deny", O_WRONLY));
  for (const auto& [name, line] : lines) {
    const sys::Fd& file = name == "devices.allow" ? allow : deny;
    if (::write(file.get(), line.data(), line.size()) < 0) {
      int saved = errno;
      return sys_error(saved, "write " + quote(line) + " to " + quote(name));
    }
  }
  return {};
}

// In v1 a new cpuset has no processors, and accepts no process until it has some.
Result<void> inherit_cpuset(const sys::Fd& parent, const sys::Fd& directory) {
  for (const std::string name : {"cpuset.cpus", "cpuset.mems"}) {
    auto own = TRY(sys::read_file(directory, name));
    if (!trim(own).empty()) continue;
    auto value = TRY(sys::read_file(parent, name));
    TRY(write_cgroup_file(directory, name, std::string(trim(value))));
  }
  return {};
}

/// Whether a directory cannot be made because of the machine: no permission, or a hidden mount. A
/// missing parent does not count: it was removed together with the last container in it.
bool is_out_of_reach(const Error& error, size_t depth) {
  return is_permission(error.sys_errno) || (error.sys_errno == ENOENT && depth == 0);
}

/// Whether the rules restrict anything: a list that allows all does not.
bool restricts(const std::vector<oci::DeviceRule>& rules) {
  return std::ranges::any_of(rules, [](const auto& rule) { return !rule.allow; });
}

/// Whether processes of the cgroup `directory` would be frozen, by its own freezer or by that of a
/// cgroup above.
Result<bool> is_frozen_cgroup(const sys::Fd& directory, const CgroupHierarchy& hierarchy) {
  bool is_v2 = hierarchy.version == Version::v2;
  if (!is_v2 && !has_controller(hierarchy, "freezer")) return false;
  auto text =
      TRY(sys::read_file_if_exists(directory, is_v2 ? "cgroup.events" : "freezer.state", 4096));
  std::string_view frozen = is_v2 ? "frozen 1" : "FR";  // FROZEN, FREEZING
  return text && text->find(frozen) != std::string::npos;
}

}  // namespace

void make_room(const sys::Fd& directory, const CgroupHierarchy& hierarchy,
               const std::string& path) {
  if (path != own_directory(hierarchy) || !hierarchy.start.empty()) return;
  constexpr const char* kLeaf = "berth-callers";
  auto type = sys::stat_entry(directory, "cgroup.type");
  if (!type.ok() || !*type) return;
  if (!sys::make_directory(directory, kLeaf).ok()) return;
  auto leaf = sys::open_at(directory, kLeaf, O_RDONLY | O_DIRECTORY);
  if (!leaf.ok()) return;
  // The processes may fork meanwhile.
  for (bool moved = true; moved;) {
    moved = false;
    auto inside = sys::read_file_if_exists(directory, "cgroup.procs");
    if (!inside.ok() || !*inside) return;
    for (std::string_view pid : split_blank(**inside)) {
      moved = write_cgroup_file(*leaf, "cgroup.procs", std::string(pid)).ok() || moved;
    }
  }
}

void enable_controllers(const sys::Fd& directory, const std::set<std::string>& controllers) {
  std::string all;
  for (const auto& name : controllers) {
    all += all.empty() ? "+" : " +";
    all += name;
  }
  if (all.empty() || write_cgroup_file(directory, "cgroup.subtree_control", all).ok()) return;
  // One by one: if the kernel refuses one controller of a line, it refuses the whole line.
  for (const auto& name : controllers) {
    ignore(write_cgroup_file(directory, "cgroup.subtree_control", "+" + name));
  }
}

Result<std::string> parse_cgroup_path(const std::string& path) {
  std::string name;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      return make_error(Kind::usage, "use cgroup path " + quote(path) + ": it contains '..'");
    }
    if (part.find('\0') != std::string_view::npos) {
      return make_error(Kind::usage, "use cgroup path " + quote(path) + ": it contains NUL");
    }
    if (!name.empty()) name += '/';
    name += part;
  }
  if (name.empty()) {
    return make_error(Kind::usage, "use cgroup path " + quote(path) + ": it names no cgroup");
  }
  return name;
}

/// Drops the warning about swap when the memory limit is unmet too: one line is enough, and the
/// swap limit may be a default that the user did not ask for.
void say_memory_once(std::vector<UnmetLimit>& unmet) {
  auto is = [](std::string_view name) {
    return [name](const UnmetLimit& one) { return one.name == name; };
  };
  if (std::ranges::any_of(unmet, is("memory.limit"))) {
    std::erase_if(unmet, is("memory.swap"));
  }
}

Result<std::vector<CgroupShare>> deal(const CgroupLayout& layout, const oci::Resources& resources,
                                      std::vector<UnmetLimit>& unmet) {
  std::vector<CgroupShare> shares;
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
  deal_to(v1_writes(resources), Version::v1);
  auto of_v2 = resources;
  const auto* memory = layout.find("memory");
  if (memory == nullptr || memory->version == Version::v1) of_v2.memory.reset();
  deal_to(TRY(v2_writes(of_v2)), Version::v2);

  for (const auto& write : left) {
    if (lifts_limit(write) || !met.insert(write.limit).second) continue;
    unmet.push_back({write.limit, why_left(layout, write)});
  }
  say_memory_once(unmet);
  return shares;
}

// ---- making -------------------------------------------------------------------------------------

void CgroupMaker::lacks(const CgroupShare& share, const std::string& reason) {
  std::set<std::string> named;
  for (const auto& write : share.writes) {
    if (!lifts_limit(write) && named.insert(write.limit).second)
      made_.unmet_.push_back({write.limit, reason});
  }
  say_memory_once(made_.unmet_);
}

/// Whether `resources` has a member for a controller of `hierarchy`, even an empty one: Docker
/// writes all members, and reads usage from the files of each controller.
bool is_named(const CgroupHierarchy& hierarchy, const oci::Resources& resources) {
  std::set<std::string_view> named;
  if (resources.memory) named.insert("memory");
  if (resources.cpu) named.insert({"cpu", "cpuacct"});
  if (resources.pids) named.insert("pids");
  if (resources.block_io) named.insert("blkio");
  return std::ranges::any_of(hierarchy.controllers,
                             [&](const std::string& name) { return named.contains(name); });
}

bool CgroupMaker::is_needed(const CgroupShare& share, const oci::Resources& resources) const {
  if (!share.writes.empty() || share.hierarchy->version == Version::v2) return true;
  if (is_named(*share.hierarchy, resources)) return true;
  return layout_.unified() == nullptr && share.hierarchy == layout_.find("freezer");
}

/// Makes one directory; false when it existed already.
Result<bool> CgroupMaker::make_one(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) {
    undo_.add([path] { ::rmdir(path.c_str()); });
    return true;
  }
  int saved = errno;
  if (saved == EEXIST) return false;
  return sys_error(saved, "make cgroup " + quote(path));
}

/// Makes the container's directory below `base`; false when the caller may not make it there.
Result<bool> CgroupMaker::make_directory(const CgroupHierarchy& hierarchy, const std::string& base,
                                         const std::set<std::string>& controllers) {
  bool is_v2 = hierarchy.version == Version::v2;
  const auto& names = hierarchy.controllers;
  bool is_cpuset = !is_v2 && has_controller(hierarchy, "cpuset");
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
    if (is_v2 && !controllers.empty()) make_room(parent, hierarchy, path);
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
      return make_error(Kind::exists, "make cgroup " + quote(path) + ": it has processes");
    }
    // In a frozen cgroup the container's process would never run, and we would wait for it.
    bool may_be_frozen = !is_new || parts.size() > 1;
    if (may_be_frozen && TRY(is_frozen_cgroup(directory, hierarchy))) {
      return make_error(Kind::busy, "make cgroup " + quote(path) + ": it is frozen");
    }
    made_.directories_.push_back({path, hierarchy.version, names, std::move(directory)});
  }
  return true;
}

Result<void> CgroupMaker::make_share(const CgroupShare& share) {
  std::set<std::string> controllers;  // controllers to enable; v1 has no such step
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
    lacks(share, why_no_permission(layout_, *share.hierarchy));
    return {};
  }
  return made_.apply(made_.directories_.back(), share.writes);
}

/// Enforces the rules by a BPF program on the v2 directory in which the process starts.
Result<void> CgroupMaker::filter_devices(const std::vector<oci::DeviceRule>& rules) {
  const auto* v2 = made_.find_unified();
  if (v2 == nullptr) return make_error(Kind::unsupported, "find a cgroup for the rules");
  return attach_device_filter(v2->fd, TRY(compile_device_filter(rules)));
}

/// Enforces the rules through the v1 files, so the process has to migrate into their directory.
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
  return unmet;
}

Result<void> CgroupMaker::make(const oci::Resources& resources, CgroupSet::Which which) {
  TRY(check_resources(resources));
  auto shares = TRY(deal(layout_, resources, made_.unmet_));
  for (const auto& share : shares) {
    bool is_left = which == CgroupSet::Which::needed || (which == CgroupSet::Which::without_cpu &&
                                                         has_controller(*share.hierarchy, "cpu"));
    bool is_wanted = !is_left || is_needed(share, resources);
    if (is_wanted) TRY(make_share(share));
  }
  undo_.commit();
  return {};
}

Result<CgroupSet> CgroupSet::create(const CgroupLayout& layout, const std::string& path,
                                    const oci::Resources& resources, Which which) {
  std::string name = TRY(parse_cgroup_path(path));
  // Between two of our calls the common parent may be removed, together with the last other
  // container.
  for (int attempt = 0;; ++attempt) {
    CgroupSet made;
    auto result = CgroupMaker(layout, name, made).make(resources, which);
    if (result.ok()) return made;
    if (result.error().kind != Kind::not_found || attempt == 5) return std::move(result).error();
  }
}

Result<std::optional<UnmetLimit>> CgroupSet::restrict_devices(
    const CgroupLayout& layout, const std::string& path,
    const std::vector<oci::DeviceRule>& rules) {
  if (rules.empty()) return std::optional<UnmetLimit>();
  std::string name = TRY(parse_cgroup_path(path));
  CgroupMaker maker(layout, name, *this);
  auto unmet = TRY(maker.restrict_devices(rules));
  maker.commit();
  return unmet;
}

Result<CgroupSet> CgroupSet::open(const CgroupLayout& layout, const std::string& path) {
  std::string name = TRY(parse_cgroup_path(path));
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

Result<CgroupSet> CgroupSet::below(std::string_view controller, const std::string& path) const {
  std::string name = TRY(parse_cgroup_path(path));
  CgroupSet found;
  bool hit = false;
  std::optional<Result<sys::Fd>> missing;
  for (const auto& directory : directories_) {
    const auto& names = directory.controllers;
    bool meant = controller.empty() || std::ranges::find(names, controller) != names.end();
    std::string place = meant ? directory.path + "/" + name : directory.path;
    auto fd = sys::open_at(sys::cwd(), place, O_RDONLY | O_DIRECTORY);
    if (!fd.ok() && meant && fd.error().kind == Kind::not_found && controller.empty()) {
      missing = std::move(fd);  // another hierarchy may have it
      place = directory.path;
      fd = sys::open_at(sys::cwd(), place, O_RDONLY | O_DIRECTORY);
    } else {
      hit = hit || meant;
    }
    found.directories_.push_back({place, directory.version, names, TRY(std::move(fd))});
  }
  if (hit) return found;
  if (missing) return std::move(*missing).error();
  return make_error(Kind::not_found,
                    "find a cgroup of the container for " + quote(std::string(controller)));
}

// ---- members ------------------------------------------------------------------------------------

}  // namespace berth::runtime
