// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/driver_files.hpp"
#include "scan/loader_cache.hpp"

namespace berth::facts {

/// The files of an image that a container sees, by path without a leading '/'.
class VisibleFiles {
 public:
  /// `files` has to outlive this.
  explicit VisibleFiles(const std::vector<FileFacts>& files);
  /// By absolute path without links; null if there are no facts.
  const FileFacts* find(const std::string& absolute_path) const;

 private:
  std::map<std::string_view, const FileFacts*> by_path_;
};

/// Finds libraries in an image as its loader does, and everything that is loaded before the program
/// itself runs: not what it opens later by name.
/// Source: ld.so(8); docs/decisions/0118-reading-gpu-code.md
class Loader {
 public:
  /// `library_path`: LD_LIBRARY_PATH.  Errors: io (of the tree only).
  static Result<Loader> make(const scan::Tree& tree, const VisibleFiles& files,
                             std::string library_path);

  /// The program and the libraries that it needs, without duplicates, the program first; missing
  /// ones are left out.  Errors: io.
  Result<std::vector<const FileFacts*>> load(const FileFacts& program) const;

  /// The library of this name for a program without search paths of its own; null: none.
  Result<const FileFacts*> find_library(const std::string& name, const std::string& machine) const;

 private:
  struct Search {
    std::string name;
    std::string machine;
    std::vector<std::string> first;  ///< directory lists before LD_LIBRARY_PATH
    std::string after;               ///< and after it
  };
  Loader(const scan::Tree& tree, const VisibleFiles& files) : tree_(tree), files_(files) {}
  Result<const FileFacts*> find(const Search& search) const;
  Result<const FileFacts*> find_in(std::string_view directories, const Search& search) const;
  Result<const FileFacts*> find_at(const std::string& path, const std::string& machine) const;

  const scan::Tree& tree_;
  const VisibleFiles& files_;
  std::string library_path_;
  std::map<std::string, std::vector<std::string>> cache_;  ///< paths by soname
};

}  // namespace berth::facts
