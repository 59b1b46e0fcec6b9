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
#include "sys/fd/fd.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {

class BlobStream;

/// Connections that fetch blobs. A large blob is fetched over several connections at once. The next
/// free connection goes to the stream with the fewest connections; among equals, to the largest.
class BlobFetcher {
 public:
  struct Limits {
    size_t connections = 6;
    uint64_t ahead = uint64_t{32} << 20;  ///< bytes of a stream that wait in memory for its reader
    uint64_t part = uint64_t{8} << 20;    ///< bytes that one connection fetches; at most `ahead`
  };

  BlobFetcher(Limits limits, const Cancel& cancel);
  ~BlobFetcher();  ///< all its streams must have ended
  BlobFetcher(BlobFetcher&&) = delete;

 private:
  friend class BlobStream;
  using Ring = std::unique_ptr<char[]>;

  void work();
  BlobStream* pick();
  Ring take_ring();

  const Limits limits_;
  const Cancel& cancel_;
  std::mutex mutex_;  // guards the following members, and the streams
  std::condition_variable changed_;
  std::vector<BlobStream*> streams_;
  std::vector<Ring> rings_;  // buffers of ended streams, for reuse
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

/// The bytes of one blob in order, as they arrive. They are hashed meanwhile; the end is reported
/// only if the digest is right. Otherwise the caller discards everything that it made from the
/// bytes. If the system grants no threads, the reader fetches the bytes.
class BlobStream {
 public:
  /// Does what Registry::get_blob() does, for this blob; called from several threads at once.
  using Fetch = std::function<Result<void>(BlobPart part)>;
  struct Options {
    const sys::Fd* copy = nullptr;  ///< an empty file that receives the bytes, too
    ByteProgress progress = {};     ///< receives the number of bytes that have arrived
    std::string action = {};        ///< "read blob …", for the error about a wrong digest
  };

  BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Fetch fetch, Options options);
  /// From a registry.
  BlobStream(BlobFetcher& fetcher, const oci::Descriptor& blob, Registry& registry,
             Options options);
  /// Cancels running fetches.
  ~BlobStream();
  BlobStream(BlobStream&&) = delete;

  /// The next bytes, empty at the end; invalidates the previous ones. For one thread.
  /// Errors: those of the fetch; corrupt (the digest); io (of the copy); interrupted.
  Result<std::string_view> next();

  /// Discards unread bytes and waits for the end.  Errors: as next().
  Result<void> finish();

  bool arrived() const;  ///< the whole blob has arrived
  bool failed() const;   ///< next() and finish() will return an error

 private:
  friend class BlobFetcher;

  /// The range that one connection fetches.
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
  Sha256 sha_;              // used only by the thread that has set `hashing_`

  // Under the fetcher's lock.
  std::condition_variable readable_;
  std::deque<Part> parts_;  // in transfer, or complete behind a part in transfer; in order
  Ranges ranges_ = Ranges::unknown;
  uint64_t asked_ = 0;  // where the next part begins
  bool begun_ = false;
  uint64_t come_ = 0;      // bytes of all parts
  std::mutex telling_;     // guards told_ and the calls of progress
  uint64_t told_ = 0;      // the highest value reported to progress
  uint64_t in_order_ = 0;  // all bytes before this have arrived
  uint64_t hashed_ = 0;    // all bytes before this are hashed, so they may be read
  uint64_t read_ = 0;      // all bytes before this are read, so their room is free
  uint64_t given_ = 0;     // number of bytes that the reader holds, from read_ on
  size_t connections_ = 0;
  bool hashing_ = false;
  bool discards_ = false;
  bool good_ = false;  // the digest is right
  std::optional<Error> error_;
};

}  // namespace berth::transfer
