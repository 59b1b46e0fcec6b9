// SPDX-License-Identifier: Apache-2.0
#include "hub/choice.hpp"

#include "match/verdict.hpp"

namespace berth::hub {

Result<Choice> choose_entry(std::string_view document, std::string_view media_type,
                            const node::Profile& node, const match::Job& job,
                            const Beside& beside) {
  auto parsed = oci::parse_manifest(document, media_type);
  if (!parsed.ok() && parsed.error().kind != Kind::unsupported) return std::move(parsed).error();
  const auto* index = parsed.ok() ? std::get_if<oci::Index>(&*parsed) : nullptr;
  if (index == nullptr) return Choice{};

  transfer::Variants variants = TRY(transfer::list_variants(beside.fetch, *index, std::nullopt));
  std::optional<image::PublishedFacts> published = TRY(beside.facts());
  std::vector<match::Candidate> candidates;
  candidates.reserve(variants.entries.size());
  for (const transfer::Variants::Entry& entry : variants.entries) {
    candidates.push_back(transfer::candidate_of(entry.descriptor, nullptr, published));
  }
  match::Ranking ranking = match::rank(std::move(candidates), node, job, match::Explain::best);
  const match::Judged* best = ranking.best();
  if (best == nullptr) return Choice{std::nullopt, match::refusal(ranking)};
  return Choice{best->candidate.descriptor, {}};
}

std::optional<Choice> ChoiceCache::find(const std::string& key, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  auto kept = choices_.find(key);
  if (kept == choices_.end() || kept->second.end <= now) return std::nullopt;
  return kept->second.choice;
}

void ChoiceCache::put(const std::string& key, const Choice& choice, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (choices_.size() >= kMost) {
    std::erase_if(choices_, [now](const auto& one) { return one.second.end <= now; });
  }
  // Clients that invent many nodes only make the cache useless.
  if (choices_.size() >= kMost) choices_.clear();
  choices_[key] = {choice, now + kLife};
}

}  // namespace berth::hub
