// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/deflate_codes.hpp"

#include <algorithm>
#include <bit>

namespace berth::transfer {
namespace {

constexpr unsigned kMostBits = 15;
constexpr size_t kEndSymbol = 256;
constexpr unsigned kSpaceBits = 15;  // the code space has room for 1 << 15 codes of 15 bits

// RFC 1951, 3.2.5.
constexpr std::array<uint16_t, 29> kLengthBase{3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                               15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                               67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> kLengthExtra{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                               2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> kDistanceBase{
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 30> kDistanceExtra{0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                 4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

/// The entry of a symbol, without the number of bits of its code.
constexpr CodeEntry with_base(uint32_t base, uint32_t extra) {
  return base << 16 | extra;
}

constexpr auto kLiteralEntries = [] {
  std::array<CodeEntry, DeflateCodes::kMostLiterals> entries{};
  for (uint32_t i = 0; i < kEndSymbol; ++i) entries[i] = kLiteral | i << 16;
  entries[kEndSymbol] = kSpecial | kEnd;
  for (size_t i = 0; i < kLengthBase.size(); ++i) {
    entries[kEndSymbol + 1 + i] = with_base(kLengthBase[i], kLengthExtra[i]);
  }
  entries[286] = entries[287] = kSpecial;  // "will never actually occur in the compressed data"
  return entries;
}();

constexpr auto kDistanceEntries = [] {
  std::array<CodeEntry, DeflateCodes::kMostDistances> entries{};
  for (size_t i = 0; i < kDistanceBase.size(); ++i) {
    entries[i] = with_base(kDistanceBase[i], kDistanceExtra[i]);
  }
  entries[30] = entries[31] = kSpecial;
  return entries;
}();

using Counts = std::array<uint16_t, kMostBits + 1>;

Counts count_lengths(const uint8_t* lengths, size_t count) {
  Counts counts{};
  for (size_t i = 0; i < count; ++i) ++counts[lengths[i]];
  return counts;
}

Fullness fullness_of(const Counts& counts) {
  uint32_t used = 0;
  uint32_t codes = 0;
  for (unsigned bits = 1; bits <= kMostBits; ++bits) {
    used += uint32_t{counts[bits]} << (kSpaceBits - bits);
    codes += counts[bits];
  }
  if (used > 1u << kSpaceBits) return Fullness::overfull;
  if (used == 1u << kSpaceBits) return Fullness::full;
  return codes == 0 || (codes == 1 && counts[1] == 1) ? Fullness::single : Fullness::partial;
}

/// `entry` for a code of `bits` bits, of which the outer table has consumed `taken`.
CodeEntry sized(CodeEntry entry, unsigned bits, unsigned taken) {
  uint32_t code = bits - taken;
  return entry + (code << 8 | code);
}

/// Changes a code of `bits` bits into the next one. The first bit of a code is the lowest, as codes
/// are read in this order. False: there is no next code.
bool next_code(uint32_t& code, unsigned bits) {
  uint32_t free = ~code & ((1u << bits) - 1);
  if (free == 0) return false;
  uint32_t highest = std::bit_floor(free);
  code = (code & (highest - 1)) | highest;
  return true;
}

/// Fills an outer table of 1 << `outer` entries and the inner ones behind it.
template <size_t kSize>
void fill(std::array<CodeEntry, kSize>& table, unsigned outer, const uint8_t* lengths, size_t count,
          Counts counts, const CodeEntry* entries) {
  // Symbols by length of their code, then by value: in the order of their codes.
  std::array<uint16_t, kMostBits + 2> begins{};
  for (unsigned bits = 1; bits <= kMostBits; ++bits) {
    begins[bits + 1] = static_cast<uint16_t>(begins[bits] + counts[bits]);
  }
  std::array<uint16_t, DeflateCodes::kMostLiterals> sorted;
  std::array<uint16_t, kMostBits + 2> at = begins;
  for (size_t i = 0; i < count; ++i) {
    if (lengths[i] != 0) sorted[at[lengths[i]]++] = static_cast<uint16_t>(i);
  }

  uint32_t code = 0;
  const uint16_t* symbol = sorted.data();
  table[0] = kSpecial;
  // Each round doubles the filled part of the table and adds the codes of `bits` bits.
  for (unsigned bits = 1; bits <= outer; ++bits) {
    size_t half = size_t{1} << (bits - 1);
    std::memcpy(&table[half], &table[0], half * sizeof(CodeEntry));
    for (unsigned left = counts[bits]; left > 0; --left) {
      table[code] = sized(entries[*symbol++], bits, 0);
      if (!next_code(code, bits)) {
        // The code is complete: the rest of the table repeats it.
        for (size_t size = size_t{1} << bits; size < size_t{1} << outer; size *= 2) {
          std::memcpy(&table[size], &table[0], size * sizeof(CodeEntry));
        }
        return;
      }
    }
  }

  size_t end = size_t{1} << outer;
  uint32_t prefix = ~0u;
  size_t inner = 0;
  unsigned inner_bits = 0;
  for (unsigned bits = outer + 1; bits <= kMostBits; ++bits) {
    while (counts[bits] > 0) {
      uint32_t now = code & ((1u << outer) - 1);
      if (now != prefix) {
        prefix = now;
        // The inner table gets as many bits as the codes with this prefix need; the following codes
        // fill it.
        inner_bits = bits - outer;
        uint32_t used = counts[bits];
        while (used < 1u << inner_bits && outer + inner_bits < kMostBits) {
          ++inner_bits;
          used = used * 2 + counts[outer + inner_bits];
        }
        inner = end;
        end += size_t{1} << inner_bits;
        std::fill(&table[inner], &table[inner] + (size_t{1} << inner_bits), kSpecial);
        table[prefix] =
            static_cast<CodeEntry>(inner) << 16 | kSpecial | kInner | inner_bits << 8 | outer;
      }
      CodeEntry entry = sized(entries[*symbol++], bits, outer);
      for (size_t i = code >> outer; i < size_t{1} << inner_bits;
           i += size_t{1} << (bits - outer)) {
        table[inner + i] = entry;
      }
      --counts[bits];
      if (!next_code(code, bits)) return;
    }
  }
}

}  // namespace

Fullness fullness_of(const uint8_t* lengths, size_t count) {
  return fullness_of(count_lengths(lengths, count));
}

Fullness build_literals(DeflateCodes& codes, const uint8_t* lengths, size_t count) {
  Counts counts = count_lengths(lengths, count);
  Fullness fullness = fullness_of(counts);
  if (fullness == Fullness::overfull) return fullness;
  fill(codes.literals, DeflateCodes::kLiteralBits, lengths, count, counts, kLiteralEntries.data());
  return fullness;
}

Fullness build_distances(DeflateCodes& codes, const uint8_t* lengths, size_t count) {
  Counts counts = count_lengths(lengths, count);
  Fullness fullness = fullness_of(counts);
  if (fullness == Fullness::overfull) return fullness;
  fill(codes.distances, DeflateCodes::kDistanceBits, lengths, count, counts,
       kDistanceEntries.data());
  return fullness;
}

void build_fixed(DeflateCodes& codes) {
  std::array<uint8_t, DeflateCodes::kMostLiterals> literals;
  for (size_t i = 0; i < literals.size(); ++i) {
    literals[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  std::array<uint8_t, DeflateCodes::kMostDistances> distances;
  distances.fill(5);
  build_literals(codes, literals.data(), literals.size());
  build_distances(codes, distances.data(), distances.size());
}

// ---- the header of a dynamic block --------------------------------------------------------------

namespace {

constexpr size_t kInnerCodes = 19;
constexpr std::array<uint8_t, kInnerCodes> kOrder{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
constexpr unsigned kInnerBits = 7;

/// The code of code lengths: for every value of the next seven bits the symbol, and the number of
/// bits of its code; 0: no symbol.
struct InnerCode {
  struct Entry {
    uint8_t symbol;
    uint8_t bits;
  };
  std::array<Entry, 1 << kInnerBits> table;

  Fullness build(const std::array<uint8_t, kInnerCodes>& lengths) {
    Counts counts = count_lengths(lengths.data(), lengths.size());
    Fullness fullness = fullness_of(counts);
    if (fullness == Fullness::overfull) return fullness;
    if (fullness != Fullness::full) table.fill({0, 0});
    uint32_t code = 0;
    for (unsigned bits = 1; bits <= kInnerBits; ++bits) {
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] != bits) continue;
        for (size_t at = code; at < table.size(); at += size_t{1} << bits) {
          table[at] = {static_cast<uint8_t>(i), static_cast<uint8_t>(bits)};
        }
        next_code(code, bits);
      }
    }
    return fullness;
  }
};

}  // namespace

bool read_code_lengths(BitCursor& cursor, CodeDemand demand, CodeLengths& out) {
  cursor.refill();
  out.literals = cursor.take(5) + 257;
  out.distances = cursor.take(5) + 1;
  size_t inner_count = cursor.take(4) + 4;
  if (out.literals > 286 || out.distances > 30) return false;

  std::array<uint8_t, kInnerCodes> inner_lengths{};
  for (size_t i = 0; i < inner_count; ++i) {
    if (cursor.count < 3) cursor.refill();
    inner_lengths[kOrder[i]] = static_cast<uint8_t>(cursor.take(3));
  }
  InnerCode inner;
  Fullness fullness = inner.build(inner_lengths);
  if (fullness == Fullness::overfull) return false;
  if (demand == CodeDemand::full && fullness != Fullness::full) return false;

  size_t total = out.literals + out.distances;
  for (size_t i = 0; i < total;) {
    if (cursor.count < kInnerBits + 7) cursor.refill();
    InnerCode::Entry entry = inner.table[cursor.bits & (inner.table.size() - 1)];
    if (entry.bits == 0) return false;
    cursor.drop(entry.bits);
    if (entry.symbol < 16) {
      out.lengths[i++] = entry.symbol;
      continue;
    }
    uint8_t repeated = 0;
    size_t times = 0;
    if (entry.symbol == 16) {
      if (i == 0) return false;
      repeated = out.lengths[i - 1];
      times = 3 + cursor.take(2);
    } else {
      times = entry.symbol == 17 ? 3 + cursor.take(3) : 11 + cursor.take(7);
    }
    std::memset(&out.lengths[i], repeated, times);
    i += times;
    if (i > total) return false;
  }
  if (out.lengths[kEndSymbol] == 0) return false;
  if (demand == CodeDemand::usable) return true;
  Fullness distances = fullness_of(&out.lengths[out.literals], out.distances);
  return (distances == Fullness::full || distances == Fullness::single) &&
         fullness_of(out.lengths.data(), out.literals) == Fullness::full;
}

}  // namespace berth::transfer
