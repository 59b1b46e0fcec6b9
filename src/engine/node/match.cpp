// SPDX-License-Identifier: Apache-2.0
#include "engine/node/match.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "engine/node/node.hpp"
#include "image/reference.hpp"
#include "match/judge.hpp"
#include "node/file/load.hpp"
#include "node/what_if.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxKey = size_t{64} << 10;

}  // namespace

match::UserLand user_land_of(policy::DriverMode mode) {
  bool image = mode == policy::DriverMode::image || mode == policy::DriverMode::none;
  return image ? match::UserLand::image : match::UserLand::host;
}

namespace {

Result<match::Job> job_of(const Context& context, const std::optional<policy::DriverMode>& mode,
                          bool needs_gpus) {
  match::Job job;
  job.needs_gpus = needs_gpus;
  if (mode) {
    job.user_land = user_land_of(*mode);
    return job;
  }
  job.user_land = TRY(usual_user_land(context));
  return job;
}

match::Candidate candidate_of(oci::Descriptor entry, const oci::ContainerDefaults* config) {
  match::Candidate candidate;
  candidate.declared = match::read_declared(entry);
  if (config != nullptr) {
    candidate.declared = match::merge(match::read_declared(*config), candidate.declared);
  }
  candidate.descriptor = std::move(entry);
  return candidate;
}

/// Adds the config of a present image, and the findings in its files.
Result<void> add_what_is_here(const Context& context, match::Candidate& candidate,
                              const image::Image& image) {
  const oci::ImageConfig& config = image.config;
  if (!candidate.descriptor.platform) {
    candidate.descriptor.platform =
        oci::Platform{config.architecture, config.os, {}, {}, config.variant};
  }
  candidate.declared = match::merge(match::read_declared(config.config), candidate.declared);
  if (image.unpacked()) candidate.found = TRY(facts_of_image(context, image));
  return {};
}

/// The images in an index document.
Result<std::vector<oci::Descriptor>> entries_of(const std::string& bytes) {
  auto parsed = TRY(oci::parse_manifest(bytes, ""));
  std::vector<oci::Descriptor> entries;
  if (const auto* index = std::get_if<oci::Index>(&parsed)) {
    for (const oci::Descriptor& entry : index->manifests) {
      bool for_none = entry.platform && entry.platform->os == "unknown";
      if (oci::is_manifest_type(entry.media_type) && !for_none) entries.push_back(entry);
    }
  }
  return entries;
}

Result<Offer> look_up_in_store(const Context& context, const image::Store& store,
                               const image::Image& image) {
  Offer offer;
  offer.digest = image.target.text();
  if (!image.references.empty()) offer.reference = image.references.front().canonical();
  std::vector<oci::Descriptor> entries;
  if (image.target != image.manifest_digest) {
    std::string document = TRY(store.read_document(image.target));
    entries = TRY(entries_of(document));
  }
  if (entries.empty()) {
    oci::Descriptor only;
    only.media_type = oci::media_type::kManifest;
    only.digest = image.manifest_digest;
    entries.push_back(std::move(only));
  }
  for (oci::Descriptor& entry : entries) {
    match::Candidate candidate = candidate_of(std::move(entry), nullptr);
    if (candidate.descriptor.digest == image.manifest_digest) {
      TRY(add_what_is_here(context, candidate, image));
    }
    offer.candidates.push_back(std::move(candidate));
  }
  return offer;
}

Result<Offer> look_up_at_registry(const Context& context, const MatchRequest& request) {
  image::ResolveRequest resolve;
  resolve.reference = request.reference;
  resolve.access = request.access;
  resolve.facts = TRY(facts_trust(context));
  image::TransferResult found = TRY(transfer(context, std::move(resolve), {}));
  Offer offer;
  offer.reference = found.reference;
  offer.digest = found.digest;
  for (image::ResolvedEntry& entry : found.entries) {
    offer.candidates.push_back(
        candidate_of(std::move(entry.descriptor), entry.config ? &*entry.config : nullptr));
    match::Candidate& candidate = offer.candidates.back();
    candidate.found = std::move(entry.found);
    candidate.runs = std::move(entry.runs);
    candidate.runs_believed = entry.runs_believed;
  }
  return offer;
}

/// The match of `node`. Equal arguments give equal answers, on any machine.
Answer answer_for(node::Profile node, const match::Job& job, const Offer& offer) {
  match::Ranking ranking = match::rank(offer.candidates, node, job);
  return {std::move(node), std::move(ranking)};
}

}  // namespace

