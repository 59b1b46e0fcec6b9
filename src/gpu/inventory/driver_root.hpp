// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The root of the driver's files, and the root of the matching proc/, sys/ and dev/: those of the
/// machine, or of a synthetic tree.
class DriverRoot {
 public:
  /// Errors: not_found (no such directory), usage (a relative path).
  static Result<DriverRoot> open(const std::string& path);

  const std::string& path() const { return path_; }
  bool synthetic() const { return synthetic_; }

  // The kernel's files, by paths such as "/proc/devices". An absent file is not an error.
  Result<std::optional<std::string>> read_machine(const std::string& path) const;
  Result<std::vector<std::string>> list_machine(const std::string& path) const;
  std::optional<struct stat> stat_machine(const std::string& path) const;
  /// The target of a symbolic link; empty if there is no such link.
  std::string link_machine(const std::string& path) const;
  std::string machine_path(const std::string& path) const;

  // The driver's files. Links are resolved as if the root were mounted at "/".
  struct Found {
    sys::Fd fd;             ///< O_PATH
    std::string host_path;  ///< resolved
    struct stat info {};
  };
  /// Nothing if `path` is absent or a dangling link. Does not open the file: it may be a device,
  /// and opening a device may have effects.
  std::optional<Found> find(const std::string& path) const;
  /// The target of the symbolic link at `path`; empty if there is none.
  std::string link(const std::string& path) const;
  /// Like find(), but in the root of the machine even if the driver's files are elsewhere: for
  /// sockets.
  std::optional<Found> find_on_machine(const std::string& path) const;
  /// A regular file, opened for reading.
  std::optional<Found> open_file(const std::string& path) const;
  /// Empty if the file is absent or not a regular file. Errors: corrupt (longer than `max_bytes`),
  /// io.
  Result<std::string> read_file(const std::string& path, size_t max_bytes) const;
  /// Names in a directory; empty if it is absent. Errors: corrupt (more names than any directory of
  /// a driver has), io.
  Result<std::vector<std::string>> list(const Found& directory) const;

 private:
  static std::optional<Found> find_below(const sys::Fd& root, const std::string& path);

  std::string path_;
  bool synthetic_ = false;
  sys::Fd root_;     ///< of the driver's files
  sys::Fd machine_;  ///< of proc, sys and dev
};

/// The content of a file of the machine, trimmed. Empty if it is absent or the kernel denies
/// access: the device cgroup of a job hides nodes of KFD.
std::string text_of(const DriverRoot& root, const std::string& path);
std::vector<std::string> names_in(const DriverRoot& root, const std::string& path);

}  // namespace berth::gpu
