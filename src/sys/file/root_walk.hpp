// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// Resolves a path below a root directory, component by component, as chroot would: ".." stops at
/// the root, an absolute link starts at the root again. Every step uses a handle of a directory
/// inside the root, so that neither ".." nor a process that renames directories meanwhile leads out
/// of it.
class RootWalk {
 public:
  static Result<RootWalk> begin(const Fd& root, std::string_view path);

  /// The next component, never "." or ".."; nothing when the path has ended.
  std::optional<std::string> next();
  /// True when no component follows the one that next() gave.
  bool is_last() const { return pending_.empty(); }
  /// The directory of that component; at the end, the one that the path leads to.
  const Fd& directory() const& { return parents_.back(); }
  /// The depth of that directory below the root.
  size_t depth() const { return parents_.size() - 1; }
  Fd directory() && { return std::move(parents_.back()); }

  /// Continues below `directory`, the opened component.
  void enter(Fd directory) { parents_.push_back(std::move(directory)); }
  /// Continues with the target of the link `name` instead. Errors: io (ELOOP, as the kernel).
  Result<void> follow(const std::string& name);

 private:
  void push(std::string_view path);

  std::string path_;                  // for errors
  std::vector<Fd> parents_;           // from the root down
  std::vector<std::string> pending_;  // in reverse order: the next component is the last element
  int links_ = 0;
};

/// Resolves the links of `path` in `root`; missing parts keep their names.
/// Errors: denied, io (a symlink loop).
Result<std::string> real_path_in_root(const Fd& root, const std::string& path);

}  // namespace berth::sys
