// SPDX-License-Identifier: Apache-2.0
#include "policy/amend/amend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace berth::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Amend : public testing::Test {
 protected:
  Amend() {
    spec_.process.emplace();
    spec_.process->env = {"A=theirs", "NVIDIA_VISIBLE_DEVICES=0"};
    spec_.process->args = {"/bin/sh"};
    mount("/proc");
    mount("/data/own");
  }
  void mount(const char* destination) {
    oci::Mount made;
    made.destination = destination;
    spec_.mounts.push_back(std::move(made));
  }
  std::string amend(const Rule& rule) {
    std::vector<PlacedRule> rules = {{"x.toml:1", rule}};
    Effects effects = evaluate(rules, facts_of(spec_, {"SLURM_JOB_PARTITION=gpu"})).effects;
    auto done = policy::amend(
        effects, [](const std::string& path) { return path != "/missing"; }, spec_);
    if (!done.ok()) return to_line(done.error());
    lookups_ = std::move(*done);
    return "";
  }
  std::vector<std::string> places() const {
    std::vector<std::string> out;
    for (const oci::Mount& one : spec_.mounts) {
      out.push_back(one.source.empty() ? one.destination : one.source + ":" + one.destination);
    }
    return out;
  }

  oci::Spec spec_;
  Lookups lookups_;
};

TEST_F(Amend, a_mount_goes_before_what_lies_below_it_and_hides_nothing) {
  Rule rule;
  rule.mounts = {"/site:/data:ro", "/other:/data/own", "/scratch:/scratch"};
  EXPECT_EQ(amend(rule), "");
  EXPECT_THAT(places(), ElementsAre("/proc", "/site:/data", "/data/own", "/scratch:/scratch"));
  EXPECT_THAT(spec_.mounts[1].options, ElementsAre("rbind", "rprivate", "ro"));
}

TEST_F(Amend, a_forced_mount_takes_the_place_of_the_engines) {
  Rule rule;
  rule.mounts = {"/other:/data/own"};
  rule.force = true;
  EXPECT_EQ(amend(rule), "");
  EXPECT_THAT(places(), ElementsAre("/proc", "/other:/data/own"));
}

TEST_F(Amend, a_missing_source_fails_or_is_left_out) {
  Rule rule;
  rule.name = "m";
  rule.mounts = {"/missing:/x"};
  EXPECT_EQ(amend(rule), "rule 'm': mount '/missing:/x': there is no /missing");
  rule.optional = true;
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(spec_.mounts.size(), 2U);
  rule.mounts = {"x:/y"};
  EXPECT_THAT(amend(rule), HasSubstr("expected SOURCE:TARGET"));
}

TEST_F(Amend, variables_that_are_there_stay_but_for_forced_ones) {
  Rule rule;
  rule.env = {{"A", "site"}, {"B", "site"}};
  rule.env_default = {{"B", "default"}, {"C", "default"}};
  EXPECT_EQ(amend(rule), "");
  EXPECT_THAT(spec_.process->env,
              ElementsAre("B=site", "C=default", "A=theirs", "NVIDIA_VISIBLE_DEVICES=0"));
  rule = {};
  rule.env_force = {{"A", "site"}};
  EXPECT_EQ(amend(rule), "");
  EXPECT_THAT(spec_.process->env,
              ElementsAre("A=site", "B=site", "C=default", "NVIDIA_VISIBLE_DEVICES=0"));
}

