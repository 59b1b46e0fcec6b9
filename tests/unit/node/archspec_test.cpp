// SPDX-License-Identifier: Apache-2.0
#include "node/archspec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "node/cpuinfo.hpp"
#include "unit/node/cpus.hpp"

namespace berth::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

/// As a hand-written profile has it.
Cpu named(std::string_view microarchitecture) {
  Cpu cpu;
  cpu.microarchitecture = microarchitecture;
  complete(family_of(microarchitecture), cpu);
  return cpu;
}

TEST(Archspec, knows_the_microarchitectures_of_the_database) {
  auto names = microarchitectures();
  EXPECT_THAT(names, IsSupersetOf({"broadwell", "neoverse_v2", "power10le", "x86_64_v4", "zen5"}));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_GE(names.size(), 78u);
}

TEST(Archspec, takes_the_ways_in_which_people_write_a_name) {
  EXPECT_EQ(known_microarchitecture("skylake-avx512"), "skylake_avx512");
  EXPECT_EQ(known_microarchitecture("x86-64-v3"), "x86_64_v3");
  EXPECT_EQ(known_microarchitecture("Zen4"), "zen4");
  EXPECT_EQ(known_microarchitecture("armv8.2a"), "armv8.2a");
  EXPECT_EQ(known_microarchitecture("zen47"), std::nullopt);
  EXPECT_EQ(known_microarchitecture(""), std::nullopt);
}

TEST(Archspec, suggests_the_nearest_name) {
  EXPECT_EQ(nearest_microarchitecture("brodwell"), "broadwell");
  EXPECT_EQ(nearest_microarchitecture("saphirerapids"), "sapphirerapids");
  EXPECT_EQ(nearest_microarchitecture("pentathlon"), std::nullopt);
}

TEST(Archspec, ancestors_are_nearest_first_and_end_with_the_family) {
  EXPECT_THAT(ancestors_of("haswell"),
              ElementsAre("ivybridge", "sandybridge", "westmere", "nehalem", "x86_64_v3", "core2",
                          "x86_64_v2", "nocona", "x86_64"));
  for (std::string_view name : microarchitectures()) {
    auto above = ancestors_of(name);
    EXPECT_EQ(above.empty() ? name : above.back(), family_of(name)) << name;
    size_t before = above.size();
    for (std::string_view one : above) {
      EXPECT_LT(ancestors_of(one).size(), above.size()) << name << " " << one;
      EXPECT_LE(ancestors_of(one).size(), before) << name << " " << one;
      before = ancestors_of(one).size();
    }
  }
}

TEST(Archspec, tells_the_level_that_a_microarchitecture_implies) {
  EXPECT_EQ(level_of("x86_64"), 1u);
  EXPECT_EQ(level_of("core2"), 1u);
  EXPECT_EQ(level_of("nehalem"), 2u);
  EXPECT_EQ(level_of("bulldozer"), 2u);
  EXPECT_EQ(level_of("broadwell"), 3u);
  EXPECT_EQ(level_of("alderlake"), 3u);
  EXPECT_EQ(level_of("skylake-avx512"), 4u);
  EXPECT_EQ(level_of("zen4"), 4u);
  EXPECT_EQ(level_of("pentium4"), 0u);
  EXPECT_EQ(level_of("neoverse_v2"), 0u);
  EXPECT_EQ(level_of("no_such"), 0u);
}

TEST(Archspec, an_architecture_of_the_image_spec_has_a_family) {
  EXPECT_EQ(family_of_architecture("amd64"), "x86_64");
  EXPECT_EQ(family_of_architecture("arm64"), "aarch64");
  EXPECT_EQ(family_of_architecture("ppc64le"), "ppc64le");
}

