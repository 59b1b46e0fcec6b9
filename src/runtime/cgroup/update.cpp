// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all.
// Hostile input: processes inside a container may fork while they are moved.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "runtime/cgroup/device_filter.hpp"
#include "runtime/cgroup/files.hpp"
#include "runtime/cgroup/maker.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

using Version = CgroupHierarchy::Version;

/// The controllers that a v2 hierarchy has to enable for the writes of `share`.
std::set<std::string> controllers_of(const CgroupShare& share) {
  std::set<std::string> controllers;
  if (share.hierarchy->version == Version::v1) return controllers;
  for (const auto& write : share.writes) {
    if (!write.controller.empty()) controllers.insert(write.controller);
  }
  return controllers;
}

/// A value that can be written back: one word or number, as in most files.
std::optional<std::string> plain_value(const sys::Fd& directory, const std::string& file) {
  auto text = sys::read_file_if_exists(directory, file, 4096);
  if (!text.ok() || !*text) return std::nullopt;
  std::string value(trim(**text));
  bool is_table = value.find_first_of("\n:=") != std::string::npos || value.starts_with("default");
  return is_table || value.empty() ? std::nullopt : std::optional(value);
}

/// The number in a file; nothing for "max" or a missing file.
std::optional<int64_t> number_in(const sys::Fd& directory, const std::string& file) {
  auto value = plain_value(directory, file);
  return value ? parse_i64(split_blank(*value).front()) : std::nullopt;
}

/// Why `directory` has no file for `write`, or none that we may write.
std::string why_no_file(const std::string& directory, const CgroupWrite& write) {
  size_t manager = directory.find("/user@");
  if (manager == std::string::npos) return "no '" + directory + "/" + write.file + "'";
  size_t end = std::min(directory.find('/', manager + 1), directory.size());
  return directory.substr(manager + 1, end - manager - 1) + " has no controller '" +
         write.controller + "'; try: systemctl edit user@.service, as root, with " +
         "[Service] Delegate=cpu cpuset io memory pids";
}

/// The cgroup of `pid` in `hierarchy`, somewhere below its mount.
std::optional<std::string> place_of(pid_t pid, const CgroupHierarchy& hierarchy) {
  auto mounts = sys::read_file(sys::cwd(), "/proc/self/mountinfo");
  auto own = sys::read_file(sys::cwd(), "/proc/" + std::to_string(pid) + "/cgroup");
  if (!mounts.ok() || !own.ok()) return std::nullopt;
  for (const auto& one : parse_cgroup_layout(*mounts, *own).hierarchies) {
    if (one.mount == hierarchy.mount) return one.mount + one.own;
  }
  return std::nullopt;
}

}  // namespace

// A missing or unwritable file is an unmet limit; a value that the kernel refuses is an error.
// Values that depend on one another (memory and memory with swap, runtime and period) are retried
// after the other writes. All writes are tried: runtime-spec config-linux.md "Unified".
Result<void> CgroupSet::apply(const Directory& directory, const std::vector<CgroupWrite>& writes) {
  auto write_one = [&](const CgroupWrite& write) {
    auto written = write_cgroup_file(directory.fd, write.file, write.value);
    if (written.ok() || written.error().kind != Kind::not_found || write.instead.file.empty()) {
      return written;
    }
    return write_cgroup_file(directory.fd, write.instead.file, write.instead.value);
  };
  std::vector<const CgroupWrite*> again;
  for (const auto& write : writes) {
    auto written = write_one(write);
    if (written.ok()) continue;
    int code = written.error().sys_errno;
    if (code == ENOENT && write.absent == CgroupWrite::Absent::ignore) continue;
    if (code == ENOENT || is_permission(code)) {
      unmet_.push_back({write.limit, why_no_file(directory.path, write)});
    } else {
      again.push_back(&write);
    }
  }
  std::optional<Error> first;
  for (const auto* write : again) {
    auto written = write_one(*write);
    if (written.ok() || first) continue;
    first = std::move(written).error().with_context("cannot set linux.resources." + write->limit);
  }
  return first ? Result<void>(std::move(*first)) : Result<void>();
}

