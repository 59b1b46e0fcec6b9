// SPDX-License-Identifier: Apache-2.0
// Allocates places in an image, from front to back; nothing is written twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::erofs {

/// Blocks for small records, filled side by side and written together when no record fits any more.
class RecordBlocks {
 public:
  explicit RecordBlocks(const sys::Fd& file) : file_(&file) {}

  /// Whether a record of `size` bytes, at most a block, still fits.
  bool fits(size_t size) const;
  /// Puts a record where it leaves the least room. Only after fits(); returns its address.
  uint64_t put(std::string_view record);
  /// Whether the bytes at `address` are still in memory, and can be read and replaced.
  bool holds(uint64_t address) const;
  std::string read(uint64_t address, size_t length) const;
  void replace(uint64_t address, std::string_view bytes);
  /// Starts with `count` empty blocks at `address`, after flush().
  void begin(uint64_t address, size_t count);
  Result<void> flush();

 private:
  size_t best(size_t size) const;

  const sys::Fd* file_;
  uint64_t start_ = 0;
  std::vector<uint32_t> used_;  ///< of each block
  std::string bytes_;
};

}  // namespace berth::erofs
