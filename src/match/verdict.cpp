// SPDX-License-Identifier: Apache-2.0
#include "match/verdict.hpp"

namespace berth::match {

const Clause* Verdict::decisive() const {
  const Clause* worst = nullptr;
  for (const Clause& clause : clauses) {
    if (clause.outcome == Outcome::pass) continue;
    if (worst == nullptr || worst->outcome < clause.outcome) worst = &clause;
  }
  return worst;
}

}  // namespace berth::match
