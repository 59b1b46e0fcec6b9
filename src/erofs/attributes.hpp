// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::erofs {

/// The maximal size of an inode's attributes: a 16-bit field counts their words.
inline constexpr size_t kMaxAttributes = 12 + 4 * 0xfffe;

/// The extended attributes of one inode, in their form on disk.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Appends an attribute; each key once.
  /// Errors: unsupported (a prefix that EROFS lacks, a name or value that is too long for it, no
  /// room left).
  Result<void> add(std::string_view key, std::string_view value);

  /// With the header; empty for none. A multiple of 4 bytes.
  const std::string& bytes() const { return bytes_; }

 private:
  size_t max_bytes_ = kMaxAttributes;
  std::string bytes_;
};

}  // namespace berth::erofs
