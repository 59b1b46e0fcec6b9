// SPDX-License-Identifier: Apache-2.0
#include "transfer/pull.hpp"

#include <fmt/format.h>

#include <variant>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "transfer/access.hpp"
#include "transfer/event.hpp"
#include "transfer/give_up.hpp"
#include "transfer/layers.hpp"
#include "transfer/registry.hpp"

namespace berth::transfer {
namespace {

using image::PullRequest;
using image::Reference;
using image::TransferResult;

/// The documents that make an image, as bytes and as structs.
struct Documents {
  std::vector<Document> indexes;  // outermost first; none where the name means a manifest
  Document manifest_document;
  oci::Manifest manifest;
  std::string config_bytes;
  oci::ImageConfig config;

  const Digest& target() const {
    return indexes.empty() ? manifest_document.digest : indexes.front().digest;
  }
};

Result<oci::Platform> wished_platform(const PullRequest& request) {
  if (!request.platform) return oci::host_platform();
  return oci::parse_platform(*request.platform);
}

/// What a descriptor names, checked against all that it says.
Result<Document> get_described(Registry& registry, const oci::Descriptor& descriptor) {
  Document document = TRY(registry.get_manifest(descriptor.digest.text()));
  if (document.bytes.size() != descriptor.size) {
    return make_error(Kind::corrupt, fmt::format("read manifest '{}': {} bytes instead of {}",
                                                 descriptor.digest.text(), document.bytes.size(),
                                                 descriptor.size));
  }
  if (!document.media_type.empty() && document.media_type != descriptor.media_type) {
    return make_error(Kind::corrupt,
                      fmt::format("read manifest '{}': the registry says '{}', the index '{}'",
                                  descriptor.digest.text(), escape_controls(document.media_type),
                                  escape_controls(descriptor.media_type)));
  }
  document.media_type = descriptor.media_type;
  return document;
}

Result<Documents> get_documents(Registry& registry, const Reference& reference,
                                const oci::Platform& wish) {
  Documents documents;
  Document document = TRY(registry.get_manifest(reference.manifest_reference()));
  while (true) {
    auto parsed = TRY(oci::parse_manifest(document.bytes, document.media_type));
    if (auto* manifest = std::get_if<oci::Manifest>(&parsed)) {
      documents.manifest = std::move(*manifest);
      documents.manifest_document = std::move(document);
      break;
    }
    if (documents.indexes.size() == oci::kMaxIndexDepth) {
      return make_error(Kind::unsupported, fmt::format("read index '{}': indexes inside indexes "
                                                       "inside indexes",
                                                       document.digest.text()));
    }
    documents.indexes.push_back(std::move(document));
    oci::Descriptor entry = TRY(oci::select_platform(std::get<oci::Index>(parsed), wish));
    document = TRY(get_described(registry, entry));
  }
  documents.config_bytes = TRY(registry.get_document(documents.manifest.config));
  documents.config = TRY(oci::parse_config(documents.config_bytes));
  TRY(oci::check_image(documents.manifest, documents.config));
  return documents;
}

/// A name that means a single manifest leaves nothing to choose from; a wish must still be kept. Of
/// an index the entry that was chosen is believed.
Result<void> check_platform(const Documents& documents, const oci::Platform& wish,
                            const PullRequest& request, Events& events) {
  const oci::ImageConfig& config = documents.config;
  bool fits = config.os == wish.os && config.architecture == wish.architecture;
  if (fits || !documents.indexes.empty()) return {};
  oci::Platform found{config.architecture, config.os, {}, {}, config.variant};
  if (request.platform) {
    return make_error(Kind::not_found, fmt::format("find platform '{}': the image has only '{}'",
                                                   oci::platform_text(wish),
                                                   escape_controls(oci::platform_text(found))));
  }
  events.warn(fmt::format("the image is for {}, this machine is {}, ignoring",
                          escape_controls(oci::platform_text(found)), oci::platform_text(wish)));
  return {};
}

Result<void> publish(image::Delivery& delivery, const Reference& reference,
                     const Documents& documents) {
  for (const Document& index : documents.indexes) {
    TRY(delivery.put_document(index.digest, index.bytes));
  }
  TRY(delivery.put_document(documents.manifest_document.digest, documents.manifest_document.bytes));
  TRY(delivery.put_document(documents.manifest.config.digest, documents.config_bytes));
  image::ImageRecord record;
  record.reference = reference;
  record.target = documents.target();
  record.manifest = documents.manifest_document.digest;
  record.config = documents.manifest.config.digest;
  return delivery.publish_image(record);
}

Result<TransferResult> pull_from_registry(const PullRequest& request, const Reference& reference,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  oci::Platform wish = TRY(wished_platform(request));
  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  TRY(registry.connect());
  image::Delivery delivery = TRY(image::Delivery::begin(store));
  Documents documents = TRY(get_documents(registry, reference, wish));
  TRY(check_platform(documents, wish, request, events));
  events.status(
      fmt::format("{}: Pulling from {}", reference.manifest_reference(), reference.repository()));

  TransferResult result;
  result.reference = reference.canonical();
  result.digest = documents.target().text();
  result.image_id = documents.manifest.config.digest.text();
  result.status = "downloaded";
  std::optional<image::Image> present = TRY(store.find_image(reference.canonical()));
  bool same = present && present->target == documents.target() &&
              present->manifest_digest == documents.manifest_document.digest;
  if (same && present->unpacked()) {
    result.status = "up_to_date";
    return result;
  }

  LayerPipeline layers(store, delivery, &registry, events, cancel);
  TRY(layers.run(documents.manifest, documents.config));
  TRY(publish(delivery, reference, documents));
  return result;
}

Result<TransferResult> unpack_local(const PullRequest& request, const image::Store& store,
                                    Events& events, Cancel& cancel) {
  image::Delivery delivery = TRY(image::Delivery::begin(store));
  image::Image image = TRY(store.get_image(request.reference));
  LayerPipeline layers(store, delivery, nullptr, events, cancel);
  TRY(layers.run(image.manifest, image.config));
  TransferResult result;
  result.reference = image.references.empty() ? "" : image.references.front().canonical();
  result.digest = image.target.text();
  result.image_id = image.id.text();
  result.status = "up_to_date";
  return result;
}

}  // namespace

Result<TransferResult> pull(const PullRequest& request, const EventSink& sink, Cancel& cancel) {
  std::string what = fmt::format("cannot pull '{}'", escape_controls(request.reference));
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  image::Store store =
      TRY_CTX(image::Store::open(request.root, {request.ownership, request.overlay_xattr}), what);

  Result<TransferResult> result = [&]() -> Result<TransferResult> {
    if (request.local) return unpack_local(request, store, events, cancel);
    Reference reference = TRY(Reference::parse(request.reference));
    return pull_from_registry(request, reference, store, events, cancel);
  }();
  if (result.ok()) return result;

  return give_up(store, std::move(result).error().with_context(what), events);
}

}  // namespace berth::transfer
