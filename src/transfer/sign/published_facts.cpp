// SPDX-License-Identifier: Apache-2.0
#include "transfer/sign/published_facts.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <set>
#include <variant>

#include "base/text.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "transfer/compression/decompress.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/referrers.hpp"
#include "transfer/registry/variants.hpp"
#include "transfer/sign/signature.hpp"
#include "transfer/work/base64.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

using image::FactsTrust;
using image::PublishedFacts;
using image::PublishedImage;
using image::PublishFactsRequest;
using image::TransferResult;

constexpr size_t kMaxUnpacked = size_t{16} << 20;

std::string pack(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  size_t size =
      ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
  BERTH_ASSERT(ZSTD_isError(size) == 0);
  packed.resize(size);
  return packed;
}

Result<std::string> unpack(std::string_view packed) {
  auto inflater = Inflater::make(oci::Compression::zstd, packed);
  std::string text;
  std::string piece(size_t{256} << 10, '\0');
  while (true) {
    size_t count = TRY(inflater->read(piece.data(), piece.size()));
    if (count == 0) return text;
    if (text.size() + count > kMaxUnpacked) {
      return make_error(Kind::corrupt, "unpack published facts: more than 16 MiB");
    }
    text.append(piece, 0, count);
  }
}

/// The trusted key that has signed the artifact; empty: no trusted key has.
Result<std::string> signer_of(const Artifact& artifact, const std::vector<std::string>& keys) {
  auto said = artifact.annotations.find(std::string(image::kFactsSignature));
  if (said == artifact.annotations.end()) return std::string();
  auto signature = base64_decode(said->second);
  if (!signature) return std::string();
  for (const std::string& key : keys) {
    bool right = TRY(verify(key, artifact.blob, *signature));
    if (right) return key_name(key);
  }
  return std::string();
}

Result<std::optional<PublishedFacts>> fetch(Registry& registry, const Digest& subject,
                                            const FactsTrust& trust, Events& events) {
  auto artifact = TRY(find_artifact(registry, subject, std::string(image::kFactsArtifact)));
  if (!artifact || artifact->media_type != image::kFactsType) {
    return std::optional<PublishedFacts>();
  }
  auto signer = signer_of(*artifact, trust.keys);
  if (trust.signed_only) {
    if (!signer.ok()) return std::move(signer).error();
    if (signer->empty()) {
      return make_error(Kind::denied, "no key that the policy trusts has signed them");
    }
  } else if (!signer.ok()) {
    events.warn(to_line(signer.error()) + ", ignoring records of runs");
  }
  std::string text = TRY(unpack(artifact->blob));
  PublishedFacts facts = TRY(image::parse_published_facts(text));
  if (facts.subject != subject) {
    return make_error(Kind::corrupt, fmt::format("they are of '{}'", facts.subject.text()));
  }
  if (signer.ok()) facts.signer = *std::move(signer);
  return std::optional<PublishedFacts>(std::move(facts));
}

/// The index or manifest that a name means now.
struct Subject {
  Document document;
  std::set<Digest> images;  // the entries of the index, or the manifest itself
};

Result<Subject> find_subject(Registry& registry, const image::Reference& reference) {
  Subject subject;
  subject.document = TRY(registry.get_manifest(reference.manifest_reference()));
  auto parsed = TRY(oci::parse_manifest(subject.document.bytes, subject.document.media_type));
  const auto* index = std::get_if<oci::Index>(&parsed);
  if (index == nullptr) {
    subject.images.insert(subject.document.digest);
    if (subject.document.media_type.empty()) {
      subject.document.media_type = std::get<oci::Manifest>(parsed).media_type;
    }
    return subject;
  }
  if (subject.document.media_type.empty()) subject.document.media_type = index->media_type;
  for (const Variants::Entry& entry : TRY(list_variants(registry, *index, std::nullopt)).entries) {
    subject.images.insert(entry.descriptor.digest);
  }
  return subject;
}

/// Replaces older findings of the same image by new ones, and keeps the records of its runs. Drops
/// images that the index does not have any more, and images without readable findings:
/// older versions of Berth expect neither.
void add_findings(PublishedFacts& facts, const std::vector<PublishedImage>& images,
                  const std::set<Digest>& present) {
  for (PublishedImage image : images) {
    if (const PublishedImage* old = facts.of(image.image)) {
      std::vector<match::RunRecord> added = std::move(image.runs);
      image.runs = old->runs;
      for (match::RunRecord& run : added) match::add_run(image.runs, std::move(run));
    }
    std::erase_if(facts.images,
                  [&](const PublishedImage& old) { return old.image == image.image; });
    facts.images.push_back(std::move(image));
  }
  std::erase_if(facts.images, [&](const PublishedImage& one) {
    return !present.contains(one.image) || !one.found;
  });
  std::ranges::sort(facts.images, [](const auto& a, const auto& b) { return a.image < b.image; });
}

