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

/// The lines of a mountinfo file that are whole; others are skipped. Pure.
/// Source: proc(5) "/proc/pid/mountinfo".
std::vector<MountEntry> parse_mount_table(std::string_view text);

/// The mounts of this mount namespace. /proc/self/mountinfo
Result<std::vector<MountEntry>> mount_table();

/// What is mounted at a place, as mount tables show it.
struct MountSource {
  std::string point;  ///< absolute, as seen from this process's root
  std::string type;
  std::string source;
  bool operator==(const MountSource&) const = default;
};
/// The lines of a mountinfo file that are whole; others are skipped. Pure.
std::vector<MountSource> parse_mount_sources(std::string_view text);

/// Those of this mount namespace. /proc/self/mountinfo
Result<std::vector<MountSource>> mount_sources();

/// A handle of the root of mount `entry`, checked to be that mount: who renames directories
/// meanwhile cannot have another one opened.
/// Errors: busy (it is hidden below another mount, or its place has moved).
Result<Fd> open_mount(const MountEntry& entry);

/// The mount attributes (MOUNT_ATTR_*) that a place has now. fstatvfs(3)
Result<uint64_t> mount_attributes(const Fd& place, const std::string& name);

}  // namespace berth::sys
