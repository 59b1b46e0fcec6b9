// SPDX-License-Identifier: Apache-2.0
// Internals of CgroupSet, for the sources that implement it.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rollback.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/cgroup/limits.hpp"

namespace berth::runtime {

/// The values to be written into one hierarchy.
struct CgroupShare {
  const CgroupHierarchy* hierarchy = nullptr;
  std::vector<CgroupWrite> writes{};
};

/// "berth/c1" for "/berth/c1". Errors: usage ("..", NUL, nothing).
Result<std::string> parse_cgroup_path(const std::string& path);

/// Distributes the limits of `resources` (already checked) to the hierarchies that have the
/// controllers. Appends those that no hierarchy has to `unmet`. Errors: as v2_writes().
Result<std::vector<CgroupShare>> deal(const CgroupLayout& layout, const oci::Resources& resources,
                                      std::vector<UnmetLimit>& unmet);

/// If `directory`, at `path`, is our own cgroup, moves its processes into a child, because their
/// presence forbids controllers for other children (cgroup-v2.rst "No Internal Process
/// Constraint"). The root of the hierarchy has neither this rule nor a file cgroup.type. Processes
/// that cannot be moved stay.
void make_room(const sys::Fd& directory, const CgroupHierarchy& hierarchy, const std::string& path);

/// Enables `controllers` for the children of `directory`. A controller that cannot be enabled is no
/// error; its files are missing then.
void enable_controllers(const sys::Fd& directory, const std::set<std::string>& controllers);

/// Makes or changes a container's directories; its destructor undoes that unless commit() was
/// called.
class CgroupMaker {
 public:
  CgroupMaker(const CgroupLayout& layout, std::string name, CgroupSet& made)
      : layout_(layout), name_(std::move(name)), made_(made) {}

  Result<void> make(const oci::Resources& resources, CgroupSet::Which which);
  /// Returns nothing if the rules are enforced, else why not. commit() has to follow.
  Result<std::optional<UnmetLimit>> restrict_devices(const std::vector<oci::DeviceRule>& rules);
  /// As make(), for a container that has processes in its directories.
  Result<void> update(const oci::Resources& resources, const CgroupSet::Accept& accept);
  void commit() { undo_.commit(); }

 private:
  bool is_needed(const CgroupShare& share, const oci::Resources& resources) const;
  Result<void> make_share(const CgroupShare& share);
  Result<bool> make_directory(const CgroupHierarchy& hierarchy, const std::string& base,
                              const std::set<std::string>& controllers);
  Result<bool> make_one(const std::string& path);
  Result<void> filter_devices(const std::vector<oci::DeviceRule>& rules);
  Result<void> list_devices(const std::vector<oci::DeviceRule>& rules);
  void lacks(const CgroupShare& share, const std::string& reason);

  Result<void> change_share(const CgroupShare& share);
  Result<void> extend_to(const CgroupShare& share);
  Result<void> populate(size_t before);
  Result<void> move_in(pid_t pid, const CgroupSet::Directory& directory);
  Result<void> check_use(const oci::Resources& resources) const;
  Result<oci::Resources> complete(oci::Resources resources) const;
  void remember(const CgroupSet::Directory& directory, const std::vector<CgroupWrite>& writes);

  const CgroupLayout& layout_;
  std::string name_;
  CgroupSet& made_;
  Rollback undo_;
};

}  // namespace berth::runtime
