// SPDX-License-Identifier: Apache-2.0
#include "sys/piece_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "sys/io_at.hpp"

namespace berth::sys {
namespace {

constexpr size_t kWorthDirect = size_t{256} << 10;
constexpr uint64_t kFirstTurns = 8;  // half of them each way
constexpr uint64_t kTryOther = 64;   // one in so many
constexpr char kZeros[PieceWriter::kAlignment] = {};
/// A copy keeps a processor busy that others inflate with; the disk is waited for by one thread,
/// which has that much time to spare (docs/performance.md).
constexpr double kWorthWaiting = 4;
constexpr double kNewest = 0.25;  // its weight among those before

}  // namespace

WritePace::Way WritePace::next() {
  std::lock_guard lock(mutex_);
  if (forbidden_) return Way::cached;
  uint64_t turn = turn_++;
  if (turn < kFirstTurns) return turn % 2 == 0 ? Way::cached : Way::direct;
  bool direct = direct_ < kWorthWaiting * cached_;
  if (turn % kTryOther == 0) direct = !direct;
  return direct ? Way::direct : Way::cached;
}

void WritePace::tell(Way way, uint64_t bytes, std::chrono::nanoseconds taken) {
  if (bytes == 0) return;
  double now = static_cast<double>(taken.count()) / static_cast<double>(bytes);
  std::lock_guard lock(mutex_);
  double& known = way == Way::cached ? cached_ : direct_;
  known = known == 0 ? now : known + kNewest * (now - known);
}

void WritePace::forbid_direct() {
  std::lock_guard lock(mutex_);
  forbidden_ = true;
}

void PieceWriter::Free::operator()(char* bytes) const {
  ::operator delete[](bytes, std::align_val_t{kAlignment});
}

char* PieceWriter::buffer() {
  if (!bytes_) bytes_.reset(new (std::align_val_t{kAlignment}) char[kPiece]);
  return bytes_.get();
}

void PieceWriter::begin(const Fd& file, std::string name) {
  BERTH_ASSERT(size_ == 0);
  file_ = &file;
  name_ = std::move(name);
  start_ = 0;
}

Result<void> PieceWriter::write(uint64_t offset, std::string_view bytes) {
  bool follows = offset >= end() && offset - end() < kAlignment;
  if (!follows) {
    TRY(flush());
    start_ = offset;
  }
  TRY(append({kZeros, offset - end()}));
  return append(bytes);
}

Result<void> PieceWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(kPiece - size_, bytes.size());
    std::memcpy(buffer() + size_, bytes.data(), count);
    bytes.remove_prefix(count);
    size_ += count;
    if (size_ == kPiece) TRY(flush());
  }
  return {};
}

Result<void> PieceWriter::flush() {
  if (size_ == 0) return {};
  if (observer_) observer_(start_, {buffer(), size_});
  TRY(write_out());
  start_ += std::exchange(size_, 0);
  return {};
}

Result<std::string> PieceWriter::read(uint64_t offset, size_t length) {
  if (offset >= start_ && offset + length <= end()) {
    return std::string(buffer() + (offset - start_), length);
  }
  if (offset < end() && offset + length > start_) TRY(flush());
  return read_at(*file_, offset, length, name_);
}

Result<void> PieceWriter::write_out() {
  using Clock = std::chrono::steady_clock;
  std::string_view bytes(buffer(), size_);
  size_t whole = start_ % kAlignment == 0 ? size_ - size_ % kAlignment : 0;
  if (pace_ == nullptr || whole < kWorthDirect) return write_at(*file_, start_, bytes, name_);
  Clock::time_point begun = Clock::now();
  WritePace::Way way = pace_->next();
  size_t written = 0;
  if (way == WritePace::Way::direct) {
    written = TRY(write_direct(whole));
    if (written == 0) return write_at(*file_, start_, bytes, name_);
  } else {
    TRY(write_at(*file_, start_, bytes.substr(0, whole), name_));
    written = whole;
  }
  pace_->tell(way, written, Clock::now() - begun);
  return write_at(*file_, start_ + written, bytes.substr(written), name_);
}

/// How much was written; nothing where the file system does not write so.
Result<size_t> PieceWriter::write_direct(size_t size) {
  int flags = ::fcntl(file_->get(), F_GETFL);
  bool set = flags >= 0 && ::fcntl(file_->get(), F_SETFL, flags | O_DIRECT) == 0;
  if (!set) {
    pace_->forbid_direct();
    return size_t{0};
  }
  ssize_t put = 0;
  int saved_errno = 0;
  do {
    put = ::pwrite(file_->get(), buffer(), size, static_cast<off_t>(start_));
    saved_errno = errno;
  } while (put < 0 && saved_errno == EINTR);
  if (::fcntl(file_->get(), F_SETFL, flags) != 0)
    return errno_now().error("write " + quoted(name_));
  if (put >= 0) return static_cast<size_t>(put);
  if (saved_errno != EINVAL) return sys_error(saved_errno, "write " + quoted(name_));
  pace_->forbid_direct();
  return size_t{0};
}

}  // namespace berth::sys
