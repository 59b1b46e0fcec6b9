// SPDX-License-Identifier: Apache-2.0
// What holds of every choice, over generated indexes and nodes.
#include "match/rank.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "match/judge.hpp"
#include "match/verdict.hpp"
#include "node/archspec.hpp"
#include "unit/match/node_of.hpp"

namespace berth::match {
namespace {

using Axes = std::map<std::string, std::string>;

oci::Descriptor descriptor(size_t number, const Axes& axes) {
  oci::Descriptor made;
  std::string hex = std::to_string(number);
  made.digest = *Digest::parse("sha256:" + std::string(64 - hex.size(), '0') + hex);
  made.platform = oci::Platform{"amd64", "linux", {}, {}, {}};
  for (const auto& [axis, value] : axes) made.annotations[std::string(kPrefix) + axis] = value;
  return made;
}

Candidate candidate(size_t number, const Axes& axes) {
  Candidate made;
  made.descriptor = descriptor(number, axes);
  made.declared = read_declared(made.descriptor);
  return made;
}

/// Names entries by their number, so that a test can say what it expects.
std::string taken(const Ranking& ranking) {
  const Judged* best = ranking.best();
  if (best == nullptr) return "none";
  auto name = best->candidate.descriptor.annotations.find(std::string(kPrefix) + "name");
  return name == best->candidate.descriptor.annotations.end() ? "generic" : name->second;
}

// ---- the founding story
// -------------------------------------------------------------------------- Source: "Optimized
// Container Images for AI/ML and HPC" (2019): images of TensorFlow for two CUDA generations, two
// processors and two GPUs, which bring their own user-land driver.

std::vector<Candidate> story() {
  return {
      candidate(1, {}),
      candidate(2,
                {{"name", "nccl90"}, {"cuda", "9.0"}, {"user-driver", "390.30"}, {"gpu", "sm_70"}}),
      candidate(3,
                {{"name", "nccl92"}, {"cuda", "9.2"}, {"user-driver", "396.44"}, {"gpu", "sm_70"}}),
      candidate(4, {{"name", "broadwell"},
                    {"cuda", "9.2"},
                    {"user-driver", "396.44"},
                    {"gpu", "sm_70"},
                    {"cpu", "broadwell"}}),
      candidate(5, {{"name", "skylake512"},
                    {"cuda", "9.2"},
                    {"user-driver", "396.44"},
                    {"gpu", "sm_70"},
                    {"cpu", "skylake-avx512"}}),
      candidate(6, {{"name", "broadwell_nvcap52"},
                    {"cuda", "9.2"},
                    {"user-driver", "396.44"},
                    {"gpu", "sm_52"},
                    {"cpu", "broadwell"}}),
  };
}

const Job kImageMode{UserLand::image, true};

TEST(Story, the_m60_on_broadwell_takes_the_image_that_was_made_for_both) {
  Ranking ranking = rank(story(), node_of("cpu=broadwell driver=396.44 gpu=sm_52"), kImageMode);
  EXPECT_EQ(taken(ranking), "broadwell_nvcap52");
  EXPECT_EQ(ranking.best()->verdict.outcome, Outcome::pass);
}

TEST(Story, cuda_90_is_refused_by_the_newer_module) {
  Ranking ranking = rank(story(), node_of("cpu=broadwell driver=396.44 gpu=sm_37"), kImageMode);
  const Verdict& nccl90 = ranking.entries[1].verdict;
  EXPECT_EQ(nccl90.outcome, Outcome::fail);
  EXPECT_EQ(nccl90.decisive()->reason,
            "user-land driver 390.30 in the image, kernel module 396.44");
  const Verdict& nccl92 = ranking.entries[2].verdict;
  EXPECT_EQ(nccl92.outcome, Outcome::runs_but);
  EXPECT_THAT(nccl92.decisive()->reason, testing::HasSubstr("sm_70 (declared), no PTX"));
}

TEST(Story, the_older_module_takes_cuda_90_and_no_other) {
  Ranking ranking = rank(story(), node_of("cpu=broadwell driver=390.30 gpu=sm_70"), kImageMode);
  EXPECT_EQ(taken(ranking), "nccl90");
}

TEST(Story, avx512_on_broadwell_is_refused_instead_of_dumping_core) {
  Ranking ranking = rank(story(), node_of("cpu=broadwell driver=396.44 gpu=sm_52"), kImageMode);
  const Verdict& skylake = ranking.entries[4].verdict;
  EXPECT_EQ(skylake.outcome, Outcome::fail);
  EXPECT_THAT(skylake.decisive()->reason, testing::HasSubstr("avx512"));
}

TEST(Story, a_skylake_node_with_a_v100_takes_the_skylake_image) {
  Ranking ranking =
      rank(story(), node_of("cpu=skylake_avx512 driver=396.44 gpu=sm_70"), kImageMode);
  EXPECT_EQ(taken(ranking), "skylake512");
}

TEST(Story, a_node_without_gpus_takes_the_generic_image) {
  EXPECT_EQ(taken(rank(story(), node_of("cpu=broadwell"), kImageMode)), "generic");
}

// ---- plain images
// --------------------------------------------------------------------------------

TEST(Rank, a_plain_index_means_its_first_entry) {
  std::vector<Candidate> plain = {candidate(1, {}), candidate(2, {}), candidate(3, {})};
  Ranking ranking = rank(plain, node_of("cpu=zen4 gpu=sm_90 driver=570.10"), {});
  EXPECT_EQ(ranking.order, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(ranking.best()->verdict.outcome, Outcome::pass);
}

TEST(Rank, the_closest_level_is_taken_and_others_say_so) {
  std::vector<Candidate> levels = {candidate(1, {}), candidate(2, {{"cpu", "x86-64-v2"}}),
                                   candidate(3, {{"cpu", "x86-64-v4"}}),
                                   candidate(4, {{"cpu", "x86-64-v3"}})};
  Ranking ranking = rank(levels, node_of("cpu=haswell"), {});
  EXPECT_EQ(ranking.order, (std::vector<size_t>{3, 1, 0}));
  EXPECT_EQ(ranking.entries[0].verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(ranking.entries[0].verdict.decisive()->reason,
              testing::HasSubstr("entry sha256:000000000000 (x86-64-v3) is closer"));
}

TEST(Rank, an_entry_that_is_closer_counts_unless_its_code_is_worse) {
  std::vector<Candidate> entries = {candidate(1, {{"cpu", "x86-64-v4"}, {"gpu", "compute_70"}}),
                                    candidate(2, {{"cpu", "x86-64-v3"}, {"gpu", "sm_90"}}),
                                    candidate(3, {{"cpu", "x86-64-v2"}, {"gpu", "sm_90"}})};
  Ranking ranking =
      rank(entries, node_of("cpu=skylake_avx512 gpu=sm_90 driver=570.10"), {}, Explain::all);
  EXPECT_EQ(ranking.entries[1].verdict.outcome, Outcome::pass);
  ASSERT_EQ(ranking.entries[2].verdict.outcome, Outcome::runs_but);
  EXPECT_THAT(ranking.entries[2].verdict.decisive()->reason,
              testing::HasSubstr("entry sha256:000000000000 (x86-64-v3, sm_90) is closer"));
}

TEST(Rank, an_entry_for_a_feature_is_closer_than_one_that_does_without) {
  std::vector<Candidate> entries = {candidate(1, {}), candidate(2, {{"cpu", "x86-64-v4"}}),
                                    candidate(3, {{"cpu-features", "avx512_vnni"}}),
                                    candidate(4, {{"cpu-features", "amx_tile"}})};
  EXPECT_EQ(rank(entries, node_of("cpu=sapphirerapids"), {}).order,
            (std::vector<size_t>{3, 2, 1, 0}));
  EXPECT_EQ(rank(entries, node_of("cpu=cascadelake"), {}).order, (std::vector<size_t>{2, 1, 0}));
  EXPECT_EQ(rank(entries, node_of("cpu=haswell"), {}).order, (std::vector<size_t>{0}));
}

TEST(Rank, the_authors_priority_decides_between_equals) {
  std::vector<Candidate> equals = {candidate(1, {{"cuda", "12.4"}}),
                                   candidate(2, {{"cuda", "12.4"}, {"priority", "5"}})};
  EXPECT_EQ(rank(equals, node_of("gpu=sm_90 driver=570.10"), {}).order.front(), 1U);
}

TEST(Rank, of_several_cudas_that_run_the_newest_is_taken) {
  std::vector<Candidate> cudas = {
      candidate(1, {}), candidate(2, {{"cuda", "11.8"}}), candidate(3, {{"cuda", "12.8"}}),
      candidate(4, {{"cuda", "12.4"}}), candidate(5, {{"cuda", "13.0"}})};
  EXPECT_EQ(rank(cudas, node_of("gpu=sm_90 driver=570.10"), {}).order,
            (std::vector<size_t>{2, 3, 1, 0}));
  EXPECT_EQ(rank(cudas, node_of("cpu=zen4 gpu=none"), {}).order.front(), 0U);
  cudas[1] = candidate(2, {{"cuda", "11.8"}, {"priority", "1"}});
  EXPECT_EQ(rank(cudas, node_of("gpu=sm_90 driver=570.10"), {}).order.front(), 1U);
}

TEST(Rank, what_comes_nearest_explains_a_refusal) {
  std::vector<Candidate> none = {candidate(1, {{"cpu", "zen4"}}), candidate(2, {{"cuda", "13.0"}})};
  EXPECT_THAT(refusal(rank(none, node_of("cpu=haswell gpu=sm_90 driver=535.54"), {})),
              testing::HasSubstr("CUDA 13.0 needs driver 580"));
}

// ---- generated
// -----------------------------------------------------------------------------------

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  template <class T>
  const T& any(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_)];
  }
  bool maybe() { return std::uniform_int_distribution<int>(0, 1)(random_) == 1; }

