// SPDX-License-Identifier: Apache-2.0
// The view of an image through FUSE: its files, with owners and marks adapted to the user
// namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/reader.hpp"
#include "sys/user/user_namespace.hpp"

namespace berth::erofs {

/// How the owners of an image's files appear in a user namespace. Mapped ids are unchanged.
/// Unmapped ids become 65534 or, if 65534 is unmapped too, the caller's id. So in a namespace with
/// a single id all files belong to the caller, as in layers that are unpacked there.
class Owners {
 public:
  using Ranges = std::vector<sys::IdRange>;
  Owners(Ranges uids, Ranges gids, uint32_t own_uid, uint32_t own_gid);
  /// For the user namespace of this process.  Errors: io.
  static Result<Owners> of_this_process();

  /// Replaces unmapped owners, and removes their set-id bits.
  void translate(Inode& inode) const;

  /// Whether all ids in an access list (system.posix_acl_*) are mapped.
  bool know_all_of(std::string_view acl) const;

  /// The mode to show for a file with an access list that cannot be shown. Rights that only named
  /// users had are lost, and group and others get no more than the mapped entries have.
  uint32_t without_list(uint32_t mode, std::string_view acl) const;

 private:
  Ranges uids_;
  Ranges gids_;
  uint32_t other_uid_ = 0;
  uint32_t other_gid_ = 0;
};

/// How the marks of an overlay (opaque directories, whiteouts by attribute) appear.
enum class Marks {
  stored,  ///< as in the image, usually as "trusted.overlay.", which overlay reads for root
  user,    ///< as "user.overlay.", which overlay reads in a user namespace; "trusted." is hidden
};

/// Thread-safe.
class ShownTree {
 public:
  /// `reader` has to outlive this object.
  ShownTree(const Reader& reader, Owners owners, Marks marks)
      : reader_(&reader), owners_(std::move(owners)), marks_(marks) {}

  const Reader& reader() const { return *reader_; }

  /// Errors: those of Reader::inode() and Reader::attributes().
  Result<Inode> inode(uint64_t number) const;

  /// Errors: those of Reader::attributes().
  Result<std::optional<std::string>> attribute(const Inode& inode, std::string_view key) const;
  Result<std::vector<std::string>> attribute_names(const Inode& inode) const;

 private:
  Result<std::vector<AttributePlace>> attributes(const Inode& inode) const;

  const Reader* reader_;
  Owners owners_;
  Marks marks_;
};

/// The visible key of an attribute; nothing if it is hidden. Pure.
std::optional<std::string> shown_key(std::string_view stored, Marks marks);

}  // namespace berth::erofs
