// SPDX-License-Identifier: Apache-2.0
// The reader of tar archives, and the places of a sparse member's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {

/// A stored part of a file; between them are holes.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Extents = std::vector<Extent>;

/// More extents would need over 4 MiB of memory; in every notation, their map would exceed 1 MiB.
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

/// Checks that the extents are in order, disjoint, inside a file of `size` bytes, and have `stored`
/// bytes in all.
/// Errors: corrupt.
Result<void> check_extents(const Extents& extents, uint64_t size, uint64_t stored,
                           const std::string& path);

/// Reads v7, ustar, pax, GNU and star archives from a stream of blocks. The bytes are foreign:
/// every number is checked, extended headers and sparse maps are limited to 1 MiB.
/// Source: POSIX pax; GNU tar "Basic Tar Format"; Go archive/tar where these are ambiguous.
class TarReader {
 public:
  /// Returns the next bytes of the archive, empty at its end. Invalidates the previous ones.
  using Source = std::function<Result<std::string_view>()>;

  explicit TarReader(Source source) : source_(std::move(source)) {}

  /// Skips the rest of the previous member. False at the end of the archive: two zero blocks, or
  /// the end of the stream between members.
  /// Errors: corrupt (with the member's name once it is known), unsupported (a kind of member),
  /// errors of the source.
  Result<bool> next(TarEntry& entry);

  /// The next part of the member's content, as far as it is contiguous in memory; empty at its end.
  /// Holes are zeros. Errors: corrupt (the stream ends first).
  Result<std::string_view> content();

  /// Skips a hole if one comes next; returns its length.
  uint64_t skip_hole();

 private:
  struct Extensions;

  Result<bool> read_header(std::string& record);
  Result<bool> read_record(std::string& record);
  Result<bool> read_extension(char flag, uint64_t size, Extensions& extensions);
  Result<void> read_member(const std::string& record, const Extensions& extensions,
                           TarEntry& entry);
  Result<void> read_sparse(const std::string& record, const Extensions& extensions,
                           TarEntry& entry);
  Result<Extents> read_old_sparse(std::string_view record, const TarEntry& entry);
  Result<Extents> read_sparse_lines(const TarEntry& entry);
  void begin(uint64_t stored);
  Result<std::string_view> stored();
  Result<std::string> read_special(uint64_t size, std::string_view kind);
  Result<void> skip_rest();
  Result<bool> refill();

  Source source_;
  std::string_view window_;
  uint64_t left_ = 0;      ///< stored bytes of the member still to come
  uint64_t padding_ = 0;   ///< after them, up to the next record
  Extents extents_;        ///< their places in the content
  size_t extent_ = 0;      ///< the current one, or the next
  uint64_t position_ = 0;  ///< in the content
  uint64_t size_ = 0;      ///< of the content
  bool at_end_ = false;
};

}  // namespace berth::transfer