  Axes axes() {
    static const std::vector<std::string> kCpus = {"x86-64-v2", "x86-64-v3", "x86-64-v4",
                                                   "haswell",   "broadwell", "skylake_avx512",
                                                   "zen2",      "zen4",      "sapphirerapids"};
    static const std::vector<std::string> kGpus = {"sm_37", "sm_52",  "sm_70 compute_70@6.2",
                                                   "sm_80", "sm_90a", "sm_75 sm_86 compute_86@8.0",
                                                   "none",  "gfx90a", "sm_100f"};
    static const std::vector<std::string> kCudas = {"9.0", "9.2", "11.8", "12.4", "13.0"};
    // None that a later processor of the same vendor has given up.
    static const std::vector<std::string> kFeatures = {"avx2 fma",          "avx512_vnni",
                                                       "amx_tile amx_int8", "sha_ni",
                                                       "avx512_bf16",       "avx512f avx512vl"};
    Axes made;
    if (maybe()) made["cpu"] = any(kCpus);
    if (maybe() && maybe()) made["cpu-features"] = any(kFeatures);
    if (maybe()) made["gpu"] = any(kGpus);
    if (maybe()) made["cuda"] = any(kCudas);
    if (maybe() && maybe()) made["kernel"] = ">=5.10";
    if (maybe() && maybe()) made["driver"] = ">=450";
    if (maybe() && maybe()) made["priority"] = std::to_string(random_() % 5);
    return made;
  }
  std::vector<Candidate> index() {
    std::vector<Candidate> made = {candidate(0, {})};  // the generic one first
    size_t count = 1 + random_() % 12;
    for (size_t i = 1; i <= count; ++i) made.push_back(candidate(i, axes()));
    return made;
  }
  /// One with clauses of which not enough is known, and records of runs, most of them believed.
  std::vector<Candidate> index_with_runs() {
    auto made = index();
    for (Candidate& one : made) {
      if (maybe() && maybe()) {
        one.declared.puzzles.push_back(any<std::string>({"cpu 'x'", "gpu 'x'", "kernel 'x'", "z"}));
      }
      for (size_t count = random_() % 4; count > 0; --count) one.runs.push_back(run());
      one.runs_believed = maybe() || maybe();
    }
    return made;
  }
  RunRecord run() {
    node::Profile node = node_of(words());
    RunRecord made;
    made.time = "2026-11-2" + std::to_string(random_() % 10) + "T12:00:00Z";
    made.exit = maybe() ? 0 : 132;
    made.architecture = node.architecture;
    made.cpu = {node.cpu.microarchitecture, node.cpu.level};
    made.kernel = node.kernel.release;
    made.driver = {"nvidia", node.driver.module_version};
    for (const node::NodeGpu& gpu : node.gpus) {
      made.gpus.push_back({gpu.vendor, gpu.model, gpu.compute_capability, gpu.architecture});
    }
    return made;
  }
  std::string words() {
    static const std::vector<std::string> kCpus = {"x86-64",         "haswell", "broadwell",
                                                   "skylake_avx512", "zen2",    "zen4"};
    static const std::vector<std::string> kGpus = {"none",  "sm_37",       "sm_52", "sm_70",
                                                   "sm_80", "sm_86,sm_80", "sm_90", "sm_103"};
    static const std::vector<std::string> kDrivers = {"390.30", "396.44", "470.82",
                                                      "535.54", "570.10", "580.65"};
    return "cpu=" + any(kCpus) + " gpu=" + any(kGpus) + " driver=" + any(kDrivers) +
           (maybe() ? " kernel=6.1" : " kernel=4.18");
  }

