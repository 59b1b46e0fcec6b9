// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/upload.hpp"
#include "transfer/sign/image_signature.hpp"
#include "transfer/sign/signature.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

using image::PublishedEntry;
using image::PublishRequest;
using image::Reference;
using image::TransferResult;

Result<TransferResult> push_image(const image::PushRequest& request, Events& events,
                                  Cancel& cancel) {
  Reference reference = TRY(Reference::parse(request.reference));
  image::Store store = TRY(image::Store::open(request.root, {}, request.additional_stores));
  image::Image image = TRY(store.get_image(reference.canonical()));
  Document document = TRY(manifest_document(store, image));

  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  TRY(registry.connect());
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
      // Checks that the image exists: an index with a missing entry fails on some node.
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

// Clients verify the name they asked for, or the chosen entry, or both. Signed before the tag
// moves: otherwise the tag would mean something unsigned for a moment.
Result<void> sign_all(Registry& registry, const Reference& reference, const oci::Index& index,
                      const Document& document, const PublishRequest& request) {
  for (const oci::Descriptor& entry : index.manifests) {
    TRY(sign_image(registry, reference, entry.digest, request.sign_key));
  }
  return sign_image(registry, reference, document.digest, request.sign_key);
}

/// A key vouches for images that were built here, or were signed before by a trusted key: everybody
/// with push access can give an image the annotations that mark an unchanged entry.
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
  TRY(registry.connect());
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
