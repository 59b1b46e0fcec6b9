// SPDX-License-Identifier: Apache-2.0
// The class that judge.cpp and judge_gpus.cpp implement; not for other files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "match/cuda_rules.hpp"
#include "match/likeness.hpp"
#include "match/verdict.hpp"
#include "node/profile.hpp"

namespace berth::match {

/// GPU code from one source: the publisher's declaration, or a set of files.
struct CodePlace {
  const std::vector<facts::GpuCode>* code = nullptr;
  const facts::GpuCodeSet* found = nullptr;  ///< nullptr: declared
  bool main = false;
  bool zstd = false;
};

/// The texts of a clause.
struct Said {
  std::string reason;
  std::string remedy = {};
  std::string lift = {};
};

/// The subject of a clause ("cpu"), and the facts that it rests on.
struct About {
  std::string word;
  std::optional<Tier> tier;
  About(const char* text) : word(text) {}  // NOLINT: implicit on purpose, for a subject alone
  About(const char* text, std::optional<Tier> rests_on) : word(text), tier(rests_on) {}
};

/// The result of searching for code that runs on a GPU.
struct CodeSearch {
  size_t running = 0;               ///< number of places with code that runs
  uint32_t least = UINT32_MAX;      ///< the worst quality among the places that run
  bool jit = false;                 ///< the driver has to compile the code of one of them
  bool must_all = false;            ///< every place has to run
  const CodePlace* lost = nullptr;  ///< a place with code that does not run
  CodeFit lost_fit;
  bool is_unused() const { return lost != nullptr && (running == 0 || must_all); }
};

/// Why code does not run. `what` is what needs a newer driver ("PTX 8.4"), and `driver` the oldest
/// that does; empty: no driver helps, or none is known.
struct Lost {
  std::string why;
  std::string what;
  std::string_view driver;
};

/// The user-land driver of a program in the container; empty: unknown.
struct UserDriver {
  std::string_view version;
  std::string cuda;
};

/// "/opt/lib/libfoo.so and 2 more files", "/usr/bin/tool".
std::string files_text(uint64_t files, const std::string& example);
bool is_older(std::string_view version, std::string_view than);
bool holds(const VersionNeed& need, std::string_view version);
std::string need_text(const VersionNeed& need);  ///< "≥ 525.60.13"
/// Whether node::with() takes `lift` as one word. Some lifts have text of the image in them.
bool is_lift(std::string_view lift);
/// "kernel=6.1": a version that meets all `needs` of a key of node::with(); empty: none was found.
std::string lift_of(std::string_view key, const std::vector<VersionNeed>& needs);
/// "ran on a node like this (record of 2026-11-20, exit 0)"
std::string success_text(const RunRecord& record);

/// Judges one image for one node: checks one subject after the other and records clauses.
class Court {
 public:
  Court(const Candidate& candidate, const node::Profile& node, const Job& job, Words words)
      : candidate_(candidate),
        declared_(candidate.declared),
        found_(candidate.found ? &*candidate.found : nullptr),
        platform_(candidate.descriptor.platform ? &*candidate.descriptor.platform : nullptr),
        node_(node),
        job_(job),
        words_(words) {}

  Verdict judge();

 private:
  /// `say` makes the texts of the clause. They are most of the cost of a verdict, and most entries
  /// of a long index do not need them.
  template <class Say>
  void add(About about, Outcome outcome, Say say) {
    Said said = words_ == Words::all ? say() : Said();
    if (!is_lift(said.lift)) said.lift.clear();
    verdict_.clauses.push_back({std::move(about.word), outcome, std::move(said.reason),
                                std::move(said.remedy), std::move(said.lift), about.tier});
  }
  /// Adds a clause about which too little is known. It passes if the image has run on a node that
  /// is `alike`.
  template <class Say>
  void add_unknown(About about, std::optional<Alike> alike, Say say) {
    const RunRecord* run = alike ? witness(*alike) : nullptr;
    if (run == nullptr) {
      ++verdict_.rank.unknown;
      return add(std::move(about), Outcome::unknown, say);
    }
    about.tier = Tier::verified;
    add(std::move(about), Outcome::pass,
        [&] { return Said{success_text(*run) + ": " + say().reason}; });
  }

  void look_at_platform();
  void look_at_cpu();
  bool look_at_declared_cpu();
  bool look_at_cpu_features();
  void look_at_found_cpu();
  void look_at_kernel();
  void look_at_gpus();
  void look_at_driver_and_code();
  bool look_at_driver();
  bool look_at_image_driver();
  bool look_at_host_driver();
  bool look_at_requirements();
  bool look_at_glibc();
  void look_at_code();
  void look_at_code_of(const node::NodeGpu& gpu);
  std::vector<CodePlace> places_of_code() const;
  CodeSearch search(const std::vector<CodePlace>& places, const node::NodeGpu& gpu,
                    const UserDriver& driver) const;
  Lost why_unused(const CodeSearch& found, const UserDriver& driver) const;
  Lost lost_with(std::string_view driver) const;
  UserDriver user_driver() const;
  void look_at_mpi();
  void look_at_puzzles();
  void look_at_runs();
  void add_contradictions();

  bool has_code() const;  ///< whether the image has GPU code, as far as is known
  bool wants_gpus() const;
  /// The newest run that succeeded on a node that this node reaches(), or the newest run that
  /// failed on a node that this node is_within(). nullptr: there is none. The record may be
  /// untrusted.
  const RunRecord* newest_success(Alike alike) const;
  const RunRecord* newest_failure(Alike alike) const;
  /// newest_success(), if records are trusted.
  const RunRecord* witness(Alike alike) const {
    return candidate_.runs_believed ? newest_success(alike) : nullptr;
  }
  Tier tier_of_code() const;
  Tier tier_of_cuda() const;
  /// Whether a file belongs to the image's own command, and the job runs that command.
  bool is_main(bool main) const { return main && !job_.other_command; }
  std::string lacks(std::string_view target) const;
  std::string lift_of_features() const;
  std::string lift_of_code() const;
  Outcome lost_driver() const { return job_.needs_gpus ? Outcome::fail : Outcome::runs_but; }
  bool compat_fits() const;
  bool has_gpus(std::string_view vendor) const {
    return std::ranges::any_of(node_.gpus,
                               [&](const node::NodeGpu& gpu) { return gpu.vendor == vendor; });
  }
  bool wants_cuda() const;
  std::string cuda() const;
  std::string cuda_of_code() const;

  const Candidate& candidate_;
  const Declared& declared_;
  const facts::ImageFacts* found_;
  const oci::Platform* platform_;
  const node::Profile& node_;
  const Job& job_;
  const Words words_;
  Verdict verdict_;
};

}  // namespace berth::match
