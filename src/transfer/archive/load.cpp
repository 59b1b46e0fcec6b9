// SPDX-License-Identifier: Apache-2.0
// load: an OCI layout or a docker-archive becomes images of the store.
#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/layer/layers.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/give_up.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

const std::string kRefName = "org.opencontainers.image.ref.name";
const std::string kImageName = "io.containerd.image.name";

/// An image found in the archive. Its layers are already blobs of the store.
struct FoundImage {
  std::vector<image::Reference> names;
  std::vector<std::pair<Digest, std::string>> documents;  ///< indexes and manifest, outermost first
  Digest manifest_digest;
  oci::Manifest manifest;
  oci::ImageConfig config;
};

Error missing(const std::string& name) {
  return make_error(Kind::corrupt, "read the archive: it has no " + quote(name));
}

/// containerd and docker write full names; the OCI annotation may also be a tag alone, which does
/// not name an image.
std::string entry_name(const oci::Descriptor& entry) {
  auto name = entry.annotations.find(kImageName);
  if (name != entry.annotations.end()) return name->second;
  name = entry.annotations.find(kRefName);
  bool whole =
      name != entry.annotations.end() && name->second.find_first_of("/:@") != std::string::npos;
  return whole ? name->second : std::string();
}

std::string_view layer_type(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1f\x8b")) return oci::media_type::kLayerGzip;
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd")) return oci::media_type::kLayerZstd;
  return oci::media_type::kLayerTar;
}

class Loader {
 public:
  Loader(const image::LoadRequest& request, const image::Store& store, image::Delivery& delivery,
         ArchiveMembers& members, Events& events, Cancel& cancel)
      : request_(request),
        store_(store),
        delivery_(delivery),
        members_(members),
        events_(events),
        cancel_(cancel) {}

  Result<image::TransferResult> run() {
    if (request_.platform) wish_ = TRY(oci::parse_platform(*request_.platform));
    TRY(find_images());
    if (images_.empty()) {
      return make_error(Kind::not_found, "read the archive: it has no image");
    }
    for (auto& image : images_) TRY(unpack(image));
    // Records last, so that a failure above leaves no name behind.
    image::TransferResult result;
    for (const auto& image : images_) TRY(record(image, result));
    return result;
  }

 private:
  Result<void> find_images() {
    // A tar of docker save has both formats; the OCI format has the digests.
    auto index = TRY(members_.find("index.json"));
    auto layout = TRY(members_.find("oci-layout"));
    if (index && layout) return find_oci(*index);
    auto manifest = TRY(members_.find("manifest.json"));
    if (manifest) return find_docker(*manifest);
    return make_error(Kind::unsupported,
                      "read the archive: it is neither an OCI layout nor a docker-archive",
                      "berth import, for the tar of a root file system");
  }

  // ---- OCI layout (image-spec image-layout.md)

  Result<void> find_oci(const ArchiveMembers::File& file) {
    std::string text = TRY(members_.read(file, oci::kMaxManifestBytes));
    auto document = TRY(oci::parse_manifest(text, {}, "index.json"));
    const auto* index = std::get_if<oci::Index>(&document);
    if (index == nullptr) return make_error(Kind::corrupt, "index.json: expected an index");

    // Entries with the same name are the platforms of one image; entries without a name are
    // separate images.
    std::vector<std::pair<std::string, oci::Index>> groups;
    for (const auto& entry : index->manifests) {
      if (entry.platform && entry.platform->os == "unknown") continue;  // attestations
      std::string name = entry_name(entry);
      auto same = [&](const auto& group) { return !name.empty() && group.first == name; };
      auto group = std::ranges::find_if(groups, same);
      if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
      group->second.manifests.push_back(entry);
    }
    for (const auto& [name, group] : groups) {
      oci::Descriptor entry = group.manifests.front();
      if (group.manifests.size() > 1) entry = TRY(oci::select_platform(group, wish_));
      FoundImage image = TRY(read_oci_image(entry));
      auto reference = image::Reference::parse(name);
      if (reference.ok() && !reference->digest()) image.names.push_back(*reference);
      merge(std::move(image));
    }
    return {};
  }

