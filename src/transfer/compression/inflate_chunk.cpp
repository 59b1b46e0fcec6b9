// SPDX-License-Identifier: Apache-2.0
#include "transfer/compression/inflate_chunk.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace berth::transfer {
namespace {

using Stop = DeflateDecoder::Stop;

/// The maximum of output that is wasted on positions where no block begins.
constexpr size_t kMostWasted = size_t{4} << 20;
constexpr size_t kEachTry = size_t{4} << 10;  // the cost of reading a header

constexpr uint16_t kFirstMarker = 256;

}  // namespace

void InflateWindow::set(const uint8_t* begin, const uint8_t* end) {
  size = std::min(static_cast<size_t>(end - begin), kDeflateWindow);
  std::memcpy(bytes.data() + bytes.size() - size, end - size, size);
}

InflateRoom::InflateRoom(size_t bytes)
    : size_(kDeflateWindow * sizeof(uint16_t) + bytes),
      room_(std::make_unique_for_overwrite<uint8_t[]>(size_)) {
  uint16_t* markers = symbols() - kDeflateWindow;
  for (size_t i = 0; i < kDeflateWindow; ++i) markers[i] = static_cast<uint16_t>(kFirstMarker + i);
}

/// Another thread may still add the first bytes of the following segment to `next`.
InflateChunk::InflateChunk(InflateSegmentPtr segment, InflateSegmentPtr next)
    : segment_(std::move(segment)), next_(std::move(next)), own_view_(segment_->view()) {
  BERTH_ASSERT(segment_->complete);
  if (next_ == nullptr) return;
  next_view_ = next_->view();
  if (!next_->complete) next_view_.end -= DeflateView::kTail;
}

// ---- decoding -----------------------------------------------------------------------------------

void InflateChunk::decode(InflateRoomPtr room) {
  room_ = std::move(room);
  size_t wasted = 0;
  uint64_t from = own_view_.begin * 8;
  while (wasted < kMostWasted) {
    std::optional<uint64_t> found = find_block(own_view_, from);
    if (!found) return;
    if (decode_from(*found)) {
      begin_ = found;
      return;
    }
    wasted += kEachTry + static_cast<size_t>(symbols_end_ - room_->symbols()) +
              static_cast<size_t>(bytes_end_ - bytes_begin_);
    from = *found + 1;
  }
}

/// False: no block begins at `bit`.
bool InflateChunk::decode_from(uint64_t bit) {
  decoder_.begin_at(bit);
  view_ = own_view_;
  stream_ended_ = false;
  symbols_end_ = room_->symbols();
  bytes_begin_ = bytes_end_ = nullptr;
  return decode_markers();
}

/// Whether the chunk ends here; sets `good` to false if that is because of an error.
bool InflateChunk::ends_here(Stop stop, bool& good) {
  good = true;
  switch (stop) {
    case Stop::block_end: {
      uint64_t limit = own_view_.end * 8;
      if (decoder_.position() < limit) return false;
      if (next_ == nullptr) return false;  // the rest is too short for another block
      view_ = next_view_;
      if (decoder_.position() >= view_.end * 8) return !view_.last;
      std::optional<uint64_t> found = findable_block(view_, decoder_.position());
      return found && *found >= limit;
    }
    case Stop::needs_input:
      if (next_ == nullptr || view_.begin == next_view_.begin) return true;
      view_ = next_view_;
      return false;
    case Stop::stream_end:
      stream_ended_ = true;
      return true;
    case Stop::needs_room:
      return true;
    case Stop::damaged:
    case Stop::cut_short:
      break;
  }
  good = false;
  return true;
}

bool InflateChunk::decode_markers() {
  DeflateOutput<uint16_t> out;
  out.history = room_->symbols() - kDeflateWindow;
  out.next = room_->symbols();
  out.end = reinterpret_cast<uint16_t*>(room_->end());
  while (true) {
    Stop stop = decoder_.run(view_, out);
    symbols_end_ = out.next;
    bool good = false;
    if (ends_here(stop, good)) return good;
    if (stop == Stop::block_end && may_forget_window(out.next)) return decode_bytes();
  }
}

