// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/upload.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "transfer/work/threads.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kUploads = 4;

}  // namespace

using image::LayerPhase;

std::map<Digest, std::string> mount_sources(const image::Store& store,
                                            const std::vector<image::Image>& images,
                                            const image::Reference& target) {
  std::map<Digest, std::string> sources;
  auto is_elsewhere = [&](const image::Reference& reference) {
    return reference.registry() == target.registry() &&
           reference.repository() != target.repository();
  };
  for (const image::Image& image : images) {
    for (const image::Reference& reference : image.references) {
      if (!is_elsewhere(reference)) continue;
      sources.emplace(image.manifest.config.digest, reference.repository());
      for (const oci::Descriptor& layer : image.manifest.layers) {
        sources.emplace(layer.digest, reference.repository());
      }
    }
    for (const oci::Descriptor& layer : image.manifest.layers) {
      for (const image::Reference& origin : store.origins(layer.digest)) {
        if (is_elsewhere(origin)) sources.emplace(layer.digest, origin.repository());
      }
    }
  }
  return sources;
}

Result<Document> manifest_document(const image::Store& store, const image::Image& image) {
  Document document;
  document.bytes = TRY(store.read_document(image.manifest_digest));
  document.digest = image.manifest_digest;
  document.media_type = image.manifest.media_type.empty() ? std::string(oci::media_type::kManifest)
                                                          : image.manifest.media_type;
  return document;
}

Result<void> Upload::run(const oci::Manifest& manifest) {
  std::vector<oci::Descriptor> blobs = manifest.layers;
  blobs.push_back(manifest.config);
  std::ranges::sort(blobs, {}, [](const oci::Descriptor& b) { return b.digest; });
  auto twins = [](const oci::Descriptor& a, const oci::Descriptor& b) {
    return a.digest == b.digest;
  };
  blobs.erase(std::unique(blobs.begin(), blobs.end(), twins), blobs.end());

  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < blobs.size(); i = next++) {
      Result<void> sent = send(blobs[i], blobs[i].digest != manifest.config.digest);
      if (sent.ok()) continue;
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(sent).error();
      cancel_.request();
      return;
    }
  };
  run_in_threads(std::min(kUploads, blobs.size()), work);
  if (error_) return *std::move(error_);
  return {};
}

Result<void> Upload::send(const oci::Descriptor& blob, bool is_layer) {
  std::string id = blob.digest.short_hex();
  auto report = [&](LayerPhase phase, uint64_t done) {
    if (is_layer) events_.layer(id, phase, done, blob.size);
  };
  report(LayerPhase::waiting, 0);
  bool present = TRY(registry_.has_blob(blob.digest));
  if (present) {
    report(LayerPhase::exists, blob.size);
    return {};
  }
  auto source = sources_.find(blob.digest);
  std::optional<std::string> from;
  if (source != sources_.end()) from = source->second;
  Delivered delivered = TRY(registry_.put_blob(
      blob, [&] { return blobs_.open(blob); }, from,
      [&](uint64_t bytes) { report(LayerPhase::uploading, bytes); }));
  if (is_layer && delivered == Delivered::mounted) {
    events_.status(fmt::format("{}: Mounted from {}", id, *from));
  }
  report(LayerPhase::done, blob.size);
  return {};
}

}  // namespace berth::transfer
