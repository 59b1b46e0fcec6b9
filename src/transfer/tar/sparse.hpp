// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a sparse member of a tar belong: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::transfer {

/// A part of a file that is stored; what lies between them are holes.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Extents = std::vector<Extent>;

/// More would be 4 MiB of memory, and a map of more than 1 MiB in every form of them.
inline constexpr size_t kMaxExtents = 262'144;

/// "0,5,10,5" → (0, 5), (10, 5).  Errors: corrupt.
Result<Extents> parse_sparse_list(std::string_view text, const std::string& path);

/// The map in front of the data of GNU's 1.0, line by line: how many, then offset and length of
/// each. Taken as it comes, block by block.
class SparseLines {
 public:
  explicit SparseLines(std::string path) : path_(std::move(path)) {}

  /// False when more is wanted; true when the map is whole, what follows is padding.
  /// Errors: corrupt.
  Result<bool> add(std::string_view block);
  Extents take() { return std::move(extents_); }

 private:
  Result<bool> add_number(uint64_t number);

  std::string path_;
  std::string digits_;
  uint64_t count_ = 0;
  uint64_t offset_ = 0;
  bool has_count_ = false;
  bool has_offset_ = false;
  Extents extents_;
};

/// In order, apart from each other, inside of a file of `size` bytes, and `stored` bytes in all.
/// Errors: corrupt.
Result<void> check_extents(const Extents& extents, uint64_t size, uint64_t stored,
                           const std::string& path);

}  // namespace berth::transfer