Result<void> CgroupSet::update(const CgroupLayout& layout, const std::string& path,
                               const oci::Resources& resources, const Accept& accept) {
  unmet_.clear();
  std::string name = TRY(parse_cgroup_path(path));
  return CgroupMaker(layout, name, *this).update(resources, accept);
}

const CgroupSet::Directory* CgroupSet::find(const CgroupHierarchy& hierarchy) const {
  for (const auto& directory : directories_) {
    bool same =
        directory.version == hierarchy.version && directory.controllers == hierarchy.controllers;
    if (same) return &directory;
  }
  return nullptr;
}

Result<void> CgroupMaker::update(const oci::Resources& resources, const CgroupSet::Accept& accept) {
  TRY(check_resources(resources));
  // Errors in the rules are reported before anything has changed.
  if (!resources.devices.empty()) TRY(compile_device_filter(resources.devices));
  auto whole = TRY(complete(resources));
  TRY(check_use(whole));
  auto shares = TRY(deal(layout_, whole, made_.unmet_));
  size_t before = made_.directories_.size();
  for (const auto& share : shares) {
    if (share.writes.empty()) continue;
    TRY(made_.find(*share.hierarchy) != nullptr ? change_share(share) : extend_to(share));
  }
  for (const auto& unmet : made_.unmet_) TRY(accept(unmet));
  if (!resources.devices.empty()) {
    auto rules = resources.devices;
    // Writes to the v1 files add to the present list, so it is cleared first.
    rules.insert(rules.begin(), {false, "a", {}, {}, "rwm"});
    auto unmet = TRY(restrict_devices(rules));
    if (unmet) {
      made_.unmet_.push_back(std::move(*unmet));
      TRY(accept(made_.unmet_.back()));
    }
  }
  // Also if no directory is new: a killed update may have left one empty, and its limits hold only
  // for the processes inside.
  if (!made_.directories_.empty()) TRY(populate(before));
  undo_.commit();
  return {};
}

Result<void> CgroupMaker::change_share(const CgroupShare& share) {
  const auto& directory = *made_.find(*share.hierarchy);
  auto controllers = controllers_of(share);
  std::string parent = share.hierarchy->mount;
  auto parts = split(std::string_view(directory.path).substr(parent.size()), '/');
  for (size_t i = 1; !controllers.empty() && i < parts.size(); ++i) {
    auto opened = sys::open_at(sys::cwd(), parent, O_RDONLY | O_DIRECTORY);
    if (opened.ok()) {
      make_room(*opened, *share.hierarchy, parent);
      enable_controllers(*opened, controllers);
    }
    parent += "/" + std::string(parts[i]);
  }
  remember(directory, share.writes);
  return made_.apply(directory, share.writes);
}

void CgroupMaker::remember(const CgroupSet::Directory& directory,
                           const std::vector<CgroupWrite>& writes) {
  std::vector<CgroupWrite> old;
  for (const auto& write : writes) {
    auto value = plain_value(directory.fd, write.file);
    if (value) old.push_back({write.limit, write.controller, write.file, *value});
  }
  std::string path = directory.path;  // a copy: the list of directories may be reallocated
  undo_.add([old, path, this] {
    for (const auto& entry : made_.directories_) {
      if (entry.path == path) ignore(made_.apply(entry, old));
    }
  });
}

Result<void> CgroupMaker::extend_to(const CgroupShare& share) {
  if (made_.directories_.empty()) {
    lacks(share, "the container has no cgroup");
    return {};
  }
  return make_share(share);
}

