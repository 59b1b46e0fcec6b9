// SPDX-License-Identifier: Apache-2.0
// What records of runs change about a verdict, and for which nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "match/judge.hpp"
#include "match/likeness.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "node/archspec.hpp"
#include "unit/match/node_of.hpp"

namespace berth::match {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A run on the node that `words` describe.
RunRecord run_on(std::string_view words, uint32_t exit = 0, std::string day = "2026-11-20") {
  node::Profile node = node_of(words);
  RunRecord record;
  record.time = day + "T12:00:00Z";
  record.exit = exit;
  record.architecture = node.architecture;
  record.cpu = {node.cpu.microarchitecture, node.cpu.level};
  record.kernel = plain_release(node.kernel.release);
  if (!node.driver.module_version.empty()) record.driver = {"nvidia", node.driver.module_version};
  for (const node::NodeGpu& gpu : node.gpus) {
    record.gpus.push_back({gpu.vendor, gpu.model, gpu.compute_capability, gpu.architecture});
  }
  EXPECT_TRUE(check(record).ok());
  return record;
}

Candidate image(const std::map<std::string, std::string>& axes, std::vector<RunRecord> runs,
                bool believed = true) {
  Candidate made;
  made.descriptor.platform = oci::Platform{"amd64", "linux", {}, {}, {}};
  for (const auto& [axis, value] : axes) {
    made.descriptor.annotations[std::string(kPrefix) + axis] = value;
  }
  made.declared = read_declared(made.descriptor);
  made.runs = std::move(runs);
  made.runs_believed = believed;
  return made;
}

/// For a processor that archspec does not know.
const std::map<std::string, std::string> kPuzzle = {{"cpu", "nextgen"}};

const Clause* about(const Verdict& verdict, std::string_view word) {
  for (const Clause& clause : verdict.clauses) {
    if (clause.about == word) return &clause;
  }
  return nullptr;
}

Outcome outcome(const Candidate& candidate, std::string_view node, Job job = {}) {
  return judge(candidate, node_of(node), job).outcome;
}

// ---- what a success lifts -----------------------------------------------------------------------

TEST(Runs, a_success_on_a_node_like_this_makes_an_unknown_clause_pass) {
  Candidate verified = image(kPuzzle, {run_on("cpu=haswell")});
  Verdict verdict = judge(verified, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.rank.unknown, 0u);
  const Clause* clause = about(verdict, "cpu");
  ASSERT_NE(clause, nullptr);
  EXPECT_THAT(clause->reason, StartsWith("ran on a node like this (record of 2026-11-20, exit 0): "
                                         "declares 'nextgen', a processor that archspec"));
  EXPECT_EQ(clause->tier, Tier::verified);
}

TEST(Runs, speak_for_all_that_can_do_as_much_and_for_no_lesser_node) {
  Candidate verified = image(kPuzzle, {run_on("cpu=haswell")});
  EXPECT_EQ(outcome(verified, "cpu=skylake_avx512"), Outcome::pass);
  EXPECT_EQ(outcome(verified, "cpu=ivybridge"), Outcome::unknown);
  EXPECT_EQ(outcome(verified, "cpu=zen4"), Outcome::unknown);
  EXPECT_EQ(outcome(verified, "arch=arm64"), Outcome::fail);
}

TEST(Runs, that_no_trusted_key_has_signed_are_shown_and_lift_nothing) {
  Candidate unsigned_one = image(kPuzzle, {run_on("cpu=haswell")}, false);
  Verdict verdict = judge(unsigned_one, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::unknown);
  EXPECT_EQ(verdict.rank.unknown, 1u);
  const Clause* clause = about(verdict, "runs");
  ASSERT_NE(clause, nullptr);
  EXPECT_EQ(clause->outcome, Outcome::pass);
  EXPECT_THAT(clause->reason, HasSubstr("no key that the policy names has signed that"));
  EXPECT_EQ(clause->tier, std::nullopt);
  unsigned_one.runs = {run_on("cpu=haswell", 132)};
  verdict = judge(unsigned_one, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.rank.failed, 0u);
  EXPECT_THAT(about(verdict, "runs")->reason, StartsWith("failed on a node like this on"));
}

TEST(Runs, never_lift_a_failure_which_says_both) {
  Candidate contradicted = image({}, {run_on("cpu=haswell")});
  contradicted.found.emplace();
  contradicted.found->cpu.push_back({{4, "note"}, 1, "/app", true});
  Verdict verdict = judge(contradicted, node_of("cpu=haswell"), {});
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_THAT(verdict.decisive()->reason,
              HasSubstr("although it ran on a node like this (record of 2026-11-20, exit 0)"));
  EXPECT_EQ(verdict.decisive()->tier, Tier::found);
  EXPECT_NE(verdict.decisive()->lift, "");
}

TEST(Runs, of_another_command_prove_nothing_about_this_one) {
  RunRecord other = run_on("cpu=haswell");
  other.own_command = false;
  EXPECT_EQ(outcome(image(kPuzzle, {other}), "cpu=haswell"), Outcome::unknown);
  Job job;
  job.other_command = true;
  EXPECT_EQ(outcome(image(kPuzzle, {run_on("cpu=haswell")}), "cpu=haswell", job), Outcome::unknown);
}

TEST(Runs, say_nothing_about_an_axis_that_no_record_holds) {
  EXPECT_EQ(outcome(image({{"ram", "64G"}}, {run_on("cpu=haswell")}), "cpu=haswell"),
            Outcome::unknown);
}

TEST(Runs, lift_what_hangs_on_the_kernel_where_that_is_not_older) {
  Candidate verified = image({{"kernel", "new"}}, {run_on("cpu=haswell kernel=6.1")});
  EXPECT_EQ(outcome(verified, "cpu=haswell kernel=6.1.0-13-amd64"), Outcome::pass);
  EXPECT_EQ(outcome(verified, "cpu=haswell kernel=6.18"), Outcome::pass);
  EXPECT_EQ(outcome(verified, "cpu=haswell kernel=5.10"), Outcome::unknown);
  EXPECT_EQ(outcome(verified, "cpu=haswell"), Outcome::unknown);
}

TEST(Runs, lift_what_hangs_on_gpus_where_those_and_the_driver_do_as_much) {
  Candidate verified =
      image({{"cuda", "new"}, {"gpu", "sm_80"}}, {run_on("cpu=haswell gpu=sm_80 driver=570.10")});
  auto of = [&](std::string_view words) {
    return about(judge(verified, node_of(words), {}), "facts")->outcome;
  };
  EXPECT_EQ(of("cpu=haswell gpu=sm_80 driver=570.10"), Outcome::pass);
  EXPECT_EQ(of("cpu=haswell gpu=sm_86,sm_80 driver=580.65"), Outcome::pass);
  EXPECT_EQ(of("cpu=haswell gpu=sm_80,sm_90 driver=570.10"), Outcome::unknown);
  EXPECT_EQ(of("cpu=haswell gpu=sm_75 driver=570.10"), Outcome::unknown);
  EXPECT_EQ(of("cpu=haswell gpu=sm_87 driver=570.10"), Outcome::unknown);  // of Tegra
  EXPECT_EQ(of("cpu=haswell gpu=sm_80 driver=535.54"), Outcome::unknown);
  EXPECT_EQ(of("cpu=haswell gpu=gfx90a"), Outcome::unknown);
  EXPECT_EQ(of("cpu=haswell"), Outcome::unknown);
}

TEST(Runs, with_the_images_own_user_land_need_the_same_driver) {
  RunRecord run = run_on("cpu=haswell gpu=sm_80 driver=570.10");
  run.user_land = UserLand::image;
  Candidate verified = image({{"gpu", "sm_80"}}, {run});
  Job job{UserLand::image, false};
  EXPECT_EQ(outcome(verified, "cpu=haswell gpu=sm_80 driver=570.10", job), Outcome::pass);
  EXPECT_EQ(outcome(verified, "cpu=haswell gpu=sm_80 driver=580.65", job), Outcome::unknown);
  verified.runs[0].user_land = UserLand::host;
  EXPECT_EQ(outcome(verified, "cpu=haswell gpu=sm_80 driver=570.10", job), Outcome::unknown);
}

TEST(Runs, on_the_same_model_lift_a_gpu_whose_code_nobody_knows) {
  node::Profile node = node_of("cpu=haswell gpu=sm_90 driver=570.10");
  node.gpus[0].model = "NVIDIA H100";
  RunRecord run = run_on("cpu=haswell gpu=sm_90 driver=570.10");
  run.gpus[0].model = "NVIDIA H100";
  Candidate verified = image({{"gpu", "sm_90"}}, {run});
  node.gpus[0].compute_capability.clear();
  EXPECT_EQ(about(judge(verified, node, {}), "gpu")->tier, Tier::verified);
  node.gpus[0].model = "NVIDIA H200";
  EXPECT_EQ(about(judge(verified, node, {}), "gpu")->outcome, Outcome::unknown);
}

TEST(Runs, with_gpus_made_for_tests_speak_for_no_others) {
  Candidate made_up =
      image({{"cuda", "new"}, {"gpu", "sm_80"}}, {run_on("cpu=haswell gpu=sm_80 driver=570.10")});
  made_up.runs[0].synthetic = true;
  node::Profile node = node_of("cpu=haswell gpu=sm_80 driver=570.10");
  EXPECT_EQ(judge(made_up, node, {}).rank.unknown, 1u);
  node.synthetic = true;
  EXPECT_EQ(judge(made_up, node, {}).rank.unknown, 0u);
}

// ---- what a failure says ------------------------------------------------------------------------

TEST(Runs, that_failed_on_a_node_like_this_are_told_and_rank_behind_the_unknown) {
  Candidate failed = image({}, {run_on("cpu=haswell", 132)});
  node::Profile node = node_of("cpu=haswell");
  Verdict verdict = judge(failed, node, {});
  EXPECT_EQ(verdict.outcome, Outcome::runs_but);
  EXPECT_EQ(verdict.decisive()->reason, "failed on a node like this on 2026-11-20 with exit 132");
  EXPECT_EQ(verdict.decisive()->tier, Tier::verified);
  Ranking ranking = rank({failed, image(kPuzzle, {})}, node, {});
  EXPECT_EQ(ranking.order, (std::vector<size_t>{1, 0}));
}

TEST(Runs, that_failed_on_a_lesser_node_say_nothing_about_this_one) {
  Candidate failed = image({}, {run_on("cpu=haswell kernel=5.10", 132)});
  EXPECT_EQ(outcome(failed, "cpu=skylake_avx512 kernel=5.10"), Outcome::pass);
  EXPECT_EQ(outcome(failed, "cpu=haswell kernel=6.1"), Outcome::pass);
  EXPECT_EQ(outcome(failed, "cpu=ivybridge kernel=5.10"), Outcome::runs_but);
}

TEST(Runs, that_succeeded_later_clear_a_failure) {
  RunRecord failure = run_on("cpu=haswell", 1, "2026-11-20");
  EXPECT_EQ(outcome(image({}, {failure, run_on("cpu=haswell", 0, "2026-11-21")}), "cpu=haswell"),
            Outcome::pass);
  EXPECT_EQ(outcome(image({}, {failure, run_on("cpu=haswell", 0, "2026-11-19")}), "cpu=haswell"),
            Outcome::runs_but);
}

TEST(Runs, do_not_bring_an_entry_for_other_gpus_before_one_that_failed) {
  Candidate failed = image({{"gpu", "sm_80"}}, {run_on("cpu=haswell gpu=sm_80 driver=570.10", 1)});
  Candidate other = image({{"gpu", "sm_37"}}, {});
  node::Profile node = node_of("cpu=haswell gpu=sm_80 driver=570.10");
  EXPECT_EQ(rank({other, failed}, node, {}).order, (std::vector<size_t>{1, 0}));
}

// ---- records themselves -------------------------------------------------------------------------

TEST(Likeness, is_transitive_over_all_processors_that_archspec_knows) {
  for (std::string_view there : node::microarchitectures()) {
    for (std::string_view middle : node::ancestors_of(there)) {
      auto above = node::ancestors_of(there);
      for (std::string_view least : node::ancestors_of(middle)) {
        EXPECT_NE(std::find(above.begin(), above.end(), least), above.end())
            << there << " " << middle << " " << least;
      }
    }
  }
}

TEST(RunRecord, of_the_same_node_and_outcome_replaces_an_earlier_one) {
  std::vector<RunRecord> runs;
  add_run(runs, run_on("cpu=haswell", 0, "2026-11-20"));
  add_run(runs, run_on("cpu=haswell", 0, "2026-11-22"));
  add_run(runs, run_on("cpu=haswell", 0, "2026-11-21"));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].time, "2026-11-22T12:00:00Z");
  add_run(runs, run_on("cpu=haswell", 1, "2026-11-20"));
  add_run(runs, run_on("cpu=zen2", 0, "2026-11-23"));
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].exit, 1u);
}

