// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: none is used. Hostile: the texts come from the kernel;
// the process that made the mounts chose the mount points in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::runtime {

/// Undoes the way in which the kernel writes names into tables: \040 for a blank and so on. Pure.
std::string unescape_mount_path(std::string_view text);

/// One line of /proc/PID/mountinfo. proc(5)
struct MountLine {
  std::string id;      ///< a number
  std::string device;  ///< "253:1" of the super block
  std::string root;    ///< which directory of the file system
  std::string point;   ///< where, as the process sees it
  std::string type;
  bool follows = false;  ///< what is mounted below its like elsewhere appears here: a slave
};
/// Lines that make no sense are skipped. Pure.
std::vector<MountLine> parse_mount_table(std::string_view mountinfo);
/// `process` is a number or "self". Errors: not_found (it has ended).
Result<std::vector<MountLine>> mount_table(const std::string& process);

/// Those of a container's mounts that show something from outside of it: a file system that is
/// mounted on the host too, but for what the container's root shows already, and but for the
/// kernel's own, of which there may be only one, unless they follow the host's; and everything at
/// or below `bound`, the places that its config binds something to. Pure.
std::vector<MountLine> outside_mounts(const std::vector<MountLine>& container,
                                      const std::vector<MountLine>& host,
                                      const std::vector<std::string>& bound);

/// Whether `path` is `directory` or below it; both absolute without a slash at the end. Pure.
bool is_at_or_below(std::string_view path, std::string_view directory);

}  // namespace berth::runtime
