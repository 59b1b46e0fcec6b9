// SPDX-License-Identifier: Apache-2.0
// Finds deflate blocks. Nothing marks the start of a block, but hardly any other data can be parsed
// as a block.
#include <algorithm>
#include <array>
#include <bit>

#include "transfer/compression/deflate_decoder.hpp"

namespace berth::transfer {
namespace {

constexpr unsigned kStoredBits = 3;

/// For four code lengths of three bits each: how many of the 128 codes of seven bits they take.
constexpr auto kTaken = [] {
  std::array<uint16_t, 1 << 12> taken{};
  for (unsigned i = 0; i < taken.size(); ++i) {
    for (unsigned shift = 0; shift < 12; shift += 3) {
      unsigned length = i >> shift & 7;
      if (length > 0) taken[i] = static_cast<uint16_t>(taken[i] + (128 >> length));
    }
  }
  return taken;
}();

uint64_t bits_at(const DeflateView& view, uint64_t bit) {
  return load_bits(view.bytes + (bit / 8 - view.begin)) >> bit % 8;
}

/// Whether the code of code lengths of the dynamic block that begins at `bit` is full.
bool has_full_inner_code(const DeflateView& view, uint64_t bit) {
  unsigned count = static_cast<unsigned>(bits_at(view, bit) >> 13 & 0xf) + 4;
  uint64_t lengths = bits_at(view, bit + 17) & ((uint64_t{1} << 3 * count) - 1);
  unsigned taken = 0;
  for (unsigned shift = 0; shift < 60; shift += 12) taken += kTaken[lengths >> shift & 0xfff];
  return taken == 128;
}

bool is_dynamic(const DeflateView& view, uint64_t bit) {
  if (!has_full_inner_code(view, bit)) return false;
  BitCursor cursor(view.bytes, bit + 3 - view.begin * 8);
  CodeLengths lengths;
  return read_code_lengths(cursor, CodeDemand::full, lengths);
}

/// The offset, in bytes, of the length field of the stored block that begins at `bit`.
uint64_t stored_length_at(uint64_t bit) {
  return (bit + kStoredBits + 7) / 8;
}

bool is_stored(const DeflateView& view, uint64_t bit) {
  uint64_t at = stored_length_at(bit);
  uint64_t header = bits_at(view, bit) & ((uint64_t{1} << (at * 8 - bit)) - 1);
  uint64_t length = bits_at(view, at * 8);
  return header == 0 && ((length ^ length >> 16) & 0xffff) == 0xffff;
}

/// Marks those of the lowest 32 bits of `word` where a dynamic block may begin that is not the last
/// (a bit of 0, then 2 in two bits), with at most 286 literal and 30 distance codes.
uint32_t may_be_dynamic(uint64_t word) {
  uint64_t kind = ~word & ~(word >> 1) & (word >> 2);
  uint64_t many_literals = (word >> 4) & (word >> 5) & (word >> 6) & (word >> 7);
  uint64_t many_distances = (word >> 9) & (word >> 10) & (word >> 11) & (word >> 12);
  return static_cast<uint32_t>(kind & ~many_literals & ~many_distances);
}

/// Marks those of 32 bits where a stored block may begin, with its length field at one of the next
/// four bytes behind `bytes`.
uint32_t may_be_stored(const uint8_t* bytes) {
  uint64_t word = load_bits(bytes + 1);
  uint32_t places = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint64_t length = word >> 8 * i;
    if (((length ^ length >> 16) & 0xffff) == 0xffff) places |= 1u << (8 * (i + 1) - kStoredBits);
  }
  return places;
}

}  // namespace

std::optional<uint64_t> findable_block(const DeflateView& view, uint64_t at) {
  unsigned kind = static_cast<unsigned>(bits_at(view, at) & 7);
  if (kind == 4 && may_be_dynamic(bits_at(view, at)) & 1 && is_dynamic(view, at)) return at;
  if (kind == 0 && is_stored(view, at)) return stored_length_at(at) * 8 - kStoredBits;
  return std::nullopt;
}

std::optional<uint64_t> find_block(const DeflateView& view, uint64_t from) {
  for (uint64_t at = from / 8; at < view.end; at += 4) {
    const uint8_t* bytes = view.bytes + (at - view.begin);
    uint32_t places = may_be_dynamic(load_bits(bytes)) | may_be_stored(bytes);
    if (at * 8 < from) places &= ~0u << (from - at * 8);
    for (; places != 0; places &= places - 1) {
      uint64_t bit = at * 8 + static_cast<unsigned>(std::countr_zero(places));
      if (bit >= view.end * 8) return std::nullopt;
      unsigned kind = static_cast<unsigned>(bits_at(view, bit) & 7);
      if (kind == 4 ? is_dynamic(view, bit) : kind == 0 && is_stored(view, bit)) return bit;
    }
  }
  return std::nullopt;
}

}  // namespace berth::transfer
