// SPDX-License-Identifier: Apache-2.0
// Decodes deflate from the start of any block: to bytes if the preceding output is known; else to
// bytes and to markers, each of which refers to a byte of the unknown 32 KiB before the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transfer/compression/deflate_codes.hpp"

namespace berth::transfer {

/// The maximal distance of a match, in bytes.
constexpr size_t kDeflateWindow = size_t{32} << 10;

/// A part of a stream; the rest may come later. A decoder stops at `end` or a little behind it. The
/// kTail bytes behind `end` are readable; they belong to the stream unless it ends at `end`.
struct DeflateView {
  static constexpr size_t kTail = 1024;  ///< more than the longest header of a block

  const uint8_t* bytes = nullptr;
  uint64_t begin = 0;  ///< offset of `bytes` in the stream, in bytes
  uint64_t end = 0;
  bool last = false;  ///< the stream ends at `end`
};

/// The output of a decoder. At least the symbols from `history` up to `next` have been decoded
/// before.
template <class Symbol>
struct DeflateOutput {
  /// The room that is required behind `next`. So many symbols may be written behind the valid
  /// output.
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
  /// Starts over at the block that begins at `bit`.
  void begin_at(uint64_t bit) {
    position_ = bit;
    state_ = State::between;
  }

  /// Decodes until a block ends, or until it cannot continue. `Symbol` is uint8_t or uint16_t. A
  /// uint16_t of 256 + i, also in the history, stands for byte i of the 32 KiB before the first
  /// decoded block.
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

/// The first position from the bit `from` on, and before the end of the view, where a block may
/// begin. Finds only blocks with dynamic codes and stored blocks, and not the last block of a
/// stream. Most positions that it finds are real.
std::optional<uint64_t> find_block(const DeflateView& view, uint64_t from);

/// The position at which find_block() would find the block that begins at the bit `at`; nothing if
/// it would not find that block. The position may differ from `at`, as several positions may mean
/// the same stored block.
std::optional<uint64_t> findable_block(const DeflateView& view, uint64_t at);

}  // namespace berth::transfer
