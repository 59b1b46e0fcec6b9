// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/unpack.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "sys/thread/thread.hpp"
#include "transfer/compression/inflater.hpp"
#include "transfer/layer/members_and_whiteouts.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

/// The uncompressed bytes of a layer in blocks of 1 MiB. Two threads work ahead of the reader: one
/// inflates, one hashes. All three share eight blocks. If the system grants no threads, the reader
/// does everything.
class BlockStream {
 public:
  BlockStream(std::unique_ptr<Inflater> inflater, const UnpackOptions& options);
  ~BlockStream();
  BlockStream(BlockStream&&) = delete;

  /// The next block, empty at the end; invalidates the previous one.
  /// Errors: corrupt, unsupported (as Inflater; a limit), interrupted.
  Result<std::string_view> next();

  /// Reads the rest and returns the digest of everything.
  Result<Digest> finish();

 private:
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBlockSize = size_t{1} << 20;
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    uint64_t consumed = 0;  ///< compressed bytes that were read when this block was complete
  };

  void stop();
  void inflate();
  void inflate_block(std::unique_lock<std::mutex>& lock);
  void hash();
  void hash_block(std::unique_lock<std::mutex>& lock);
  std::optional<Error> check_limits() const;

  std::unique_ptr<Inflater> inflater_;
  const UnpackOptions& options_;
  std::array<Block, kBlocks> blocks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Numbers of blocks that were inflated, hashed, and given back by the reader, from the start.
  uint64_t inflated_ = 0;
  uint64_t hashed_ = 0;
  uint64_t released_ = 0;
  bool ended_ = false;    ///< no block follows `inflated_`
  bool stopped_ = false;  ///< the reader does not want more
  std::optional<Error> error_;
  Digest digest_;

  bool holding_ = false;   ///< the reader holds block `released_`
  uint64_t produced_ = 0;  ///< bytes; used by the inflating thread
  Sha256 sha_;             ///< used by the hashing thread
  std::optional<std::jthread> inflate_thread_;
  std::optional<std::jthread> hash_thread_;
};

BlockStream::BlockStream(std::unique_ptr<Inflater> inflater, const UnpackOptions& options)
    : inflater_(std::move(inflater)), options_(options) {
  for (auto& block : blocks_) block.bytes = std::make_unique_for_overwrite<char[]>(kBlockSize);
  // The hashing thread first: it waits until there are blocks, so it can still be stopped.
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

/// Called before other threads see the bytes, so before they are written.
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

}  // namespace

Result<UnpackedLayer> unpack_layer(std::unique_ptr<Inflater> bytes, MemberSink& sink,
                                   const UnpackOptions& options) {
  BlockStream blocks(std::move(bytes), options);
  TarReader tar([&] { return blocks.next(); });

  TarEntry entry;
  while (TRY(tar.next(entry))) {
    if (options.cancel != nullptr) TRY(options.cancel->check());
    TRY(sink.add(entry, tar));
  }
  TRY(sink.finish());

  UnpackedLayer layer;
  // Bytes after the end of the archive are part of the digest, too.
  layer.diff_id = TRY(blocks.finish());
  layer.entries = sink.entries();
  layer.bytes = sink.bytes();
  return layer;
}

Result<UnpackLimits> UnpackLimits::changed_by(std::string_view text) const {
  UnpackLimits limits = *this;
  for (std::string_view part : split(text, ',')) {
    if (trim(part).empty()) continue;
    size_t equals = part.find('=');
    std::string_view name = trim(part.substr(0, equals));
    std::string_view value = equals == part.npos ? "" : trim(part.substr(equals + 1));
    uint64_t number = parse_bytes(value).value_or(0);
    uint64_t* chosen = name == "entries"  ? &limits.entries
                       : name == "bytes"  ? &limits.bytes
                       : name == "ratio"  ? &limits.ratio
                       : name == "depth"  ? &limits.path_depth
                       : name == "memory" ? &limits.tree_bytes
                                          : nullptr;
    if (chosen == nullptr || number == 0) {
      return make_error(Kind::usage,
                        "BERTH_UNPACK_LIMITS: expected NAME=NUMBER with a name of "
                        "entries, bytes, ratio, depth, memory, got " +
                            quote(part));
    }
    *chosen = number;
  }
  return limits;
}

}  // namespace berth::transfer
