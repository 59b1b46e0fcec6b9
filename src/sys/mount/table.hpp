// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// One mount of a mount namespace.
struct MountEntry {
  uint64_t id = 0;
  uint64_t parent = 0;
  std::string device;  ///< "253:1" of the super block
  std::string root;    ///< the directory of the file system that is mounted
  std::string point;   ///< absolute, as seen from the process's root
  std::string type;
  std::string source;
  bool follows = false;  ///< the mount is a slave: it receives mounts from its master

  bool operator==(const MountEntry&) const = default;
};

/// Parses a mountinfo file; skips malformed lines. Pure.
/// Source: proc(5) "/proc/pid/mountinfo".
std::vector<MountEntry> parse_mount_table(std::string_view text);

/// Decodes the escapes of mount tables: \040 for a blank and so on. Pure.
std::string unescape_mount_path(std::string_view text);

/// The mounts that `process`, a number or "self", can see. Errors: not_found (it has ended).
Result<std::vector<MountEntry>> mount_table(const std::string& process = "self");

/// A handle of the root of mount `entry`, checked to be that mount: a process that renames
/// directories meanwhile cannot substitute another.
/// Errors: busy (another mount covers it, or it has moved).
Result<Fd> open_mount(const MountEntry& entry);

/// The present attributes (MOUNT_ATTR_*) of the mount of `place`. fstatvfs(3)
Result<uint64_t> mount_attributes(const Fd& place, const std::string& name);

}  // namespace berth::sys
