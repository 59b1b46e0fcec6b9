// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

struct CgroupWrite;

/// The directory that holds all containers where the caller names no other place.
inline constexpr std::string_view kCommonCgroup = "berth";

/// One mounted cgroup hierarchy.
struct CgroupHierarchy {
  enum class Version { v1, v2 };
  Version version = Version::v1;
  std::string mount;                     ///< "/sys/fs/cgroup/memory"
  std::string own;                       ///< where the caller is, below `mount`: "/" or "/a/b"
  std::vector<std::string> controllers;  ///< "memory", "name=systemd"; those the caller may enable
  /// Where the paths of containers begin, below `mount`: "/jobs/17"; empty: at the mount.
  std::string start{};
};

/// How this machine's cgroups are mounted. A controller is set through the hierarchy that has it:
/// on a hybrid machine that is v1 for most and v2 for the rest.
struct CgroupLayout {
  enum class Kind { none, legacy, hybrid, unified };
  std::vector<CgroupHierarchy> hierarchies;

  Kind kind() const;
  const CgroupHierarchy* unified() const;
  const CgroupHierarchy* find(std::string_view controller) const;
};

/// The layout in the texts of /proc/self/mountinfo and /proc/self/cgroup; controllers of a v2
/// hierarchy are left empty. Pure. Lines that make no sense are skipped.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup);

/// Where paths begin in the hierarchies where that is not the mount, by mount point.
using CgroupStarts = std::map<std::string, std::string>;

/// The caller's own cgroups; hierarchies where it is at the top are left out. Pure.
CgroupStarts own_cgroups(const CgroupLayout& layout);

/// Lets the paths of containers begin there. Pure.
void begin_at(const CgroupStarts& starts, CgroupLayout& layout);

/// Reads the layout of this machine; no cgroup at all is Kind::none, not an error.
Result<CgroupLayout> detect_cgroup_layout();

/// A limit that was asked for and does not hold, e.g. {"memory.limit", "no permission for
/// '/sys/fs/cgroup/memory'"}. The caller decides whether that is an error or a warning.
struct UnmetLimit {
  std::string name;  ///< the member of linux.resources: "memory.limit", "devices"
  std::string reason;
};

/// What an unmet limit means. Root of the machine can set every limit that there is: one that does
/// not hold is a container that is less confined than it was promised; but that many kernels count
/// no swap, which is a warning, as docker has it. Others have what was delegated to them and get a
/// warning, or an error with `strictly`; in a user namespace there are no nodes but those that were
/// bound, and so none about devices.
/// Errors: unsupported (for root; for everybody when it is one of linux.resources.unified, where
/// "The runtime MUST generate an error when the configuration refers to a cgroup controller that is
/// not present or that cannot be enabled": runtime-spec config-linux.md).
enum class Unmet { warns_users, is_error };
Result<void> judge(const UnmetLimit& unmet, Unmet strictly, Log& log);

/// The directories of one container, one per hierarchy that it uses.
///
/// Which hierarchies: all of them where the container is shown its cgroups, as under runc and crun;
/// else those that a limit is asked for, and the v2 hierarchy always, because it places the process
/// without a migration (CLONE_INTO_CGROUP), kills it at once (cgroup.kill), freezes it and takes
/// device rules as a BPF program; v1 devices only where that is not possible; on a machine without
/// v2 also the v1 freezer. docs/decisions/0081 has the costs.
///
/// Paths: a cgroupsPath, absolute or relative, starts at the mount. Where the caller may not write
/// there, a v2 directory is made beside the caller's own cgroup instead, or below it where that is
/// all that was delegated (a service with Delegate=, a container): the processes in it move into a
/// child "berth-callers", because a cgroup with processes cannot have controlled children. Where a
/// hierarchy has a `start`, paths begin there and nowhere else. A directory "berth" between mount
/// and container is made when missing and goes with its last child.
///
/// What cannot be made for lack of permission is not an error: it shows in unmet() when a limit was
/// asked for. Everything else that fails leaves no directory behind.
class CgroupSet {
 public:
  CgroupSet() = default;
  CgroupSet(CgroupSet&&) noexcept = default;
  CgroupSet& operator=(CgroupSet&&) noexcept = default;

  /// Makes the directories and applies `resources`, all but the devices; nobody is inside yet.
  /// Errors: usage (a path with ".." or NUL), corrupt (an invalid value, by its JSON path), exists
  /// (a directory that has processes), io (the kernel refuses a value; names its JSON path, the
  /// file and the value).
  /// `without_cpu`: all, but not cgroup v1's cpu unless it is asked for. Where the kernel counts
  /// real-time by groups, a process in a new one has none to use (sched-rt-group.rst).
  enum class Which { needed, all, without_cpu };
  static Result<CgroupSet> create(const CgroupLayout& layout, const std::string& path,
                                  const oci::Resources& resources, Which which = Which::needed);