  /// As index(), and with what published facts of other publishers may say: every word of them is
  /// foreign.
  std::vector<Candidate> foreign_index() {
    static const std::vector<std::string> kArchitectures = {"amd64", "arm64", "vax",
                                                            "arm64 gpu=none"};
    static const std::vector<std::string> kNeeds = {
        ">=525.60.13 <570", ">470", "<390.30", "=535", "<=340", ">=999"};
    static const std::vector<std::string> kKernels = {"<5.10", ">6.1", "<4", "<=4.4",
                                                      ">=5.10 <6.0"};
    std::vector<Candidate> made = index();
    for (Candidate& one : made) {
      if (maybe() && maybe()) one.descriptor.platform->architecture = any(kArchitectures);
      if (maybe() && maybe()) one.descriptor.platform->os = "windows";
      auto& axes = one.descriptor.annotations;
      if (maybe() && maybe()) axes[std::string(kPrefix) + "driver"] = any(kNeeds);
      if (maybe() && maybe()) axes[std::string(kPrefix) + "kernel"] = any(kKernels);
      if (maybe() && maybe()) axes[std::string(kPrefix) + "user-driver"] = "390.30";
      one.declared = read_declared(one.descriptor);
      if (maybe()) one.found = facts();
    }
    return made;
  }
  facts::ImageFacts facts() {
    using Kind = facts::GpuCode::Kind;
    static const std::vector<Kind> kKinds = {Kind::sass, Kind::ptx, Kind::ir, Kind::gfx};
    static const std::vector<std::string> kArches = {
        "75", "87", "90a", "100f", "gfx90a", "gfx942:sramecc+:xnack-", "80 cpu", "9\x1b[0m", ""};
    static const std::vector<std::string> kIsas = {"8.4", "8.7", "99.0", "x y", ""};
    facts::ImageFacts made;
    for (size_t count = random_() % 3; count > 0; --count) {
      facts::GpuCodeSet& set = made.gpu_code.emplace_back();
      for (size_t codes = random_() % 3; codes > 0; --codes) {
        set.code.push_back({any(kKinds), any(kArches), any(kIsas)});
      }
      set.zstd = maybe();
      set.main = maybe();
      set.files = 1;
      set.example = "/opt/libkernels.so";
    }
    if (maybe())
      made.cuda_runtimes.push_back(any<std::string>({"12.4", "11.2", "13.0", "9.2", "x"}));
    if (maybe()) made.user_driver = any<std::string>({"390.157", "550.54.14", "570 gpu=none"});
    if (maybe() && maybe()) made.architecture = any<std::string>({"amd64", "arm64", "vax"});
    if (maybe() && maybe())
      made.cpu.push_back({{static_cast<uint32_t>(random_() % 9), "note"}, 1, "/a", true});
    return made;
  }

