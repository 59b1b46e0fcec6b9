// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/store.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/upload.hpp"

namespace berth::transfer {
namespace {

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

}  // namespace

Result<TransferResult> push(const image::PushRequest& request, const EventSink& sink,
                            Cancel& cancel) {
  Events events(sink, request.quiet ? Events::Layers::hidden : Events::Layers::shown);
  return TRY_CTX(push_image(request, events, cancel),
                 fmt::format("cannot push '{}'", escape_controls(request.reference)));
}

}  // namespace berth::transfer