/// The existing facts that the publisher may sign.
Result<PublishedFacts> published_before(Registry& registry, const Digest& subject,
                                        const PublishFactsRequest& request, Events& events) {
  FactsTrust trust;
  trust.keys = request.trusted_keys;
  bool is_signing = !request.sign_key.empty();
  if (is_signing) trust.keys.push_back(TRY(public_key_of(request.sign_key)));
  auto before = TRY(fetch_published(registry, subject, trust, events));
  PublishedFacts facts = before ? *std::move(before) : PublishedFacts();
  facts.subject = subject;
  if (!is_signing || !facts.signer.empty()) return facts;
  // Anybody with push access could have put the facts there, so that a trusted key signs them.
  if (!facts.images.empty()) {
    events.warn("no trusted key has signed what was published before, leaving it out");
    facts.images.clear();
  }
  return facts;
}

Result<void> check_images(const PublishFactsRequest& request, const Subject& subject) {
  for (const PublishedImage& image : request.images) {
    if (subject.images.contains(image.image)) continue;
    return make_error(
        Kind::not_found,
        fmt::format("'{}' is not one of the images that the registry has under this name now",
                    image.image.text()),
        "berth pull or berth push first, and scan that");
  }
  return {};
}

Result<TransferResult> publish(const PublishFactsRequest& request, Events& events, Cancel& cancel) {
  image::Reference reference = TRY(image::Reference::parse(request.reference));
  Http http(http_options(request.access), cancel);
  Registry registry = TRY(open_registry(http, cancel, request.access, reference, events));
  auto found = find_subject(registry, reference);
  if (!found.ok() && found.error().kind == Kind::not_found) {
    Error error = std::move(found).error();
    error.hint = "berth push it first: facts are published beside an image";
    return error;
  }
  Subject subject = TRY(std::move(found));
  TRY(check_images(request, subject));

  // Keeps the facts that others have published about other images of this index.
  PublishedFacts facts = TRY(published_before(registry, subject.document.digest, request, events));
  std::string old = image::to_json(facts);
  add_findings(facts, request.images, subject.images);
  std::string text = image::to_json(facts);

  TransferResult result;
  result.reference = reference.canonical();
  result.size = text.size();
  bool same_hand = request.sign_key.empty();
  if (!same_hand) {
    std::string own = TRY(public_key_of(request.sign_key));
    same_hand = facts.signer == TRY(key_name(own));
  }
  if (text == old && same_hand) {
    result.status = "up_to_date";
    return result;
  }
  Artifact artifact;
  artifact.type = image::kFactsArtifact;
  artifact.subject.media_type = subject.document.media_type;
  artifact.subject.digest = subject.document.digest;
  artifact.subject.size = subject.document.bytes.size();
  artifact.media_type = image::kFactsType;
  artifact.blob = pack(text);
  artifact.created = image::timestamp_now();
  if (!request.sign_key.empty()) {
    std::string signature = TRY(sign(request.sign_key, artifact.blob));
    artifact.annotations[std::string(image::kFactsSignature)] = base64_encode(signature);
  }
  result.digest = TRY(attach(registry, artifact)).text();
  result.status = "attached";
  return result;
}

}  // namespace

Result<std::optional<PublishedFacts>> fetch_published(Registry& registry, const Digest& subject,
                                                      const FactsTrust& trust, Events& events) {
  if (!trust.fetch) return std::optional<PublishedFacts>();
  auto facts = fetch(registry, subject, trust, events);
  if (facts.ok() || facts.error().kind == Kind::interrupted) return facts;
  events.warn("facts published beside the image: " + to_line(facts.error()) + ", ignoring them");
  return std::optional<PublishedFacts>();
}

Result<TransferResult> publish_facts(const PublishFactsRequest& request, const EventSink& sink,
                                     Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  return TRY_CTX(publish(request, events, cancel),
                 fmt::format("cannot publish facts of '{}'", escape_controls(request.reference)));
}

}  // namespace berth::transfer
