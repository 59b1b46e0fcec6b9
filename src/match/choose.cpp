// SPDX-License-Identifier: Apache-2.0
#include "match/choose.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::match {
namespace {

/// What Court looks at, in this order: an entry that fails late comes near.
size_t place_of(const Clause& clause) {
  static constexpr std::string_view kOrder[] = {"platform", "cpu",   "kernel",
                                                "driver",   "glibc", "gpu"};
  auto found = std::find(std::begin(kOrder), std::end(kOrder), clause.about);
  return static_cast<size_t>(found - std::begin(kOrder));
}

void tell_of_closer_ones(Ranking& ranking, const node::Profile& node) {
  if (ranking.order.size() < 2) return;
  // Of those that are as good for the GPUs: another processor is no reason to lose them.
  const Judged* closest = nullptr;
  for (size_t index : ranking.order) {
    const Judged& entry = ranking.entries[index];
    if (closest == nullptr || entry.verdict.rank.cpu < closest->verdict.rank.cpu) closest = &entry;
  }
  std::string closer = short_digest(closest->candidate.descriptor);
  for (size_t index : ranking.order) {
    Judged& entry = ranking.entries[index];
    bool worse = closest->verdict.rank.code > entry.verdict.rank.code;
    if (entry.verdict.rank.cpu <= closest->verdict.rank.cpu || worse) continue;
    const Declared& declared = entry.candidate.declared;
    std::string made_for = !declared.cpu.empty() ? declared.cpu : join(declared.cpu_features, ", ");
    entry.verdict.clauses.push_back(
        {"cpu",
         Outcome::runs_but,
         fmt::format("built for {}, this node is {}: entry {} is closer",
                     made_for.empty() ? "any processor" : made_for, cpu_name(node), closer),
         {},
         {}});
    entry.verdict.outcome = std::max(entry.verdict.outcome, Outcome::runs_but);
  }
}

}  // namespace

Job usual_job(const std::vector<Candidate>& candidates, const node::Profile& node, Job job) {
  bool has_variants = std::any_of(candidates.begin(), candidates.end(),
                                  [](const Candidate& one) { return one.declared.any; });
  job.needs_gpus = job.needs_gpus || (has_variants && !node.gpus.empty());
  return job;
}

Ranking rank(std::vector<Candidate> candidates, const node::Profile& node, const Job& job) {
  const Job usual = usual_job(candidates, node, job);
  Ranking ranking;
  ranking.entries.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    Verdict verdict = judge(candidate, node, usual);
    if (verdict.outcome != Outcome::fail) ranking.order.push_back(ranking.entries.size());
    ranking.entries.push_back({std::move(candidate), std::move(verdict)});
  }
  std::stable_sort(ranking.order.begin(), ranking.order.end(), [&](size_t a, size_t b) {
    return ranking.entries[a].verdict.rank < ranking.entries[b].verdict.rank;
  });
  tell_of_closer_ones(ranking, node);
  return ranking;
}

std::string refusal(const Ranking& ranking) {
  const Clause* nearest = nullptr;
  for (const Judged& entry : ranking.entries) {
    const Clause* clause = entry.verdict.decisive();
    if (clause == nullptr) continue;
    if (nearest == nullptr || place_of(*nearest) < place_of(*clause)) nearest = clause;
  }
  return nearest != nullptr ? nearest->reason : "it has no entry";
}

std::string short_digest(const oci::Descriptor& descriptor) {
  return descriptor.digest.text().substr(0, 19);
}

}  // namespace berth::match
