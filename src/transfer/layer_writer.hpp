// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/fd.hpp"
#include "sys/tree.hpp"
#include "transfer/tar.hpp"
#include "transfer/unpack.hpp"

namespace berth::transfer {

/// Makes the members of a layer's tar below one directory, whatever their names say. Every name is
/// made from the handle of its parent; the directory must be private to this process.
/// docs/decisions/0030-layer-entries.md lists what is accepted, changed, left out and refused.
class LayerWriter {
 public:
  static Result<LayerWriter> make(const sys::Fd& root, const UnpackOptions& options);

  /// Makes one member; the content of a file is read from `tar`.
  Result<void> add(const TarEntry& entry, TarReader& tar);

  /// Gives directories their owners, modes, marks and times, which wait until all is inside.
  Result<void> finish();

  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }

 private:
  /// An open directory of the path that the last entries had in common.
  struct Level {
    std::string path;
    sys::Fd fd;
  };
  /// What a directory becomes in the end.
  struct DirectoryFacts {
    uint32_t mode = 0755;
    uint32_t uid = 0;
    uint32_t gid = 0;
    bool opaque = false;
    bool has_time = false;  ///< false for a parent that no entry describes
    sys::FileTime modified;
    std::vector<std::pair<std::string, std::string>> xattrs;
  };
  /// Where an entry goes: its name in an open directory.
  struct Place {
    const sys::Fd* parent = nullptr;
    std::string name;
    std::string path;  ///< below the root, without links
  };

  LayerWriter() = default;

  Result<std::string> clean_path(const std::string& path) const;
  Result<std::string> real_path(const sys::Fd& directory) const;
  Result<Place> place(const std::string& path);
  Result<void> enter(std::string directory);
  Result<void> enter_child(const std::string& name, std::string& directory);
  Result<void> displace(const Place& place);
  Result<bool> is_whiteout(const sys::Fd& directory, const std::string& name) const;

  Result<void> add_whiteout(const Place& place);
  Result<void> add_file(const Place& place, const TarEntry& entry, TarReader& tar);
  void scan(const sys::Fd& fd, const Place& place, std::string_view first_bytes);
  Result<void> add_directory(const Place& place, const TarEntry& entry);
  Result<void> add_symlink(const Place& place, const TarEntry& entry);
  Result<void> add_hard_link(const Place& place, const TarEntry& entry);
  Result<void> add_node(const Place& place, const TarEntry& entry);
  Result<void> describe_root(const TarEntry& entry);
  Result<void> set_unopened(const Place& place, const TarEntry& entry);

  Result<void> set_attributes(const sys::Fd& fd, const std::string& path,
                              const std::vector<std::pair<std::string, std::string>>& xattrs);
  DirectoryFacts facts_of(const TarEntry& entry) const;
  uint32_t usable_mode(const TarEntry& entry) const;
  bool needs_owner(uint64_t uid, uint64_t gid) const;
  Error explain(Error error, const std::string& path) const;
  void warn(const std::string& text) const;

  const UnpackOptions* options_ = nullptr;
  std::vector<Level> levels_;  ///< the root first
  std::map<std::string, DirectoryFacts> directories_;
  std::string root_path_;
  std::string current_;  ///< the entry being added, for errors
  uid_t own_uid_ = 0;
  gid_t own_gid_ = 0;
  mode_t umask_ = 0;
  uint64_t entries_ = 0;
  uint64_t bytes_ = 0;
  uint64_t devices_left_out_ = 0;
  std::string first_device_;
  uint64_t attributes_left_out_ = 0;
  std::string first_attribute_;
};

}  // namespace berth::transfer