  Result<FoundImage> read_oci_image(oci::Descriptor entry) {
    FoundImage image;
    for (int depth = 0;; ++depth) {
      std::string text = TRY(read_document(entry));
      auto document = TRY(oci::parse_manifest(text, entry.media_type, entry.digest.text()));
      image.documents.emplace_back(entry.digest, std::move(text));
      if (auto* manifest = std::get_if<oci::Manifest>(&document)) {
        image.manifest = std::move(*manifest);
        image.manifest_digest = entry.digest;
        TRY(oci::check_is_image(image.manifest));
        break;
      }
      if (depth == oci::kMaxIndexDepth) {
        return make_error(Kind::unsupported, entry.digest.text() + ": indexes inside indexes");
      }
      entry = TRY(oci::select_platform(std::get<oci::Index>(document), wish_));
    }
    std::string text = TRY(read_document(image.manifest.config));
    image.config = TRY(oci::parse_config(text, image.manifest.config.digest.text()));
    image.documents.emplace_back(image.manifest.config.digest, std::move(text));
    TRY(oci::check_image(image.manifest, image.config));
    for (size_t i = 0; i < image.manifest.layers.size(); ++i) {
      const oci::Descriptor& layer = image.manifest.layers[i];
      // A layer may be missing in the archive if the store has it or can fetch it.
      if (TRY(delivery_.keep_blob(layer.digest))) continue;
      bool unpacked = TRY(delivery_.keep_layer_of(image.config.rootfs.diff_ids[i], layer.digest));
      bool needed = !unpacked || store_.origins(layer.digest).empty();
      if (!needed && !TRY(members_.find(blob_name(layer.digest)))) continue;
      auto file = TRY(find_blob(layer));
      TRY(delivery_.publish_blob_from(members_.staged(), file.staged, layer.digest));
    }
    return image;
  }

  Result<ArchiveMembers::File> find_blob(const oci::Descriptor& blob) {
    std::string name = blob_name(blob.digest);
    auto file = TRY(members_.find(name));
    if (!file) return missing(name);
    if (file->digest != blob.digest || file->size != blob.size) {
      return make_error(Kind::corrupt, "read the archive: " + quote(name) + " has digest " +
                                           file->digest.text() + " and " +
                                           std::to_string(file->size) + " bytes instead of " +
                                           std::to_string(blob.size));
    }
    return *file;
  }

  Result<std::string> read_document(const oci::Descriptor& blob) {
    auto file = TRY(find_blob(blob));
    return members_.read(file, oci::kMaxManifestBytes);
  }

  // ---- docker-archive (docker save before 25, skopeo, podman)

  Result<void> find_docker(const ArchiveMembers::File& file) {
    std::string text = TRY(members_.read(file, oci::kMaxManifestBytes));
    auto images = TRY(json::read<std::vector<DockerImage>>(text, "manifest.json"));
    for (const auto& described : images) {
      FoundImage image = TRY_CTX(read_docker_image(described), "cannot read the docker-archive");
      for (const auto& tag : described.repo_tags) {
        auto reference = TRY(image::Reference::parse(tag));
        image.names.push_back(std::move(reference));
      }
      merge(std::move(image));
    }
    return {};
  }

