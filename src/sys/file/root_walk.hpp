// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::sys {

/// A path on its way below a root directory, component by component, as chroot would resolve it:
/// ".." ends at the root, an absolute link starts there anew. Every step is taken from a handle of
/// a directory inside, so that neither ".." nor somebody who renames directories meanwhile leads
/// out.
class RootWalk {
 public:
  static Result<RootWalk> begin(const Fd& root, std::string_view path);

  /// The next component, never "." or ".."; nothing when the path has ended.
  std::optional<std::string> next();
  /// True when nothing follows the component that next() gave.
  bool is_last() const { return pending_.empty(); }
  /// Where that component is to be looked up; at the end, where the path has led.
  const Fd& directory() const& { return parents_.back(); }
  /// How many directories below the root that is.
  size_t depth() const { return parents_.size() - 1; }
  Fd directory() && { return std::move(parents_.back()); }

  /// Goes on below `directory`, which the component was opened as.
  void enter(Fd directory) { parents_.push_back(std::move(directory)); }
  /// Goes on with the text of the link `name` in its place. Errors: io (ELOOP, as the kernel).
  Result<void> follow(const std::string& name);

 private:
  void push(std::string_view path);

  std::string path_;                  // for errors
  std::vector<Fd> parents_;           // from the root down
  std::vector<std::string> pending_;  // the next one last
  int links_ = 0;
};

/// Where `path` leads in `root`, without links; what is missing keeps its name.
/// Errors: denied, io (a circle of links).
Result<std::string> real_path_in_root(const Fd& root, const std::string& path);

}  // namespace berth::sys
