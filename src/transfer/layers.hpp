// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "transfer/event.hpp"
#include "transfer/registry.hpp"

namespace berth::transfer {

/// Brings the layers of one image into the store, several at once: at most kDownloads are on the
/// wire while as many as there are processors are unpacked, each as soon as its blob is verified.
/// What the store has is not fetched, what another process fetches is waited for.
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
    bool downloaded = false;  // by us
  };

  Result<void> add_tasks(const oci::Manifest& manifest, const oci::ImageConfig& config);
  void work();
  Result<void> download(Task& task);
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
