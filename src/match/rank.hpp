// SPDX-License-Identifier: Apache-2.0
// Ranks the entries of an index for a node: which entries fit, and which one fits best. Pure.
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
  /// Indices into `entries` of the entries that do not fail, best first: by rank, then by the order
  /// of the index. So an index without declarations gives the same choice as with Docker.
  std::vector<size_t> order;

  const Judged* best() const { return order.empty() ? nullptr : &entries[order.front()]; }
};

/// The job to assume if the user did not say whether GPUs are needed: a publisher of variants
/// expects GPUs to be used if the node has any, but a plain image may be pulled for other purposes.
Job usual_job(const std::vector<Candidate>& candidates, const node::Profile& node, Job job);

/// Which entries get texts for their clauses. If only one entry is used, texts for the others would
/// cost more than everything else.
enum class Explain {
  best,  ///< only the result of best(); all entries if nothing fits, for refusal()
  all,
};

/// Judges and orders the entries. An entry gets a remark if the one closest to the processor is
/// closer than it, and as good for the GPUs.
Ranking rank(std::vector<Candidate> candidates, const node::Profile& node, const Job& job,
             Explain explain = Explain::all);

/// Why no entry runs, in one line, from the entry that came nearest: the one with the failing
/// clause that is checked last. Example: "needs x86-64-v4 (declared); this node is x86-64-v3".
std::string refusal(const Ranking& ranking);

/// The label of an entry: the name that its publisher gave it, else the hardware it was made for.
/// Untrusted text. Nothing if neither is known.
std::optional<std::string> entry_label(const Candidate& candidate);

/// "sha256:0123456789ab (cu128-v4)", or the short digest alone; safe to print.
std::string entry_name(const Candidate& candidate);

/// "sha256:0123456789ab": enough to identify an entry.
std::string short_digest(const oci::Descriptor& descriptor);

}  // namespace berth::match
