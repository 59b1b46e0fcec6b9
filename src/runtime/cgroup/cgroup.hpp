// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/cgroup/layout.hpp"
#include "runtime/cgroup/unmet_limit.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

struct CgroupWrite;

/// The directory that holds all containers when the caller names no other.
inline constexpr std::string_view kCommonCgroup = "berth";

/// The directories of one container, one per hierarchy that it uses.
///
/// Which hierarchies: all of them if the container's cgroups are mounted inside the container, as
/// under runc and crun. Otherwise those that a limit needs, and always v2, because it places the
/// process without a migration (CLONE_INTO_CGROUP), kills at once (cgroup.kill), freezes, and takes
/// device rules as a BPF program. The v1 devices hierarchy is used only where v2 cannot enforce the
/// rules, the v1 freezer only on a machine without v2. docs/decisions/0081 has the costs.
///
/// Paths: a cgroupsPath, absolute or relative, starts at the mount. Where the caller may not write
/// there, a v2 directory is made next to the caller's own cgroup, or below that cgroup if only it
/// was delegated (a service with Delegate=, a container). In the second case the processes in the
/// caller's cgroup move into a child "berth-callers", because a cgroup with processes cannot have
/// controlled children. Where a hierarchy has a `start` (layout.hpp), paths begin at that cgroup
/// and nowhere else. A directory "berth" between mount and container is made when missing and
/// removed together with the last container in it.
///
/// A directory that cannot be made for lack of permission is not an error: the limits that needed
/// it are in unmet(). After any other failure no directory is left.
class CgroupSet {
 public:
  CgroupSet() = default;
  CgroupSet(CgroupSet&&) noexcept = default;
  CgroupSet& operator=(CgroupSet&&) noexcept = default;

  enum class Which { needed, all, without_cpu };
  /// Makes the directories and applies `resources` except the devices; no process is inside yet.
  /// Errors: usage (a path with ".." or NUL), corrupt (an invalid value, by its JSON path), exists
  /// (a directory that has processes), io (the kernel refuses a value; names its JSON path, the
  /// file and the value).
  /// `without_cpu`: all hierarchies except the v1 one of cpu, which is used only if a limit needs
  /// it. Where the kernel schedules real-time tasks by group, a new group has no real-time budget
  /// (sched-rt-group.rst).
  static Result<CgroupSet> create(const CgroupLayout& layout, const std::string& path,
                                  const oci::Resources& resources, Which which = Which::needed);

  /// Restricts the processes inside to the default devices and those that `rules` allow. On the v2
  /// directory this takes effect at once, also for processes already inside. Otherwise a v1
  /// directory is made at `path` (the path given to create()), and processes have to be added to
  /// it. Returns the reason when the rules cannot be enforced here. Errors: as create().
  Result<std::optional<UnmetLimit>> restrict_devices(const CgroupLayout& layout,
                                                     const std::string& path,
                                                     const std::vector<oci::DeviceRule>& rules);

  /// Delegates the v2 directory to user `uid`: chowns it and the files that make cgroups in it and
  /// move processes between them. Limits and the v1 directories stay ours: v1 cannot be delegated.
  /// Errors: denied (a user that is not mapped, or no CAP_CHOWN).
  /// Source: cgroup-v2.rst "Delegation", /sys/kernel/cgroup/delegate.
  Result<void> give_to(uint32_t uid) const;

  /// The directories of a container that was created before; missing ones are left out.
  static Result<CgroupSet> open(const CgroupLayout& layout, const std::string& path);

  /// A copy of this set in which the directory of `controller` is replaced by the directory `path`
  /// below it ("": in all hierarchies that have such a directory). The other hierarchies are
  /// unchanged. Errors: usage (".."), not_found (no such directory, or controller).
  Result<CgroupSet> below(std::string_view controller, const std::string& path) const;

  /// Limits that could not be set; empty when all were set.
  const std::vector<UnmetLimit>& unmet() const { return unmet_; }

  /// The v2 directory for CLONE_INTO_CGROUP, or -1 when there is none. Owned by this object.
  int unified_fd() const;

  /// The directory in the hierarchy of `controller`, "" being the v2 one; nullptr when there is
  /// none. Owned by this object.
  const sys::Fd* directory(std::string_view controller) const;
  /// Whether the directory of `controller` is in the v2 hierarchy; false when there is none.
  bool is_v2(std::string_view controller) const;

