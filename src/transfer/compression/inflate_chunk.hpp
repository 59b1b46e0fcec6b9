// SPDX-License-Identifier: Apache-2.0
// A piece of a deflate stream, decoded before the preceding output is known.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "transfer/compression/deflate_decoder.hpp"

namespace berth::transfer {

/// Consecutive compressed bytes.
struct InflateSegment {
  /// For at most `most` bytes, and a short rest of the stream that is not worth a segment.
  explicit InflateSegment(size_t most)
      : bytes(std::make_unique_for_overwrite<uint8_t[]>(most + 2 * DeflateView::kTail)) {}

  std::unique_ptr<uint8_t[]> bytes;
  uint64_t begin = 0;  ///< in the stream
  size_t size = 0;
  bool last = false;      ///< the stream ends with this segment
  bool complete = false;  ///< the first bytes of the next segment have been added behind it

  DeflateView view() const { return {bytes.get(), begin, begin + size, last}; }
};
using InflateSegmentPtr = std::shared_ptr<InflateSegment>;

/// The 32 KiB before a position in the output.
struct InflateWindow {
  std::array<uint8_t, kDeflateWindow> bytes;
  size_t size = 0;  ///< number of known bytes, at the end of `bytes`; less at the start of a member

  void clear() { size = 0; }
  /// `begin` to `end`: the output before the position, at least 32 KiB or the whole member.
  void set(const uint8_t* begin, const uint8_t* end);
};

/// Room for the output of a chunk: first 16-bit symbols with markers that refer to bytes of the
/// window, then bytes, from the point on where no more markers can follow.
class InflateRoom {
 public:
  explicit InflateRoom(size_t bytes);

  uint16_t* symbols() { return reinterpret_cast<uint16_t*>(room_.get()) + kDeflateWindow; }
  uint8_t* end() { return room_.get() + size_; }

 private:
  size_t size_;
  std::unique_ptr<uint8_t[]> room_;  // begins with the markers of a window, never overwritten
};
using InflateRoomPtr = std::unique_ptr<InflateRoom>;

/// The blocks that begin in one segment.
class InflateChunk {
 public:
  /// `segment` is complete; `next` follows it, or is null at the end of the stream.
  InflateChunk(InflateSegmentPtr segment, InflateSegmentPtr next);

  /// Finds a block and decodes, into `room`, from there up to the first block that a search in the
  /// following segment would find.
  void decode(InflateRoomPtr room);

  /// The start of the chunk, in bits of the stream; nothing if no block was found.
  std::optional<uint64_t> begin() const { return begin_; }
  /// The decoder at the end of the chunk: between two blocks, behind the last block, or where room
  /// or input ended.
  const DeflateDecoder& end() const { return decoder_; }
  bool stream_ended() const { return stream_ended_; }

  /// Keeps `window` as the one before the chunk, and changes it to the one after the chunk.
  void pass_window(InflateWindow& window);
  /// Replaces markers by bytes of the window before the chunk. Call it after pass_window(), from
  /// any thread.
  void resolve();
  /// The output, once it is resolved: two consecutive parts.
  std::array<std::string_view, 2> output() const;

  InflateRoomPtr take_room() { return std::move(room_); }

 private:
  bool decode_from(uint64_t bit);
  bool decode_markers();
  bool decode_bytes();
  bool ends_here(DeflateDecoder::Stop stop, bool& good);
  bool may_forget_window(const uint16_t* end) const;

  InflateSegmentPtr segment_;
  InflateSegmentPtr next_;
  InflateRoomPtr room_;
  std::optional<uint64_t> begin_;
  DeflateDecoder decoder_;
  bool stream_ended_ = false;
  DeflateView own_view_;
  DeflateView next_view_;
  DeflateView view_;  // own_view_ or next_view_
  uint16_t* symbols_end_ = nullptr;
  uint8_t* bytes_begin_ = nullptr;  // null: there are only symbols
  uint8_t* bytes_end_ = nullptr;
  std::array<uint8_t, 256 + kDeflateWindow> meanings_;  // the byte of each symbol
};

}  // namespace berth::transfer
