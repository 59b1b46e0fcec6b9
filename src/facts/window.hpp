// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

inline constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";

/// The little-endian number of `width` bytes at `at`; bytes beyond the end count as zero.
inline uint64_t number_at(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

/// Reads a file through one buffer, so that neighbouring data costs one read.
class Window {
 public:
  static constexpr size_t kSize = 4096;

  /// `read_at` has to outlive the window.
  explicit Window(const scan::ReadAt& read_at) : read_at_(read_at) {}

  /// Up to `length` bytes from `offset`, valid until the next call; fewer only at the end of the
  /// file.
  Result<std::string_view> read(uint64_t offset, size_t length) {
    uint64_t skip = offset - offset_;
    if (offset < offset_ || skip > bytes_.size() || bytes_.size() - skip < length) {
      bytes_ = TRY(read_at_(offset, length > kSize ? length : kSize));
      offset_ = offset;
      skip = 0;
    }
    return std::string_view(bytes_).substr(static_cast<size_t>(skip), length);
  }

  /// Exactly `length` bytes from `offset`. Errors: corrupt (the file is too short; names `what`).
  Result<std::string_view> need(uint64_t offset, size_t length, std::string_view what) {
    std::string_view bytes = TRY(read(offset, length));
    if (bytes.size() < length) {
      return make_error(Kind::corrupt, std::string(what) + " outside of the file");
    }
    return bytes;
  }

 private:
  const scan::ReadAt& read_at_;
  std::string bytes_;
  uint64_t offset_ = 0;
};

}  // namespace berth::facts
