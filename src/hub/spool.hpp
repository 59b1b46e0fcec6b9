// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/fd.hpp"
#include "transfer/registry/blob_fetcher.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::hub {

/// A blob in an unnamed file, which grows while one thread writes it. Reading is thread-safe.
class SpooledBlob {
 public:
  SpooledBlob(sys::Fd file, uint64_t size) : file_(std::move(file)), size_(size) {}

  uint64_t size() const { return size_; }

  /// Waits until there are bytes behind `position`, at most for `patience`. Returns the number of
  /// bytes from the start.  Errors: those of the writer, after which no more will come.
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

/// Fetches blobs to this machine, each once, for all present and later readers. Bytes are passed on
/// before their digest is known: each reader verifies it.
class Spool {
 public:
  /// As transfer::Registry::get_blob().
  using Fetch = std::function<Result<void>(const oci::Descriptor& blob, transfer::BlobPart part)>;

  /// `store` has the directory for files, and blobs that need not be fetched. The arguments have to
  /// outlive it.
  Spool(const image::Store& store, Fetch fetch, const transfer::Cancel& cancel);
  /// Call after `cancel` was requested; waits for running fetches.
  ~Spool();
  Spool(Spool&&) = delete;

  /// The blob, which may still be arriving. A failed one is started again.
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

}  // namespace berth::hub