Result<match::UserLand> usual_user_land(const Context& context) {
  policy::Compiled compiled = TRY(policy::read_compiled(context.paths.config));
  return user_land_of(compiled.policy.gpu.driver_mode);
}

Result<Offer> look_up(const Context& context, const MatchRequest& request) {
  image::Store store = TRY(open_store(context));
  if (request.look_up == LookUp::store) {
    image::Image image = TRY(store.get_image(request.reference));
    return look_up_in_store(context, store, image);
  }
  auto offer = look_up_at_registry(context, request);
  auto present = TRY(store.find_image(request.reference));
  if (!offer.ok()) {
    if (!present) return offer;
    context.log.warn(to_line(offer.error()) + ", looking at the store instead");
    return look_up_in_store(context, store, *present);
  }
  for (match::Candidate& candidate : offer->candidates) {
    if (present && candidate.descriptor.digest == present->manifest_digest) {
      TRY(add_what_is_here(context, candidate, *present));
    }
  }
  return offer;
}

Result<image::TransferResult> look_up_document(const Context& context, const std::string& reference,
                                               image::RegistryAccess access, bool insecure) {
  image::ResolveRequest request;
  request.reference = reference;
  request.access = std::move(access);
  request.as_document = true;
  if (insecure) {
    image::Reference parsed = TRY(image::Reference::parse(reference));
    request.access.insecure_registries.push_back(parsed.registry());
  }
  return transfer(context, std::move(request), {});
}

Result<Answer> match_node(const Context& context, const MatchRequest& request, const Offer& offer) {
  match::Job job = TRY(job_of(context, request.driver_mode, request.needs_gpus));
  node::Profile node = TRY(node_of(context, request.node));
  node = TRY(node::with(std::move(node), request.what_if));
  return answer_for(std::move(node), job, offer);
}

Result<void> match_fleet(const Context& context, MatchRequest request,
                         const std::vector<std::string>& references, const std::string& directory,
                         const TakesAnswers& take) {
  match::Job job = TRY(job_of(context, request.driver_mode, request.needs_gpus));
  auto fleet = TRY(node::load_fleet(directory));
  for (node::Profile& node : fleet) node = TRY(node::with(std::move(node), request.what_if));
  for (const std::string& reference : references) {
    request.reference = reference;
    Offer offer = TRY(look_up(context, request));
    offer.asked = reference;
    std::vector<Answer> answers;
    for (const node::Profile& node : fleet) answers.push_back(answer_for(node, job, offer));
    take(offer, answers);
  }
  return {};
}

namespace {

/// This file exists if Berth found that the image does not run here, or not on the GPUs. The latter
/// matters to a start with GPUs alone.
std::string doubt_path(const Context& context, const image::Image& image) {
  return facts_path(context, image) + kRefused;
}

Result<std::optional<match::Verdict>> judge_image(const Context& context, const GpuWish& wish,
                                                  const image::Image& image) {
  auto asked = job_of(context, wish.driver_mode, wish.needs_gpus);
  auto node = this_node(context);
  // If one of these fails, code that needs the policy or the driver reports a better error.
  if (!asked.ok() || !node.ok() || node->architecture != image.config.architecture) {
    return std::optional<match::Verdict>();
  }
  match::Job job = *std::move(asked);
  job.requirements = false;
  job.other_command = wish.other_command;
  image::Store store = TRY(open_store(context));
  Offer offer = TRY(look_up_in_store(context, store, image));
  for (const match::Candidate& candidate : offer.candidates) {
    if (candidate.descriptor.digest != image.manifest_digest) continue;
    job = match::usual_job(offer.candidates, *node, job);
    return std::optional<match::Verdict>(match::judge(candidate, *node, job));
  }
  return std::optional<match::Verdict>();
}

Error refused(const match::Verdict& verdict, const image::Image& image) {
  const match::Clause* clause = verdict.decisive();
  std::string name =
      image.references.empty() ? image.id.text() : image.references.front().familiar();
  std::string way = verdict.outcome == match::Outcome::fail ? "--force starts it anyway"
                                                            : "without --strict it starts";
  return make_error(Kind::unsupported,
                    clause != nullptr ? clause->reason : "it does not run on this machine",
                    way + "; see 'berth why --local " + name + "'");
}

constexpr std::string_view kOnGpus = "gpus";

/// Whether the start itself refuses what this verdict is about, and says which of the image's files
/// it is: of the driver in the image.
bool is_left_to_the_start(const match::Verdict& verdict, const GpuWish& wish) {
  const match::Clause* clause = verdict.decisive();
  return wish.driver_mode == policy::DriverMode::image && clause != nullptr &&
         clause->about == "driver";
}

void remember(const Context& context, const image::Image& image, match::Outcome outcome) {
  std::string path = doubt_path(context, image);
  bool fails = outcome == match::Outcome::fail;
  if (!fails && outcome != match::Outcome::runs_but) {
    ignore(sys::remove_entry(sys::cwd(), path));
    return;
  }
  auto written = sys::replace_file(sys::cwd(), path, fails ? "" : kOnGpus, 0600);
  if (!written.ok()) context.log.debug("remember what does not run: " + to_line(written.error()));
}

/// Whether a start has to be judged again.
Result<bool> is_doubtful(const Context& context, const GpuWish& wish, const image::Image& image) {
  // A pull looks at the image as it is started by default, with the driver of the node.
  if (wish.needs_gpus && wish.driver_mode == policy::DriverMode::none) return true;
  auto doubt =
      TRY(sys::read_file_if_exists(sys::cwd(), doubt_path(context, image), kOnGpus.size()));
  return doubt && (wish.needs_gpus || *doubt != kOnGpus);
}

}  // namespace