/// Whether the last 32 KiB of the output have no marker, so that no marker can follow.
bool InflateChunk::may_forget_window(const uint16_t* end) const {
  constexpr size_t kStep = 256;
  auto room = reinterpret_cast<const uint8_t*>(end);
  bool far = end - room_->symbols() >= static_cast<ptrdiff_t>(kDeflateWindow);
  // Bytes take half the room of symbols. Changing to bytes must be worth it for the rest of the
  // room.
  if (!far || room_->end() - room < static_cast<ptrdiff_t>(4 * kDeflateWindow)) return false;
  for (size_t i = 0; i < kDeflateWindow; i += kStep) {
    end -= kStep;
    uint16_t all = 0;
    for (size_t k = 0; k < kStep; ++k) all |= end[k];
    if (all >= kFirstMarker) return false;
  }
  return true;
}

bool InflateChunk::decode_bytes() {
  auto* window = reinterpret_cast<uint8_t*>(symbols_end_);
  const uint16_t* last = symbols_end_ - kDeflateWindow;
  for (size_t i = 0; i < kDeflateWindow; ++i) window[i] = static_cast<uint8_t>(last[i]);
  DeflateOutput<uint8_t> out;
  out.history = window;
  out.next = bytes_begin_ = bytes_end_ = window + kDeflateWindow;
  out.end = room_->end();
  while (true) {
    Stop stop = decoder_.run(view_, out);
    bytes_end_ = out.next;
    bool good = false;
    if (ends_here(stop, good)) return good;
  }
}

// ---- resolving ----------------------------------------------------------------------------------

void InflateChunk::pass_window(InflateWindow& window) {
  for (size_t i = 0; i < kFirstMarker; ++i) meanings_[i] = static_cast<uint8_t>(i);
  std::memcpy(&meanings_[kFirstMarker], window.bytes.data(), kDeflateWindow);
  if (bytes_begin_ != nullptr) {
    window.set(bytes_begin_ - kDeflateWindow, bytes_end_);
    return;
  }
  // If there are fewer than 32 KiB of output, the window of markers precedes them.
  const uint16_t* last = symbols_end_ - kDeflateWindow;
  for (size_t i = 0; i < kDeflateWindow; ++i) window.bytes[i] = meanings_[last[i]];
}

/// In place: the written bytes never reach the symbols that are not yet read.
void InflateChunk::resolve() {
  constexpr size_t kStep = 32;
  const uint16_t* from = room_->symbols();
  auto* to = reinterpret_cast<uint8_t*>(room_->symbols());
  auto left = static_cast<size_t>(symbols_end_ - from);
  for (; left >= kStep; left -= kStep, from += kStep, to += kStep) {
    std::array<uint16_t, kStep> some;
    std::memcpy(some.data(), from, sizeof some);
    uint16_t all = 0;
    for (uint16_t symbol : some) all |= symbol;
    if (all < kFirstMarker) {
      for (size_t i = 0; i < kStep; ++i) to[i] = static_cast<uint8_t>(some[i]);
    } else {
      for (size_t i = 0; i < kStep; ++i) to[i] = meanings_[some[i]];
    }
  }
  for (size_t i = 0; i < left; ++i) to[i] = meanings_[from[i]];
}

std::array<std::string_view, 2> InflateChunk::output() const {
  const auto* resolved = reinterpret_cast<const char*>(room_->symbols());
  return {std::string_view(resolved, static_cast<size_t>(symbols_end_ - room_->symbols())),
          std::string_view(reinterpret_cast<const char*>(bytes_begin_),
                           static_cast<size_t>(bytes_end_ - bytes_begin_))};
}

}  // namespace berth::transfer
