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

/// The owners of an image's files in a user namespace. Mapped ids are unchanged. Unmapped ones
/// become 65534, or, if that is unmapped too, the caller: with a single id everything is the
/// caller's, as in layers that such a user unpacks.
class Owners {
 public:
  using Ranges = std::vector<sys::IdRange>;
  Owners(Ranges uids, Ranges gids, uint32_t own_uid, uint32_t own_gid);
  /// For this process's user namespace.  Errors: io.
  static Result<Owners> of_this_process();

  /// Replaces unmapped owners, and removes their set-id bits.
  void translate(Inode& inode) const;

  /// Whether all ids in an access list (system.posix_acl_*) are mapped.
  bool know_all_of(std::string_view acl) const;

  /// `mode` without a list that cannot be shown: drops the rights of named users only, and gives
  /// group and others no more than the mapped entries have.
  uint32_t without_list(uint32_t mode, std::string_view acl) const;

 private:
  Ranges uids_;
  Ranges gids_;
  uint32_t other_uid_ = 0;
  uint32_t other_gid_ = 0;
};

/// How the marks of an overlay (opaque directories, whiteouts by attribute) appear.
enum class Marks {
  stored,  ///< as in the image, usually "trusted.overlay.": for root
  user,    ///< as "user.overlay.", which overlay reads in a user namespace; "trusted." is nothing
};

/// Thread-safe.
class ShownTree {
 public:
  /// `reader` has to outlive this.
  ShownTree(const Reader& reader, Owners owners, Marks marks)
      : reader_(&reader), owners_(std::move(owners)), marks_(marks) {}

  const Reader& reader() const { return *reader_; }

  /// Errors: those of Reader::inode() and of its attributes.
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
