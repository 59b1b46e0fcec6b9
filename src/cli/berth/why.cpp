// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/match_flags.hpp"
#include "cli/berth/show/match_text.hpp"

namespace berth::cli {
namespace {

Result<int> run_why(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchFound found = TRY(find_match(session, o, arguments[0]));
  const match::Ranking& ranking = found.answer.ranking;
  if (o.format == "json") {
    print_json(session, match_json(found.offer, found.answer));
  } else if (const match::Judged* best = ranking.best()) {
    print(session, entry_text(*best, true));
  } else {
    print(session, "none of " + std::to_string(ranking.entries.size()) +
                       " entries: " + match::refusal(ranking) + "\n");
  }
  return match_status(ranking);
}

/// Finds an entry by its digest, the beginning of its digest, or the name that its publisher gave
/// it.
Result<size_t> find_entry(const match::Ranking& ranking, const std::string& word) {
  std::optional<size_t> found;
  std::string digest = word.starts_with("sha256:") ? word : "sha256:" + word;
  for (size_t i = 0; i < ranking.entries.size(); ++i) {
    const oci::Descriptor& entry = ranking.entries[i].candidate.descriptor;
    auto name = entry.annotations.find(std::string(match::kPrefix) + "name");
    bool named = name != entry.annotations.end() && name->second == word;
    if (!named && !entry.digest.text().starts_with(digest)) continue;
    if (found) {
      return make_error(Kind::usage, quote(word) + " matches several entries",
                        "give more of the digest");
    }
    found = i;
  }
  if (!found) {
    return make_error(Kind::not_found, "the image has no entry " + quote(word),
                      "'berth match' lists them");
  }
  return *found;
}

Result<int> run_why_not(Session& session, const MatchOptions& o, Arguments arguments) {
  MatchFound found = TRY(find_match(session, o, arguments[0]));
  match::Ranking& ranking = found.answer.ranking;
  size_t index = TRY(find_entry(ranking, arguments[1]));
  bool taken = !ranking.order.empty() && ranking.order.front() == index;
  if (o.format == "json") {
    std::vector<match::Judged> one{ranking.entries[index]};
    bool fails = one.front().verdict.outcome == match::Outcome::fail;
    engine::Answer alone{found.answer.node, {std::move(one), {}}};
    if (!fails) alone.ranking.order.push_back(0);
    print_json(session, match_json(found.offer, alone));
    return 0;
  }
  print(session, entry_text(ranking.entries[index], taken));
  const match::Judged* best = ranking.best();
  if (!taken && best != nullptr)
    print(session, "chosen instead: " + match::entry_name(best->candidate) + "\n");
  return 0;
}

}  // namespace

const Verb why_verb{
    .text = {.name = "why",
             .arguments = "IMAGE",
             .summary = "Explain why the chosen variant fits",
             .example = "berth why app:1.0",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(match_flags, run_why); },
};
const Verb why_not_verb{
    .text = {.name = "why-not",
             .arguments = "IMAGE ENTRY",
             .summary = "Explain why a variant is not chosen",
             .example = "berth why-not app:1.0 sha256:0f3c",
             .complete = Complete::image},
    .arity = {2, 2},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(match_flags, run_why_not); },
};

}  // namespace berth::cli
