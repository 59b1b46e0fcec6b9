// SPDX-License-Identifier: Apache-2.0
#include "image/published_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Digest digest_of(char digit) {
  return *Digest::parse("sha256:" + std::string(64, digit));
}

PublishedFacts example() {
  PublishedFacts facts;
  facts.subject = digest_of('a');
  PublishedImage image;
  image.image = digest_of('b');
  image.platform = {"amd64", "linux", {}, {}, {}};
  image.config.env = {"NVIDIA_REQUIRE_CUDA=cuda>=12.4"};
  image.found.emplace();
  image.found->glibc = "2.36";
  image.found->cpu.push_back({{3, "note"}, 1, "/app", true});
  facts::GpuCodeSet set;
  set.code = {{facts::GpuCode::Kind::sass, "90a", ""}, {facts::GpuCode::Kind::ptx, "90", "8.7"}};
  image.found->gpu_code.push_back(set);
  facts.images.push_back(image);
  return facts;
}

TEST(PublishedFacts, come_back_as_they_were_written) {
  std::string text = to_json(example());
  auto read = parse_published_facts(text);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(to_json(*read), text);
  ASSERT_NE(read->of(digest_of('b')), nullptr);
  EXPECT_EQ(read->of(digest_of('b'))->found->cpu[0].isa.level, 3u);
  EXPECT_EQ(read->of(digest_of('c')), nullptr);
}

TEST(PublishedFacts, of_another_description_of_files_are_as_if_not_known) {
  PublishedFacts facts = example();
  facts.images[0].found->version = facts::kVersion + 1;
  auto read = parse_published_facts(to_json(facts));
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->images.size(), 1u);
  EXPECT_FALSE(read->images[0].found);
}

template <class Change>
std::string refusal(Change change) {
  PublishedFacts facts = example();
  change(facts);
  auto read = parse_published_facts(to_json(facts));
  return read.ok() ? "read" : read.error().what;
}

TEST(PublishedFacts, that_no_scan_writes_are_refused) {
  EXPECT_THAT(refusal([](auto& f) { f.version = 2; }), HasSubstr("later version of Berth"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->cpu[0].isa.level = 5; }),
              HasSubstr("x86-64-v5"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->gpu_code[0].code[0].arch = "9x"; }),
              HasSubstr("GPU code for '9x'"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->gpu_code[0].code[1].isa = "new"; }),
              HasSubstr("GPU code"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->user_driver = "580.x"; }),
              HasSubstr("version '580.x'"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->program = "/a\nb"; }),
              HasSubstr("control characters"));
  EXPECT_THAT(refusal([](auto& f) { f.images[0].found->program = std::string(5000, 'a'); }),
              HasSubstr("too long"));
  EXPECT_THAT(refusal([](auto& f) { f.images.resize(1025, f.images[0]); }),
              HasSubstr("more than 1024"));
}

// ---- records of runs ----------------------------------------------------------------------------

match::RunRecord run_of(std::string time, uint32_t exit) {
  match::RunRecord run;
  run.time = std::move(time);
  run.exit = exit;
  run.architecture = "amd64";
  run.cpu = {"haswell", 3};
  run.kernel = "6.18.5";
  run.driver = {"nvidia", "570.133.20"};
  run.gpus = {{"nvidia", "NVIDIA H100 80GB HBM3", "9.0", ""}};
  run.berth = "0.1.0";
  return run;
}

TEST(PublishedFacts, have_records_of_runs_that_come_back) {
  PublishedFacts facts = example();
  facts.images[0].runs = {run_of("2026-11-20T12:00:00Z", 0), run_of("2026-11-21T12:00:00Z", 132)};
  facts.signer = "somebody";
  std::string text = to_json(facts);
  EXPECT_THAT(text, HasSubstr(R"({"time":"2026-11-20T12:00:00Z","exit":0,"own_command":true,)"
                              R"("user_land":"host","gpus":[{"vendor":"nvidia",)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("somebody")));
  auto read = parse_published_facts(text);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(read->signer, "");
}

TEST(PublishedFacts, of_a_berth_that_knew_no_runs_still_read) {
  std::string text = to_json(example());
  EXPECT_THAT(text, testing::Not(HasSubstr("runs")));
  EXPECT_TRUE(parse_published_facts(text).ok());
}

TEST(PublishedFacts, of_a_later_berth_read_without_what_is_new) {
  PublishedFacts facts = example();
  facts.images[0].runs = {run_of("2026-11-20T12:00:00Z", 0)};
  std::string text = to_json(facts);
  text.replace(text.find("\"own_command\""), 0, R"("mood":"good",)");
  auto read = parse_published_facts(text);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(to_json(*read), to_json(facts));
}

TEST(PublishedFacts, keep_the_runs_of_an_image_whose_findings_do_not_read) {
  PublishedFacts facts = example();
  facts.images[0].found->version = facts::kVersion + 1;
  facts.images[0].runs = {run_of("2026-11-20T12:00:00Z", 0)};
  auto read = parse_published_facts(to_json(facts));
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->images[0].found);
  EXPECT_EQ(read->images[0].runs.size(), 1u);
}

TEST(PublishedFacts, with_records_that_no_berth_writes_are_refused) {
  auto with = [](auto change) {
    return refusal([&](PublishedFacts& f) {
      f.images[0].runs = {run_of("2026-11-20T12:00:00Z", 0)};
      change(f.images[0].runs);
    });
  };
  EXPECT_EQ(with([](auto&) {}), "read");
  EXPECT_THAT(with([](auto& r) { r.resize(65, r[0]); }), HasSubstr("more than 64 runs"));
  EXPECT_THAT(with([](auto& r) { r[0].time = "yesterday"; }), HasSubstr("time 'yesterday'"));
  EXPECT_THAT(with([](auto& r) { r[0].kernel = "6.x"; }), HasSubstr("kernel '6.x'"));
  EXPECT_THAT(with([](auto& r) { r[0].gpus[0].model = "a\x1b[2J"; }),
              HasSubstr("control characters"));
}

TEST(PublishedFacts, keep_of_a_config_what_declares_something) {
  oci::ContainerDefaults config;
  config.env = {"PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_DISABLE_REQUIRE=1",
                "NVIDIA_VISIBLE_DEVICES=all"};
  config.labels = {{"maintainer", "me"}, {"dev.berth.variant.cpu", "zen4"}};
  config.cmd = {"/app"};
  auto part = declaring_part(config);
  EXPECT_THAT(part.env, ElementsAre("NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_DISABLE_REQUIRE=1"));
  EXPECT_EQ(part.labels.size(), 1u);
  EXPECT_TRUE(part.cmd.empty());
}

}  // namespace
}  // namespace berth::image
