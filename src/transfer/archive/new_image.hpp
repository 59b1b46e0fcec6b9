// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "transfer/gzip/deflate.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/sha256.hpp"

/// What import and commit share: an image that no registry and no archive has made.
namespace berth::transfer {

/// Packs a tar into a blob, hashing what comes in and, afterwards, what came out. In what pieces it
/// comes makes no difference.
class LayerPacker final : public ByteSink {
 public:
  LayerPacker(const sys::Fd& fd, const Cancel& cancel) : gzip_(fd), cancel_(cancel) {}

  Result<void> write(std::string_view bytes) override;
  /// The digest of the tar.
  Result<Digest> finish();

 private:
  GzipWriter gzip_;
  std::string block_;
  Sha256 sha_;
  const Cancel& cancel_;
};

/// Of a gzip blob, read from its start.  Errors: io.
Result<oci::Descriptor> describe_layer(const sys::Fd& blob);

/// When an image is made, as its config says it: at `source_date`, or now.
std::string creation_time(const std::optional<uint64_t>& source_date);

/// The name of a new image; nothing for "".  Errors: usage (no name, a digest).
Result<std::optional<image::Reference>> new_name(const std::string& text);

/// What a new image is made of; the blobs of `layers` are in the store.
struct NewImage {
  oci::ImageConfig config;
  std::vector<oci::Descriptor> layers;  ///< lowest first
  std::optional<image::Reference> reference;
};
/// Unpacks layers that are not yet, and gives the image its record.
/// result: reference, digest, image_id.
Result<image::TransferResult> publish_new_image(const image::Store& store,
                                                image::Delivery& delivery, const NewImage& image,
                                                Events& events, Cancel& cancel);

}  // namespace berth::transfer
