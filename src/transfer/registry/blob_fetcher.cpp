// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/blob_fetcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/assert.hpp"
#include "sys/file/file.hpp"
#include "sys/thread/thread.hpp"

namespace berth::transfer {
namespace {

/// The most bytes that are hashed, and passed to the reader, at once.
constexpr uint64_t kPiece = uint64_t{512} << 10;
/// So many bytes are worth hashing, so that a reader need not wait for a whole piece.
constexpr uint64_t kWorthHashing = uint64_t{64} << 10;
constexpr auto kLookForSignals = std::chrono::milliseconds(100);

/// Called before the stream begins, as other threads then read the options.
BlobStream::Options with_action(BlobStream::Options options, std::string action) {
  options.action = std::move(action);
  return options;
}

}  // namespace

// ---- connections --------------------------------------------------------------------------------

BlobFetcher::BlobFetcher(Limits limits, const Cancel& cancel) : limits_(limits), cancel_(cancel) {
  BERTH_ASSERT(limits.part > 0 && limits.part <= limits.ahead);
  for (size_t i = 0; i < limits.connections; ++i) {
    std::optional<std::jthread> thread = sys::start_thread([this] { work(); });
    if (!thread) break;
    threads_.push_back(*std::move(thread));
  }
}

BlobFetcher::~BlobFetcher() {
  {
    std::lock_guard lock(mutex_);
    BERTH_ASSERT(streams_.empty());
    stopped_ = true;
  }
  changed_.notify_all();
}

void BlobFetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    BlobStream* stream = nullptr;
    changed_.wait(lock, [&] { return stopped_ || (stream = pick()) != nullptr; });
    if (stopped_) return;
    stream->fetch_part(lock);
  }
}

BlobStream* BlobFetcher::pick() {
  BlobStream* best = nullptr;
  auto rank = [](const BlobStream& s) { return std::pair(s.connections_, ~s.blob_.size); };
  for (BlobStream* stream : streams_) {
    if (!stream->wants_connection()) continue;
    if (best == nullptr || rank(*stream) < rank(*best)) best = stream;
  }
  return best;
}

BlobFetcher::Ring BlobFetcher::take_ring() {
  std::lock_guard lock(mutex_);
  if (rings_.empty()) return std::make_unique_for_overwrite<char[]>(limits_.ahead);
  Ring ring = std::move(rings_.back());
  rings_.pop_back();
  return ring;
}

// ---- a stream -----------------------------------------------------------------------------------

BlobStream::BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Fetch fetch,
                       Options options)
    : fetcher_(fetcher),
      blob_(blob),
      fetch_(std::move(fetch)),
      options_(std::move(options)),
      ahead_(fetcher.limits_.ahead),
      ring_(fetcher.take_ring()) {
  std::lock_guard lock(fetcher_.mutex_);
  fetcher_.streams_.push_back(this);
  fetcher_.changed_.notify_all();
}

BlobStream::BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Registry& registry,
                       Options options)
    : BlobStream(
          fetcher, blob,
          [this, &registry](BlobPart part) { return registry.get_blob(blob_, std::move(part)); },
          with_action(std::move(options), registry.read_action(blob.digest))) {}

BlobStream::~BlobStream() {
  std::unique_lock lock(fetcher_.mutex_);
  if (!good_) fail(make_error(Kind::interrupted, "read a blob that is no longer needed"));
  readable_.wait(lock, [this] { return connections_ == 0 && !hashing_; });
  std::erase(fetcher_.streams_, this);
  fetcher_.rings_.push_back(std::move(ring_));
}

bool BlobStream::wants_connection() const {
  if (error_ || (begun_ && asked_ >= blob_.size)) return false;
  // Only the first answer shows whether other parts can be requested.
  if (connections_ > 0 && ranges_ != Ranges::known) return false;
  return std::min(asked_ + fetcher_.limits_.part, blob_.size) <= read_ + ahead_;
}

BlobStream::Part& BlobStream::begin_part() {
  begun_ = true;
  uint64_t begin = asked_;
  asked_ = std::min(begin + fetcher_.limits_.part, blob_.size);
  return parts_.emplace_back(Part{begin, asked_});  // a deque does not move its elements
}

/// Called with the lock held; it is released while the bytes arrive.
void BlobStream::fetch_part(std::unique_lock<std::mutex>& lock) {
  Part& part = begin_part();
  BlobPart wanted;
  wanted.begin = part.begin;
  wanted.end = part.end;
  wanted.answered = ranges_ != Ranges::unknown;
  wanted.take = [&](std::string_view bytes) { return take(part, bytes); };
  wanted.on_whole = [&]() -> Result<void> {
    std::lock_guard relock(fetcher_.mutex_);
    // The first part may become the whole blob only while it is the only part.
    if (part.begin > 0 || asked_ > part.end) {
      return make_error(Kind::corrupt,
                        "check its range: the registry sent the whole blob instead of a part");
    }
    ranges_ = Ranges::unsupported;
    asked_ = part.end = blob_.size;
    return {};
  };
  ++connections_;
  lock.unlock();
  Result<void> done = fetch_(std::move(wanted));
  lock.lock();
  --connections_;
  if (!done.ok()) fail(std::move(done).error());
  hash_what_follows(lock);
  readable_.notify_all();
  fetcher_.changed_.notify_all();
}

