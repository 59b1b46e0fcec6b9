// SPDX-License-Identifier: Apache-2.0
#include "transfer/pull.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "oci/image_spec.hpp"
#include "transfer/choose_variant.hpp"
#include "transfer/layer/layers.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/blob_source.hpp"
#include "transfer/registry/chain.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/registry/variants.hpp"
#include "transfer/sign/published_facts.hpp"
#include "transfer/work/event.hpp"
#include "transfer/work/give_up.hpp"

namespace berth::transfer {
namespace {

using image::PullRequest;
using image::Reference;
using image::ResolveRequest;
using image::TransferResult;

/// If the name means a single manifest, there is no choice, but a requested platform must match. In
/// an index, the platform of the chosen entry is trusted.
Result<void> check_platform(const ImageDocuments& documents, const oci::Platform& wish,
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
                     const ImageDocuments& documents) {
  for (const oci::Descriptor& layer : documents.manifest.layers) {
    TRY(delivery.note_origin(layer.digest, reference));
  }
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
  record.sources = {reference};
  return delivery.publish_image(record);
}

LayerPipeline::Options options_of(const PullRequest& request) {
  LayerPipeline::Options options;
  options.scan = request.scan;
  options.keep_blobs = request.keep_blobs;
  if (request.memory_budget > 0) options.memory_budget = request.memory_budget;
  return options;
}

/// Whether a stored image is complete, so that nothing has to be fetched.
Result<bool> is_complete(const image::Image& image, const image::Store& store,
                         const PullRequest& request) {
  if (!image.unpacked()) return false;
  if (!request.keep_blobs) return true;
  for (const image::Layer& layer : image.layers) {
    if (!TRY(store.has_blob(layer.blob.digest))) return false;
  }
  return true;
}

Result<TransferResult> pull_from_registry(const PullRequest& request, const Reference& reference,
                                          const image::Store& store, Events& events,
                                          Cancel& cancel) {
  oci::Platform wish = oci::host_platform();
  if (request.platform) wish = TRY(oci::parse_platform(*request.platform));
  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_source(http, cancel, request.access, reference, events));
  std::vector<Registry> peers = TRY(open_peers(http, cancel, request.access, reference));
  // Fetching layers takes minutes, and the node that delivers them may be lost meanwhile.
  Chain chain(
      std::move(peers),
      [&] { return open_site_source(http, cancel, request.access, reference, events); }, cancel,
      events);
  image::Delivery delivery = TRY(image::Delivery::begin(store));
  ImageDocuments documents = TRY(choose_variant(registry, reference, wish, request, events));
  TRY(check_platform(documents, wish, request, events));
  events.status(
      fmt::format("{}: Pulling from {}", reference.manifest_reference(), reference.repository()));

  TransferResult result;
  result.reference = reference.canonical();
  result.digest = documents.target().text();
  result.image_id = documents.manifest.config.digest.text();
  result.status = "downloaded";
  std::optional<image::Image> present = TRY(store.find_own_image(reference.canonical()));
  bool same = present && present->target == documents.target() &&
              present->manifest_digest == documents.manifest_document.digest;
  if (same && TRY(is_complete(*present, store, request))) {
    // The image may have been loaded from an archive; now it is known that the registry has it.
    const auto& known = present->sources;
    bool told = std::ranges::find(known, reference) != known.end();
    if (!told) TRY(publish(delivery, reference, documents));
    store.note_used(present->manifest_digest);
    result.status = "up_to_date";
    return result;
  }

