// SPDX-License-Identifier: Apache-2.0
// The places of a sparse tar member's bytes: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::transfer {

/// A stored part of a file; between them are holes.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Extents = std::vector<Extent>;

/// More would need 4 MiB of memory, and a map of more than 1 MiB in every notation.
inline constexpr size_t kMaxExtents = 262'144;

/// "0,5,10,5" → (0, 5), (10, 5).  Errors: corrupt.
Result<Extents> parse_sparse_list(std::string_view text, const std::string& path);

/// The map in front of the data in GNU's 1.0, line by line: the number, then offset and length of
/// each. Parsed block by block.
class SparseLines {
 public:
  explicit SparseLines(std::string path) : path_(std::move(path)) {}

  /// False: more input is needed; true: the map is complete, padding follows.
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

/// Checks that they are in order, disjoint, inside a file of `size` bytes, and `stored` bytes in
/// all.
/// Errors: corrupt.
Result<void> check_extents(const Extents& extents, uint64_t size, uint64_t stored,
                           const std::string& path);

}  // namespace berth::transfer
