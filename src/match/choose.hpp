// SPDX-License-Identifier: Apache-2.0
// Of all entries of an index, which one a node takes. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

struct Judged {
  Candidate candidate;
  Verdict verdict;
};

struct Ranking {
  std::vector<Judged> entries;  ///< in the order of the index
  /// Indices into `entries` of those that do not fail, best first: by rank, then by the order of
  /// the index, which is what makes a plain index mean what it means to Docker.
  std::vector<size_t> order;

  const Judged* best() const { return order.empty() ? nullptr : &entries[order.front()]; }
};

/// The job as it is judged: who publishes variants means their GPUs to be used where there are any;
/// a plain image may be pulled for another reason.
Job usual_job(const std::vector<Candidate>& candidates, const node::Profile& node, Job job);

/// Whose clauses have words: where only one is taken, the others' would cost more than all else.
enum class Explain {
  best,  ///< that of best(); of all where nothing fits, for refusal()
  all,
};

/// Judges and orders. What runs although another entry is closer to the processor says so.
Ranking rank(std::vector<Candidate> candidates, const node::Profile& node, const Job& job,
             Explain explain = Explain::all);

/// Why nothing runs, in one line, of the entry that came nearest: the one whose failing clause was
/// looked at last. "needs x86-64-v4 (declared); this node is x86-64-v3".
std::string refusal(const Ranking& ranking);

/// What people call an entry: the name that its publisher gave it, else what it was made for.
/// Foreign text; nothing where nothing is said.
std::optional<std::string> entry_label(const Candidate& candidate);

/// "sha256:0123456789ab (cu128-v4)", or the digest alone; safe to print.
std::string entry_name(const Candidate& candidate);

/// "sha256:0123456789ab": enough to find an entry by.
std::string short_digest(const oci::Descriptor& descriptor);

}  // namespace berth::match
