// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "logs/json_file.hpp"
#include "logs/reader.hpp"

namespace berth::logs {
namespace {

/// The maximal length of a line. Berth writes no longer ones.
constexpr size_t kMaxLine = size_t{1} << 20;

}  // namespace

void Decoder::begin_file(std::string_view first_bytes) {
  auto key = read_file_header(first_bytes);
  format_ = key ? Format::local : Format::json_file;
  if (key) key_ = *key;
  at_start_ = true;
  searching_ = false;
}

void Decoder::skip_to_entry() {
  at_start_ = false;
  searching_ = true;
  for (Lines& lines : lines_) lines.whole = false;
}

size_t Decoder::feed(std::string_view bytes) {
  return format_ == Format::local ? feed_local(bytes) : feed_json(bytes);
}

size_t Decoder::feed_json(std::string_view bytes) {
  size_t done = 0;
  while (true) {
    size_t newline = bytes.find('\n', done);
    if (newline == std::string_view::npos) break;
    std::string_view line = bytes.substr(done, newline - done);
    done = newline + 1;
    if (!std::exchange(searching_, false)) {
      if (auto entry = parse_json_entry(line)) ready_.push_back({std::move(*entry), true});
    }
  }
  if (bytes.size() - done <= kMaxLine) return done;
  searching_ = true;
  return bytes.size();
}

size_t Decoder::feed_local(std::string_view bytes) {
  size_t done = 0;
  if (at_start_ && bytes.size() >= kFileHeader) {
    done = kFileHeader;
    at_start_ = false;
  }
  while (!at_start_ && bytes.size() - done >= kFrameHeader) {
    auto frame = read_frame_header(bytes.substr(done), key_);
    if (!frame) {
      // The file is damaged, or this is the middle of a frame.
      if (!searching_) skip_to_entry();
      ++done;
      continue;
    }
    searching_ = false;
    size_t end = done + kFrameHeader + frame->size;
    if (bytes.size() < end) break;
    cut(*frame, bytes.substr(done + kFrameHeader, frame->size));
    done = end;
  }
  return done;
}

void Decoder::cut(const Frame& frame, std::string_view bytes) {
  if (frame.end) return finish();
  Lines& lines = lines_[frame.stream == Stream::error ? 1 : 0];
  lines.time_ns = frame.time_ns;
  lines.cutter.feed(bytes, [&](std::string_view piece) {
    ready_.push_back({{frame.stream, frame.time_ns, std::string(piece)}, lines.whole});
    if (piece.ends_with('\n')) lines.whole = true;
  });
}

void Decoder::finish() {
  for (Stream stream : {Stream::out, Stream::error}) {
    Lines& lines = lines_[stream == Stream::error ? 1 : 0];
    lines.cutter.finish([&](std::string_view piece) {
      ready_.push_back({{stream, lines.time_ns, std::string(piece)}, lines.whole});
    });
    lines.whole = true;
  }
}

std::optional<Entry> Decoder::take() {
  if (ready_.empty()) return std::nullopt;
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  last_whole_ = ready.whole;
  return std::move(ready.entry);
}

}  // namespace berth::logs
