// SPDX-License-Identifier: Apache-2.0
// Finds the libraries of a root file system (of the host or of an image) as its loader does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mpi/symbols.hpp"
#include "scan/driver_files.hpp"
#include "scan/elf.hpp"

namespace berth::mpi {

/// Facts from the file of a library or program.
struct Library {
  std::string path;    ///< absolute, without links
  std::string soname;  ///< the file name if the file has no valid SONAME
  std::vector<std::string> needed;
  std::string search;  ///< RPATH and RUNPATH: directories, joined by ':'
  Symbols symbols;
};

/// Returns nothing for a file that is not a valid library or program of `machine`.
using ReadLibrary = std::function<Result<std::optional<Library>>(
    const scan::Tree& tree, const scan::Tree::File& file, uint16_t machine)>;
Result<std::optional<Library>> read_library(const scan::Tree& tree, const scan::Tree::File& file,
                                            uint16_t machine);

/// Search paths in addition to the loader's cache and its default directories.
struct Places {
  std::string library_path;  ///< LD_LIBRARY_PATH
  uint16_t machine = scan::LoaderSettings().machine;
};

class Libraries {
 public:
  /// `tree` has to outlive this object. All numbers of files, names and bytes are bounded;
  /// unreadable files count as missing. Errors: io (of the tree only).
  static Result<Libraries> open(const scan::Tree& tree, Places places,
                                ReadLibrary read = read_library);

  /// The file at `path`, following links; null: it is not a library of this machine.
  Result<const Library*> at(const std::string& path);
  /// All candidates of the loader for `name`, in the loader's order, without duplicates: from
  /// LD_LIBRARY_PATH, the loader's cache and its default directories.
  Result<std::vector<const Library*>> find_all(const std::string& name);
  /// The first result of find_all(), or null.
  Result<const Library*> find(const std::string& name);
  /// The names in the loader's cache that begin with `prefix`, without duplicates.
  std::vector<std::string> names_in_cache(std::string_view prefix) const;
  Result<bool> has_musl() const;
  const std::string& library_path() const { return places_.library_path; }
  const scan::Tree& tree() const { return tree_; }

 private:
  Libraries(const scan::Tree& tree, Places places, ReadLibrary read)
      : tree_(tree), places_(std::move(places)), read_(std::move(read)) {}

  const scan::Tree& tree_;
  Places places_;
  ReadLibrary read_;
  std::map<std::string, std::vector<std::string>, std::less<>> cache_;  ///< paths by SONAME
  std::map<std::string, std::optional<Library>> known_;                 ///< by path without links
  size_t names_ = 0;  ///< number of symbols in all of `known_`
};

/// "/usr/lib/libm.so" → "libm.so".
std::string name_of(const std::string& path);

}  // namespace berth::mpi