TEST(Archspec, a_node_runs_its_own_and_all_above_it) {
  Cpu host = named("skylake_avx512");
  for (std::string_view one : {"skylake_avx512", "skylake", "broadwell", "x86_64_v4", "x86-64-v3",
                               "x86_64", "skylake-avx512"}) {
    EXPECT_TRUE(runs(host, one)) << one;
  }
  for (std::string_view one : {"cascadelake", "sapphirerapids", "zen", "neoverse_v2", "no_such"}) {
    EXPECT_FALSE(runs(host, one)) << one;
  }
}

TEST(Archspec, says_why_one_does_not_run) {
  Cpu host = named("broadwell");
  EXPECT_EQ(fit(host, "skylake_avx512"), Fit::lacks);
  EXPECT_EQ(fit(host, "zen"), Fit::lacks);
  EXPECT_EQ(fit(host, "aarch64"), Fit::other_family);
  EXPECT_EQ(fit(host, "brodwell"), Fit::unknown);
  EXPECT_EQ(fit(host, ""), Fit::unknown);
  EXPECT_EQ(fit(Cpu(), "broadwell"), Fit::unknown);
  EXPECT_EQ(fit(named("zen4"), "sandybridge"), Fit::other_vendor);
  EXPECT_EQ(fit(named("power8le"), "power9le"), Fit::lacks);
  EXPECT_EQ(fit(named("power9le"), "power8le"), Fit::runs);
}

TEST(Archspec, what_has_all_features_runs_without_being_an_ancestor) {
  // icelake is below both; neither is below the other.
  Cpu host =
      read_cpuinfo(x86_cpuinfo("GenuineIntel", "", kFlagsSkylakeServer + " avx512_vnni"), "x86_64");
  ASSERT_EQ(host.microarchitecture, "cascadelake");
  EXPECT_EQ(fit(host, "cannonlake"), Fit::lacks);
  auto add = [&](const char* feature) {
    host.features.emplace_back(feature);
    std::sort(host.features.begin(), host.features.end());
  };
  add("avx512vbmi");
  add("avx512ifma");
  EXPECT_THAT(lacking(host, "cannonlake"), ElementsAre("sha_ni"));
  add("sha_ni");
  EXPECT_THAT(lacking(host, "cannonlake"), IsEmpty());
  EXPECT_EQ(fit(host, "cannonlake"), Fit::runs);
}

TEST(Archspec, of_arm_versions_a_node_runs_those_above_it) {
  Cpu host = named("neoverse_v2");
  EXPECT_EQ(host.vendor, "0x41");
  EXPECT_TRUE(runs(host, "armv9.0a"));
  EXPECT_TRUE(runs(host, "armv8.5a"));
  EXPECT_FALSE(runs(host, "armv9.2a"));
  EXPECT_TRUE(runs(host, "cortex_a72"));
}

TEST(Archspec, names_the_features_that_are_missing) {
  EXPECT_THAT(lacking(named("broadwell"), "x86_64_v4"),
              ElementsAre("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"));
  EXPECT_THAT(lacking(named("x86_64_v2"), "x86_64_v3"), Contains("avx2"));
  EXPECT_THAT(lacking(named("broadwell"), "haswell"), IsEmpty());
  EXPECT_THAT(lacking(named("broadwell"), "neoverse_v2"), IsEmpty());
}

TEST(Archspec, the_closer_one_has_the_larger_number) {
  Cpu host = named("sapphirerapids");
  std::vector<std::string_view> order = {
      "x86_64",  "x86_64_v2",      "x86_64_v3",   "x86_64_v4", "haswell",       "broadwell",
      "skylake", "skylake_avx512", "cascadelake", "icelake",   "sapphirerapids"};
  for (size_t i = 1; i < order.size(); ++i) {
    EXPECT_LT(closeness(host, order[i - 1]), closeness(host, order[i])) << order[i];
  }
  EXPECT_EQ(closeness(host, "zen4"), std::nullopt);
  EXPECT_EQ(closeness(host, "no_such"), std::nullopt);
  std::set<uint32_t> numbers;
  for (const std::string& name : host.ancestors) numbers.insert(closeness(host, name).value());
  EXPECT_EQ(numbers.size(), host.ancestors.size());  // no two are equally close
}

