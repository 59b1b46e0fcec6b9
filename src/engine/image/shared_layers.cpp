// SPDX-License-Identifier: Apache-2.0
#include "engine/image/shared_layers.hpp"

#include <fcntl.h>

#include <map>
#include <set>
#include <variant>

#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// The compressed layers that the store has or can fetch, by diff id.
using KnownLayers = std::map<Digest, oci::Descriptor>;

Result<KnownLayers> known_layers(const Context& context) {
  image::Store store = TRY(open_store(context));
  KnownLayers known;
  for (const image::Image& image : TRY(store.list())) {
    for (const image::Layer& layer : image.layers) {
      // A manifest alone does not prove that its layers have these diff ids.
      if (!TRY(store.has_layer_of(layer.diff_id, layer.blob.digest))) continue;
      bool here = TRY(store.has_blob(layer.blob.digest));
      if (here || !store.origins(layer.blob.digest).empty()) {
        known.emplace(layer.diff_id, layer.blob);
      }
    }
  }
  return known;
}

std::string_view layer_type(oci::Compression compression) {
  switch (compression) {
    case oci::Compression::gzip:
      return oci::media_type::kLayerGzip;
    case oci::Compression::zstd:
      return oci::media_type::kLayerZstd;
    case oci::Compression::none:
      break;
  }
  return oci::media_type::kLayerTar;
}

/// Replaces the media types of Docker by those of OCI.
Result<void> name_by_oci(oci::Manifest& manifest) {
  manifest.media_type = oci::media_type::kManifest;
  manifest.config.media_type = oci::media_type::kConfig;
  for (oci::Descriptor& layer : manifest.layers) {
    layer.media_type = layer_type(TRY(oci::layer_compression(layer.media_type)));
  }
  return {};
}

std::string blob_path(const std::string& layout, const Digest& digest) {
  return layout + "/blobs/sha256/" + digest.hex();
}

/// Replaces known layers. Returns whether a layer was replaced.
Result<bool> replace_layers(oci::Manifest& manifest, const oci::ImageConfig& config,
                            const KnownLayers& known) {
  bool changed = false;
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    auto same = known.find(config.rootfs.diff_ids[i]);
    if (same == known.end() || same->second.digest == manifest.layers[i].digest) continue;
    oci::Compression compression = TRY(oci::layer_compression(same->second.media_type));
    // An OCI manifest cannot have Docker's media type.
    manifest.layers[i].media_type = layer_type(compression);
    manifest.layers[i].digest = same->second.digest;
    manifest.layers[i].size = same->second.size;
    changed = true;
  }
  return changed;
}

Result<Digest> digest_of(const Context& context, const std::string& text) {
  image::DigestRequest request;
  request.texts = {text};
  image::TransferResult result = TRY(transfer(context, std::move(request), {}));
  return result.digests.at(0);
}

}  // namespace

Result<void> lay_out(const Context& context, const std::string& directory, MediaTypes types) {
  sys::Fd place = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
  auto text = TRY(sys::read_file_if_exists(place, "manifest.json", oci::kMaxManifestBytes));
  if (!text || TRY(sys::stat_entry(place, "oci-layout"))) return {};
  auto document = TRY(oci::parse_manifest(*text, ""));
  auto* manifest = std::get_if<oci::Manifest>(&document);
  if (manifest == nullptr) return make_error(Kind::corrupt, "manifest.json: expected an image");
  if (types == MediaTypes::oci) {
    TRY(name_by_oci(*manifest));
    text = json::write(*manifest);
  }
  TRY(sys::make_directories(place, "blobs/sha256"));
  std::set<Digest> blobs{manifest->config.digest};
  for (const oci::Descriptor& layer : manifest->layers) blobs.insert(layer.digest);
  for (const Digest& blob : blobs) {
    TRY(sys::rename(place, blob.hex(), place, "blobs/sha256/" + blob.hex()));
  }
  oci::Index index;
  oci::Descriptor& entry = index.manifests.emplace_back();
  entry.media_type = manifest->media_type;
  entry.digest = TRY(digest_of(context, *text));
  entry.size = text->size();
  TRY(sys::write_file(place, "blobs/sha256/" + entry.digest.hex(), *text));
  TRY(sys::write_file(place, "index.json", json::write(index)));
  return sys::write_file(place, "oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
}

Result<void> share_layers(const Context& context, const std::string& layout) {
  const std::string index_path = layout + "/index.json";
  std::string text = TRY(sys::read_file(sys::cwd(), index_path, oci::kMaxManifestBytes));
  oci::Index index = TRY(json::read<oci::Index>(text, "index.json"));
  if (index.manifests.size() != 1) {
    return make_error(Kind::corrupt, "index.json: expected one image, got " +
                                         std::to_string(index.manifests.size()));
  }
  oci::Descriptor& entry = index.manifests.front();
  text = TRY(sys::read_file(sys::cwd(), blob_path(layout, entry.digest), oci::kMaxManifestBytes));
  auto document = TRY(oci::parse_manifest(text, entry.media_type));
  auto* manifest = std::get_if<oci::Manifest>(&document);
  bool plain = manifest != nullptr && manifest->media_type != oci::media_type::kDockerManifest;
  if (!plain) return {};
  text = TRY(
      sys::read_file(sys::cwd(), blob_path(layout, manifest->config.digest), oci::kMaxConfigBytes));
  oci::ImageConfig config = TRY(oci::parse_config(text));
  TRY(oci::check_image(*manifest, config));
  KnownLayers known = TRY(known_layers(context));
  bool changed = TRY(replace_layers(*manifest, config, known));
  if (!changed) return {};
  std::string bytes = json::write(*manifest);
  entry.digest = TRY(digest_of(context, bytes));
  entry.size = bytes.size();
  TRY(sys::write_file(sys::cwd(), blob_path(layout, entry.digest), bytes));
  return sys::replace_file(sys::cwd(), index_path, json::write(index), 0600);
}

}  // namespace berth::engine
