// SPDX-License-Identifier: Apache-2.0
// Decodes deflate from any block on: to bytes if the preceding output is known, else to markers
// that refer to a byte of the unknown 32 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transfer/gzip/deflate_codes.hpp"

namespace berth::transfer {

/// The maximal distance of a match, in bytes.
constexpr size_t kDeflateWindow = size_t{32} << 10;

/// A part of a stream; the rest may come later. A decoder stops at `end`, or a little behind it:
/// the kTail bytes that follow are readable, and are the stream's unless it ends there.
struct DeflateView {
  static constexpr size_t kTail = 1024;  ///< more than the longest header of a block

  const uint8_t* bytes = nullptr;
  uint64_t begin = 0;  ///< offset of `bytes` in the stream, in bytes
  uint64_t end = 0;
  bool last = false;  ///< the stream ends at `end`
};

/// The output. Decoded symbols are below `next`, at least from `history` on.
template <class Symbol>
struct DeflateOutput {
  /// Required room; up to as much may be written behind the valid output.
  static constexpr size_t kRoom = 320;

  const Symbol* history = nullptr;
  Symbol* next = nullptr;
  Symbol* end = nullptr;
};

/// Decodes one block after the other, and can stop between any two symbols.
class DeflateDecoder {
 public:
  enum class Stop {
    block_end,    ///< another block follows
    stream_end,   ///< that was the last block
    needs_input,  ///< the view is exhausted
    needs_room,
    damaged,
    cut_short,  ///< the last view is exhausted
  };

  /// `bit`: the start of a block in the stream.
  explicit DeflateDecoder(uint64_t bit = 0) : position_(bit) {}
  /// Starts over there.
  void begin_at(uint64_t bit) {
    position_ = bit;
    state_ = State::between;
  }

  /// Decodes until a block ends, or until it cannot continue. `Symbol` is uint8_t, or uint16_t: a
  /// value of 256 + i stands for the byte i of the 32 KiB before, and so do values in the history.
  template <class Symbol>
  Stop run(const DeflateView& view, DeflateOutput<Symbol>& out);

  uint64_t position() const { return position_; }  ///< in bits
  bool between_blocks() const { return state_ == State::between; }

 private:
  enum class State { between, stored, coded };

  Stop begin_block(const DeflateView& view);
  template <class Symbol>
  Stop copy_stored(const DeflateView& view, DeflateOutput<Symbol>& out);
  template <class Symbol>
  Stop decode(const DeflateView& view, DeflateOutput<Symbol>& out);
  Stop at_end_of_block();

  State state_ = State::between;
  bool final_ = false;
  bool fixed_ = false;  // the codes are the fixed ones
  uint32_t stored_left_ = 0;
  uint64_t position_;
  DeflateCodes codes_;
};

/// The first position from the bit `from` on, but before the end of the view, where a block that is
/// not the last may begin: one with codes of its own, or a stored one. Most such positions are
/// real.
std::optional<uint64_t> find_block(const DeflateView& view, uint64_t from);

/// The position at which find_block() would find the block that begins at the bit `at`, if it
/// would: several positions may mean the same stored block.
std::optional<uint64_t> findable_block(const DeflateView& view, uint64_t at);

}  // namespace berth::transfer
