// SPDX-License-Identifier: Apache-2.0
// Ranks the entries of an index for a node: which fit, and which fits best. Pure.
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
  /// the index, so that a plain index means the same as to Docker.
  std::vector<size_t> order;

  const Judged* best() const { return order.empty() ? nullptr : &entries[order.front()]; }
};

/// The job to judge by: a publisher of variants expects GPUs to be used where there are any; a
/// plain image may be pulled for another reason.
Job usual_job(const std::vector<Candidate>& candidates, const node::Profile& node, Job job);

/// Which entries get words for their clauses: if only one is taken, words for the others would cost
/// more than everything else.
enum class Explain {
  best,  ///< the result of best(); of all if nothing fits, for refusal()
  all,
};

/// Judges and orders the entries. One that runs although another is closer to the processor gets a
/// remark.
Ranking rank(std::vector<Candidate> candidates, const node::Profile& node, const Job& job,
             Explain explain = Explain::all);

/// Why nothing runs, in one line, from the entry that came nearest: the one with the failing clause
/// that is checked last. "needs x86-64-v4 (declared); this node is x86-64-v3".
std::string refusal(const Ranking& ranking);

/// The label of an entry: its publisher's name for it, else what it was made for. Foreign text;
/// nothing if neither is known.
std::optional<std::string> entry_label(const Candidate& candidate);

/// "sha256:0123456789ab (cu128-v4)", or the digest alone; safe to print.
std::string entry_name(const Candidate& candidate);

/// "sha256:0123456789ab": enough to identify an entry.
std::string short_digest(const oci::Descriptor& descriptor);

}  // namespace berth::match
