// SPDX-License-Identifier: Apache-2.0
#include "logs/writer.hpp"

#include <fcntl.h>

#include <chrono>

#include "logs/json_file.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::logs {
namespace {

/// The size of one write. The buffer is on the stack: only the used part becomes resident.
constexpr size_t kBuffer = size_t{160} << 10;
static_assert(kBuffer >= max_json_entry(kMaxPiece));

/// Whole blocks of a file are written fastest.
constexpr size_t kBlock = size_t{64} << 10;

constexpr const char* kNewFile = "log.new";

int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

LocalKey new_key() {
  LocalKey key;
  for (char c : sys::random_hex(8)) {
    key.number = key.number << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return key;
}

std::string old_name(uint64_t index) {
  return index == 0 ? kLogFile : std::string(kLogFile) + "." + std::to_string(index);
}

/// The end of the last whole line.
Result<uint64_t> whole_json(const sys::Fd& file, uint64_t size) {
  while (size > 0) {
    uint64_t step = std::min<uint64_t>(size, 4096);
    std::string bytes = TRY(sys::read_at(file, size - step, step, kLogFile));
    size_t newline = bytes.rfind('\n');
    if (newline != std::string::npos) return size - step + newline + 1;
    size -= step;
  }
  return uint64_t{0};
}

/// The end of the last whole frame.
Result<uint64_t> whole_local(const sys::Fd& file, uint64_t size, LocalKey key) {
  // If the writer ended normally, the log ends with a frame without bytes.
  for (uint64_t window : {uint64_t{kFrameHeader}, uint64_t{kMaxFrame + kFrameHeader}}) {
    uint64_t start = size - std::min<uint64_t>(size - kFileHeader, window);
    std::string bytes = TRY(sys::read_at(file, start, size - start, kLogFile));
    std::string_view view = bytes;
    for (size_t at = view.size(); at-- > 0;) {
      auto frame = read_frame_header(view.substr(at), key);
      if (!frame) continue;
      uint64_t end = start + at + kFrameHeader + frame->size;
      return end <= size ? end : start + at;
    }
  }
  return size;  // damage, which readers skip
}

}  // namespace

Result<Writer> Writer::open(const sys::Fd& directory, Settings settings) {
  Writer writer;
  writer.settings_ = settings;
  writer.rotate_at_ = settings.max_bytes;
  writer.directory_ = TRY(sys::duplicate(directory));
  writer.file_ =
      TRY(sys::open_at(directory, kLogFile, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  writer.size_ = static_cast<uint64_t>(TRY(sys::stat_fd(writer.file_, kLogFile)).st_size);
  TRY(writer.begin_file());
  return writer;
}

Result<void> Writer::begin_file() {
  uint64_t whole = size_;
  if (settings_.format == Format::json_file) {
    whole = TRY(whole_json(file_, size_));
  } else {
    std::string header = TRY(sys::read_at(file_, 0, kFileHeader, kLogFile));
    auto key = read_file_header(header);
    if (key) {
      key_ = *key;
      whole = TRY(whole_local(file_, size_, key_));
    } else {
      key_ = new_key();
      auto bytes = write_file_header(key_);
      if (size_ > 0) TRY(sys::truncate(file_, 0, kLogFile));
      TRY(sys::write_all(file_, {bytes.data(), bytes.size()}, kLogFile));
      size_ = whole = kFileHeader;
    }
  }
  if (whole != size_) TRY(sys::truncate(file_, whole, kLogFile));
  size_ = whole;
  return {};
}

size_t Writer::best_piece(size_t most) const {
  if (settings_.format != Format::local) return most;
  return std::min(kBlock - (size_ + kFrameHeader) % kBlock, most);
}

void Writer::add(Stream stream, std::string_view bytes) {
  if (settings_.format == Format::json_file) {
    add_json(stream, bytes);
  } else {
    add_local(stream, bytes);
  }
}

void Writer::add_json(Stream stream, std::string_view bytes) {
  const JsonTail tail(stream, now());
  char buffer[kBuffer];
  char* end = buffer;
  auto used = [&] { return static_cast<size_t>(end - buffer); };
  auto flush = [&] {
    append({buffer, used()});
    end = buffer;
  };
  auto begin_entry = [&](size_t room) {
    if (is_full(used())) {
      flush();
      rotate();
    }
    if (kBuffer - used() < room) flush();
  };
  auto add_piece = [&](std::string_view piece) {
    begin_entry(max_json_entry(piece.size()));
    end = write_json_entry(end, piece, tail);
  };
  LineCutter& cutter = stream == Stream::error ? error_ : out_;
  while (!bytes.empty()) {
    if (cutter.at_start()) {
      std::string_view most = bytes.substr(0, kMaxPiece);
      begin_entry(most.size() + 128);
      PlainLine line = write_plain_line(end, most, tail);
      if (line.size > 0) {
        end = line.end;
        bytes.remove_prefix(line.size);
        continue;
      }
    }
    size_t line = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    cutter.feed(bytes.substr(0, line), add_piece);
    bytes.remove_prefix(line);
  }
  if (used() > 0) flush();
}

void Writer::add_local(Stream stream, std::string_view bytes) {
  const int64_t time = now();
  while (!bytes.empty()) {
    if (is_full(0)) rotate();
    std::string_view part = bytes;
    if (rotate_at_ != 0 && is_full(kFrameHeader + bytes.size())) {
      // A file ends with a whole line if possible, so that a reader of only the next file gets
      // whole lines.
      uint64_t room = rotate_at_ - size_;
      size_t newline =
          room > kFrameHeader ? bytes.rfind('\n', room - kFrameHeader) : std::string_view::npos;
      if (newline == std::string_view::npos) newline = bytes.find('\n');
      if (newline != std::string_view::npos) part = bytes.substr(0, newline + 1);
    }
    write_frame({stream, false, static_cast<uint32_t>(part.size()), time}, part);
    bytes.remove_prefix(part.size());
  }
}

void Writer::write_frame(const Frame& frame, std::string_view bytes) {
  auto header = write_frame_header(frame, key_);
  append({header.data(), header.size()}, bytes);
}

void Writer::finish() {
  if (settings_.format == Format::local) return write_frame({Stream::out, true, 0, now()}, {});
  for (Stream stream : {Stream::out, Stream::error}) {
    LineCutter& cutter = stream == Stream::error ? error_ : out_;
    cutter.finish([&](std::string_view piece) {
      const JsonTail tail(stream, now());
      char buffer[max_json_entry(kMaxPiece)];
      char* end = write_json_entry(buffer, piece, tail);
      append({buffer, static_cast<size_t>(end - buffer)});
    });
  }
}

void Writer::append(std::string_view head, std::string_view bytes) {
  if (sys::write_both(file_, head, bytes, kLogFile).ok()) {
    size_ += head.size() + bytes.size();
    return;
  }
  // The disk is full. Half an entry would merge with the next one.
  ignore(sys::truncate(file_, size_, kLogFile));
}

// ---- rotation -----------------------------------------------------------------------------------

bool Writer::is_full(uint64_t more) const {
  return rotate_at_ != 0 && size_ + more >= rotate_at_;
}

void Writer::rotate() {
  // If the rotation fails, it is tried again when the file has grown by max_bytes.
  if (!try_to_rotate().ok()) rotate_at_ = size_ + settings_.max_bytes;
}

Result<void> Writer::try_to_rotate() {
  // The new file is made before any file is renamed: if that fails, the old file keeps its name.
  Writer next;
  next.settings_ = settings_;
  TRY(sys::remove_entry(directory_, kNewFile));  // left by a writer that was killed
  next.file_ = TRY(
      sys::open_at(directory_, kNewFile, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0600));
  TRY(next.begin_file());
  // Renames the oldest file first, so that no rename replaces a file. ext4 flushes a file that
  // replaces another, or was truncated, to the disk at once, and the container would wait for that.
  if (settings_.max_files > 1) {
    TRY(sys::remove_entry(directory_, old_name(settings_.max_files - 1)));
  }
  for (uint64_t index = settings_.max_files - 1; index > 0; --index) {
    auto renamed = sys::rename(directory_, old_name(index - 1), directory_, old_name(index));
    if (!renamed.ok() && renamed.error().kind != Kind::not_found) return renamed;
  }
  TRY(sys::rename(directory_, kNewFile, directory_, kLogFile));
  file_ = std::move(next.file_);
  key_ = next.key_;
  size_ = next.size_;
  rotate_at_ = settings_.max_bytes;
  return {};
}

}  // namespace berth::logs
