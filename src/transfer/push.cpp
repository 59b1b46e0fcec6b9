// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/blob_source.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/sign/signature.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/sha256.hpp"
#include "transfer/work/threads.hpp"

namespace berth::transfer {
namespace {

using image::LayerPhase;
using image::PublishedEntry;
using image::PublishRequest;
using image::Reference;
using image::TransferResult;

constexpr size_t kUploads = 4;

/// Uploads the blobs of images to one repository.
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

/// For each blob, a repository of the same registry that has it already, according to the store.
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

/// The manifest of a stored image, with its original bytes.
/// Errors: not_found, corrupt.
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

Result<TransferResult> push_image(const image::PushRequest& request, Events& events,
                                  Cancel& cancel) {
  Reference reference = TRY(Reference::parse(request.reference));
  image::Store store = TRY(image::Store::open(request.root, {}, request.additional_stores));
  image::Image image = TRY(store.get_image(reference.canonical()));
  Document document = TRY(manifest_document(store, image));

  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  events.status(fmt::format("The push refers to repository [{}/{}]", reference.registry(),
                            reference.repository()));
  std::vector<image::Image> images = TRY(store.list());
  BlobSource blobs(store, request.access, events, cancel);
  Upload upload(blobs, registry, events, cancel, mount_sources(store, images, reference));
  TRY(upload.run(image.manifest));
  TRY(registry.put_manifest(reference.manifest_reference(), document));

  TransferResult result;
  result.reference = reference.canonical();
  result.digest = document.digest.text();
  result.image_id = image.id.text();
  result.size = document.bytes.size();
  return result;
}

Result<Reference> target_of(const PublishRequest& request) {
  Reference reference = TRY(Reference::parse(request.reference));
  if (reference.digest()) return make_error(Kind::usage, "an index needs a tag to be published");
  if (request.entries.empty()) return make_error(Kind::usage, "an index without an entry");
  if (request.entries.size() > oci::kMaxIndexEntries) {
    return make_error(Kind::usage, fmt::format("{} entries are more than the {} that an index has",
                                               request.entries.size(), oci::kMaxIndexEntries));
  }
  return reference;
}

class Publication {
 public:
  Publication(const image::Store& store, BlobSource& blobs, Registry& registry, Events& events,
              Cancel& cancel, std::map<Digest, std::string> sources)
      : store_(store),
        registry_(registry),
        events_(events),
        upload_(blobs, registry, events, cancel, std::move(sources)) {}

  Result<oci::Descriptor> send(const PublishedEntry& entry) {
    oci::Descriptor descriptor;
    if (entry.present) {
      descriptor = *entry.present;
      // Checks that the image exists: an index with a missing image fails on the nodes that choose
      // it.
      TRY(registry_.get_manifest(descriptor.digest.text()));
    } else {
      descriptor = TRY(send_image(entry.image));
    }
    descriptor.annotations = entry.annotations;
    return descriptor;
  }

 private:
  Result<oci::Descriptor> send_image(const std::string& name) {
    image::Image image = TRY(store_.get_image(name));
    Document document = TRY(manifest_document(store_, image));
    TRY(upload_.run(image.manifest));
    TRY(registry_.put_manifest(document.digest.text(), document));
    events_.status(fmt::format("{}: {}", name, document.digest.text()));
    oci::Descriptor descriptor;
    descriptor.media_type = document.media_type;
    descriptor.digest = document.digest;
    descriptor.size = document.bytes.size();
    descriptor.platform =
        oci::Platform{image.config.architecture, image.config.os, {}, {}, image.config.variant};
    return descriptor;
  }

  const image::Store& store_;
  Registry& registry_;
  Events& events_;
  Upload upload_;
};

Document document_of(const oci::Index& index) {
  Document document;
  document.bytes = json::write(index);
  document.media_type = index.media_type;
  document.digest = sha256_of(document.bytes);
  return document;
}

// Signs the index and all entries, as clients verify the name they asked for, or the chosen entry,
// or both. Signs before the tag is moved, so that the tag never means something unsigned.
Result<void> sign_all(Registry& registry, const Reference& reference, const oci::Index& index,
                      const Document& document, const PublishRequest& request) {
  for (const oci::Descriptor& entry : index.manifests) {
    TRY(sign_image(registry, reference, entry.digest, request.sign_key));
  }
  return sign_image(registry, reference, document.digest, request.sign_key);
}

/// Refuses to sign entries that the repository already has, unless a trusted key has signed them:
/// everybody with push access can make a foreign image look like an entry that needs no rebuild.
Result<void> check_signed_before(Registry& registry, const Reference& reference,
                                 const PublishRequest& request) {
  if (request.sign_key.empty()) return {};
  std::vector<std::string> keys = request.trusted_keys;
  keys.push_back(TRY(public_key_of(request.sign_key)));
  for (const PublishedEntry& entry : request.entries) {
    if (!entry.present || TRY(is_signed(registry, reference, entry.present->digest, keys)))
      continue;
    return make_error(
        Kind::denied,
        fmt::format("sign '{}': it was published without a signature of this key or of one of the "
                    "policy's",
                    entry.present->digest.text()),
        "--no-cache, or for cells of other machines --cell with --sign-key there");
  }
  return {};
}

Result<TransferResult> publish_index(const PublishRequest& request, Events& events,
                                     Cancel& cancel) {
  Reference reference = TRY(target_of(request));
  image::Store store = TRY(image::Store::open(request.root, {}, request.additional_stores));
  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  TRY(check_signed_before(registry, reference, request));
  std::vector<image::Image> images = TRY(store.list());
  BlobSource blobs(store, request.access, events, cancel);
  Publication publication(store, blobs, registry, events, cancel,
                          mount_sources(store, images, reference));

  oci::Index index;
  index.media_type = oci::media_type::kIndex;
  index.annotations = request.annotations;
  TransferResult result;
  for (const PublishedEntry& entry : request.entries) {
    index.manifests.push_back(TRY(publication.send(entry)));
    image::ResolvedEntry sent;
    sent.descriptor = index.manifests.back();
    result.entries.push_back(std::move(sent));
  }
  Document document = document_of(index);
  if (!request.sign_key.empty()) TRY(sign_all(registry, reference, index, document, request));
  TRY(registry.put_manifest(reference.tag(), document));
  result.reference = reference.canonical();
  result.digest = document.digest.text();
  result.size = document.bytes.size();
  return result;
}

}  // namespace

Result<TransferResult> push(const image::PushRequest& request, const EventSink& sink,
                            Cancel& cancel) {
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  return TRY_CTX(push_image(request, events, cancel),
                 fmt::format("cannot push '{}'", escape_controls(request.reference)));
}

Result<TransferResult> publish(const PublishRequest& request, const EventSink& sink,
                               Cancel& cancel) {
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  return TRY_CTX(publish_index(request, events, cancel),
                 fmt::format("cannot publish '{}'", escape_controls(request.reference)));
}

}  // namespace berth::transfer
