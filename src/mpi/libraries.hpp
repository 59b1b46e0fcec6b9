// SPDX-License-Identifier: Apache-2.0
// The libraries of a root file system, as its loader finds them: the host's, or an image's.
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

/// What the file of a library or program says.
struct Library {
  std::string path;    ///< absolute, without a link in it
  std::string soname;  ///< the file's name where it has none that is one
  std::vector<std::string> needed;
  std::string search;  ///< RPATH and RUNPATH: directories, joined by ':'
  Symbols symbols;
};

/// Nothing for what is no library or program of `machine` that reads.
using ReadLibrary = std::function<Result<std::optional<Library>>(
    const scan::Tree& tree, const scan::Tree::File& file, uint16_t machine)>;
Result<std::optional<Library>> read_library(const scan::Tree& tree, const scan::Tree::File& file,
                                            uint16_t machine);

/// Where libraries are looked for beside the loader's cache and its own directories.
struct Places {
  std::string library_path;  ///< LD_LIBRARY_PATH
  uint16_t machine = scan::LoaderSettings().machine;
};

class Libraries {
 public:
  /// `tree` outlives this. Every number of files, names and bytes is bounded; what cannot be read
  /// counts as not there.  Errors: io (of the tree alone).
  static Result<Libraries> open(const scan::Tree& tree, Places places,
                                ReadLibrary read = read_library);

  /// The file at `path`, links followed; null: none that is a library of this machine.
  Result<const Library*> at(const std::string& path);
  /// What the loader may take for `name` whoever asks, in its order and each file once: of
  /// LD_LIBRARY_PATH, its cache and its own directories.
  Result<std::vector<const Library*>> find_all(const std::string& name);
  /// The first of them, or null.
  Result<const Library*> find(const std::string& name);
  /// The names of the loader's cache that begin with `prefix`, each once.
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
  size_t names_ = 0;  ///< of symbols, in all that are known
};

/// "/usr/lib/libm.so" → "libm.so".
std::string name_of(const std::string& path);

}  // namespace berth::mpi
