// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "scan/driver_files.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// What the files of a copy share. Blocks are shared if the file system supports it.
enum class Sharing {
  nothing,  ///< separate files
  names,    ///< names that are hard links in a layer; no other process may write to the copy
  files,    ///< the layers' own files, if on the same file system: no process may write to
            ///< them
};

/// The tree that overlay would show for some layers, read without a mount: applies whiteouts,
/// opaque directories and symbolic links as in the container; no link leads out of the tree. The
/// layers are untrusted, and must not change meanwhile. Not for several threads.
/// Source: kernel overlayfs.rst.
class LayerView {
 public:
  /// `layers`: as for sys::open_layer(), highest first.  Errors: not_found (a layer).
  static Result<LayerView> open(const std::vector<std::string>& layers);

  enum class Type { absent, directory, other };
  /// The type of the absolute `path`, links followed; a link loop is absent.  Errors: io.
  Result<Type> look_up(std::string_view path) const;

  /// The absolute `path` with links resolved; missing parts stay as they are.  Errors: io.
  Result<std::string> real_path(std::string_view path) const;

  struct File {
    std::string path;  ///< absolute, links resolved
    uint64_t size = 0;
  };
  /// The regular file at `path`, links followed; nothing if there is none.  Errors: io.
  Result<std::optional<File>> find_file(std::string_view path) const;

  /// Up to `length` bytes of the regular file at `path` from `offset`; empty if there is no such
  /// file.  Errors: io.
  Result<std::string> read_at(std::string_view path, uint64_t offset, size_t length) const;

  /// The names in the directory at `path`, without those of a layer that has more than 4096 there;
  /// empty if it is not a directory.
  /// Errors: io.
  Result<std::vector<std::string>> list(std::string_view path) const;

  /// For each of `names` in `directory`, without following links: the layer (0: the highest) of the
  /// regular file that a container sees; nothing if it sees none.  Errors: io.
  Result<std::vector<std::optional<size_t>>> layers_of(std::string_view directory,
                                                       const std::vector<std::string>& names) const;

  /// Copies the directory at `path`, with the owners and modes of itself and all entries, into the
  /// empty directory `to`; does nothing if it is not a directory.
  /// Errors: io (no space), usage (more than 128 directories deep).
  Result<void> copy_tree(std::string_view path, const sys::Fd& to,
                         Sharing sharing = Sharing::nothing) const;

  /// The content of the regular file at `path`; nothing if there is none, or it is another type.
  /// Errors: io, corrupt (longer than `max_bytes`).
  Result<std::optional<std::string>> read_file(std::string_view path, size_t max_bytes) const;

 private:
  struct Entry;
  struct Part {
    sys::Fd fd;
    size_t layer = 0;
  };
  /// A directory as the layers that it is merged from, highest first.
  using Directory = std::vector<Part>;
  using SharedDirectory = std::shared_ptr<const Directory>;

  struct Walked;
  Result<Walked> walk(std::string_view path) const;
  Result<Entry> resolve(std::string_view path) const;
  Result<SharedDirectory> root() const;
  struct Copy;
  static Result<void> copy_directory(Copy& copy, const Directory& from, const sys::Fd& to,
                                     const std::string& name, int depth);
  static Result<void> copy_other(Copy& copy, const Entry& entry, const sys::Fd& to,
                                 const std::string& path);
  static Result<Entry> look_in(const Directory& directory, const std::string& name);
  /// As look_in() for `name` in the directory at `path` ("" or "/usr/lib", without links).
  Result<Entry> look_below(const Directory& directory, const std::string& path,
                           const std::string& name) const;
  void remember(const std::string& path, const SharedDirectory& directory) const;

  std::vector<sys::Fd> layers_;
  /// Directories that were found, by path, and nullptr for what is absent: a start asks for a
  /// hundred paths in a few directories.
  mutable std::map<std::string, SharedDirectory> known_;
  mutable size_t handles_ = 0;  ///< of them all
  struct RealDirectory {
    std::string path;           ///< with links resolved; "" is the root
    SharedDirectory directory;  ///< nullptr: there is none
  };
  /// By the path that real_path() was given: a driver has dozens of files in a directory.
  mutable std::map<std::string, RealDirectory, std::less<>> real_;
};

/// A view of layers as a tree, for library searches.
class LayerTree : public scan::Tree {
 public:
  /// `view` must outlive this object.
  explicit LayerTree(const LayerView& view) : view_(view) {}
  Result<std::optional<File>> find_file(const std::string& path) const override {
    auto found = TRY(view_.find_file(path));
    if (!found) return std::optional<File>();
    return std::optional<File>(File{std::move(found->path), found->size});
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    return view_.list(path);
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    return view_.read_at(file.path, offset, length);
  }

 private:
  const LayerView& view_;
};

}  // namespace berth::engine
