// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime. Capabilities: none is used. Hostile: the texts come from the kernel; the
// mount points in them were chosen by the process that mounted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::runtime {

/// Decodes the escapes of mount tables: \040 for a blank and so on. Pure.
std::string unescape_mount_path(std::string_view text);

/// One line of /proc/PID/mountinfo. proc(5)
struct MountLine {
  std::string id;      ///< a number
  std::string device;  ///< "253:1" of the super block
  std::string root;    ///< the directory of the file system that is mounted
  std::string point;   ///< the mount point, as the process sees it
  std::string type;
  bool follows = false;  ///< a slave: it receives mounts from its master
};
/// Skips malformed lines. Pure.
std::vector<MountLine> parse_mount_table(std::string_view mountinfo);
/// `process` is a number or "self". Errors: not_found (it has ended).
Result<std::vector<MountLine>> mount_table(const std::string& process);

/// The container's mounts that show something from outside of it: file systems that are mounted on
/// the host too, and everything at or below `bound`, the places that its config binds something to.
/// Not counted: file systems that the container's root shows already, and the kernel's own, of
/// which there may be only one instance, unless they follow the host's. Pure.
std::vector<MountLine> outside_mounts(const std::vector<MountLine>& container,
                                      const std::vector<MountLine>& host,
                                      const std::vector<std::string>& bound);

/// Whether `path` is `directory` or below it; both absolute without a slash at the end. Pure.
bool is_at_or_below(std::string_view path, std::string_view directory);

}  // namespace berth::runtime
