// SPDX-License-Identifier: Apache-2.0
// Huffman codes of deflate as look-up tables.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace berth::transfer {

inline uint64_t load_bits(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

/// The meaning of the next bits of a stream:
///   bits 0-7    the number of bits of the code and of the extra bits behind it
///   bits 8-12   the number of bits of the code alone, or of the index of the inner table
///   bits 13-15  kEnd, kInner, kSpecial
///   bits 16-30  the literal, the base of the length or distance, or the start of the inner table
///   bit 31      kLiteral
using CodeEntry = uint32_t;
constexpr CodeEntry kLiteral = 0x8000'0000;
constexpr CodeEntry kSpecial = 0x8000;  ///< not a symbol: an inner table, the end, or no code
constexpr CodeEntry kInner = 0x4000;
constexpr CodeEntry kEnd = 0x2000;

/// The codes of one block. A code longer than the outer table's bits continues in an inner table.
struct DeflateCodes {
  static constexpr unsigned kLiteralBits = 11;
  static constexpr unsigned kDistanceBits = 8;
  static constexpr size_t kMostLiterals = 288;  // with the two that only the fixed code has
  static constexpr size_t kMostDistances = 32;

  std::array<CodeEntry, (1 << kLiteralBits) + 768> literals;
  std::array<CodeEntry, (1 << kDistanceBits) + 1024> distances;
};

/// Whether the code lengths use up the code space. single: there is at most one code, of one bit.
enum class Fullness { full, single, partial, overfull };

/// `lengths`: 0 to 15 bits for each symbol, 0 for an unused one. Builds nothing for an overfull
/// code; bits that a partial code assigns to no symbol become entries with only `kSpecial`.
Fullness build_literals(DeflateCodes& codes, const uint8_t* lengths, size_t count);
Fullness build_distances(DeflateCodes& codes, const uint8_t* lengths, size_t count);
/// Returns the same, but builds no table.
Fullness fullness_of(const uint8_t* lengths, size_t count);

/// "compression with fixed Huffman codes" (RFC 1951, 3.2.6)
void build_fixed(DeflateCodes& codes);

/// The source of the next bits. At least eight bytes behind `next` are readable.
struct BitCursor {
  const uint8_t* next;
  uint64_t bits = 0;
  unsigned count = 0;  ///< number of bits that count as valid; `bits` may hold more

  /// Begins at the bit `bit`, counted from `bytes`.
  BitCursor(const uint8_t* bytes, uint64_t bit) : next(bytes + bit / 8) {
    refill();
    drop(bit % 8);
  }
  /// Afterwards there are at least 56 bits.
  void refill() {
    bits |= load_bits(next) << count;
    next += (63 - count) / 8;
    count |= 56;
  }
  void drop(unsigned number) {
    bits >>= number;
    count -= number;
  }
  unsigned take(unsigned number) {
    auto value = static_cast<unsigned>(bits & ((uint64_t{1} << number) - 1));
    drop(number);
    return value;
  }
  /// The next bit, counted from `bytes`.
  uint64_t position(const uint8_t* bytes) const {
    return static_cast<uint64_t>(next - bytes) * 8 - count;
  }
};

/// The code lengths in the header of a dynamic block.
struct CodeLengths {
  size_t literals = 0;
  size_t distances = 0;
  /// The lengths of the literal codes, then those of the distance codes.
  std::array<uint8_t, 320 + 138> lengths;
};

enum class CodeDemand { usable, full };

/// Reads the header of a dynamic block behind its first three bits; it takes at most 330 bytes.
/// CodeDemand::full accepts only codes as compressors write them: no partial code except one with a
/// single distance. Returns false for a damaged header.
bool read_code_lengths(BitCursor& cursor, CodeDemand demand, CodeLengths& lengths);

}  // namespace berth::transfer
