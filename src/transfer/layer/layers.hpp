// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "transfer/compression/decompress.hpp"
#include "transfer/layer/unpack.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/registry/blob_fetcher.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// How new layers of `store` are unpacked. An EROFS image always has the original owners, and the
/// overlay marks that root uses, because any user can write them into a file.
image::LayerFlavor flavor_of_new_layers(const image::Store& store);

/// Turns a layer's tar into the form `format` in `staged`, a directory that was staged for this
/// form, and writes the record of its files there. The caller compares the returned digest, if it
/// knows the digest of the tar. Errors: those of unpack_layer().
Result<UnpackedLayer> make_layer(const image::Staged& staged, image::LayerFormat format,
                                 std::unique_ptr<Inflater> bytes, const Digest& diff_id,
                                 const UnpackOptions& options);

/// Brings the layers of one image into the store, several at once: each is unpacked while its blob
/// arrives, and published when the blob's digest and the diff id are right. Existing layers are not
/// fetched; layers that another process unpacks are waited for.
class LayerPipeline {
 public:
  static constexpr size_t kConnections = 6;

  struct Options {
    /// Scan the files for requirements while unpacking.
    bool scan = true;
    /// Keep the blobs in the store, too.
    bool keep_blobs = false;
    /// Bytes of memory for all layers together, besides the names of an image's files, zstd windows
    /// over 8 MiB, and what BERTH_INFLATE_THREADS takes.
    uint64_t memory_budget = uint64_t{512} << 20;
    size_t connections = kConnections;  ///< to one registry at once
    /// Fetches bytes of blobs instead of the registry that Origin returns.
    std::function<Result<void>(const oci::Descriptor& blob, BlobPart part)> fetch = {};
    /// Called with the error when a blob from fetch() is damaged. fetch() must then use another
    /// source; each blob is fetched again once.
    std::function<void(const Error& error)> distrust = {};
  };

  /// The registry of a blob that the store does not have.
  using Origin = std::function<Result<Registry*>(const oci::Descriptor& blob)>;

  /// Without an origin the store must have every blob.
  LayerPipeline(const image::Store& store, image::Delivery& delivery, Origin origin, Events& events,
                Cancel& cancel, Options options)
      : store_(store),
        delivery_(delivery),
        origin_(std::move(origin)),
        events_(events),
        cancel_(cancel),
        options_(options) {}

  /// `manifest` and `config` have been checked against each other. Errors: those of
  /// Registry::get_blob() and unpack_layer(), with the name of the layer; corrupt (a wrong diff
  /// id). The first failure stops the other layers through `cancel`.
  Result<void> run(const oci::Manifest& manifest, const oci::ImageConfig& config);

 private:
  struct Task {
    oci::Descriptor blob;
    Digest diff_id;
    oci::Compression compression;
  };

  Result<void> add_tasks(const oci::Manifest& manifest, const oci::ImageConfig& config);
  void work(BlobFetcher& fetcher);
  void fail(Error error);
  Result<bool> complete(const Task& task, BlobFetcher& fetcher);
  Result<void> fetch(const Task& task, BlobFetcher& fetcher);
  Result<void> keep(const Task& task, BlobFetcher& fetcher);
  template <class Fetch>
  Result<void> distrusting(Fetch fetch);
  Result<void> unpack_stored(const Task& task);
  Result<void> unpack(const Task& task, const Inflater::Input& input, BlobStream* stream);
  Result<Registry*> registry_of(const Task& task);
  Result<BlobStream::Fetch> source_of(const Task& task, BlobStream::Options& stream);

  const image::Store& store_;
  image::Delivery& delivery_;
  Origin origin_;
  Events& events_;
  Cancel& cancel_;
  Options options_;

  UnpackLimits limits_;
  size_t inflate_threads_ = 1;  // for each layer
  std::vector<Task> tasks_;     // the largest first, which otherwise would finish last

  std::mutex mutex_;  // guards the following members
  size_t next_ = 0;
  std::optional<Error> error_;
};

}  // namespace berth::transfer
