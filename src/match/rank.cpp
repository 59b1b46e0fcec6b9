// SPDX-License-Identifier: Apache-2.0
#include "match/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "match/judge.hpp"

namespace berth::match {
namespace {

/// The position of a clause in the order of Court's checks: the later an entry fails, the nearer it
/// came.
size_t place_of(const Clause& clause) {
  static constexpr std::string_view kOrder[] = {"platform", "cpu",   "kernel",
                                                "driver",   "glibc", "gpu"};
  auto found = std::ranges::find(kOrder, clause.about);
  return static_cast<size_t>(found - std::begin(kOrder));
}

/// For each rank.code: (rank.cpu, position in the order) of the entry that is closest to the
/// processor, among the entries with this rank.code or a better one. An index may have a thousand
/// entries, so this looks at each entry once.
std::map<uint32_t, std::pair<uint32_t, size_t>> closest_by_code(const Ranking& ranking) {
  std::map<uint32_t, std::pair<uint32_t, size_t>> closest;
  for (size_t position = 0; position < ranking.order.size(); ++position) {
    const Rank& rank = ranking.entries[ranking.order[position]].verdict.rank;
    std::pair entry(rank.cpu, position);
    auto [place, added] = closest.try_emplace(rank.code, entry);
    if (!added) place->second = std::min(place->second, entry);
  }
  const std::pair<uint32_t, size_t>* better = nullptr;
  for (auto& [code, entry] : closest) {
    if (better != nullptr) entry = std::min(entry, *better);
    better = &entry;
  }
  return closest;
}

std::string closer_text(const Judged& entry, const Judged& closest, const node::Profile& node) {
  const Declared& declared = entry.candidate.declared;
  std::string made_for = !declared.cpu.empty() ? declared.cpu : join(declared.cpu_features, ", ");
  return fmt::format("built for {}, this node is {}: entry {} is closer",
                     made_for.empty() ? "any processor" : made_for, cpu_name(node),
                     entry_name(closest.candidate));
}

void add_closer_entries(Ranking& ranking, const node::Profile& node, Explain explain) {
  const auto by_code = closest_by_code(ranking);
  for (size_t index : ranking.order) {
    Judged& entry = ranking.entries[index];
    auto [cpu, position] = by_code.at(entry.verdict.rank.code);
    if (cpu == entry.verdict.rank.cpu) continue;
    const Judged& closest = ranking.entries[ranking.order[position]];
    bool told = explain == Explain::all || &entry == ranking.best();
    entry.verdict.clauses.push_back(
        {"cpu", Outcome::runs_but, told ? closer_text(entry, closest, node) : "", {}, {}});
    entry.verdict.outcome = std::max(entry.verdict.outcome, Outcome::runs_but);
  }
}

}  // namespace

Job usual_job(const std::vector<Candidate>& candidates, const node::Profile& node, Job job) {
  bool has_variants =
      std::ranges::any_of(candidates, [](const Candidate& one) { return one.declared.any; });
  job.needs_gpus = job.needs_gpus || (has_variants && !node.gpus.empty());
  return job;
}

Ranking rank(std::vector<Candidate> candidates, const node::Profile& node, const Job& job,
             Explain explain) {
  const Job usual = usual_job(candidates, node, job);
  const Words words = explain == Explain::all ? Words::all : Words::none;
  Ranking ranking;
  ranking.entries.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    Verdict verdict = judge(candidate, node, usual, words);
    if (verdict.outcome != Outcome::fail) ranking.order.push_back(ranking.entries.size());
    ranking.entries.push_back({std::move(candidate), std::move(verdict)});
  }
  std::ranges::stable_sort(ranking.order, [&](size_t a, size_t b) {
    return ranking.entries[a].verdict.rank < ranking.entries[b].verdict.rank;
  });
  if (words == Words::none) {
    bool fits = !ranking.order.empty();
    for (Judged& entry : ranking.entries) {
      if (!fits || &entry == ranking.best()) entry.verdict = judge(entry.candidate, node, usual);
    }
  }
  add_closer_entries(ranking, node, explain);
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

std::optional<std::string> entry_label(const Candidate& candidate) {
  auto name = candidate.descriptor.annotations.find(std::string(kPrefix) + "name");
  if (name != candidate.descriptor.annotations.end()) return name->second;
  std::vector<std::string> words;
  const Declared& declared = candidate.declared;
  if (!declared.cpu.empty()) words.push_back(declared.cpu);
  if (!declared.cuda.empty()) words.push_back("cuda " + declared.cuda);
  if (!declared.gpu.empty()) words.push_back(gpu_codes_text(declared.gpu, 3));
  if (!declared.mpi.empty()) words.push_back(declared.mpi);
  if (words.empty()) return std::nullopt;
  return join(words, ", ");
}

std::string entry_name(const Candidate& candidate) {
  std::string digest = short_digest(candidate.descriptor);
  auto label = entry_label(candidate);
  return label ? digest + " (" + escape_controls(*label) + ")" : digest;
}

std::string short_digest(const oci::Descriptor& descriptor) {
  return descriptor.digest.text().substr(0, 19);
}

}  // namespace berth::match