  Result<FoundImage> read_docker_image(const DockerImage& described) {
    FoundImage image;
    auto config = TRY(members_.find(described.config));
    if (!config) return missing(described.config);
    std::string text = TRY(members_.read(*config, oci::kMaxConfigBytes));
    image.config = TRY(oci::parse_config(text, "config"));
    image.manifest.media_type = oci::media_type::kManifest;
    image.manifest.config = {.media_type = std::string(oci::media_type::kConfig),
                             .digest = config->digest,
                             .size = config->size,
                             .platform = {},
                             .annotations = {},
                             .artifact_type = {}};
    if (described.layers.size() > oci::kMaxLayers) {
      return make_error(Kind::corrupt, "manifest.json: more than the " +
                                           std::to_string(oci::kMaxLayers) + " layers allowed");
    }
    for (const auto& name : described.layers) {
      auto layer = TRY(members_.find(name));
      if (!layer) return missing(name);
      image.manifest.layers.push_back(TRY(publish_layer_blob(*layer)));
    }
    TRY(oci::check_image(image.manifest, image.config));
    std::string manifest = json::write(image.manifest);
    image.manifest_digest = sha256_of(manifest);
    image.documents.emplace_back(image.manifest_digest, std::move(manifest));
    image.documents.emplace_back(config->digest, std::move(text));
    return image;
  }

  Result<oci::Descriptor> publish_layer_blob(const ArchiveMembers::File& file) {
    oci::Descriptor layer;
    layer.digest = file.digest;
    layer.size = file.size;
    bool present = TRY(delivery_.keep_blob(file.digest));
    if (!present) {
      TRY(delivery_.publish_blob_from(members_.staged(), file.staged, file.digest));
    }
    std::string path = store_.blob_path(file.digest);
    sys::Fd fd = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
    std::string first_bytes = TRY(sys::read_at(fd, 0, 4, path));
    layer.media_type = layer_type(first_bytes);
    return layer;
  }

  // ---- both

  /// An archive may contain the same image once for each name.
  void merge(FoundImage image) {
    for (auto& known : images_) {
      if (known.manifest_digest != image.manifest_digest) continue;
      known.names.insert(known.names.end(), image.names.begin(), image.names.end());
      return;
    }
    images_.push_back(std::move(image));
  }

  Result<void> unpack(const FoundImage& image) {
    const oci::Platform host = oci::host_platform();
    if (image.config.os != host.os || image.config.architecture != host.architecture) {
      events_.warn("the image is for " + image.config.os + "/" + image.config.architecture +
                   ", this machine is " + oci::platform_text(host) + ", ignoring");
    }
    LayerPipeline layers(store_, delivery_, {}, events_, cancel_, {});
    return layers.run(image.manifest, image.config);
  }

  Result<void> record(const FoundImage& image, image::TransferResult& result) {
    for (const auto& [digest, bytes] : image.documents) {
      TRY(delivery_.put_document(digest, bytes));
    }
    image::ImageRecord record;
    record.target = image.documents.front().first;
    record.manifest = image.manifest_digest;
    record.config = image.manifest.config.digest;
    result.image_id = record.config.text();
    result.digest = record.target.text();
    if (image.names.empty()) {
      TRY(delivery_.publish_image(record));
      result.loaded.push_back("Loaded image ID: " + record.config.text());
    }
    for (const auto& name : image.names) {
      record.reference = name;
      TRY(delivery_.publish_image(record));
      result.reference = name.canonical();
      result.loaded.push_back("Loaded image: " + name.familiar());
    }
    return {};
  }

  const image::LoadRequest& request_;
  const image::Store& store_;
  image::Delivery& delivery_;
  ArchiveMembers& members_;
  Events& events_;
  Cancel& cancel_;
  oci::Platform wish_ = oci::host_platform();
  std::vector<FoundImage> images_;
};

}  // namespace

Result<image::TransferResult> load(const image::LoadRequest& request, const EventSink& sink,
                                   Cancel& cancel) {
  std::string what = "cannot load " + input_name(request.input);
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  auto load_into = [&](const image::Store& store) -> Result<image::TransferResult> {
    image::Delivery delivery = TRY(image::Delivery::begin(store));
    ArchiveMembers members = TRY(ArchiveMembers::open(request.input, delivery, cancel));
    return Loader(request, store, delivery, members, events, cancel).run();
  };
  return fill_store(request, what, events, load_into);
}

}  // namespace berth::transfer
