// SPDX-License-Identifier: Apache-2.0
// A piece of a deflate stream that is decoded before anybody knows what stands before it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "transfer/gzip/deflate_decoder.hpp"

namespace berth::transfer {

/// Compressed bytes that have come together.
struct InflateSegment {
  /// For at most so many bytes, and a short segment behind that is not worth one of its own.
  explicit InflateSegment(size_t most)
      : bytes(std::make_unique_for_overwrite<uint8_t[]>(most + 2 * DeflateView::kTail)) {}

  std::unique_ptr<uint8_t[]> bytes;
  uint64_t begin = 0;  ///< in the stream
  size_t size = 0;
  bool last = false;      ///< the stream ends with it
  bool complete = false;  ///< the first bytes of the next one lie behind it

  DeflateView view() const { return {bytes.get(), begin, begin + size, last}; }
};
using InflateSegmentPtr = std::shared_ptr<InflateSegment>;

/// The 32 KiB before a place in the output.
struct InflateWindow {
  std::array<uint8_t, kDeflateWindow> bytes;
  size_t size = 0;  ///< known ones, the last of `bytes`; fewer at the start of a member

  void clear() { size = 0; }
  /// `end`: what stands before the place, at least as much as the window, or all of the member.
  void set(const uint8_t* begin, const uint8_t* end);
};

/// Room for what a chunk becomes: markers that say which byte of the window stands there, and what
/// comes from where on there are none.
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

  /// Finds a block and decodes from there until one that would be found in what follows, into
  /// `room`.
  void decode(InflateRoomPtr room);

  /// Where it begins, in bits of the stream; nothing where no block was found.
  std::optional<uint64_t> begin() const { return begin_; }
  /// At the place where it ends: between two blocks, behind the last, or where room or input did.
  const DeflateDecoder& end() const { return decoder_; }
  bool stream_ended() const { return stream_ended_; }

  /// Takes the window that it has turned out to begin with, and makes it the one it ends with.
  void pass_window(InflateWindow& window);
  /// Puts bytes of that window in the place of markers. Later, and by any thread.
  void resolve();
  /// What has come out, once it is resolved: one after the other.
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
