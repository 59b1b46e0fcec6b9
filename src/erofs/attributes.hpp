// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::erofs {

/// What the attributes of an inode may take: their words are counted in 16 bits.
inline constexpr size_t kMaxAttributes = 12 + 4 * 0xfffe;

/// The extended attributes of one inode as they lie behind it.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Puts one more behind those there are; a key is given once.
  /// Errors: unsupported (no prefix that EROFS knows, a name or value that is too long for it, more
  /// than there is room for).
  Result<void> add(std::string_view key, std::string_view value);

  /// With the header; empty for none. A multiple of 4 bytes.
  const std::string& bytes() const { return bytes_; }

 private:
  size_t max_bytes_ = kMaxAttributes;
  std::string bytes_;
};

}  // namespace berth::erofs