  auto origin = [&](const oci::Descriptor&) -> Result<Registry*> { return &registry; };
  LayerPipeline::Options options = options_of(request);
  if (chain.has_peers()) {
    options.fetch = [&](const oci::Descriptor& blob, BlobPart part) {
      return chain.get_blob(blob, std::move(part));
    };
    options.distrust = [&](const Error& error) { chain.distrust(error); };
  }
  uint32_t connections = connections_to(request.access, reference);
  if (connections > 0) options.connections = connections;
  LayerPipeline layers(store, delivery, origin, events, cancel, options);
  TRY(layers.run(documents.manifest, documents.config));
  TRY(publish(delivery, reference, documents));
  return result;
}

Result<TransferResult> unpack_local(const PullRequest& request, const image::Store& store,
                                    Events& events, Cancel& cancel) {
  image::Delivery delivery = TRY(image::Delivery::begin(store));
  image::Image image = TRY(store.get_image(request.reference));
  BlobSource blobs(store, request.access, events, cancel);
  auto origin = [&](const oci::Descriptor& blob) { return blobs.registry_of(blob); };
  LayerPipeline layers(store, delivery, origin, events, cancel, options_of(request));
  TRY(layers.run(image.manifest, image.config));
  TRY(delivery.adopt(image));
  TransferResult result;
  result.reference = image.references.empty() ? "" : image.references.front().canonical();
  result.digest = image.target.text();
  result.image_id = image.id.text();
  result.status = "up_to_date";
  return result;
}

/// Published facts include the config of the image, which then need not be fetched.
void add_published(image::ResolvedEntry& entry, const image::PublishedFacts& published) {
  const image::PublishedImage* known = published.of(entry.descriptor.digest);
  if (known == nullptr) return;
  if (!entry.descriptor.platform) entry.descriptor.platform = known->platform;
  entry.config = known->config;
  entry.found = known->found;
  entry.runs = known->runs;
  entry.runs_believed = !published.signer.empty();
}

Result<image::ResolvedEntry> resolve_alone(Registry& registry, Document document,
                                           const std::optional<image::PublishedFacts>& published) {
  image::ResolvedEntry only;
  only.descriptor.media_type = document.media_type;
  only.descriptor.digest = document.digest;
  only.descriptor.size = document.bytes.size();
  if (published) add_published(only, *published);
  if (only.found) return only;
  ImageDocuments documents = TRY(get_image_documents(registry, std::move(document)));
  only.descriptor.platform = oci::Platform{
      documents.config.architecture, documents.config.os, {}, {}, documents.config.variant};
  only.config = std::move(documents.config.config);
  return only;
}

/// The entries of an index; of a single image also its config, which is fetched unless published
/// facts include it.
Result<TransferResult> resolve_at_registry(const ResolveRequest& request,
                                           const Reference& reference, Events& events,
                                           Cancel& cancel) {
  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_source(http, cancel, request.access, reference, events));
  Document document = TRY(registry.get_manifest(reference.manifest_reference()));
  TransferResult result;
  result.reference = reference.canonical();
  result.digest = document.digest.text();
  if (request.as_document) {
    result.document = std::move(document.bytes);
    return result;
  }
  auto parsed = TRY(oci::parse_manifest(document.bytes, document.media_type));
  auto published = TRY(fetch_published(registry, document.digest, request.facts, events));
  const auto* index = std::get_if<oci::Index>(&parsed);
  if (index == nullptr) {
    result.entries.push_back(TRY(resolve_alone(registry, std::move(document), published)));
    return result;
  }
  for (Variants::Entry& variant : TRY(list_variants(registry, *index, std::nullopt)).entries) {
    image::ResolvedEntry entry;
    entry.descriptor = std::move(variant.descriptor);
    if (published) add_published(entry, *published);
    result.entries.push_back(std::move(entry));
  }
  return result;
}

}  // namespace

Result<TransferResult> resolve(const ResolveRequest& request, const EventSink& sink,
                               Cancel& cancel) {
  std::string what = fmt::format("cannot look up '{}'", escape_controls(request.reference));
  Events events(sink, Events::Layers::hidden);
  Reference reference = TRY_CTX(Reference::parse(request.reference), what);
  return TRY_CTX(resolve_at_registry(request, reference, events, cancel), what);
}

Result<TransferResult> pull(const PullRequest& request, const EventSink& sink, Cancel& cancel) {
  std::string what = fmt::format("cannot pull '{}'", escape_controls(request.reference));
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  auto pull_into = [&](const image::Store& store) -> Result<TransferResult> {
    if (request.local) return unpack_local(request, store, events, cancel);
    Reference reference = TRY(Reference::parse(request.reference));
    return pull_from_registry(request, reference, store, events, cancel);
  };
  return fill_store(request, what, events, pull_into);
}

}  // namespace berth::transfer
