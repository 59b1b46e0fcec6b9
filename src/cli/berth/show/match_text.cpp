// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/match_text.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/core/table.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

using match::Clause;
using match::Judged;
using match::Outcome;

std::string outcome_words(Outcome outcome) {
  return outcome == Outcome::runs_but ? "runs, but" : enum_text(outcome);
}

/// The label of an entry in a table.
std::string label_of(const match::Candidate& candidate) {
  return match::entry_label(candidate).value_or("-");
}

std::string platform_of(const match::Candidate& candidate) {
  const auto& platform = candidate.descriptor.platform;
  return platform ? oci::platform_text(*platform) : "-";
}

std::string reason_of(const match::Verdict& verdict) {
  const Clause* clause = verdict.decisive();
  return clause != nullptr ? clause->reason : "";
}

bool is_best(const match::Ranking& ranking, size_t index) {
  return !ranking.order.empty() && ranking.order.front() == index;
}

json::Value entry_json(const match::Ranking& ranking, size_t index) {
  const Judged& entry = ranking.entries[index];
  auto place = std::ranges::find(ranking.order, index);
  json::Array clauses;
  for (const Clause& clause : entry.verdict.clauses) clauses.push_back(json::to_value(clause));
  json::Value rank;  // null: the entry is never taken
  if (place != ranking.order.end()) rank = int64_t{place - ranking.order.begin()} + 1;
  return json::Object{{"digest", entry.candidate.descriptor.digest.text()},
                      {"name", json::to_value(match::entry_label(entry.candidate))},
                      {"platform", platform_of(entry.candidate)},
                      {"verdict", enum_text(entry.verdict.outcome)},
                      {"rank", std::move(rank)},
                      {"clauses", std::move(clauses)}};
}

}  // namespace

int match_status(const match::Ranking& ranking) {
  const Judged* best = ranking.best();
  if (best == nullptr) return kNothingRuns;
  if (best->verdict.outcome == Outcome::pass) return 0;
  return best->verdict.outcome == Outcome::runs_but ? kRunsBut : kNotKnown;
}

std::string match_table(const engine::Answer& answer) {
  Table table({" ", "ENTRY", "PLATFORM", "FOR", "VERDICT", "BECAUSE"});
  const match::Ranking& ranking = answer.ranking;
  for (size_t i = 0; i < ranking.entries.size(); ++i) {
    const Judged& entry = ranking.entries[i];
    table.add({is_best(ranking, i) ? "*" : " ", match::short_digest(entry.candidate.descriptor),
               platform_of(entry.candidate), label_of(entry.candidate),
               outcome_words(entry.verdict.outcome), reason_of(entry.verdict)});
  }
  return table.text();
}

std::string fleet_table(const std::vector<engine::Answer>& answers) {
  Table table({"NODE", "TAKES", "FOR", "VERDICT", "BECAUSE"});
  for (const engine::Answer& answer : answers) {
    const Judged* best = answer.ranking.best();
    if (best == nullptr) {
      table.add({answer.node.name, "-", "-", "fail", match::refusal(answer.ranking)});
    } else {
      table.add({answer.node.name, match::short_digest(best->candidate.descriptor),
                 label_of(best->candidate), outcome_words(best->verdict.outcome),
                 reason_of(best->verdict)});
    }
  }
  return table.text();
}

std::string entry_text(const Judged& entry, bool taken) {
  std::string text = match::entry_name(entry.candidate) + ": " +
                     outcome_words(entry.verdict.outcome) +
                     (taken ? ", and is the chosen one" : "") + "\n";
  Table table({"ABOUT", "VERDICT", "BECAUSE", "TRY"});
  for (const Clause& clause : entry.verdict.clauses) {
    std::string advice = clause.remedy;
    if (advice.empty() && !clause.lift.empty() && clause.outcome != Outcome::pass) {
      advice = "a node with " + clause.lift;
    }
    table.add({clause.about, outcome_words(clause.outcome), clause.reason, advice});
  }
  return text + table.text();
}

json::Value match_json(const engine::Offer& offer, const engine::Answer& answer) {
  json::Array entries;
  for (size_t i = 0; i < answer.ranking.entries.size(); ++i) {
    entries.push_back(entry_json(answer.ranking, i));
  }
  const Judged* best = answer.ranking.best();
  json::Value taken;
  if (best != nullptr) taken = best->candidate.descriptor.digest.text();
  return json::Object{{"reference", offer.reference},
                      {"digest", offer.digest},
                      {"node", answer.node.name},
                      {"taken", std::move(taken)},
                      {"entries", std::move(entries)}};
}

}  // namespace berth::cli
