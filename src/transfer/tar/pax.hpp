// SPDX-License-Identifier: Apache-2.0
// The extended headers of pax, and what GNU tar, star and libarchive put into them: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transfer/tar/entry.hpp"

namespace berth::transfer {

/// The largest number that a size or an id may be.
inline constexpr uint64_t kMaxTarNumber = uint64_t{1} << 60;

struct PaxRecords {
  std::map<std::string, std::string, std::less<>> values;  ///< the last of each key
  std::string sparse_list;                                 ///< of GNU's 0.0, as its 0.1 writes it

  std::string_view value(std::string_view key) const;  ///< empty where there is none
};

/// "LENGTH KEY=VALUE\n", LENGTH counting all of it.  Errors: corrupt.
Result<PaxRecords> parse_pax(std::string_view text);

/// What a pax header says wins over the fields; an empty value gives the field back its word.
/// Sparse members are left to sparse_kind().  Errors: corrupt.
Result<void> apply_pax(const PaxRecords& records, TarEntry& entry);

/// How GNU tar wrote a sparse member: with a list in the header (0.0, 0.1), or in front of the
/// data (1.0).
enum class SparseKind { none, list, lines };
/// Errors: unsupported (another version).
Result<SparseKind> sparse_kind(const PaxRecords& records, const TarEntry& entry);
/// The size of the file, with its holes.  Errors: corrupt.
Result<uint64_t> sparse_size(const PaxRecords& records, const TarEntry& entry);

}  // namespace berth::transfer