  /// An open tasks file of each v1 directory. A single-threaded process that writes "0" to it moves
  /// there at once; for every other move the kernel waits for an RCU grace period, and until no
  /// process of the machine is forking or ending.
  /// Errors: denied (a directory that is not ours), not_found.  Source: cgroup_procs_write_start()
  Result<std::vector<sys::Fd>> open_tasks_files() const;

  enum class Unified { join, already_inside };

  /// Moves `pid` (0: the caller) into every directory; `already_inside` skips the v2 one.
  /// Errors: not_found (the process ended), io.
  Result<void> add(pid_t pid, Unified unified = Unified::join) const;
  /// Moves `pid` into the v2 directory, where there is one. Errors: as add().
  Result<void> add_to_unified(pid_t pid) const;

  using Accept = std::function<Result<void>(const UnmetLimit&)>;
  /// Applies `resources`, device rules included, to a container with processes; changes only the
  /// members that are present. Where a limit needs a hierarchy that the container is not in, it
  /// makes a directory at `path` (the path given to create()) and moves all processes into it.
  /// Calls `accept` for every unmet limit; an error of `accept` fails the update. On failure the
  /// old values are restored, except those that are set per device. Errors: as create(); busy
  /// (memory.checkBeforeUpdate, and more is in use), not_found (all processes have ended); those of
  /// `accept`.
  Result<void> update(const CgroupLayout& layout, const std::string& path,
                      const oci::Resources& resources, const Accept& accept);

  enum class Freeze { thaw, freeze };
  /// Stops or continues all processes, and waits until they have stopped.
  /// Errors: unsupported (neither a v2 directory nor a v1 freezer), interrupted (10 s passed).
  Result<void> freeze(Freeze state) const;

  /// Whether the container is frozen or being frozen; false where there is no freezer.
  Result<bool> is_frozen() const;

  /// Sends `signal` to all processes, in child cgroups too. If there is a freezer, no process
  /// escapes by forking.
  /// Errors: io (the list cannot be read).
  Result<void> signal_all(int signal) const;

  /// Thaws every frozen v1 cgroup of the container, including child cgroups that the container
  /// itself froze: frozen processes do not die, nor does the first process of their pid namespace.
  void thaw_below() const;

  /// Moves `pids` out of v1 freezers that others have frozen (a batch system, an administrator)
  /// into the caller's cgroup. The caller has sent SIGKILL to `pids`, and a frozen process does not
  /// die. Other processes of those freezers stay frozen.
  static void leave_frozen(const std::vector<pid_t>& pids);

  /// Sends SIGKILL to all processes, in child cgroups too. They may still be dying at return.
  Result<void> kill_all() const;

  /// All processes in these directories and below.
  Result<std::vector<pid_t>> processes() const;

  /// Kills the processes that are still inside and removes the directories, children first, waiting
  /// up to 2 s for dying processes. Missing directories are not an error. Tries all directories and
  /// returns the first error.
  Result<void> remove();

  bool empty() const { return directories_.empty(); }
  std::vector<std::string> paths() const;

 private:
  struct Directory {
    std::string path;
    CgroupHierarchy::Version version = CgroupHierarchy::Version::v1;
    std::vector<std::string> controllers;
    sys::Fd fd;
  };
  friend class CgroupMaker;

  /// Kills the processes that were moved into a v1 directory and into no other.
  void kill_in_v1() const;
  static Result<void> move(pid_t pid, const Directory& directory);
  const Directory* find(std::string_view controller) const;
  const Directory* find(const CgroupHierarchy& hierarchy) const;
  const Directory* find_unified() const;
  const Directory* find_freezer() const;
  Result<void> apply(const Directory& directory, const std::vector<CgroupWrite>& writes);

  std::vector<Directory> directories_;
  std::vector<UnmetLimit> unmet_;
};

/// A container's cgroup directory on the host.
struct CgroupView {
  std::string path;
  std::string name;  ///< the name in the container's /sys/fs/cgroup; empty: this directory is
                     ///< /sys/fs/cgroup itself
  /// Symbolic links to it, which distributions make for a hierarchy of several controllers: "cpu"
  /// and "cpuacct" for "cpu,cpuacct".
  std::vector<std::string> links{};
};
using CgroupViews = std::vector<CgroupView>;

/// Pure.
CgroupViews cgroup_views(const CgroupLayout& layout, const CgroupSet& cgroups);

}  // namespace berth::runtime
