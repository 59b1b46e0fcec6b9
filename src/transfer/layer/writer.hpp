// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/piece_writer.hpp"
#include "sys/user/user_namespace.hpp"
#include "transfer/layer/members_and_whiteouts.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {

/// Makes the members of a layer's tar below one directory, safe for any names in the tar. Every
/// name is made through the handle of its parent directory; the directory must be private to this
/// process.
class LayerWriter final : public MemberSink {
 public:
  static Result<LayerWriter> make(const sys::Fd& root, const UnpackOptions& options);

  /// What was written into each file.
  const WrittenFiles& written() const { return written_; }

  /// Sets owners, modes, marks and times of directories, which has to wait until everything is in
  /// them.
  Result<void> finish() override;

 private:
  /// An open directory on the common path of the last entries.
  struct Level {
    std::string path;
    sys::Fd fd;
  };
  /// The final attributes of a directory.
  struct DirectoryFacts {
    uint32_t mode = 0755;
    uint32_t uid = 0;
    uint32_t gid = 0;
    bool opaque = false;
    bool has_time = false;  ///< false for a parent without an entry
    sys::FileTime modified;
    std::vector<std::pair<std::string, std::string>> xattrs;
  };

  explicit LayerWriter(const UnpackOptions& options)
      : MemberSink(options), pieces_(options.cache) {}

  bool has_user(uint64_t uid) const override;
  bool has_group(uint64_t gid) const override;
  Result<std::string> enter(const std::string& directory) override;
  Result<void> describe_root(const TarEntry& entry) override;
  Result<void> mark_opaque() override;
  Result<void> hide(const Place& place) override;
  Result<void> add_file(const Place& place, const TarEntry& entry, TarReader& tar) override;
  Result<void> add_directory(const Place& place, const TarEntry& entry) override;
  Result<void> add_symlink(const Place& place, const TarEntry& entry) override;
  Result<void> add_hard_link(const Place& place, const TarEntry& entry) override;
  Result<void> add_node(const Place& place, const TarEntry& entry) override;

  const sys::Fd& here() const { return levels_.back().fd; }
  Result<std::string> real_path(const sys::Fd& directory) const;
  Result<void> enter_child(const std::string& name, PathWalk& walk);
  Result<void> displace(const Place& place);
  Result<bool> is_whiteout(const sys::Fd& directory, const std::string& name) const;
  void scan(const sys::Fd& fd, const Place& place, std::string_view first_bytes);
  Result<void> describe_made(const sys::Fd& made, const Place& place, const TarEntry& entry);
  Result<void> set_attributes(const sys::Fd& fd, const std::string& path,
                              const std::vector<std::pair<std::string, std::string>>& xattrs,
                              uint32_t& mode);
  Result<std::string> write_content(const sys::Fd& fd, const std::string& name,
                                    const TarEntry& entry, TarReader& tar, uint64_t& content);
  Result<void> note_written(const sys::Fd& fd, const Place& place, const TarEntry& entry,
                            uint64_t content);
  Result<DirectoryFacts*> describe(const std::string& path);
  DirectoryFacts facts_of(const TarEntry& entry) const;
  bool needs_owner(uint64_t uid, uint64_t gid) const;

  std::vector<Level> levels_;  ///< the root first
  std::map<std::string, DirectoryFacts> directories_;
  WrittenFiles written_;
  std::string root_path_;
  std::vector<sys::IdRange> uids_;  ///< users that files can have; empty: no limit
  std::vector<sys::IdRange> gids_;
  uid_t own_uid_ = 0;
  gid_t own_gid_ = 0;
  mode_t umask_ = 0;
  sys::PieceWriter pieces_;
};

}  // namespace berth::transfer
