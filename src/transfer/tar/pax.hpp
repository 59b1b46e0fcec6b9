// SPDX-License-Identifier: Apache-2.0
// The extended headers of pax, with the extensions of GNU tar, star and libarchive: pure.
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

/// The maximum of sizes and ids.
inline constexpr uint64_t kMaxTarNumber = uint64_t{1} << 60;

struct PaxRecords {
  std::map<std::string, std::string, std::less<>> values;  ///< the last of each key
  std::string sparse_list;                                 ///< map of GNU's 0.0, written as in 0.1

  std::string_view value(std::string_view key) const;  ///< empty if absent
};

/// "LENGTH KEY=VALUE\n", LENGTH counting all of it.  Errors: corrupt.
Result<PaxRecords> parse_pax(std::string_view text);

/// Replaces the fields of `entry` by those of the pax header; an empty value leaves the field as it
/// was. Sparse members are left to sparse_kind().  Errors: corrupt.
Result<void> apply_pax(const PaxRecords& records, TarEntry& entry);

/// Where GNU tar wrote the map of a sparse member: in the header (0.0, 0.1), or in front of the
/// data (1.0).
enum class SparseKind { none, list, lines };
/// Errors: unsupported (another version).
Result<SparseKind> sparse_kind(const PaxRecords& records, const TarEntry& entry);
/// The size of the file, including holes.  Errors: corrupt.
Result<uint64_t> sparse_size(const PaxRecords& records, const TarEntry& entry);

}  // namespace berth::transfer