TEST(Archspec, honours_aliases_of_features) {
  Cpu intel = named("skylake_avx512");
  EXPECT_TRUE(has_feature(intel, "avx512"));
  EXPECT_TRUE(has_feature(intel, "sse4.1"));
  EXPECT_TRUE(has_feature(intel, "sse3"));
  EXPECT_FALSE(has_feature(intel, "neon"));
  EXPECT_FALSE(has_feature(named("broadwell"), "avx512"));
  EXPECT_TRUE(has_feature(named("neoverse_v2"), "neon"));
  EXPECT_TRUE(has_feature(named("power9le"), "vsx"));
  Cpu odd = intel;
  odd.features = {"hypervisor"};
  EXPECT_TRUE(has_feature(odd, "hypervisor"));
}

TEST(Archspec, a_profile_of_a_later_version_may_know_more_than_we_do) {
  Cpu host;
  host.microarchitecture = "zen9";
  host.ancestors = {"zen8", "zen5"};
  for (std::string_view one : ancestors_of("zen5")) host.ancestors.emplace_back(one);
  EXPECT_TRUE(runs(host, "zen9"));
  EXPECT_TRUE(runs(host, "zen8"));
  EXPECT_TRUE(runs(host, "x86-64-v4"));
  EXPECT_EQ(fit(host, "broadwell"), Fit::unknown);
  EXPECT_GT(closeness(host, "zen9"), closeness(host, "zen8"));
  EXPECT_GT(closeness(host, "zen8"), closeness(host, "zen4"));
}

TEST(Archspec, a_node_that_gains_a_feature_loses_nothing) {
  for (std::string_view name : {"x86_64", "core2", "broadwell", "x86_64_v3", "k10", "zen4"}) {
    Cpu host = named(name);
    for (std::string_view feature : features_of("sapphirerapids")) {
      Cpu more;
      more.vendor = host.vendor;
      more.features = host.features;
      more.features.emplace_back(feature);
      complete("x86_64", more);
      for (std::string_view other : microarchitectures()) {
        bool kept = !runs(host, other) || runs(more, other);
        EXPECT_TRUE(kept) << name << " with " << feature << " lost " << other;
      }
    }
  }
}

TEST(Archspec, a_feature_is_there_or_missing_or_nobody_knows) {
  EXPECT_EQ(presence(named("sapphirerapids"), "amx_tile"), Presence::there);
  EXPECT_EQ(presence(named("cascadelake"), "amx_tile"), Presence::missing);
  EXPECT_EQ(presence(named("cascadelake"), "rdtscp"), Presence::unknown);  // not in the database
  EXPECT_EQ(presence(named("x86_64_v3"), "avx2"), Presence::there);
  EXPECT_EQ(presence(named("x86_64_v3"), "avx_vnni"), Presence::unknown);
  EXPECT_EQ(presence(Cpu{}, "avx2"), Presence::unknown);
  Cpu read;
  read.features = {"fpu", "pni"};
  EXPECT_EQ(presence(read, "avx2"), Presence::missing);
  EXPECT_EQ(presence(read, "sse3"), Presence::there);
}

TEST(Archspec, the_least_that_has_a_feature_is_found) {
  EXPECT_EQ(least_with(named("sapphirerapids"), {"avx2", "fma"}), "x86_64_v3");
  EXPECT_EQ(least_with(named("sapphirerapids"), {"amx_tile"}), "sapphirerapids");
  EXPECT_EQ(least_with(named("haswell"), {"amx_tile"}), std::nullopt);
  EXPECT_EQ(least_known_with({"avx512f", "avx512vl"}, ""), "x86_64_v4");
  EXPECT_EQ(least_known_with({"amx_tile"}, "x86_64"), "sapphirerapids");
  EXPECT_EQ(least_known_with({"amx_tile"}, "zen4"), std::nullopt);
}

}  // namespace
}  // namespace berth::node
