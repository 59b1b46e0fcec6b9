// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// One mount that this process can see.
struct MountEntry {
  uint64_t id = 0;
  uint64_t parent = 0;
  std::string point;  ///< absolute, as seen from this process's root
  bool operator==(const MountEntry&) const = default;
};

/// Parses a mountinfo file; skips malformed lines. Pure.
/// Source: proc(5) "/proc/pid/mountinfo".
std::vector<MountEntry> parse_mount_table(std::string_view text);

/// The mounts of this mount namespace. /proc/self/mountinfo
Result<std::vector<MountEntry>> mount_table();

/// A mount and its source, as in mount tables.
struct MountSource {
  std::string point;  ///< absolute, as seen from this process's root
  std::string type;
  std::string source;
  bool operator==(const MountSource&) const = default;
};
/// Parses a mountinfo file; skips malformed lines. Pure.
std::vector<MountSource> parse_mount_sources(std::string_view text);

/// The sources in this mount namespace. /proc/self/mountinfo
Result<std::vector<MountSource>> mount_sources();

/// A handle of the root of mount `entry`, checked to be that mount: a process that renames
/// directories meanwhile cannot substitute another.
/// Errors: busy (another mount covers it, or it has moved).
Result<Fd> open_mount(const MountEntry& entry);

/// The present mount attributes (MOUNT_ATTR_*) of a path. fstatvfs(3)
Result<uint64_t> mount_attributes(const Fd& place, const std::string& name);

}  // namespace berth::sys
