// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd.hpp"
#include "transfer/arrival.hpp"
#include "transfer/event.hpp"
#include "transfer/registry.hpp"

namespace berth::transfer {

/// Brings the layers of one image into the store, several at once: at most kDownloads are on the
/// wire, and each is unpacked while it comes. What was unpacked is published when the blob's digest
/// and the layer's hold. What the store has is not fetched, what another process fetches is waited
/// for.
class LayerPipeline {
 public:
  static constexpr size_t kDownloads = 4;

  /// Whether what the files ask of a machine is found out while they are unpacked.
  enum class Scan { yes, no };

  /// Without a registry every blob has to be in the store.
  LayerPipeline(const image::Store& store, image::Delivery& delivery, Registry* registry,
                Events& events, Cancel& cancel, Scan scan = Scan::yes)
      : store_(store),
        delivery_(delivery),
        registry_(registry),
        events_(events),
        cancel_(cancel),
        scan_(scan) {}

  /// `manifest` and `config` have been checked against each other.
  /// Errors: those of Registry::get_blob() and unpack_layer() with the layer named; corrupt (a diff
  /// id that does not hold). The first failure stops the others, through `cancel`.
  Result<void> run(const oci::Manifest& manifest, const oci::ImageConfig& config);

 private:
  struct Task {
    oci::Descriptor blob;
    Digest diff_id;
    oci::Compression compression;
    /// Of a blob that we fetch: it is unpacked while it comes.
    std::unique_ptr<Arrival> arrival = {};
    sys::Fd arriving = {};  ///< its file
    bool offered = false;   ///< to be unpacked
    bool unpacked = false;  ///< by us; else its tree was there
    int left = 2;           ///< of its two parts, to fetch and to unpack
  };

  Result<void> add_tasks(const oci::Manifest& manifest, const oci::ImageConfig& config);
  void work();
  void offer(Task& task);
  void tell_done(Task& task);
  static bool is_cause(const Error& error, const Task& task);
  Result<void> download(Task& task);
  Result<void> fetch(Task& task);
  Result<void> unpack(Task& task);
  Result<void> unpack_claimed(Task& task);

  const image::Store& store_;
  image::Delivery& delivery_;
  Registry* registry_;
  Events& events_;
  Cancel& cancel_;
  Scan scan_;

  std::vector<Task> tasks_;
  size_t unpackers_ = 1;  // at most

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Task*> to_download_;
  std::deque<Task*> to_unpack_;
  size_t downloading_ = 0;
  size_t unpacking_ = 0;
  size_t finished_ = 0;
  std::optional<Error> error_;
};

}  // namespace berth::transfer
