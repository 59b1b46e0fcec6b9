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
#include "erofs/serve/owners.hpp"

namespace berth::erofs {

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
