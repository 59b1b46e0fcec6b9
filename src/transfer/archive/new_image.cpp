// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/new_image.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "transfer/layer/layers.hpp"

namespace berth::transfer {

namespace {

constexpr size_t kEmptyBlock = size_t{1} << 20;

}  // namespace

Result<void> LayerPacker::write(std::string_view bytes) {
  TRY(cancel_.check());
  sha_.update(bytes);
  // ISA-L ends its matches where a piece ends: without this a pipe would give another blob than a
  // file.
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kEmptyBlock - block_.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < kEmptyBlock) break;
    TRY(gzip_.write(block_));
    block_.clear();
  }
  return {};
}

Result<Digest> LayerPacker::finish() {
  TRY(gzip_.write(block_));
  TRY(gzip_.finish());
  return sha_.finish();
}

Result<oci::Descriptor> describe_layer(const sys::Fd& blob) {
  oci::Descriptor layer;
  layer.media_type = oci::media_type::kLayerGzip;
  Sha256 sha;
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    size_t count = TRY(sys::read_at(blob, layer.size, buffer.data(), buffer.size(), "layer"));
    if (count == 0) break;
    sha.update({buffer.data(), count});
    layer.size += count;
  }
  layer.digest = sha.finish();
  return layer;
}

std::string creation_time(const std::optional<uint64_t>& source_date) {
  return source_date ? format_time(static_cast<int64_t>(*source_date)) : image::timestamp_now();
}

Result<std::optional<image::Reference>> new_name(const std::string& text) {
  if (text.empty()) return std::optional<image::Reference>();
  image::Reference reference = TRY(image::Reference::parse(text));
  if (reference.digest()) {
    return make_error(Kind::usage,
                      "name an image " + quote(text) + ": a digest cannot be given as a name");
  }
  return std::optional<image::Reference>(std::move(reference));
}

Result<image::TransferResult> publish_new_image(const image::Store& store,
                                                image::Delivery& delivery, const NewImage& image,
                                                Events& events, Cancel& cancel) {
  std::string config_bytes = json::write(image.config);
  oci::Manifest manifest;
  manifest.media_type = oci::media_type::kManifest;
  manifest.config.media_type = oci::media_type::kConfig;
  manifest.config.digest = sha256_of(config_bytes);
  manifest.config.size = config_bytes.size();
  manifest.layers = image.layers;
  LayerPipeline layers(store, delivery, {}, events, cancel, {});
  TRY(layers.run(manifest, image.config));

  std::string manifest_bytes = json::write(manifest);
  image::ImageRecord record;
  record.reference = image.reference;
  record.target = record.manifest = sha256_of(manifest_bytes);
  record.config = manifest.config.digest;
  TRY(delivery.put_document(record.manifest, manifest_bytes));
  TRY(delivery.put_document(record.config, config_bytes));
  TRY(delivery.publish_image(record));

  image::TransferResult result;
  if (image.reference) result.reference = image.reference->canonical();
  result.digest = record.target.text();
  result.image_id = record.config.text();
  return result;
}

}  // namespace berth::transfer
