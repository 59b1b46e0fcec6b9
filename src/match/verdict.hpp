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

/// The input and the result of judging.
namespace berth::match {

/// Best first.
enum class Outcome { pass, runs_but, unknown, fail };
constexpr EnumNames<Outcome, 4> names_of(std::type_identity<Outcome>) {
  return {{{Outcome::pass, "pass"},
           {Outcome::runs_but, "runs-but"},
           {Outcome::unknown, "unknown"},
           {Outcome::fail, "fail"}}};
}

/// The basis of a clause.
enum class Tier {
  declared,  ///< the publisher declares it
  found,     ///< found in the files of the image
  verified,  ///< proven by a trusted record of a run
};
constexpr EnumNames<Tier, 3> names_of(std::type_identity<Tier>) {
  return {{{Tier::declared, "declared"}, {Tier::found, "found"}, {Tier::verified, "verified"}}};
}

/// Properties of the run that are not in the image.
struct Job {
  UserLand user_land = UserLand::host;
  /// An unusable driver is a failure instead of a remark. A node without GPUs, or code for other
  /// GPUs, is always a remark: programs fall back to the processor.
  bool needs_gpus = false;
  /// NVIDIA_REQUIRE_* counts. It is checked again when the container starts, and only there is it
  /// known whether the user disabled it.
  bool requirements = true;
  /// A command other than the image's own runs. Requirements of the image's own command are then
  /// only remarks.
  bool other_command = false;
};

/// The result of one check.
struct Clause {
  /// "platform", "cpu", "driver", "gpu", "glibc", "mpi", "kernel", "facts", "runs"
  std::string about;
  Outcome outcome = Outcome::pass;
  std::string reason;  ///< "needs x86-64-v4 (declared); this node is x86-64-v3"
  std::string remedy;  ///< a suggestion; empty if nothing helps
  /// The argument of node::with() that makes the clause pass: "cpu=x86-64-v4"; empty if no node
  /// does.
  std::string lift;
  /// Nothing: the publisher declares nothing and nothing is known.
  std::optional<Tier> tier = {};
};

/// The sort key of entries, compared member by member; lower is better. docs/variants.md
struct Rank {
  /// 1: its code is for GPUs that the node does not have. This is the first key, because an entry
  /// for other hardware must not precede an entry that is merely in doubt.
  uint32_t other = 0;
  uint32_t failed = 0;     ///< 1: failed on a node like this and has not succeeded there since
  uint32_t unknown = 0;    ///< number of clauses without enough facts
  uint32_t code = 0;       ///< distance from the best code for the GPUs
  uint32_t compat = 0;     ///< 1: needs its compat package
  uint32_t cpu = 0;        ///< distance from the processor
  uint32_t libraries = 0;  ///< number of MPI and fabric libraries that differ from the node's
  int64_t priority = 0;    ///< the author's priority, negated
  int64_t cuda = 0;        ///< the declared CUDA version as a number, negated
  auto operator<=>(const Rank&) const = default;
};

struct Verdict {
  Outcome outcome = Outcome::pass;  ///< the worst of the clauses
  std::vector<Clause> clauses;      ///< in a fixed order; including those that pass
  Rank rank;

  /// The deciding clause: the first one with the worst outcome; nullptr if all pass.
  const Clause* decisive() const {
    const Clause* worst = nullptr;
    for (const Clause& clause : clauses) {
      if (clause.outcome == Outcome::pass) continue;
      if (worst == nullptr || worst->outcome < clause.outcome) worst = &clause;
    }
    return worst;
  }
};

/// One image of an index, or an image without an index.
struct Candidate {
  oci::Descriptor descriptor;
  Declared declared;                       ///< merged from all sources
  std::optional<facts::ImageFacts> found;  ///< nothing: not known, or not known yet
  std::vector<RunRecord> runs;             ///< published records of runs
  bool runs_believed = false;              ///< a key in the policy signed them; otherwise they are
                                           ///< only shown
};

/// Whether clauses get texts, or only an outcome.
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
