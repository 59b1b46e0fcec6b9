// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The root of the driver's files, and of the matching proc/, sys/ and dev/: the machine's, or a
/// synthetic tree's own.
class DriverRoot {
 public:
  /// Errors: not_found (no such directory), usage (a relative path).
  static Result<DriverRoot> open(const std::string& path);

  const std::string& path() const { return path_; }
  bool synthetic() const { return synthetic_; }

  // The kernel's files. Paths as "/proc/devices"; an absent entry is a value.
  Result<std::optional<std::string>> read_machine(const std::string& path) const;
  Result<std::vector<std::string>> list_machine(const std::string& path) const;
  std::optional<struct stat> stat_machine(const std::string& path) const;
  /// The text of a symbolic link; empty when there is none.
  std::string link_machine(const std::string& path) const;
  std::string machine_path(const std::string& path) const;

  // The driver's files. Links are resolved as if the root were mounted at "/".
  struct Found {
    sys::Fd fd;             ///< O_PATH
    std::string host_path;  ///< resolved
    struct stat info {};
  };
  /// Nothing when `path` is absent or leads nowhere. Opens nothing: in the place of a file there
  /// may be a device, and opening it may have effects.
  std::optional<Found> find(const std::string& path) const;
  /// The same for files of the machine, wherever the driver's files are: sockets.
  std::optional<Found> find_on_machine(const std::string& path) const;
  /// A regular file, opened for reading.
  std::optional<Found> open_file(const std::string& path) const;
  /// Empty when absent, or no regular file. Errors: corrupt (longer than `max_bytes`), io.
  Result<std::string> read_file(const std::string& path, size_t max_bytes) const;
  /// Names in a directory; empty when absent. Errors: corrupt (more than any driver's has), io.
  Result<std::vector<std::string>> list(const Found& directory) const;

 private:
  static std::optional<Found> find_below(const sys::Fd& root, const std::string& path);

  std::string path_;
  bool synthetic_ = false;
  sys::Fd root_;     ///< of the driver's files
  sys::Fd machine_;  ///< of proc, sys and dev
};

/// A file of the machine, trimmed; empty if it is absent or the kernel refuses it: a job's device
/// cgroup hides nodes of KFD.
std::string text_of(const DriverRoot& root, const std::string& path);
std::vector<std::string> names_in(const DriverRoot& root, const std::string& path);

}  // namespace berth::gpu