  /// Lets the processes inside use no devices but those that `rules` allow, and the default ones.
  /// On the v2 directory this counts at once, also for processes inside; else a v1 directory is
  /// made at `path`, the one given to create(), that processes have to be added to. Gives the
  /// reason when the rules cannot be enforced here. Errors: as create().
  Result<std::optional<UnmetLimit>> restrict_devices(const CgroupLayout& layout,
                                                     const std::string& path,
                                                     const std::vector<oci::DeviceRule>& rules);

  /// Gives the v2 directory to user `uid`: itself, and the files with which cgroups are made in it
  /// and processes moved between them. Limits stay ours, and so does v1, which cannot be delegated.
  /// Errors: denied (a user that is not mapped, or no CAP_CHOWN).
  /// Source: cgroup-v2.rst "Delegation", /sys/kernel/cgroup/delegate.
  Result<void> give_to(uint32_t uid) const;

  /// The directories of a container that was created before; those that are gone are left out.
  static Result<CgroupSet> open(const CgroupLayout& layout, const std::string& path);

  /// The directories `path` below these, that of `controller` alone ("": all that have it); the
  /// others as they are. Errors: usage (".."), not_found (no such directory, or controller).
  Result<CgroupSet> below(std::string_view controller, const std::string& path) const;

  /// Limits that could not be set; empty when all hold.
  const std::vector<UnmetLimit>& unmet() const { return unmet_; }

  /// The v2 directory for CLONE_INTO_CGROUP, or -1 when there is none. Owned by this object.
  int unified_fd() const;

  /// The directory in the hierarchy of `controller`, "" being the v2 one; nullptr when there is
  /// none. Owned by this object.
  const sys::Fd* directory(std::string_view controller) const;
  /// Whether that directory is one of v2.
  bool is_v2(std::string_view controller) const;

  /// One file of each v1 directory. A process with a single thread that writes "0" to them is
  /// moved there at once; for every other move the kernel waits until no process of the machine
  /// forks or ends: for an RCU grace period.
  /// Errors: denied (a directory that is not ours), not_found.  Source: cgroup_procs_write_start()
  Result<std::vector<sys::Fd>> open_tasks_files() const;

  enum class Unified { join, already_inside };

  /// Moves `pid` (0: the caller) into every directory; `already_inside` skips the v2 one.
  /// Errors: not_found (the process ended), io.
  Result<void> add(pid_t pid, Unified unified = Unified::join) const;
  /// Moves `pid` into the v2 directory, where there is one. Errors: as add().
  Result<void> add_to_unified(pid_t pid) const;

  /// Applies `resources`, device rules included, to a container with processes; only members that
  /// are present change. A hierarchy that a limit needs and the container is not in gets a
  /// directory at `path`, the one given to create(), with all processes moved into it. `accept` is
  /// asked about every unmet limit, and its error fails the update. On failure values are as they
  /// were, but for those that are set by device. Errors: as create(); busy
  /// (memory.checkBeforeUpdate, and more is in use), not_found (all processes have ended); those of
  /// `accept`.
  using Accept = std::function<Result<void>(const UnmetLimit&)>;
  Result<void> update(const CgroupLayout& layout, const std::string& path,
                      const oci::Resources& resources, const Accept& accept);

  /// Stops or continues all processes, and waits until they have stopped.
  /// Errors: unsupported (neither a v2 directory nor a v1 freezer), interrupted (10 s passed).
  enum class Freeze { thaw, freeze };
  Result<void> freeze(Freeze state) const;

  /// Whether freeze() has stopped them; false where there is no freezer.
  Result<bool> is_frozen() const;

  /// Sends `signal` to all processes, in child cgroups too; none escapes by forking where there is
  /// a freezer. Errors: io (the list cannot be read).
  Result<void> signal_all(int signal) const;

  /// Thaws whatever is frozen in v1, child cgroups that the container has frozen itself too: its
  /// processes do not die before, nor does the first one of its pid namespace.
  void thaw_below() const;

  /// Takes `pids` out of v1 freezers that somebody else has stopped, a batch system or an
  /// administrator, and puts them beside the caller: they have been sent SIGKILL, and a frozen
  /// process does not die. Other processes of those freezers stay stopped.
  static void leave_frozen(const std::vector<pid_t>& pids);

  /// Sends SIGKILL to all processes, in child cgroups too. They may still be dying at return.
  Result<void> kill_all() const;

  /// All processes in it and below.
  Result<std::vector<pid_t>> processes() const;

  /// Kills the processes that are still inside and removes the directories, children first, waiting
  /// up to 2 s for dying processes. Those that are gone already are fine; all are tried, the first
  /// error is returned.
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

  /// Those that somebody has put into a v1 directory and into no other.
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

}  // namespace berth::runtime
