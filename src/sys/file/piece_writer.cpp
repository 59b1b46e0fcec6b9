// SPDX-License-Identifier: Apache-2.0
#include "sys/file/piece_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/thread/work_behind.hpp"

namespace berth::sys {
namespace {

constexpr size_t kPiecesBehind = 3;
constexpr char kZeros[PieceWriter::kAlignment] = {};

}  // namespace

// ---- writing a piece
// -----------------------------------------------------------------------------

/// A file, by handles of our own. The thread may still write when the owner has given up and closed
/// its handle; it then writes into this file and not into another one with the same number.
class PieceWriter::Target {
 public:
  Target(Fd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Result<void> write(uint64_t start, std::string_view bytes);
  /// Writes a whole piece, past the cache if the file system can.
  Result<void> write_direct(uint64_t start, std::string_view bytes);

 private:
  Fd file_;
  Fd direct_;  ///< a separate open file, because O_DIRECT is a flag of the open file
  bool cannot_ = false;
  std::string name_;
};

Result<void> PieceWriter::Target::write(uint64_t start, std::string_view bytes) {
  return write_at(file_, start, bytes, name_);
}

Result<void> PieceWriter::Target::write_direct(uint64_t start, std::string_view bytes) {
  if (start % kAlignment != 0 || cannot_) return write(start, bytes);
  if (!direct_) {
    int access = ::fcntl(file_.get(), F_GETFL) & O_ACCMODE;
    auto opened = open_at(cwd(), fd_path(file_), access | O_DIRECT);
    cannot_ = !opened.ok();
    if (cannot_) return write(start, bytes);
    direct_ = *std::move(opened);
  }
  ssize_t put = 0;
  do {
    put = ::pwrite(direct_.get(), bytes.data(), bytes.size(), static_cast<off_t>(start));
  } while (put < 0 && errno == EINTR);
  if (put < 0 && errno != EINVAL) return errno_now().error("write " + quote(name_));
  cannot_ = put < 0;
  size_t written = cannot_ ? 0 : static_cast<size_t>(put);
  return write(start + written, bytes.substr(written));
}

/// Pieces to be written past the cache, and the thread that writes them.
struct PieceWriter::Behind {
  Bytes spare();
  void keep(Bytes bytes);

  std::mutex mutex;
  std::vector<Bytes> spares;  ///< buffers for reuse
  WorkBehind work{kPiecesBehind};
};

PieceWriter::Bytes PieceWriter::Behind::spare() {
  std::lock_guard lock(mutex);
  if (spares.empty()) return nullptr;
  Bytes bytes = std::move(spares.back());
  spares.pop_back();
  return bytes;
}

void PieceWriter::Behind::keep(Bytes bytes) {
  std::lock_guard lock(mutex);
  spares.push_back(std::move(bytes));
}

// ---- gathering
// -----------------------------------------------------------------------------------

PieceWriter::PieceWriter(Cache cache) : cache_(cache) {}
PieceWriter::PieceWriter(PieceWriter&&) noexcept = default;
PieceWriter& PieceWriter::operator=(PieceWriter&&) noexcept = default;
PieceWriter::~PieceWriter() = default;

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
  target_.reset();
  name_ = std::move(name);
  start_ = 0;
}

Result<void> PieceWriter::write(uint64_t offset, std::string_view bytes) {
  bool follows = offset >= end() && offset - end() < kAlignment;
  if (follows) {
    TRY(fill_gap(offset));
  } else {
    TRY(write_out());
    start_ = offset;
  }
  return append(bytes);
}

Result<void> PieceWriter::fill_gap(uint64_t offset) {
  std::string_view zeros(kZeros, offset - end());
  if (zeros.empty() || size_ > 0 || start_ % kAlignment == 0) return append(zeros);
  // Pieces that begin here would stay unaligned, while pieces that begin with the next bytes may be
  // aligned.
  if (observer_) observer_(start_, zeros);
  TRY(write_at(*file_, start_, zeros, name_));
  start_ = offset;
  return {};
}

Result<void> PieceWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(kPiece - size_, bytes.size());
    std::memcpy(buffer() + size_, bytes.data(), count);
    bytes.remove_prefix(count);
    size_ += count;
    if (size_ == kPiece) TRY(cache_ == Cache::past ? hand_over() : write_out());
  }
  return {};
}

Result<void> PieceWriter::flush() {
  if (behind_) TRY(behind_->work.wait());
  TRY(write_out());
  target_.reset();
  return {};
}

/// Writes the gathered bytes through the cache; the thread's pieces are not affected.
Result<void> PieceWriter::write_out() {
  if (size_ == 0) return {};
  std::string_view bytes(buffer(), size_);
  if (observer_) observer_(start_, bytes);
  TRY(write_at(*file_, start_, bytes, name_));
  start_ += std::exchange(size_, 0);
  return {};
}

Result<void> PieceWriter::hand_over() {
  if (!behind_) behind_ = std::make_unique<Behind>();
  auto made = this->target();
  if (!made.ok()) return write_out();  // no descriptor is left
  std::shared_ptr<Target> target = *std::move(made);
  std::string_view bytes(buffer(), size_);
  if (observer_) observer_(start_, bytes);
  auto write = [target, start = start_, bytes, behind = behind_.get(), piece = bytes_.get()] {
    Result<void> written = target->write_direct(start, bytes);
    behind->keep(Bytes(piece));
    return written;
  };
  if (behind_->work.begin(write)) {
    static_cast<void>(bytes_.release());  // belongs to the work now
    bytes_ = behind_->spare();
  } else {
    TRY(target->write(start_, bytes));
  }
  start_ += std::exchange(size_, 0);
  return {};
}

Result<std::shared_ptr<PieceWriter::Target>> PieceWriter::target() {
  if (!target_) {
    Fd own = TRY(duplicate(*file_));
    target_ = std::make_shared<Target>(std::move(own), name_);
  }
  return target_;
}

Result<std::string> PieceWriter::read(uint64_t offset, size_t length) {
  if (offset >= start_ && offset + length <= end()) {
    return std::string(buffer() + (offset - start_), length);
  }
  bool gathered = offset < end() && offset + length > start_;
  if (gathered) TRY(flush());
  if (behind_) TRY(behind_->work.wait());
  return read_at(*file_, offset, length, name_);
}

}  // namespace berth::sys
