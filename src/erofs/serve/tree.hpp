// SPDX-License-Identifier: Apache-2.0
// What an image shows through FUSE: its files, with the owners and the
// marks that mean something where they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "erofs/reader.hpp"
#include "erofs/serve/owners.hpp"

namespace berth::erofs {

/// How the marks of an overlay (opaque directories, whiteouts by attribute) are shown.
enum class Marks {
  stored,  ///< as the image has them, usually "trusted.overlay.": for root
  user,    ///< as "user.overlay.", which overlay reads in a user namespace; "trusted." is nothing
};

/// Several threads may use one at a time.
class ShownTree {
 public:
  /// `reader` outlives this.
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

/// The key under which an attribute is shown; nothing for one that is not. Pure.
std::optional<std::string> shown_key(std::string_view stored, Marks marks);

}  // namespace berth::erofs
