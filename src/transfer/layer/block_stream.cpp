// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/block_stream.hpp"

#include <algorithm>
#include <utility>

#include "sys/thread/thread.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {
BlockStream::BlockStream(std::unique_ptr<Inflater> inflater, const UnpackOptions& options)
    : inflater_(std::move(inflater)), options_(options) {
  for (auto& block : blocks_) block.bytes = std::make_unique_for_overwrite<char[]>(kBlockSize);
  // The hashing thread first: until there are blocks it waits, and can still be stopped.
  hash_thread_ = sys::start_thread([this] { hash(); });
  if (hash_thread_) inflate_thread_ = sys::start_thread([this] { inflate(); });
  if (!inflate_thread_) stop();
}

BlockStream::~BlockStream() {
  stop();
}

void BlockStream::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  inflate_thread_.reset();  // joins
  hash_thread_.reset();
}

/// Counted before the bytes are visible to others, so before they are written.
std::optional<Error> BlockStream::check_limits() const {
  if (produced_ > options_.limits.bytes) {
    return make_error(
        Kind::corrupt,
        "the layer unpacks to more than " + std::to_string(options_.limits.bytes) + " bytes",
        kRaiseHint);
  }
  uint64_t consumed = std::max<uint64_t>(inflater_->consumed(), 1);
  if (produced_ > kRatioFrom && produced_ / consumed > options_.limits.ratio) {
    return make_error(Kind::corrupt,
                      "the layer unpacks to more than " + std::to_string(options_.limits.ratio) +
                          " times its size",
                      kRaiseHint);
  }
  if (options_.cancel != nullptr) {
    auto go_on = options_.cancel->check();
    if (!go_on.ok()) return std::move(go_on).error();
  }
  return std::nullopt;
}

void BlockStream::inflate() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait(lock,
                  [&] { return stopped_ || inflated_ - std::min(hashed_, released_) < kBlocks; });
    if (stopped_) return;
    inflate_block(lock);
  }
}

void BlockStream::inflate_block(std::unique_lock<std::mutex>& lock) {
  Block& block = blocks_[inflated_ % kBlocks];
  lock.unlock();
  auto count = inflater_->read(block.bytes.get(), kBlockSize);
  std::optional<Error> error;
  if (count.ok()) {
    produced_ += *count;
    error = check_limits();
    block.size = *count;
    block.consumed = inflater_->consumed();
  } else {
    error = std::move(count).error();
  }
  lock.lock();
  if (!error && block.size > 0) ++inflated_;
  ended_ = error || block.size < kBlockSize;
  error_ = std::move(error);
  changed_.notify_all();
}

void BlockStream::hash() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || ended_ || inflated_ > hashed_; });
    if (stopped_) return;
    if (inflated_ == hashed_) break;
    hash_block(lock);
  }
  digest_ = sha_.finish();
  changed_.notify_all();
}

void BlockStream::hash_block(std::unique_lock<std::mutex>& lock) {
  const Block& block = blocks_[hashed_ % kBlocks];
  lock.unlock();
  sha_.update({block.bytes.get(), block.size});
  lock.lock();
  ++hashed_;
  changed_.notify_all();
}

Result<std::string_view> BlockStream::next() {
  std::unique_lock lock(mutex_);
  if (std::exchange(holding_, false)) {
    ++released_;
    changed_.notify_all();
  }
  if (!inflate_thread_ && !ended_) {
    inflate_block(lock);
    if (inflated_ > hashed_) hash_block(lock);
    if (ended_) digest_ = sha_.finish();
  }
  changed_.wait(lock, [&] { return ended_ || inflated_ > released_; });
  if (inflated_ == released_) {
    if (error_) return *error_;
    return std::string_view();
  }
  holding_ = true;
  const Block& block = blocks_[released_ % kBlocks];
  lock.unlock();
  if (options_.on_progress) options_.on_progress(block.consumed);
  return std::string_view(block.bytes.get(), block.size);
}

Result<Digest> BlockStream::finish() {
  while (!TRY(next()).empty()) {
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !digest_.empty(); });
  return digest_;
}

}  // namespace berth::transfer