TEST(RunRecord, the_oldest_leave_first) {
  std::vector<RunRecord> runs;
  for (uint32_t exit = 0; exit < 100; ++exit) {
    RunRecord run = run_on("cpu=haswell", exit);
    run.time = "2026-11-20T12:00:" + std::string(exit % 60 < 10 ? "0" : "") +
               std::to_string(exit % 60) + "Z";
    add_run(runs, run);
  }
  EXPECT_EQ(runs.size(), kMaxRuns);
  EXPECT_TRUE(std::is_sorted(runs.begin(), runs.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; }));
}

template <class Change>
std::string refusal(Change change) {
  RunRecord record = run_on("cpu=haswell gpu=sm_90 driver=570.10 kernel=6.1");
  change(record);
  auto checked = check(record);
  return checked.ok() ? "taken" : checked.error().what;
}

TEST(RunRecord, that_no_berth_writes_is_refused) {
  EXPECT_EQ(refusal([](auto&) {}), "taken");
  for (const char* time :
       {"2026-11-20", "2026-11-20T12:00:00+00:00", "2026-13-20T12:00:00Z", "2026-11-00T12:00:00Z",
        "2026-11-20T24:00:00Z", "2026-11-20 12:00:00Z", "-026-11-20T12:00:00Z", ""}) {
    EXPECT_THAT(refusal([&](auto& r) { r.time = time; }), HasSubstr("time")) << time;
  }
  EXPECT_THAT(refusal([](auto& r) { r.exit = 256; }), HasSubstr("exit status"));
  EXPECT_THAT(refusal([](auto& r) { r.architecture = "../amd64"; }), HasSubstr("architecture"));
  EXPECT_THAT(refusal([](auto& r) { r.architecture.clear(); }), HasSubstr("architecture"));
  EXPECT_THAT(refusal([](auto& r) { r.cpu.microarchitecture = "my host"; }),
              HasSubstr("processor"));
  EXPECT_THAT(refusal([](auto& r) { r.cpu.level = 5; }), HasSubstr("level"));
  EXPECT_THAT(refusal([](auto& r) { r.kernel = "6.1.0-host"; }), HasSubstr("kernel"));
  EXPECT_THAT(refusal([](auto& r) { r.driver->version = "570..1"; }), HasSubstr("driver"));
  EXPECT_THAT(refusal([](auto& r) { r.driver->kind = "other"; }), HasSubstr("driver"));
  EXPECT_THAT(refusal([](auto& r) { r.gpus[0].vendor = "acme"; }), HasSubstr("vendor"));
  EXPECT_THAT(refusal([](auto& r) { r.gpus[0].compute_capability = "9"; }), HasSubstr("compute"));
  EXPECT_THAT(refusal([](auto& r) { r.gpus[0].model = "a\x1b[2J"; }), HasSubstr("model"));
  EXPECT_THAT(refusal([](auto& r) { r.gpus[0].model = std::string(200, 'a'); }),
              HasSubstr("model"));
  EXPECT_THAT(refusal([](auto& r) { r.gpus.resize(17, r.gpus[0]); }), HasSubstr("16 kinds"));
  EXPECT_THAT(refusal([](auto& r) { r.berth = "1.0 rm"; }), HasSubstr("Berth"));
}

}  // namespace
}  // namespace berth::match
