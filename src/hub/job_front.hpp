// SPDX-License-Identifier: Apache-2.0
// The service for the other nodes of a job: a registry of one image, which is fetched once and
// passed on while it arrives (docs/decisions/0166).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "hub/reply.hpp"
#include "hub/route.hpp"
#include "image/reference.hpp"
#include "image/registry_access.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/blob_fetcher.hpp"
#include "transfer/registry/chain.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::hub {

struct ReferrersRoute {
  std::string name;
  Digest subject;
  std::string artifact_type;  ///< empty: every type
};

/// Nothing if the request does not list referrers.  Source: distribution-spec 1.1 "Listing
/// Referrers".
std::optional<ReferrersRoute> referrers_route(std::string_view method, std::string_view target);

/// Bytes [begin, end) of a blob.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// The part of a blob of `size` bytes that a Range header requests; the whole blob if `value` is
/// not a valid range. Nothing if the range is outside the blob.  Source: RFC 9110 section 14.1.2
std::optional<ByteRange> range_of(std::string_view value, uint64_t size);

/// The manifests and blobs of an image, as far as the documents read so far name them. Thread-safe.
class Belongings {
 public:
  /// `root`: the tag or digest of the image.
  explicit Belongings(std::string root) : root_(std::move(root)) {}

  /// Whether a manifest belongs to the image: it is the root, or a document of the image names it,
  /// or it is the list of referrers of such a manifest ("sha256-HEX").
  bool has_manifest(std::string_view tag_or_digest) const;
  bool has_manifest(const Digest& digest) const;
  std::optional<oci::Descriptor> blob(const Digest& digest) const;

  /// Adds the objects that a manifest or an index of the image names. Other documents name no
  /// objects. Keeps at most 4096 manifests and 4096 blobs.
  void learn(const Digest& digest, std::string_view bytes, std::string_view media_type);

 private:
  const std::string root_;
  mutable std::mutex mutex_;  // guards the following members
  std::set<Digest> manifests_;
  std::map<Digest, oci::Descriptor> blobs_;
};

/// A blob in an unnamed file, which grows while one thread writes it. Reading is thread-safe.
class SpooledBlob {
 public:
  SpooledBlob(sys::Fd file, uint64_t size) : file_(std::move(file)), size_(size) {}

  uint64_t size() const { return size_; }

  /// Waits until there are bytes after `position`, at most for `patience`. Returns the number of
  /// bytes from the start of the blob.  Errors: those of the writer; after one no more bytes
  /// arrive.
  Result<uint64_t> await(uint64_t position, std::chrono::milliseconds patience);
  /// Reads available bytes into `buffer`.  Errors: io.
  Result<size_t> read(uint64_t position, char* buffer, size_t size) const;

  Result<void> append(std::string_view bytes);  ///< only from the writing thread
  void note_whole();                            ///< the file was complete already
  void fail(Error error);

 private:
  const sys::Fd file_;
  const uint64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t have_ = 0;
  std::optional<Error> error_;
};

/// Fetches blobs to this machine, each once for all its readers. Bytes are passed on before the
/// digest of the blob has been verified: each reader verifies it.
class Spool {
 public:
  /// Fetches as transfer::Registry::get_blob() does.
  using Fetch = std::function<Result<void>(const oci::Descriptor& blob, transfer::BlobPart part)>;

  /// `store` provides the directory for files, and the blobs that need not be fetched. `store` and
  /// `cancel` have to outlive the spool.
  Spool(const image::Store& store, Fetch fetch, const transfer::Cancel& cancel);
  /// Call after `cancel` was requested; waits for running fetches.
  ~Spool();
  Spool(Spool&&) = delete;

  /// The blob, which may still be arriving. A fetch that failed is started again.
  /// Errors: io (no room for a file), busy (no thread).
  Result<std::shared_ptr<SpooledBlob>> get(const oci::Descriptor& blob);

 private:
  Result<std::shared_ptr<SpooledBlob>> begin(const oci::Descriptor& blob);
  Result<sys::Fd> make_file() const;
  void bring(const oci::Descriptor& blob, SpooledBlob& into);
  Result<void> copy(const oci::Descriptor& blob, SpooledBlob& into);

  static constexpr std::ptrdiff_t kAtOnce = 6;

  const image::Store& store_;
  const Fetch fetch_;
  const transfer::Cancel& cancel_;
  transfer::BlobFetcher fetcher_;
  std::counting_semaphore<kAtOnce> places_{kAtOnce};
  std::mutex mutex_;  // guards the following members
  std::map<Digest, std::shared_ptr<SpooledBlob>> blobs_;
  std::vector<std::jthread> threads_;
};

/// Tells a client that has waited for the maximal time to ask again at once.
Reply wait_a_moment();

/// Answers requests of clients that the server has admitted; thread-safe. Fetches only what is
/// requested.
class JobFront {
 public:
  /// The caller requests `cancel` before it destroys the object.  Errors: usage (an invalid
  /// reference or address), those of image::Store::open().
  static Result<std::unique_ptr<JobFront>> make(image::JobOrder order,
                                                const transfer::Cancel& cancel, Log& log);

  Answer answer(const Asked& asked);

  /// The time since the last request or served byte; 0 while a client waits for a blob's next
  /// bytes.
  std::chrono::milliseconds idle() const;

 private:
  JobFront(image::JobOrder order, image::Reference reference, image::Store store,
           const transfer::Cancel& cancel, Log& log);

  /// A document that was requested, or the fact that it does not exist.
  struct Held {
    std::mutex mutex;  // guards the following members; held while the document is fetched
    bool known = false;
    std::optional<transfer::Document> document;
  };
  using Find = std::function<Result<std::optional<transfer::Document>>(transfer::Registry& place)>;

  Answer give_document(const std::string& key, Find find, const std::string& what);
  Result<Reply> document_of(Held& held, const Find& find, const std::string& what);
  std::shared_ptr<Held> hold(const std::string& key);
  Answer give_blob(const Digest& digest, const Asked& asked);
  Result<Reply> stream_blob(const oci::Descriptor& blob, const std::string& range, Output& output);
  Result<Reply> send(SpooledBlob& blob, ByteRange range, Output& output);
  void touch() const;

  const image::JobOrder order_;
  const image::Reference reference_;
  const image::Store store_;
  const transfer::Cancel& cancel_;
  transfer::Events events_;
  transfer::Http http_;
  std::optional<transfer::Chain> chain_;
  Belongings belongings_;
  mutable std::atomic<std::chrono::steady_clock::rep> touched_{0};
  std::atomic<int> streams_{0};
  std::mutex mutex_;  // guards the following members, not their elements
  std::map<std::string, std::shared_ptr<Held>> documents_;
  std::optional<Spool> spool_;  // last: its threads end before the members that they use
};

}  // namespace berth::hub
