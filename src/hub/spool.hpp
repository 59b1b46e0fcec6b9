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
#include "sys/fd.hpp"
#include "transfer/blob_fetcher.hpp"
#include "transfer/cancel.hpp"

namespace berth::hub {

/// A blob in a file without a name, which grows while somebody writes it. Any thread may read what
/// is there.
class SpooledBlob {
 public:
  SpooledBlob(sys::Fd file, uint64_t size) : file_(std::move(file)), size_(size) {}

  uint64_t size() const { return size_; }

  /// Waits until there is something behind `position`, at most so long. How many bytes there are
  /// from the start.  Errors: those of the writer, after which no more will come.
  Result<uint64_t> await(uint64_t position, std::chrono::milliseconds patience);
  /// Into `buffer`; only what there is.  Errors: io.
  Result<size_t> read(uint64_t position, char* buffer, size_t size) const;

  Result<void> append(std::string_view bytes);  ///< by the one thread that writes it
  void note_whole();                            ///< it was there already
  void fail(Error error);

 private:
  const sys::Fd file_;
  const uint64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t have_ = 0;
  std::optional<Error> error_;
};

/// Brings blobs onto this machine, each once, for all readers, meanwhile or later. What comes
/// is given on before its digest is known: each reader checks it.
class Spool {
 public:
  /// As transfer::Registry::get_blob().
  using Fetch = std::function<Result<void>(const oci::Descriptor& blob, transfer::BlobPart part)>;

  /// `store` says where files lie, and has blobs that need not be fetched. What these refer to
  /// outlives it.
  Spool(const image::Store& store, Fetch fetch, const transfer::Cancel& cancel);
  /// After `cancel` was requested; waits for what is on its way.
  ~Spool();
  Spool(Spool&&) = delete;

  /// The blob, which may be on its way still. One that failed is begun anew.
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
  std::mutex mutex_;  // guards what follows
  std::map<Digest, std::shared_ptr<SpooledBlob>> blobs_;
  std::vector<std::jthread> threads_;
};

}  // namespace berth::hub
