// SPDX-License-Identifier: Apache-2.0
#include "match/verdict.hpp"

#include "base/text.hpp"

namespace berth::match {

std::string to_json_text(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"pass", "runs-but", "unknown", "fail"};
  return std::string(kNames[static_cast<size_t>(outcome)]);
}

Result<Outcome> from_json_text(std::string_view text, std::type_identity<Outcome>) {
  for (Outcome outcome : {Outcome::pass, Outcome::runs_but, Outcome::unknown, Outcome::fail}) {
    if (text == to_json_text(outcome)) return outcome;
  }
  return make_error(Kind::corrupt, "no outcome: " + quote(text));
}

std::string to_json_text(Tier tier) {
  static constexpr std::string_view kNames[] = {"declared", "found", "verified"};
  return std::string(kNames[static_cast<size_t>(tier)]);
}

Result<Tier> from_json_text(std::string_view text, std::type_identity<Tier>) {
  for (Tier tier : {Tier::declared, Tier::found, Tier::verified}) {
    if (text == to_json_text(tier)) return tier;
  }
  return make_error(Kind::corrupt, "no tier of facts: " + quote(text));
}

const Clause* Verdict::decisive() const {
  const Clause* worst = nullptr;
  for (const Clause& clause : clauses) {
    if (clause.outcome == Outcome::pass) continue;
    if (worst == nullptr || worst->outcome < clause.outcome) worst = &clause;
  }
  return worst;
}

}  // namespace berth::match
