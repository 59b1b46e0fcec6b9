// SPDX-License-Identifier: Apache-2.0
// Deflate from any block on: bytes where it is known what came before, else markers that say which
// byte of the unknown 32 KiB stands there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transfer/gzip/deflate_codes.hpp"

namespace berth::transfer {

/// How far back deflate can reach, in bytes.
constexpr size_t kDeflateWindow = size_t{32} << 10;

/// Bytes of a stream of which the rest may come later. Who decodes stops at `end`, or a little
/// behind it: the kViewTail bytes that follow are readable, and are those of the stream unless it
/// ends there.
struct DeflateView {
  static constexpr size_t kTail = 1024;  ///< more than the longest header of a block

  const uint8_t* bytes = nullptr;
  uint64_t begin = 0;  ///< where in the stream `bytes` lie, in bytes
  uint64_t end = 0;
  bool last = false;  ///< the stream ends at `end`
};

/// Where the output goes. What was decoded before lies below `next`, at least from `history` on.
template <class Symbol>
struct DeflateOutput {
  /// So much room there must be; there may be written as much behind what counts.
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
    needs_input,  ///< the view is used up
    needs_room,
    damaged,
    cut_short,  ///< the last view is used up
  };

  /// `bit`: where in the stream a block begins.
  explicit DeflateDecoder(uint64_t bit = 0) : position_(bit) {}
  /// As a new one.
  void begin_at(uint64_t bit) {
    position_ = bit;
    state_ = State::between;
  }

  /// Goes on until a block ends, or until it cannot. `Symbol` is uint8_t, or uint16_t: a value of
  /// 256 + i stands for the byte i of the 32 KiB before, with history that says so.
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

/// The first place from the bit `from` on, but before the end of the view, where a compressor
/// may have begun a block that is not the last: one with codes of its own, or a stored one. Most
/// such places are real.
std::optional<uint64_t> find_block(const DeflateView& view, uint64_t from);

/// Where find_block() would find the block that begins at the bit `at`, if it would: several places
/// may mean the same stored block.
std::optional<uint64_t> findable_block(const DeflateView& view, uint64_t at);

}  // namespace berth::transfer