/// Moves all processes of the container into every directory that lacks them: one that was just
/// made, or one that a killed update left empty. Processes may fork before they are moved, and
/// their children are then in the old directories, so the lists are read until they have nothing
/// new. `before` is the number of directories before this update.
Result<void> CgroupMaker::populate(size_t before) {
  std::set<std::pair<const CgroupSet::Directory*, pid_t>> seen;
  for (bool more = true; more;) {
    more = false;
    std::vector<pid_t> all = TRY(made_.processes());
    if (all.empty() && made_.directories_.size() == before) return {};
    // The container is being removed, by a process that does not know of the new directory.
    if (all.empty()) return make_error(Kind::not_found, "container not running: it has no process");
    for (const auto& directory : made_.directories_) {
      std::vector<pid_t> inside;
      TRY(append_processes(directory.fd, inside));
      std::set<pid_t> present(inside.begin(), inside.end());
      for (pid_t pid : all) {
        if (pid <= 0 || present.contains(pid) || !seen.insert({&directory, pid}).second) continue;
        more = true;
        TRY(move_in(pid, directory));
      }
    }
  }
  return {};
}

Result<void> CgroupMaker::move_in(pid_t pid, const CgroupSet::Directory& directory) {
  std::optional<std::string> from;
  for (const auto& hierarchy : layout_.hierarchies) {
    if (made_.find(hierarchy) == &directory) from = place_of(pid, hierarchy);
  }
  std::string number = std::to_string(pid);
  auto moved = write_cgroup_file(directory.fd, "cgroup.procs", number);
  if (!moved.ok() && moved.error().sys_errno == ESRCH) return {};  // the process has ended
  TRY_CTX(std::move(moved), "cannot move process " + number + " into " + quote(directory.path));
  if (!from) return {};
  undo_.add([from = *from, number] {
    auto back = sys::open_at(sys::cwd(), from, O_RDONLY | O_DIRECTORY);
    if (back.ok()) ignore(write_cgroup_file(*back, "cgroup.procs", number));
  });
  return {};
}

/// "checkBeforeUpdate: ... check if the new memory limits (limit and swap) being set are lower than
/// the current usage, and to reject if so." runtime-spec config-linux.md
Result<void> CgroupMaker::check_use(const oci::Resources& resources) const {
  if (!resources.memory || !resources.memory->check_before_update.value_or(false)) return {};
  const auto* directory = made_.find("memory");
  if (directory == nullptr) return {};
  bool is_v2 = directory->version == Version::v2;
  auto use = number_in(directory->fd, is_v2 ? "memory.current" : "memory.usage_in_bytes");
  for (auto [name, limit] : {std::pair{"limit", resources.memory->limit.value_or(0)},
                             std::pair{"swap", resources.memory->swap.value_or(0)}}) {
    if (limit <= 0 || !use || *use <= limit) continue;
    return make_error(Kind::busy, std::string("linux.resources.memory.") + name + ": " +
                                      std::to_string(*use) + " bytes are in use, more than " +
                                      std::to_string(limit));
  }
  return {};
}

/// Some pairs of members of the spec are one value in v2. If one member of a pair is missing, it is
/// read from the cgroup.
Result<oci::Resources> CgroupMaker::complete(oci::Resources resources) const {
  const auto* memory = made_.find("memory");
  bool is_relative = resources.memory && resources.memory->swap.value_or(0) > 0 &&
                     resources.memory->limit.value_or(0) == 0;
  if (is_relative && memory != nullptr && memory->version == Version::v2) {
    resources.memory->limit = number_in(memory->fd, "memory.max").value_or(-1);
    TRY(check_resources(resources));
  }
  const auto* cpu = made_.find("cpu");
  bool has_period_alone = resources.cpu && resources.cpu->period.value_or(0) != 0 &&
                          resources.cpu->quota.value_or(0) == 0;
  if (has_period_alone && cpu != nullptr && cpu->version == Version::v2) {
    if (auto quota = number_in(cpu->fd, "cpu.max")) resources.cpu->quota = *quota;
  }
  return resources;
}

}  // namespace berth::runtime