TEST_F(Amend, limits_are_set_where_there_is_none_or_forced_to_be_less) {
  Rule rule;
  rule.memory = "2g";
  rule.cpus = "1.5";
  rule.pids_limit = 100;
  rule.ulimits = {"nofile=64:128"};
  EXPECT_EQ(amend(rule), "");
  const oci::Resources& resources = *spec_.linux_.resources;
  EXPECT_EQ(resources.memory->limit, int64_t{2} << 30);
  EXPECT_EQ(resources.cpu->quota, 150'000);
  EXPECT_EQ(resources.pids->limit, 100);
  ASSERT_EQ(spec_.process->rlimits.size(), 1U);
  EXPECT_EQ(spec_.process->rlimits[0].type, "RLIMIT_NOFILE");
  rule.memory = "1g";
  rule.pids_limit = 200;
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(resources.memory->limit, int64_t{2} << 30);
  rule.force = true;
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(resources.memory->limit, int64_t{1} << 30);
  EXPECT_EQ(resources.pids->limit, 100);
}

TEST_F(Amend, forced_limits_count_over_the_words_of_cgroup_v2) {
  Rule rule;
  rule.memory = "1g";
  rule.cpus = "2";
  rule.pids_limit = 100;
  oci::Resources& resources = spec_.linux_.resources.emplace();
  const auto wild = resources.unified = {
      {"memory.max", "max"}, {"cpu.max", "max 100000"}, {"pids.max", "max"}, {"memory.high", "5"}};
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(resources.unified, wild);
  rule.force = true;
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(resources.memory->limit, int64_t{1} << 30);
  EXPECT_EQ(resources.cpu->quota, 200'000);
  EXPECT_EQ(resources.pids->limit, 100);
  EXPECT_THAT(resources.unified, ElementsAre(testing::Pair("memory.high", "5")));
  // Less than the most stays less.
  resources.unified = {{"memory.max", "4096"}, {"cpu.max", "50000"}, {"pids.max", "7"}};
  resources.cpu->period = 50'000;
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(resources.memory->limit, 4096);
  EXPECT_EQ(resources.cpu->quota, 25'000);
  EXPECT_EQ(resources.pids->limit, 7);
}

TEST_F(Amend, forced_memory_is_not_evaded_by_swap) {
  Rule rule;
  rule.memory = "1g";
  rule.force = true;
  oci::Memory& memory = spec_.linux_.resources.emplace().memory.emplace();
  for (int64_t swap : {int64_t{-1}, int64_t{100} << 30}) {
    memory.limit = int64_t{8} << 30;
    memory.swap = swap;
    EXPECT_EQ(amend(rule), "");
    EXPECT_EQ(memory.limit, int64_t{1} << 30);
    EXPECT_EQ(memory.swap, int64_t{2} << 30);
  }
  memory = {};
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(memory.swap, int64_t{2} << 30);
  spec_.linux_.resources->unified = {{"memory.swap.max", "max"}, {"memory.high", "1"}};
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(spec_.linux_.resources->unified.size(), 1U);
  spec_.linux_.resources->unified = {{"memory.swap.max", "0"}};
  EXPECT_EQ(amend(rule), "");
  EXPECT_EQ(memory.swap, memory.limit);
}

TEST_F(Amend, a_later_mount_takes_no_place_that_was_forced) {
  Rule forced, later;
  forced.mounts = {"/first:/data"};
  forced.force = true;
  later.mounts = {"/second:/data"};
  later.tmpfs = {"/data"};
  std::vector<PlacedRule> rules = {{"x.toml:1", forced}, {"x.toml:2", later}};
  Effects effects = evaluate(rules, {}).effects;
  auto done = policy::amend(
      effects, [](const std::string&) { return true; }, spec_);
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(places(), ElementsAre("/proc", "/first:/data", "/data/own"));
}

TEST_F(Amend, ulimits_are_lowered_and_never_raised) {
  spec_.process->rlimits = {{"RLIMIT_NOFILE", 32, 256}, {"RLIMIT_CORE", 0, UINT64_MAX}};
  Rule forced, later;
  forced.ulimits = {"nofile=64:64", "core=-1", "nproc=10"};
  forced.force = true;
  later.ulimits = {"nofile=1024", "nproc=99"};
  std::vector<PlacedRule> rules = {{"x.toml:1", forced}, {"x.toml:2", later}};
  Effects effects = evaluate(rules, {}).effects;
  auto done = policy::amend(
      effects, [](const std::string&) { return true; }, spec_);
  ASSERT_TRUE(done.ok());
  std::map<std::string, std::pair<uint64_t, uint64_t>> limits;
  for (const oci::Rlimit& one : spec_.process->rlimits) limits[one.type] = {one.soft, one.hard};
  EXPECT_EQ(limits["RLIMIT_NOFILE"], std::pair(uint64_t{32}, uint64_t{64}));
  EXPECT_EQ(limits["RLIMIT_CORE"], std::pair(uint64_t{0}, uint64_t{UINT64_MAX}));
  EXPECT_EQ(limits["RLIMIT_NPROC"], std::pair(uint64_t{10}, uint64_t{10}));
}

TEST_F(Amend, shared_memory_without_a_limit_gets_one) {
  Rule rule;
  rule.shm_size = "1m";
  rule.force = true;
  mount("/dev/shm");
  oci::Mount& shm = spec_.mounts.back();
  shm.type = "tmpfs";
  for (const char* size : {"size=0", "size=100%", "nr_blocks=0", "size=2g", "mode=1777"}) {
    shm.options = {size};
    EXPECT_EQ(amend(rule), "");
    EXPECT_EQ(shm.options.back(), "size=1048576") << size;
  }
  shm.options = {"size=0", "size=64k"};
  EXPECT_EQ(amend(rule), "");
  EXPECT_THAT(shm.options, ElementsAre("size=65536"));
}

TEST_F(Amend, conditions_are_annotations_variables_partition_and_command) {
  spec_.annotations = {{"io.kubernetes.cri.image-name", "docker.io/library/x:1@sha256:0"},
                       {"tier", "gold"}};
  Rule rule;
  rule.when = {{.image = {"docker.io/library/x"},
                .label = {"tier=gold"},
                .env = {"A=theirs"},
                .partition = {"gpu"},
                .command = {"sh"}}};
  rule.refuse = "no";
  rule.name = "r";
  EXPECT_EQ(amend(rule), "the site refuses this container: no (rule 'r')");
  // podman hands on what an image's manifest says, and takes this for its own word too.
  spec_.annotations["io.container.manager"] = "x";
  EXPECT_EQ(amend(rule), "");
  spec_.annotations.erase("io.container.manager");
  rule.when[0].user_env = {"A"};
  EXPECT_EQ(amend(rule), "");
}

TEST_F(Amend, devices_gpus_and_hooks) {
  Rule rule;
  rule.devices = {"/dev/fuse", "nvidia.com/gpu=0"};
  rule.gpus = "all";
  rule.hooks = {{.stage = "poststop", .path = "/h", .args = {}, .env = {}, .timeout = {}}};
  EXPECT_EQ(amend(rule), "");
  ASSERT_EQ(lookups_.nodes.size(), 1U);
  EXPECT_EQ(lookups_.nodes[0].text, "/dev/fuse");
  ASSERT_EQ(lookups_.cdi_names.size(), 1U);
  EXPECT_EQ(lookups_.gpus->text, "all");
  ASSERT_EQ(spec_.hooks.poststop.size(), 1U);
  rule.gpus = "env:N";
  EXPECT_EQ(amend(rule), "");
  EXPECT_FALSE(lookups_.gpus);
}

}  // namespace
}  // namespace berth::policy
