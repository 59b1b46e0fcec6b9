// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "facts/facts.hpp"
#include "match/declared.hpp"
#include "match/run_record.hpp"
#include "oci/image_spec.hpp"

/// What is judged, and what comes of it.
namespace berth::match {

/// Better ones first.
enum class Outcome { pass, runs_but, unknown, fail };
constexpr EnumNames<Outcome, 4> names_of(std::type_identity<Outcome>) {
  return {{{Outcome::pass, "pass"},
           {Outcome::runs_but, "runs-but"},
           {Outcome::unknown, "unknown"},
           {Outcome::fail, "fail"}}};
}

/// What a clause rests on.
enum class Tier {
  declared,  ///< what the publisher says
  found,     ///< what the files of the image have
  verified,  ///< a believed record of a run
};
constexpr EnumNames<Tier, 3> names_of(std::type_identity<Tier>) {
  return {{{Tier::declared, "declared"}, {Tier::found, "found"}, {Tier::verified, "verified"}}};
}

/// What runs, beside the image.
struct Job {
  UserLand user_land = UserLand::host;
  /// A driver that does not work with the image is a failure, else a remark. A node without GPUs,
  /// and code for others, are remarks at any rate: programs fall back to the processor.
  bool needs_gpus = false;
  /// NVIDIA_REQUIRE_* counts. The container's start asks too, and knows who may have disabled it.
  bool requirements = true;
  /// Something else than the image's own command runs: what that needs is a remark.
  bool other_command = false;
};

/// One thing that was looked at.
struct Clause {
  /// "platform", "cpu", "driver", "gpu", "glibc", "mpi", "kernel", "facts", "runs"
  std::string about;
  Outcome outcome = Outcome::pass;
  std::string reason;  ///< "needs x86-64-v4 (declared); this node is x86-64-v3"
  std::string remedy;  ///< what to try; empty where nothing helps
  /// The word of node::with() that lifts it: "cpu=x86-64-v4"; empty for what no node can change.
  std::string lift;
  /// None: neither, because nothing is said and nothing is known.
  std::optional<Tier> tier = {};
};

/// What entries are ordered by: less is better, member by member. field of docs/variants.md
struct Rank {
  /// 1: its code is for GPUs that the node has not. Before all else, for an entry for other
  /// hardware must not come before one that is merely doubted.
  uint32_t other = 0;
  uint32_t failed = 0;     ///< 1: has failed on a node like this, and not run since
  uint32_t unknown = 0;    ///< clauses of which nobody knows enough
  uint32_t code = 0;       ///< how far from the best code for GPUs
  uint32_t compat = 0;     ///< 1: needs its compat package
  uint32_t cpu = 0;        ///< how far the processor's own name is
  uint32_t libraries = 0;  ///< MPI and fabric that are not this node's
  int64_t priority = 0;    ///< of the author, negated
  int64_t cuda = 0;        ///< that is declared, as a number, negated
  auto operator<=>(const Rank&) const = default;
};

struct Verdict {
  Outcome outcome = Outcome::pass;  ///< the worst of the clauses
  std::vector<Clause> clauses;      ///< in a fixed order; those that pass too
  Rank rank;

  /// The clause that decides: the first of the worst; nullptr where all pass.
  const Clause* decisive() const;
};

/// One image of an index, or the only one.
struct Candidate {
  oci::Descriptor descriptor;
  Declared declared;                       ///< merged of all places
  std::optional<facts::ImageFacts> found;  ///< nothing: not known (yet)
  std::vector<RunRecord> runs;             ///< published records of runs
  bool runs_believed = false;              ///< by a key that the policy names; else they are shown
};

/// Whether clauses say what they mean, or have only their outcome.
enum class Words { none, all };

void fields(auto& v, Job& j) {
  v.optional("user_land", j.user_land);
  v.optional("needs_gpus", j.needs_gpus);
  v.always("requirements", j.requirements);
  v.optional("other_command", j.other_command);
}

void fields(auto& v, Clause& c) {
  v.required("about", c.about);
  v.required("outcome", c.outcome);
  v.required("reason", c.reason);
  v.always("remedy", c.remedy);
  v.always("lift", c.lift);
  v.always("tier", c.tier);
}

}  // namespace berth::match