  std::mt19937 random_;
};

/// Many cases in one test: a process for each would take longer than all of them.
void for_each_case(const std::function<void(Generator&)>& check) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator generator(seed);
    check(generator);
    if (testing::Test::HasFailure()) return;
  }
}

void check_same_answer(Generator& generator) {
  auto entries = generator.index();
  node::Profile node = node_of(generator.words());
  Ranking once = rank(entries, node, {});
  Ranking again = rank(entries, node, {});
  EXPECT_EQ(once.order, again.order);
  // Whoever shuffles an index of entries with priorities of their own changes nothing but ties.
  for (size_t i = 1; i < once.order.size(); ++i) {
    const Rank& better = once.entries[once.order[i - 1]].verdict.rank;
    const Rank& worse = once.entries[once.order[i]].verdict.rank;
    EXPECT_TRUE(better < worse || (better == worse && once.order[i - 1] < once.order[i]));
  }
}

// Who takes the best alone is told of it, or of the refusal, what the whole table says.
void check_explained_best(Generator& generator) {
  auto entries = generator.index_with_runs();
  node::Profile node = node_of(generator.words());
  Job job{UserLand::host, true};
  Ranking all = rank(entries, node, job);
  Ranking best = rank(entries, node, job, Explain::best);
  ASSERT_EQ(all.order, best.order);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Verdict& told = all.entries[i].verdict;
    const Verdict& silent = best.entries[i].verdict;
    EXPECT_EQ(told.outcome, silent.outcome);
    ASSERT_EQ(told.clauses.size(), silent.clauses.size());
    bool explained = all.best() == nullptr || all.best() == &all.entries[i];
    for (size_t k = 0; k < told.clauses.size(); ++k) {
      EXPECT_EQ(silent.clauses[k].reason, explained ? told.clauses[k].reason : "");
    }
  }
  if (all.best() == nullptr) {
    EXPECT_EQ(refusal(all), refusal(best));
  }
}

