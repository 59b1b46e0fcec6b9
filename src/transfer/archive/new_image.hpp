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
#include "transfer/compression/deflate.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/sha256.hpp"

/// Code that import and commit share: an image that comes from no registry and no archive.
namespace berth::transfer {

/// Compresses a tar into a blob and hashes the tar. The blob does not depend on the sizes of the
/// pieces in which the tar is written.
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

/// The descriptor of a gzip blob, read from its start.  Errors: io.
Result<oci::Descriptor> describe_layer(const sys::Fd& blob);

/// The creation time for an image's config: `source_date`, or now.
std::string creation_time(const std::optional<uint64_t>& source_date);

/// The name of a new image; nothing for "".  Errors: usage (not a name, a name with a digest).
Result<std::optional<image::Reference>> new_name(const std::string& text);

/// The parts of a new image; the blobs of `layers` are in the store.
struct NewImage {
  oci::ImageConfig config;
  std::vector<oci::Descriptor> layers;  ///< lowest first
  std::optional<image::Reference> reference;
};
/// Unpacks the missing layers, and writes the image's record.
/// result: reference, digest, image_id.
Result<image::TransferResult> publish_new_image(const image::Store& store,
                                                image::Delivery& delivery, const NewImage& image,
                                                Events& events, Cancel& cancel);

/// Applies one Dockerfile instruction about the config, as docker import --change: CMD, ENTRYPOINT,
/// ENV, EXPOSE, LABEL, ONBUILD, STOPSIGNAL, USER, VOLUME, WORKDIR. A CMD or ENTRYPOINT that is not
/// a JSON array is run by /bin/sh -c.
/// Errors: usage.
Result<void> apply_change(const std::string& instruction, oci::ContainerDefaults& config);

}  // namespace berth::transfer
