// SPDX-License-Identifier: Apache-2.0
// A piece of a deflate stream, decoded before the preceding output is known.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "transfer/gzip/deflate_decoder.hpp"

namespace berth::transfer {

/// Consecutive compressed bytes.
struct InflateSegment {
  /// For at most so many bytes, and a short rest that is not worth its own segment.
  explicit InflateSegment(size_t most)
      : bytes(std::make_unique_for_overwrite<uint8_t[]>(most + 2 * DeflateView::kTail)) {}

  std::unique_ptr<uint8_t[]> bytes;
  uint64_t begin = 0;  ///< in the stream
  size_t size = 0;
  bool last = false;      ///< the stream ends with it
  bool complete = false;  ///< the first bytes of the next one follow it

  DeflateView view() const { return {bytes.get(), begin, begin + size, last}; }
};
using InflateSegmentPtr = std::shared_ptr<InflateSegment>;

/// The 32 KiB before a position in the output.
struct InflateWindow {
  std::array<uint8_t, kDeflateWindow> bytes;
  size_t size = 0;  ///< of known bytes, the last of `bytes`; fewer at the start of a member

  void clear() { size = 0; }
  /// `end`: the output before the position, at least the window's size or the whole member.
  void set(const uint8_t* begin, const uint8_t* end);
};

/// Room for the output of a chunk: markers that refer to bytes of the window, then bytes from where
/// there are no markers on.
class InflateRoom {
 public:
  explicit InflateRoom(size_t bytes);

  uint16_t* symbols() { return reinterpret_cast<uint16_t*>(room_.get()) + kDeflateWindow; }
  uint8_t* end() { return room_.get() + size_; }

 private:
  size_t size_;
  std::unique_ptr<uint8_t[]> room_;  // begins with a window of markers, which stays
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

  /// Its start, in bits of the stream; nothing if no block was found.
  std::optional<uint64_t> begin() const { return begin_; }
  /// The decoder at its end: between two blocks, behind the last, or where room or input ended.
  const DeflateDecoder& end() const { return decoder_; }
  bool stream_ended() const { return stream_ended_; }

  /// Sets the window before it, and changes it to the window after it.
  void pass_window(InflateWindow& window);
  /// Replaces markers by bytes of that window. Later, from any thread.
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
  DeflateView view_;  // one of the two
  uint16_t* symbols_end_ = nullptr;
  uint8_t* bytes_begin_ = nullptr;  // null: there are only symbols
  uint8_t* bytes_end_ = nullptr;
  std::array<uint8_t, 256 + kDeflateWindow> meanings_;  // of symbols
};

}  // namespace berth::transfer
