// SPDX-License-Identifier: Apache-2.0
#include "transfer/choose_variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "match/judge.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "transfer/registry/variants.hpp"
#include "transfer/sign/published_facts.hpp"

namespace berth::transfer {

using image::PullRequest;

namespace {

bool is_refused(const match::Verdict& verdict, const PullRequest& request) {
  return verdict.outcome == match::Outcome::fail ||
         (request.strict && verdict.outcome != match::Outcome::pass);
}

constexpr const char* kForce = "--force pulls it anyway; see 'berth match'";

Error refused(const match::Verdict& verdict) {
  const match::Clause* clause = verdict.decisive();
  bool fails = verdict.outcome == match::Outcome::fail;
  return make_error(Kind::unsupported,
                    clause != nullptr ? clause->reason : "it does not run on this machine",
                    fails ? kForce : "omit --strict to use it; see 'berth match'");
}

/// Warns the user if the image has failed on a similar node.
void warn_of_failures(const match::Verdict& verdict, Events& events) {
  for (const match::Clause& clause : verdict.clauses) {
    if (clause.about != "runs" || clause.outcome == match::Outcome::pass) continue;
    events.warn("it " + clause.reason + ", ignoring");
  }
}

/// Tries the images, the best first, until the config of one does not contradict its entry.
class VariantChooser {
 public:
  VariantChooser(Registry& registry, const PullRequest& request, Events& events)
      : registry_(registry), request_(request), events_(events) {}

  Result<ImageDocuments> choose(Document outer, const oci::Index& index,
                                const oci::Platform& wish) {
    outer_ = std::move(outer);
    variants_ = TRY(list_variants(registry_, index, wish));
    if (!request_.node || request_.force || wish.architecture != request_.node->architecture) {
      return take(0);
    }
    published_ = TRY(fetch_published(registry_, outer_.digest, request_.facts, events_));
    std::vector<match::Candidate> candidates;
    for (const Variants::Entry& entry : variants_.entries) {
      candidates.push_back(candidate_of(entry.descriptor, nullptr, published_));
    }
    job_ = match::usual_job(candidates, *request_.node, request_.job);
    match::Ranking ranking =
        match::rank(std::move(candidates), *request_.node, job_, match::Explain::best);
    if (ranking.order.empty()) {
      return make_error(Kind::unsupported, match::refusal(ranking), kForce);
    }
    return take_first_that_runs(ranking);
  }

 private:
  /// The maximal number of fetched configs.
  static constexpr size_t kMaxTries = 4;

  Result<ImageDocuments> take(size_t index) {
    const Variants::Entry& entry = variants_.entries[index];
    Document manifest = TRY(get_described(registry_, entry.descriptor));
    ImageDocuments documents = TRY(get_image_documents(registry_, std::move(manifest)));
    documents.indexes.push_back(outer_);
    if (entry.inner) documents.indexes.push_back(variants_.inner[*entry.inner]);
    return documents;
  }

  Result<ImageDocuments> take_first_that_runs(const match::Ranking& ranking) {
    std::optional<match::Verdict> last;
    for (size_t i = 0; i < std::min(ranking.order.size(), kMaxTries); ++i) {
      size_t index = ranking.order[i];
      const match::Judged& judged = ranking.entries[index];
      ImageDocuments documents = TRY(take(index));
      last = match::judge(candidate_of(judged.candidate.descriptor, &documents.config, published_),
                          *request_.node, job_);
      if (is_refused(*last, request_)) continue;
      warn_of_failures(*last, events_);
      if (ranking.entries.size() > 1) {
        events_.status(fmt::format("Chose entry {} of {}", match::entry_name(judged.candidate),
                                   ranking.entries.size()));
      }
      return documents;
    }
    return refused(*last);
  }

  Registry& registry_;
  const PullRequest& request_;
  Events& events_;
  match::Job job_;
  Document outer_;
  Variants variants_;
  std::optional<image::PublishedFacts> published_;
};

/// Judges the only image of a name. An image of another architecture is used, as in docker, with
/// the warning of check_platform().
Result<void> judge_alone(Registry& registry, const PullRequest& request,
                         const ImageDocuments& documents, Events& events) {
  if (!request.node || request.force) return {};
  oci::Descriptor entry;
  entry.digest = documents.manifest_document.digest;
  entry.platform = oci::Platform{
      documents.config.architecture, documents.config.os, {}, {}, documents.config.variant};
  if (entry.platform->architecture != request.node->architecture) return {};
  auto published = TRY(fetch_published(registry, entry.digest, request.facts, events));
  match::Candidate candidate = candidate_of(entry, &documents.config, published);
  match::Job job = match::usual_job({candidate}, *request.node, request.job);
  match::Verdict verdict = match::judge(candidate, *request.node, job);
  if (is_refused(verdict, request)) return refused(verdict);
  warn_of_failures(verdict, events);
  return {};
}

}  // namespace

Result<ImageDocuments> get_image_documents(Registry& registry, Document document) {
  auto parsed = TRY(oci::parse_manifest(document.bytes, document.media_type));
  auto* manifest = std::get_if<oci::Manifest>(&parsed);
  if (manifest == nullptr) {
    return make_error(Kind::corrupt,
                      fmt::format("read manifest '{}': it is an index", document.digest.text()));
  }
  ImageDocuments documents;
  documents.manifest = std::move(*manifest);
  documents.manifest_document = std::move(document);
  TRY(oci::check_is_image(documents.manifest));
  documents.config_bytes = TRY(registry.get_document(documents.manifest.config));
  documents.config = TRY(oci::parse_config(documents.config_bytes));
  TRY(oci::check_image(documents.manifest, documents.config));
  return documents;
}

Result<ImageDocuments> choose_variant(Registry& registry, const image::Reference& reference,
                                      const oci::Platform& wish, const PullRequest& request,
                                      Events& events) {
  Document document = TRY(registry.get_manifest(reference.manifest_reference()));
  auto parsed = TRY(oci::parse_manifest(document.bytes, document.media_type));
  if (const auto* index = std::get_if<oci::Index>(&parsed)) {
    return VariantChooser(registry, request, events).choose(std::move(document), *index, wish);
  }
  ImageDocuments documents = TRY(get_image_documents(registry, std::move(document)));
  TRY(judge_alone(registry, request, documents, events));
  return documents;
}

}  // namespace berth::transfer
