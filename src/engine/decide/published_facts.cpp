// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/published_facts.hpp"

#include "base/text.hpp"
#include "engine/decide/run_record.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "engine/node/facts_trust.hpp"
#include "image/store.hpp"
#include "policy/policy.hpp"

namespace berth::engine {
Result<image::PublishedImage> findings_of(const Context& context, const image::Image& image) {
  const oci::ImageConfig& config = image.config;
  image::PublishedImage published;
  published.image = image.manifest_digest;
  published.platform = {config.architecture, config.os, {}, {}, config.variant};
  published.config = image::declaring_part(config.config);
  published.found = TRY(facts_of_image(context, image));
  return published;
}

Result<image::TransferResult> attach_facts(const Context& context,
                                           const AttachFactsRequest& request) {
  image::PublishFactsRequest publish;
  publish.access = request.access;
  if (request.sign_key) {
    publish.sign_key = TRY(read_key_file(*request.sign_key));
    publish.trusted_keys = TRY(facts_trust(context)).keys;
  }
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(store.get_image(request.reference));
  if (image.references.empty()) {
    return make_error(Kind::usage,
                      "publish facts of " + quote(request.reference) + ": it has no name",
                      "berth tag it with the name that it has at the registry");
  }
  publish.reference = image.references.front().canonical();
  for (const image::Reference& one : image.references) {
    if (one.canonical() == request.reference || one.familiar() == request.reference) {
      publish.reference = one.canonical();
    }
  }
  std::optional<match::RunRecord> run;
  if (request.container) {
    run = TRY(record_of_run(context, *request.container, image, request.berth_version));
  }
  publish.images.push_back(
      TRY_CTX(findings_of(context, image), "cannot scan image " + quote(request.reference)));
  if (run) publish.images.back().runs.push_back(std::move(*run));
  return transfer(context, std::move(publish), {});
}

}  // namespace berth::engine
