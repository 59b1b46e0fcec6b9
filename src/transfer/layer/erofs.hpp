// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "erofs/writer.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/layer/members_and_whiteouts.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {

/// Writes the members of a layer's tar into one EROFS image, which can be a lower layer of an
/// overlay: whiteouts and opaque directories are marked as LayerWriter marks them. Accepts and
/// refuses the same members as LayerWriter, with the same result; resolves names in memory.
/// Differences: whiteouts, and directories without an entry, have the image's build time;
/// attributes that a file system of this machine would refuse are kept, up to 64 KiB each; holes of
/// a file are not stored, and a container sees zeros instead of a hole.
/// Memory: about 160 bytes and the name for each entry; UnpackLimits::tree_bytes in all.
class ErofsLayer final : public MemberSink {
 public:
  /// `image`: an empty regular file, open for reading and writing; it and `options` have to outlive
  /// this object. After an error the caller discards the file.
  ErofsLayer(const sys::Fd& image, const erofs::Identity& identity, const UnpackOptions& options);
  ErofsLayer(ErofsLayer&&) = delete;  // directories point at their parents

  /// Writes the directories and the superblock. Not synced.
  Result<void> finish() override;

  /// The extents that were written, without those of small files. Call it after finish().
  ExtentRecord take_extents() { return std::move(extents_); }

 private:
  using Xattrs = std::vector<std::pair<std::string, std::string>>;

  Result<std::string> enter(const std::string& directory) override;
  Result<void> describe_root(const TarEntry& entry) override;
  Result<void> mark_opaque() override;
  Result<void> hide(const Place& place) override;
  Result<void> add_file(const Place& place, const TarEntry& entry, TarReader& tar) override;
  Result<void> add_directory(const Place& place, const TarEntry& entry) override;
  Result<void> add_symlink(const Place& place, const TarEntry& entry) override;
  Result<void> add_hard_link(const Place& place, const TarEntry& entry) override;
  Result<void> add_node(const Place& place, const TarEntry& entry) override;

  Result<erofs::Directory*> step(erofs::Directory& here, const std::string& name, PathWalk& walk);
  Result<erofs::Directory*> make_parent(erofs::Directory& here, const std::string& name);
  Result<erofs::Directory*> find_directory(const std::string& path);
  Result<erofs::Directory*> follow(const erofs::Node& link, erofs::Directory& from, PathWalk& walk);
  Result<void> put(erofs::Directory& parent, const std::string& name,
                   std::shared_ptr<erofs::Node> node);
  Result<erofs::Directory*> put_directory(erofs::Directory& parent, const std::string& name);
  void displace(const Place& place);

  erofs::Facts facts_of(const TarEntry& entry, uint32_t mode) const;
  Result<erofs::Attributes> attributes_of(const std::string& path, const Xattrs& xattrs,
                                          bool opaque, size_t max_bytes = erofs::kMaxAttributes);
  Result<void> describe(erofs::Directory& directory, const TarEntry& entry);
  Result<void> make_opaque(erofs::Directory& directory);
  void scan(const Place& place, const erofs::Writer::File& file, uint64_t size,
            std::string_view first_bytes);

  erofs::Writer writer_;
  ExtentRecord extents_;
  size_t charged_parts_ = 0;
  erofs::Identity identity_;
  erofs::Directory root_;
  erofs::Directory* here_ = nullptr;  ///< the current directory
  uint32_t own_uid_ = 0;
  uint32_t own_gid_ = 0;
};

}  // namespace berth::transfer
