// SPDX-License-Identifier: Apache-2.0
#include "transfer/arrival.hpp"

#include <algorithm>

#include "sys/io_at.hpp"

namespace berth::transfer {
namespace {

constexpr uint64_t kPiece = uint64_t{512} << 10;

}  // namespace

void Arrival::set(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  there_ = bytes;
  changed_.notify_all();
}

void Arrival::end(bool good) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  good_ = good;
  changed_.notify_all();
}

bool Arrival::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

Result<uint64_t> Arrival::wait_beyond(uint64_t offset, uint64_t wanted) {
  std::unique_lock lock(mutex_);
  uint64_t enough = std::min(size_, offset + wanted);
  changed_.wait(lock, [&] { return ended_ || there_ >= enough; });
  if (ended_ && !good_) return make_error(Kind::interrupted, "read a blob that does not arrive");
  return there_ - std::min(offset, there_);
}

bool Arrival::wait_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
  return good_;
}

BlobInput::BlobInput(const sys::Fd& file, Arrival* arrival)
    : file_(file), arrival_(arrival), buffer_(kPiece, '\0') {}

Result<std::string_view> BlobInput::next() {
  uint64_t most = kPiece;
  if (arrival_ != nullptr) {
    uint64_t there = TRY(arrival_->wait_beyond(offset_, kPiece));
    most = std::min(most, there);
    if (most == 0) return std::string_view();
  }
  size_t count = TRY(sys::read_at(file_, offset_, buffer_.data(), most, "layer"));
  offset_ += count;
  return std::string_view(buffer_).substr(0, count);
}

}  // namespace berth::transfer
