// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// What the names of a copy share. Blocks are shared where the file system can.
enum class Sharing {
  nothing,  ///< each is a file of its own
  names,    ///< names of one file are so again; for a place where nobody else makes links
  files,    ///< the files of the layers themselves, where they are on one file system: nobody may
            ///< write to them
};

/// The tree that overlay will show of some layers, read without a mount: whiteouts, opaque
/// directories and symbolic links count as in the container, and no link leads out of it. The
/// layers' content is foreign.
/// Source: kernel overlayfs.rst.
class LayerView {
 public:
  /// `layers`: as sys::open_layer() takes them, highest first.  Errors: not_found (a layer).
  static Result<LayerView> open(const std::vector<std::string>& layers);

  enum class Type { absent, directory, other };
  /// What is at the absolute `path`, links followed; a circle of links is absent.  Errors: io.
  Result<Type> look_up(std::string_view path) const;

  /// Where the absolute `path` leads, links followed; what is missing keeps its name.  Errors: io.
  Result<std::string> real_path(std::string_view path) const;

  struct File {
    std::string path;  ///< absolute, without a link in it
    uint64_t size = 0;
  };
  /// The regular file at `path`, links followed; nothing when there is none.  Errors: io.
  Result<std::optional<File>> find_file(std::string_view path) const;

  /// Up to `length` bytes of the regular file at `path` from `offset` on; none when there is no
  /// such file.  Errors: io.
  Result<std::string> read_at(std::string_view path, uint64_t offset, size_t length) const;

  /// The names in the directory at `path`, at most 4096; none when there is no directory.
  /// Errors: io.
  Result<std::vector<std::string>> list(std::string_view path) const;

  /// Of each of `names` in `directory`, without following a link on the way or there: the layer (0:
  /// the highest) whose regular file a container sees; nothing where it sees none.  Errors: io.
  Result<std::vector<std::optional<size_t>>> layers_of(std::string_view directory,
                                                       const std::vector<std::string>& names) const;

  /// Copies what is in the directory at `path`, with owners and modes, and its own, into the empty
  /// directory `to`; nothing where there is no directory.
  /// Errors: io (no space), usage (more than 128 directories deep).
  Result<void> copy_tree(std::string_view path, const sys::Fd& to,
                         Sharing sharing = Sharing::nothing) const;

  /// The content of the regular file at `path`; nothing when there is none, or something else.
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

  struct Walked;
  Result<Walked> walk(std::string_view path) const;
  Result<Entry> resolve(std::string_view path) const;
  Result<Directory> root() const;
  struct Copy;
  static Result<void> copy_directory(Copy& copy, const Directory& from, const sys::Fd& to,
                                     const std::string& name, int depth);
  static Result<void> copy_other(Copy& copy, const Entry& entry, const sys::Fd& to,
                                 const std::string& path);
  static Result<Entry> look_in(const Directory& directory, const std::string& name);

  std::vector<sys::Fd> layers_;
};

}  // namespace berth::engine