Result<void> BlobStream::take(Part& part, std::string_view bytes) {
  std::unique_lock lock(fetcher_.mutex_);
  if (ranges_ == Ranges::unknown) {
    ranges_ = Ranges::known;
    fetcher_.changed_.notify_all();
  }
  while (!bytes.empty()) {
    uint64_t position = part.begin + part.come;
    TRY(wait_for_room(lock, position));
    if (error_) return *error_;
    uint64_t room = std::min(read_ + ahead_ - position, ahead_ - position % ahead_);
    size_t count = std::min<uint64_t>(room, bytes.size());
    lock.unlock();
    std::memcpy(at(position), bytes.data(), count);
    bytes.remove_prefix(count);
    lock.lock();
    part.come += count;
    come_ += count;
    if (arrived_in_order() - hashed_ >= kWorthHashing) hash_what_follows(lock);
  }
  uint64_t come = come_;
  lock.unlock();
  if (options_.progress) {
    // If two connections arrive here, the one with the smaller number may be the last.
    std::lock_guard telling(telling_);
    if (come > told_) options_.progress(told_ = come);
  }
  return {};
}

/// Waits only if the registry sends the whole blob at once: parts are requested only if there is
/// room for them.
Result<void> BlobStream::wait_for_room(std::unique_lock<std::mutex>& lock, uint64_t position) {
  while (!error_ && position >= read_ + ahead_) {
    hash_what_follows(lock);
    if (position < read_ + ahead_) break;
    if (fetcher_.threads_.empty()) {
      return make_error(
          Kind::unsupported,
          "the registry sends only whole blobs, and no thread can be started to read them",
          "a higher limit of processes (ulimit -u)");
    }
    fetcher_.changed_.wait_for(lock, kLookForSignals);
    TRY(fetcher_.cancel_.check());
  }
  return {};
}

/// Drops finished parts, which their connections do not use any more.
uint64_t BlobStream::arrived_in_order() {
  while (!parts_.empty()) {
    const Part& first = parts_.front();
    in_order_ = first.begin + first.come;
    if (in_order_ < first.end) break;
    parts_.pop_front();
  }
  return in_order_;
}

/// Done by one thread at a time, which has delivered the next bytes. The lock is released
/// meanwhile.
void BlobStream::hash_what_follows(std::unique_lock<std::mutex>& lock) {
  if (hashing_) return;
  hashing_ = true;
  while (!error_ && hashed_ < arrived_in_order()) {
    uint64_t begin = hashed_;
    uint64_t end = std::min({in_order_, begin + kPiece, begin + ahead_ - begin % ahead_});
    lock.unlock();
    Result<void> done = hash_piece(begin, end);
    lock.lock();
    if (!done.ok()) fail(std::move(done).error());
    hashed_ = end;
    if (discards_) drop_unread();
    readable_.notify_all();
  }
  bool all = begun_ && hashed_ == blob_.size && connections_ == 0;
  if (all && !good_ && !error_) check_digest();
  hashing_ = false;
  readable_.notify_all();
}

Result<void> BlobStream::hash_piece(uint64_t begin, uint64_t end) {
  std::string_view bytes(at(begin), end - begin);
  sha_.update(bytes);
  if (options_.copy == nullptr) return {};
  return sys::write_at(*options_.copy, begin, bytes, blob_.digest.text());
}

void BlobStream::check_digest() {
  Digest digest = sha_.finish();
  good_ = digest == blob_.digest;
  if (good_) return;
  Error other = make_error(Kind::corrupt,
                           fmt::format("check its bytes: their digest is '{}'", digest.text()));
  fail(std::move(other).with_context("cannot " + options_.action));
}

void BlobStream::fail(Error error) {
  if (!error_) error_ = std::move(error);
  readable_.notify_all();
  fetcher_.changed_.notify_all();
}

void BlobStream::drop_unread() {
  read_ = hashed_;
  given_ = 0;
  fetcher_.changed_.notify_all();
}

/// Waits until the reader can continue. If there are no threads that fetch, the caller fetches.
void BlobStream::wait_for_bytes(std::unique_lock<std::mutex>& lock) {
  while (!error_ && !good_ && (discards_ || hashed_ == read_)) {
    bool alone = fetcher_.threads_.empty();
    if (alone && wants_connection()) {
      fetch_part(lock);
    } else {
      readable_.wait(lock);
    }
  }
}

Result<std::string_view> BlobStream::next() {
  std::unique_lock lock(fetcher_.mutex_);
  if (given_ > 0) {
    read_ += given_;
    given_ = 0;
    fetcher_.changed_.notify_all();
  }
  wait_for_bytes(lock);
  if (error_) return *error_;
  given_ = std::min({hashed_ - read_, kPiece, ahead_ - read_ % ahead_});
  return std::string_view(at(read_), given_);
}

Result<void> BlobStream::finish() {
  std::unique_lock lock(fetcher_.mutex_);
  discards_ = true;
  drop_unread();
  wait_for_bytes(lock);
  if (error_) return *error_;
  return {};
}

bool BlobStream::failed() const {
  std::lock_guard lock(fetcher_.mutex_);
  return error_.has_value();
}

bool BlobStream::arrived() const {
  std::lock_guard lock(fetcher_.mutex_);
  return come_ == blob_.size;
}

}  // namespace berth::transfer