void check_gains(Generator& generator) {
  auto entries = generator.index();
  std::string had = generator.words();
  Ranking before = rank(entries, node_of(had), {UserLand::host, true});
  // Later words win. Each is more than what any generated node has, or as much.
  for (std::string_view gain : {"cpu=sapphirerapids", "driver=590.44", "kernel=6.18"}) {
    // zen2 and zen4 are not below sapphirerapids: another vendor's processor is not a gain.
    if (gain.starts_with("cpu") && had.find("cpu=zen") != std::string::npos) continue;
    Ranking after = rank(entries, node_of(had + " " + std::string(gain)), {UserLand::host, true});
    for (size_t i = 0; i < entries.size(); ++i) {
      if (before.entries[i].verdict.outcome == Outcome::fail) continue;
      EXPECT_NE(after.entries[i].verdict.outcome, Outcome::fail)
          << had << " + " << gain << ": " << after.entries[i].verdict.decisive()->reason;
    }
  }
}

bool is_told_of_a_failure(const Verdict& verdict) {
  return std::any_of(verdict.clauses.begin(), verdict.clauses.end(), [](const Clause& clause) {
    return clause.about == "runs" && clause.outcome != Outcome::pass;
  });
}

// A node that gains an ability reaches more of the nodes on which something ran, and is within
// fewer of those on which it failed.
void check_gains_with_runs(Generator& generator) {
  auto entries = generator.index_with_runs();
  std::string had = generator.words();
  Ranking before = rank(entries, node_of(had), {UserLand::host, true});
  for (std::string_view gain : {"cpu=sapphirerapids", "driver=590.44", "kernel=6.18"}) {
    if (gain.starts_with("cpu") && had.find("cpu=zen") != std::string::npos) continue;
    Ranking after = rank(entries, node_of(had + " " + std::string(gain)), {UserLand::host, true});
    for (size_t i = 0; i < entries.size(); ++i) {
      const Verdict& was = before.entries[i].verdict;
      const Verdict& is = after.entries[i].verdict;
      if (was.outcome == Outcome::fail) continue;
      EXPECT_NE(is.outcome, Outcome::fail) << had << " + " << gain;
      EXPECT_LE(is_told_of_a_failure(is), is_told_of_a_failure(was)) << had << " + " << gain;
      EXPECT_LE(is.rank.failed, was.rank.failed) << had << " + " << gain;
      EXPECT_LE(is.rank.unknown, was.rank.unknown) << had << " + " << gain;
    }
  }
}

void check_order_of_runs(Generator& generator) {
  auto entries = generator.index_with_runs();
  node::Profile node = node_of(generator.words());
  Ranking once = rank(entries, node, {});
  for (Candidate& one : entries) std::reverse(one.runs.begin(), one.runs.end());
  Ranking again = rank(entries, node, {});
  EXPECT_EQ(once.order, again.order);
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& before = once.entries[i].verdict.clauses;
    const auto& after = again.entries[i].verdict.clauses;
    ASSERT_EQ(before.size(), after.size());
    for (size_t k = 0; k < before.size(); ++k) EXPECT_EQ(before[k].reason, after[k].reason);
  }
}

void check_runs_lift_no_refusal(Generator& generator) {
  auto entries = generator.index_with_runs();
  node::Profile node = node_of(generator.words());
  auto bare = entries;
  for (Candidate& one : bare) one.runs.clear();
  Ranking with = rank(entries, node, {UserLand::host, true});
  Ranking without = rank(bare, node, {UserLand::host, true});
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(with.entries[i].verdict.outcome == Outcome::fail,
              without.entries[i].verdict.outcome == Outcome::fail);
  }
}

