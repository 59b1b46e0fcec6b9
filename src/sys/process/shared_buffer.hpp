// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"

namespace berth::sys {

/// Memory that a process shares with the children that it clones afterwards: all of them see each
/// other's writes. Initially zero.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();

  /// Errors: io (no memory).  mmap(2) MAP_SHARED|MAP_ANONYMOUS
  static Result<SharedBuffer> make(size_t bytes);

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace berth::sys
