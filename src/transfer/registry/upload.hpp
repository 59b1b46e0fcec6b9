// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "image/reference.hpp"
#include "image/store.hpp"
#include "transfer/registry/blob_source.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Repositories of the same registry that have a blob already, according to the store.
std::map<Digest, std::string> mount_sources(const image::Store& store,
                                            const std::vector<image::Image>& images,
                                            const image::Reference& target);

/// The manifest of a stored image, with its original bytes.
/// Errors: not_found, corrupt.
Result<Document> manifest_document(const image::Store& store, const image::Image& image);

/// The upload of images' blobs to one repository.
class Upload {
 public:
  Upload(BlobSource& blobs, Registry& registry, Events& events, Cancel& cancel,
         std::map<Digest, std::string> sources)
      : blobs_(blobs),
        registry_(registry),
        events_(events),
        cancel_(cancel),
        sources_(std::move(sources)) {}

  /// Uploads all blobs of an image that the repository lacks, several at a time.
  Result<void> run(const oci::Manifest& manifest);

 private:
  Result<void> send(const oci::Descriptor& blob, bool is_layer);

  BlobSource& blobs_;
  Registry& registry_;
  Events& events_;
  Cancel& cancel_;
  std::map<Digest, std::string> sources_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace berth::transfer
