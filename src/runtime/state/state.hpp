// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: the caller's. Hostile input: none below --root, where only
// the caller can write (mode 0700, and the owner is checked).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"
#include "oci/runtime_spec.hpp"
#include "runtime/state/bundle.hpp"
#include "sys/fd/fd.hpp"

namespace berth::runtime {

/// The record of a container between two calls of berth-runtime: <root>/<id>/state.json.
struct State {
  std::string oci_version{oci::kRuntimeSpecVersion};
  std::string id{};
  pid_t pid = 0;            ///< 0 before the process exists
  uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat; identifies the process together with
                            ///< the boot id
  std::string boot_id{};
  std::string bundle{};
  std::string config{kConfigFile};  ///< as in read_bundle()
  std::string rootfs{};
  std::string cgroup_path{};  ///< plan::MakeCgroup::path, empty without cgroups
  /// The cgroups at which cgroup_path begins, by mount point (CgroupStarts); in other hierarchies
  /// it begins at the mount.
  std::map<std::string, std::string> cgroup_starts{};
  std::string systemd_unit{};   ///< the scope that systemd made, empty without one
  bool systemd_user = false;    ///< the scope belongs to the user's manager
  std::string resctrl_group{};  ///< a directory to remove with the container, or empty
  std::string created{};        ///< RFC 3339
  uint32_t owner = 0;
  std::map<std::string, std::string> annotations{};
  oci::Hooks hooks{};         ///< "config changes after create have no effect"
  std::string gpu_lease{};    ///< absolute: a file to remove with the container, or empty
  bool of_engine = false;     ///< as in plan::Container
  bool loader_files = false;  ///< loader files in the root are removed with the container
                              ///< (loader_state.hpp)
  // Device rules and groups that LaunchRequest::amend has added without the caller's knowledge.
  std::vector<oci::DeviceRule> added_devices{};
  std::vector<uint32_t> added_gids{};
};

enum class Status { creating, created, running, paused, stopped };
std::string_view status_name(Status status);

/// The state as the spec shows it to hooks and to `state` (runtime-spec runtime.md "State").
json::Value public_state_value(const State& state, std::string_view status);
/// The same as a string.
std::string public_state(const State& state, std::string_view status);

/// The directory of one container.
class Entry {
 public:
  const std::string& id() const { return id_; }
  const sys::Fd& fd() const { return fd_; }

  Result<void> write(const State& state) const;
  Result<State> read() const;
  /// Determined from the process and from the socket of `start`; `stopped` if the creator has died.
  /// Never `paused`, which only the cgroup shows: see find().
  Status status(const State& state) const;

 private:
  friend class Store;
  Entry(std::string id, sys::Fd fd) : id_(std::move(id)), fd_(std::move(fd)) {}
  std::string id_;
  sys::Fd fd_;
};

/// All containers of one --root.
class Store {
 public:
  /// Made with mode 0700 when missing. Errors: usage ("/"), denied (another user's directory).
  static Result<Store> open(const std::string& root);

  /// A new entry, locked until it is dropped. Errors: usage (a bad id), exists.
  Result<Entry> claim(const std::string& id) const;
  /// The entry of an existing container. Errors: usage (a bad id), not_found ("container 'x' does
  /// not exist").
  Result<Entry> get(const std::string& id) const;
  Result<std::vector<std::string>> list() const;
  /// No error if it is missing.
  Result<void> remove(const std::string& id) const;

 private:
  explicit Store(sys::Fd fd) : fd_(std::move(fd)) {}
  sys::Fd fd_;
};

inline constexpr const char* kStartSocket = "start";
/// A file that exists if an update may have put the container into more cgroups than it was made
/// with.
inline constexpr const char* kUpdatedMark = "updated";

}  // namespace berth::runtime
