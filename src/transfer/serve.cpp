// SPDX-License-Identifier: Apache-2.0
#include "transfer/serve.hpp"

#include "transfer/archive/archive.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"
#include "transfer/registry/verbs.hpp"
#include "transfer/sign/published_facts.hpp"
#include "transfer/sign/signature.hpp"
#include "transfer/store/store.hpp"

namespace berth::transfer {
namespace {

struct Server {
  const EventSink& events;
  Cancel& cancel;

  using Answer = Result<image::TransferResult>;
  Answer operator()(const image::PullRequest& r) { return pull(r, events, cancel); }
  Answer operator()(const image::ResolveRequest& r) { return resolve(r, events, cancel); }
  Answer operator()(const image::PublishFactsRequest& r) {
    return publish_facts(r, events, cancel);
  }
  Answer operator()(const image::PushRequest& r) { return push(r, events, cancel); }
  Answer operator()(const image::LoginRequest& r) { return login(r, events, cancel); }
  Answer operator()(const image::LogoutRequest& r) { return logout(r); }
  Answer operator()(const image::SearchRequest& r) { return search(r, events, cancel); }
  Answer operator()(const image::TagsRequest& r) { return list_tags(r, events, cancel); }
  Answer operator()(const image::LoadRequest& r) { return load(r, events, cancel); }
  Answer operator()(const image::SaveRequest& r) { return save(r, events, cancel); }
  Answer operator()(const image::ImportRequest& r) { return import_image(r, events, cancel); }
  Answer operator()(const image::ArchiveRequest& r) { return archive(r, events, cancel); }
  Answer operator()(const image::ExtractRequest& r) { return extract(r, events, cancel); }
  Answer operator()(const image::CommitRequest& r) { return commit(r, events, cancel); }
  Answer operator()(const image::PublishRequest& r) { return publish(r, events, cancel); }
  Answer operator()(const image::DigestRequest& r) { return digest(r, cancel); }
  Answer operator()(const image::CheckRequest& r) { return check_store(r, cancel); }
  Answer operator()(const image::DedupeRequest& r) { return dedupe(r, events, cancel); }
  Answer operator()(const image::ConvertRequest& r) { return convert(r, events, cancel); }
  Answer operator()(const image::CheckKeyRequest& r) {
    TRY(public_key_of(r.sign_key));
    return image::TransferResult{};
  }
};

}  // namespace

Result<image::TransferResult> serve(const image::TransferRequest& request, const EventSink& events,
                                    Cancel& cancel) {
  return std::visit(Server{events, cancel}, request);
}

}  // namespace berth::transfer