void check_other_hardware(Generator& generator, std::vector<Candidate> entries) {
  node::Profile node = node_of(generator.words());
  Ranking before = rank(entries, node, {});
  Candidate other = candidate(99, generator.axes());
  const Verdict verdict = judge(other, node, usual_job({other}, node, {}));
  bool unused = verdict.decisive() != nullptr &&
                verdict.decisive()->reason.find("stays unused") != std::string::npos;
  if (verdict.outcome != Outcome::fail && !unused) return;
  // An index in which only the newcomer says what it is for is another kind of index.
  bool has_variants = std::any_of(entries.begin(), entries.end(),
                                  [](const Candidate& one) { return one.declared.any; });
  if (!has_variants) return;
  entries.push_back(other);
  Ranking after = rank(entries, node, {});
  ASSERT_NE(before.best(), nullptr);
  EXPECT_EQ(before.order.front(), after.order.front());
}

void check_lifts(Generator& generator) {
  auto entries = generator.index_with_runs();
  std::string had = generator.words();
  node::Profile node = node_of(had);
  for (const Judged& entry : rank(entries, node, {}).entries) {
    for (const Clause& clause : entry.verdict.clauses) {
      if (clause.outcome != Outcome::fail) continue;
      ASSERT_NE(clause.lift, "") << clause.reason;
      auto changed = node::with(node, clause.lift);
      ASSERT_TRUE(changed.ok()) << clause.lift;
      Verdict lifted = judge(entry.candidate, *changed, {UserLand::host, true});
      for (const Clause& left : lifted.clauses) {
        if (left.about != clause.about) continue;
        EXPECT_NE(left.reason, clause.reason) << clause.lift;
      }
    }
  }
}

// Also of nodes without GPUs, of passes and remarks, and of foreign facts.
void check_lifts_are_words(Generator& generator) {
  auto entries = generator.foreign_index();
  node::Profile node = node_of(generator.words() + generator.any<std::string>({"", " gpu=sm_87"}));
  for (UserLand user_land : {UserLand::host, UserLand::image}) {
    for (const Judged& entry : rank(entries, node, {user_land, generator.maybe()}).entries) {
      for (const Clause& clause : entry.verdict.clauses) {
        if (clause.lift.empty()) continue;
        auto changed = node::with(node, clause.lift);
        ASSERT_TRUE(changed.ok()) << clause.lift << ": " << clause.reason;
        EXPECT_EQ(clause.lift.find(' '), std::string::npos) << clause.lift;
        for (const Clause& left : judge(entry.candidate, *changed, {user_land, true}).clauses) {
          bool same = left.about == clause.about && left.reason == clause.reason;
          EXPECT_FALSE(same && left.outcome != Outcome::pass) << clause.lift << ": " << left.reason;
        }
      }
    }
  }
}

TEST(Generated, the_same_question_has_the_same_answer) {
  for_each_case(check_same_answer);
}
TEST(Generated, the_best_alone_is_explained_as_among_all) {
  for_each_case(check_explained_best);
}
TEST(Generated, a_node_that_gains_an_ability_loses_no_entry) {
  for_each_case(check_gains);
}
TEST(Generated, a_node_that_gains_an_ability_leaves_failures_behind_and_unknowns) {
  for_each_case(check_gains_with_runs);
}
TEST(Generated, the_order_of_records_changes_nothing) {
  for_each_case(check_order_of_runs);
}
TEST(Generated, records_neither_lift_a_refusal_nor_make_one) {
  for_each_case(check_runs_lift_no_refusal);
}
TEST(Generated, an_entry_for_other_hardware_changes_no_choice) {
  for_each_case([](Generator& generator) { check_other_hardware(generator, generator.index()); });
  for_each_case(
      [](Generator& generator) { check_other_hardware(generator, generator.index_with_runs()); });
}
TEST(Generated, every_lift_is_a_word_of_what_if_and_lifts) {
  for_each_case(check_lifts_are_words);
}
TEST(Generated, every_refusal_names_a_fact_that_lifts_it) {
  for_each_case(check_lifts);
}

}  // namespace
}  // namespace berth::match
