// SPDX-License-Identifier: Apache-2.0
#include "oci/limit_flags.hpp"

#include <gtest/gtest.h>

namespace berth::oci {
namespace {

TEST(LimitFlags, members_of_a_configuration_are_said_as_the_flags_that_set_them) {
  EXPECT_EQ(name_flags("linux.resources.cpu.quota: no permission"), "--cpus: no permission");
  EXPECT_EQ(name_flags("cannot set linux.resources.cpu.cpus: write '9'"),
            "cannot set --cpuset-cpus: write '9'");
  EXPECT_EQ(name_flags("linux.resources.memory.limit and linux.resources.pids.limit"),
            "--memory and --pids-limit");
  EXPECT_EQ(name_flags("linux.resources.memory.limit"), "--memory");
}

TEST(LimitFlags, what_no_flag_sets_stays) {
  for (const char* text : {"", "linux.resources.", "linux.resources.network.classID: none",
                           "linux.resources.unified.memory.high: none", "resources.cpu.quota",
                           "linux.resources.hugepageLimits[0].limit: none"}) {
    EXPECT_EQ(name_flags(text), text);
  }
}

}  // namespace
}  // namespace berth::oci
