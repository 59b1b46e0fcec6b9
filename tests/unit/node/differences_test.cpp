// SPDX-License-Identifier: Apache-2.0
#include "node/differences.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Profile written_node() {
  Profile profile;
  profile.architecture = "amd64";
  profile.cpu.microarchitecture = "zen4";
  profile.cpu.features = {"avx", "avx2", "sse2"};
  profile.driver.module_version = "570.133.20";
  profile.gpus.resize(2);
  for (NodeGpu& gpu : profile.gpus) {
    gpu.vendor = "nvidia";
    gpu.compute_capability = "9.0";
    gpu.memory_bytes = 80;
  }
  return profile;
}

std::vector<std::string> lines(const Profile& written, const Profile& here) {
  std::vector<std::string> out;
  for (const Difference& one : differences(written, here)) {
    out.push_back(one.member + ": " + one.written + " | " + one.here);
  }
  return out;
}

TEST(Differences, a_node_is_as_it_was) {
  EXPECT_THAT(lines(written_node(), written_node()), IsEmpty());
}

TEST(Differences, what_a_profile_leaves_out_says_nothing) {
  Profile written;
  written.architecture = "amd64";
  Profile here = written_node();
  here.gpus.clear();
  EXPECT_THAT(lines(written, here), IsEmpty());
}

TEST(Differences, names_every_member) {
  Profile here = written_node();
  here.cpu.features = {"avx", "avx512f", "sse2"};
  here.driver.module_version = "580.65.06";
  here.gpus[1].memory_bytes = 40;
  EXPECT_THAT(
      lines(written_node(), here),
      ElementsAre("cpu.features: avx2 | avx512f", "driver.module_version: 570.133.20 | 580.65.06",
                  "gpus[1].memory_bytes: 80 | 40"));
}

TEST(Differences, gpus_are_all_that_a_profile_has) {
  Profile here = written_node();
  here.gpus.pop_back();
  EXPECT_THAT(lines(written_node(), here), ElementsAre("gpus: 2 of them | 1 of them"));
  Profile none = written_node();
  none.gpus.clear();
  EXPECT_THAT(lines(none, here), ElementsAre("gpus: 0 of them | 1 of them"));
}

}  // namespace
}  // namespace berth::node
