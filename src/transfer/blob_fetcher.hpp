// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd.hpp"
#include "transfer/cancel.hpp"
#include "transfer/registry.hpp"
#include "transfer/sha256.hpp"

namespace berth::transfer {

class BlobStream;

/// Connections on which blobs come, a large one on several at once. Which stream gets the next free
/// one: that with the fewest, of those the largest.
class BlobFetcher {
 public:
  struct Limits {
    size_t connections = 6;
    uint64_t ahead = uint64_t{32} << 20;  ///< bytes of each stream that wait in memory for a reader
    uint64_t part = uint64_t{8} << 20;    ///< that one connection brings at a time; at most `ahead`
  };

  BlobFetcher(Limits limits, const Cancel& cancel);
  ~BlobFetcher();  ///< after all of its streams
  BlobFetcher(BlobFetcher&&) = delete;

 private:
  friend class BlobStream;
  using Ring = std::unique_ptr<char[]>;

  void work();
  BlobStream* pick();
  Ring take_ring();

  const Limits limits_;
  const Cancel& cancel_;
  std::mutex mutex_;  // guards what follows, and the streams
  std::condition_variable changed_;
  std::vector<BlobStream*> streams_;
  std::vector<Ring> rings_;  // of streams that have ended: their memory is at hand
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

/// The bytes of one blob in order, as they come. They are hashed on the way; the end is reached
/// only when the digest holds, so what was made of the bytes until then is thrown away else.
/// Where the system grants no threads, the reader fetches.
class BlobStream {
 public:
  /// As Registry::get_blob(), of this blob; any thread may call it, several at once.
  using Fetch = std::function<Result<void>(BlobPart part)>;
  struct Options {
    const sys::Fd* copy = nullptr;  ///< an empty file that gets the bytes, too
    ByteProgress progress = {};     ///< how many have come
    std::string action = {};  ///< "read blob …", for the error that its digest does not hold
  };

  BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Fetch fetch, Options options);
  /// From a registry.
  BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Registry& registry,
             Options options);
  /// Stops what is on its way.
  ~BlobStream();
  BlobStream(BlobStream&&) = delete;

  /// The next bytes, none at the end; those before are no longer valid. One thread reads.
  /// Errors: those of the fetch; corrupt (the digest); io (of the copy); interrupted.
  Result<std::string_view> next();

  /// Lets go of what the reader did not want and waits for the end.  Errors: as next().
  Result<void> finish();

  bool arrived() const;  ///< all of it
  bool failed() const;   ///< next() and finish() give an error

 private:
  friend class BlobFetcher;

  /// What one connection brings.
  struct Part {
    uint64_t begin;
    uint64_t end;
    uint64_t come = 0;
  };
  enum class Ranges { unknown, known, unsupported };

  bool wants_connection() const;
  Part& begin_part();
  void fetch_part(std::unique_lock<std::mutex>& lock);
  Result<void> take(Part& part, std::string_view bytes);
  Result<void> wait_for_room(std::unique_lock<std::mutex>& lock, uint64_t position);
  void hash_what_follows(std::unique_lock<std::mutex>& lock);
  Result<void> hash_piece(uint64_t begin, uint64_t end);
  void check_digest();
  void fail(Error error);
  void drop_unread();
  void wait_for_bytes(std::unique_lock<std::mutex>& lock);
  uint64_t arrived_in_order();
  char* at(uint64_t position) { return ring_.get() + position % ahead_; }

  BlobFetcher& fetcher_;
  const oci::Descriptor blob_;
  const Fetch fetch_;
  Options options_;
  const uint64_t ahead_;
  BlobFetcher::Ring ring_;  // the byte at position p is at p modulo its size
  Sha256 sha_;              // of whom `hashing_` says is at it

  // Under the fetcher's lock.
  std::condition_variable readable_;
  std::deque<Part> parts_;  // on their way, or here behind one that is; in order
  Ranges ranges_ = Ranges::unknown;
  uint64_t asked_ = 0;  // where the next part begins
  bool begun_ = false;
  uint64_t come_ = 0;      // bytes of all parts
  std::mutex telling_;     // guards told_, and the calls
  uint64_t told_ = 0;      // the most that progress was told
  uint64_t in_order_ = 0;  // all before this have come
  uint64_t hashed_ = 0;    // and were hashed: they may be read
  uint64_t read_ = 0;      // and were read: their room is free
  uint64_t given_ = 0;     // of what the reader holds, from read_ on
  size_t connections_ = 0;
  bool hashing_ = false;
  bool discards_ = false;
  bool good_ = false;  // the digest holds
  std::optional<Error> error_;
};

}  // namespace berth::transfer
