// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

/// Removes directories with their content.
namespace berth::sys {

/// As rm -rf, but does not follow links and does not cross into a mount; no error if the tree is
/// absent. Directories without write permission are made writable first (image layers have some).
Result<void> remove_tree(const Fd& dir, const std::string& path);

/// Owns a directory with a random name below `dir`; removes the tree unless released.
class TempDir {
 public:
  TempDir() = default;
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  /// `prefix` starts the name; the directory has mode 0700.
  static Result<TempDir> make(const Fd& dir, const std::string& prefix);

  const Fd& fd() const { return fd_; }
  const std::string& name() const { return name_; }
  /// Gives up ownership, after the caller has renamed the directory.
  void release() { name_.clear(); }

 private:
  Fd parent_;
  Fd fd_;
  std::string name_;
};

}  // namespace berth::sys
