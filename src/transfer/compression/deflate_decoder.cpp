// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/deflate_decoder.hpp"

#include <algorithm>
#include <utility>

namespace berth::transfer {
namespace {

using Stop = DeflateDecoder::Stop;

/// The position of a cursor, in bits of the stream.
uint64_t position_of(const DeflateView& view, const BitCursor& cursor) {
  return view.begin * 8 + cursor.position(view.bytes);
}

/// Copies `length` symbols from `distance` symbols before `to`. May write up to kRoom symbols
/// behind the copy.
template <class Symbol>
[[gnu::always_inline]] inline Symbol* copy_match(Symbol* to, size_t distance, size_t length) {
  constexpr size_t kStep = 16 / sizeof(Symbol);
  const Symbol* from = to - distance;
  Symbol* end = to + length;
  if (distance >= kStep) {
    do {
      std::memcpy(to, from, 16);
      to += kStep;
      from += kStep;
    } while (to < end);
  } else if (distance == 1) {
    std::fill(to, to + length, *from);
  } else {
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
  }
  return end;
}

/// The outcome of decoding a block's symbols.
struct Decoded {
  enum class End { block, input, room, damaged } end;
  uint64_t position;
};

/// The inner loop. It is compiled for several processors, so it must not contain calls.
template <class Symbol>
[[gnu::always_inline]] inline Decoded decode_symbols(const DeflateCodes& codes,
                                                     const DeflateView& view, uint64_t position,
                                                     DeflateOutput<Symbol>& output) {
  using End = Decoded::End;
  constexpr uint64_t kLiteralMask = (1 << DeflateCodes::kLiteralBits) - 1;
  constexpr uint64_t kDistanceMask = (1 << DeflateCodes::kDistanceBits) - 1;
  const CodeEntry* literals = codes.literals.data();
  const CodeEntry* distances = codes.distances.data();
  const uint8_t* bytes = view.bytes;
  const uint64_t limit = (view.end - view.begin) * 8;
  const Symbol* history = output.history;
  Symbol* out = output.next;
  Symbol* const out_limit = output.end - DeflateOutput<Symbol>::kRoom;
  BitCursor in(bytes, position - view.begin * 8);
  End end = End::damaged;
  CodeEntry entry = 0;
  // Each round begins with at least 56 bits in `in`, and with the entry of the first of them.
  auto look_ahead = [&]() __attribute__((always_inline)) {
    in.refill();
    entry = literals[in.bits & kLiteralMask];
  };
  look_ahead();
  while (true) {
    if (in.position(bytes) >= limit) {
      end = End::input;
      break;
    }
    if (out > out_limit) {
      end = End::room;
      break;
    }
    if (entry & kLiteral) {
      // Three literals of at most eleven bits leave 23 of 56 bits.
      in.drop(entry & 0xff);
      *out++ = static_cast<uint8_t>(entry >> 16);
      entry = literals[in.bits & kLiteralMask];
      if (entry & kLiteral) {
        in.drop(entry & 0xff);
        *out++ = static_cast<uint8_t>(entry >> 16);
        entry = literals[in.bits & kLiteralMask];
        if (entry & kLiteral) {
          in.drop(entry & 0xff);
          *out++ = static_cast<uint8_t>(entry >> 16);
          look_ahead();
          continue;
        }
      }
    }
    if (entry & kSpecial) [[unlikely]] {
      if (entry & kInner) {
        in.drop(entry & 0xff);
        entry = literals[(entry >> 16) + (in.bits & ((1u << (entry >> 8 & 0x1f)) - 1))];
      }
      if (entry & kLiteral) {
        in.drop(entry & 0xff);
        *out++ = static_cast<uint8_t>(entry >> 16);
        look_ahead();
        continue;
      }
      if (entry & kSpecial) {
        if (!(entry & kEnd)) break;
        in.drop(entry & 0xff);
        end = End::block;
        break;
      }
    }
    // The extra bits follow the code; both together are the lowest `entry & 0xff` bits.
    size_t length =
        (entry >> 16) + ((in.bits & ((uint64_t{1} << (entry & 0xff)) - 1)) >> (entry >> 8 & 0x1f));
    in.drop(entry & 0xff);
    in.refill();
    CodeEntry back = distances[in.bits & kDistanceMask];
    if (back & kSpecial) [[unlikely]] {
      if (!(back & kInner)) break;
      in.drop(back & 0xff);
      back = distances[(back >> 16) + (in.bits & ((1u << (back >> 8 & 0x1f)) - 1))];
      if (back & kSpecial) break;
    }
    size_t distance =
        (back >> 16) + ((in.bits & ((uint64_t{1} << (back & 0xff)) - 1)) >> (back >> 8 & 0x1f));
    in.drop(back & 0xff);
    if (distance > static_cast<size_t>(out - history)) [[unlikely]]
      break;
    look_ahead();  // before the copy, so that it need not wait for the copy
    out = copy_match(out, distance, length);
  }
  output.next = out;
  return {end, position_of(view, in)};
}

template <class Symbol>
using DecodeSymbols = Decoded (*)(const DeflateCodes&, const DeflateView&, uint64_t,
                                  DeflateOutput<Symbol>&);

template <class Symbol>
Decoded decode_anywhere(const DeflateCodes& codes, const DeflateView& view, uint64_t position,
                        DeflateOutput<Symbol>& output) {
  return decode_symbols(codes, view, position, output);
}

#ifdef __x86_64__
/// With BMI, shifts can use any register, which makes decoding a fifth faster.
template <class Symbol>
[[gnu::target("bmi,bmi2")]] Decoded decode_bmi2(const DeflateCodes& codes, const DeflateView& view,
                                                uint64_t position, DeflateOutput<Symbol>& output) {
  return decode_symbols(codes, view, position, output);
}

template <class Symbol>
const DecodeSymbols<Symbol> kDecodeSymbols = __builtin_cpu_supports("bmi2")
                                                 ? decode_bmi2<Symbol>
                                                 : decode_anywhere<Symbol>;
#else
template <class Symbol>
const DecodeSymbols<Symbol> kDecodeSymbols = decode_anywhere<Symbol>;
#endif

}  // namespace

template <class Symbol>
Stop DeflateDecoder::run(const DeflateView& view, DeflateOutput<Symbol>& out) {
  if (state_ == State::between) {
    Stop begun = begin_block(view);
    if (begun != Stop::block_end) return begun;
  }
  return state_ == State::stored ? copy_stored(view, out) : decode(view, out);
}

template Stop DeflateDecoder::run(const DeflateView&, DeflateOutput<uint8_t>&);
template Stop DeflateDecoder::run(const DeflateView&, DeflateOutput<uint16_t>&);

/// Returns Stop::block_end if the block has begun.
Stop DeflateDecoder::begin_block(const DeflateView& view) {
  uint64_t end = view.end * 8;
  if (position_ >= end) return view.last ? Stop::cut_short : Stop::needs_input;
  BitCursor cursor(view.bytes, position_ - view.begin * 8);
  bool final = cursor.take(1) == 1;
  unsigned type = cursor.take(2);
  bool good = true;
  if (type == 0) {
    state_ = State::stored;
    cursor.drop(cursor.count % 8);
    cursor.refill();
    stored_left_ = cursor.take(16);
    good = stored_left_ == (cursor.take(16) ^ 0xffff);
  } else if (type == 1) {
    state_ = State::coded;
    if (!std::exchange(fixed_, true)) build_fixed(codes_);
  } else {
    state_ = State::coded;
    fixed_ = false;
    CodeLengths lengths;
    good = type == 2 && read_code_lengths(cursor, CodeDemand::usable, lengths) &&
           build_literals(codes_, lengths.lengths.data(), lengths.literals) != Fullness::overfull &&
           build_distances(codes_, &lengths.lengths[lengths.literals], lengths.distances) !=
               Fullness::overfull;
  }
  uint64_t position = position_of(view, cursor);
  if (view.last && position > end) good = false;
  if (!good) {
    state_ = State::between;
    return view.last && position > end ? Stop::cut_short : Stop::damaged;
  }
  final_ = final;
  position_ = position;
  return Stop::block_end;
}

Stop DeflateDecoder::at_end_of_block() {
  state_ = State::between;
  return final_ ? Stop::stream_end : Stop::block_end;
}

template <class Symbol>
Stop DeflateDecoder::copy_stored(const DeflateView& view, DeflateOutput<Symbol>& out) {
  uint64_t at = position_ / 8;
  // The position may be behind `end`: headers are read to their end.
  uint64_t here = std::max(view.end, at) - at;
  uint64_t room = static_cast<uint64_t>(out.end - out.next);
  room -= std::min<uint64_t>(room, DeflateOutput<Symbol>::kRoom);
  uint64_t count = std::min({uint64_t{stored_left_}, here, room});
  std::copy_n(view.bytes + (at - view.begin), count, out.next);
  out.next += count;
  stored_left_ -= static_cast<uint32_t>(count);
  position_ += count * 8;
  if (stored_left_ == 0) return at_end_of_block();
  if (count == room) return Stop::needs_room;
  return view.last ? Stop::cut_short : Stop::needs_input;
}

template <class Symbol>
Stop DeflateDecoder::decode(const DeflateView& view, DeflateOutput<Symbol>& out) {
  Decoded decoded = kDecodeSymbols<Symbol>(codes_, view, position_, out);
  position_ = decoded.position;
  bool beyond = view.last && position_ > view.end * 8;
  switch (decoded.end) {
    case Decoded::End::block:
      return beyond ? Stop::cut_short : at_end_of_block();
    case Decoded::End::input:
      return view.last ? Stop::cut_short : Stop::needs_input;
    case Decoded::End::room:
      return Stop::needs_room;
    case Decoded::End::damaged:
      break;
  }
  return beyond ? Stop::cut_short : Stop::damaged;
}

}  // namespace berth::transfer