Result<void> judge_unpacked(const Context& context, const GpuWish& wish, const image::Image& image,
                            Remarks remarks) {
  auto verdict = TRY(judge_image(context, wish, image));
  if (!verdict) return {};
  bool fails = verdict->outcome == match::Outcome::fail;
  remember(context, image, verdict->outcome);
  if (fails && remarks == Remarks::refuse) {
    return is_left_to_the_start(*verdict, wish) ? Result<void>() : refused(*verdict, image);
  }
  for (const match::Clause& clause : verdict->clauses) {
    if (clause.outcome != match::Outcome::runs_but && clause.outcome != match::Outcome::fail) {
      continue;
    }
    context.log.warn(clause.reason +
                     (clause.remedy.empty() ? std::string() : "; " + clause.remedy));
  }
  return {};
}

Result<void> judge_present(const Context& context, const GpuWish& wish, const image::Image& image,
                           bool strict) {
  if (!strict && !TRY(is_doubtful(context, wish, image))) return {};
  auto verdict = TRY(judge_image(context, wish, image));
  if (!verdict) return {};
  bool fails = verdict->outcome == match::Outcome::fail;
  remember(context, image, verdict->outcome);
  if (fails || (strict && verdict->outcome != match::Outcome::pass)) {
    if (!strict && is_left_to_the_start(*verdict, wish)) return {};
    return refused(*verdict, image);
  }
  return {};
}

void judge_by_this_node(const Context& context, const GpuWish& wish, image::PullRequest& request) {
  auto job = job_of(context, wish.driver_mode, wish.needs_gpus);
  auto trust = facts_trust(context);
  if (!job.ok() || !trust.ok()) return;  // the start reports an unreadable policy
  request.facts = std::move(*trust);
  request.job = *job;
  request.job.requirements = false;
  request.job.other_command = wish.other_command;
  auto node = this_node(context);
  if (!node.ok()) {
    context.log.warn(to_line(node.error()) + ", taking the first entry of the platform");
    return;
  }
  request.node = std::move(*node);
}

Result<std::string> read_key_file(const std::string& path) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxKey));
  if (!text) return make_error(Kind::not_found, "there is no key file " + quote(path));
  return *std::move(text);
}

Result<image::FactsTrust> facts_trust(const Context& context) {
  policy::Compiled compiled = TRY(policy::read_compiled(context.paths.config));
  const policy::Match& match = compiled.policy.match;
  image::FactsTrust trust;
  trust.fetch = match.facts != policy::PublishedFacts::none;
  trust.signed_only = match.facts == policy::PublishedFacts::only_signed;
  if (!trust.fetch) return trust;
  for (const std::string& path : match.keys) {
    auto key = read_key_file(path);
    if (key.ok()) {
      trust.keys.push_back(std::move(*key));
    } else if (trust.signed_only) {
      return std::move(key).error();
    } else {
      context.log.warn(to_line(key.error()) + ", ignoring what it has signed");
    }
  }
  return trust;
}

}  // namespace berth::engine
