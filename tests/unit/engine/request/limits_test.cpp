// SPDX-License-Identifier: Apache-2.0
#include "engine/request/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

std::string fault(const Limits& limits) {
  auto checked = check_limits(limits);
  return checked.ok() ? "" : to_line(checked.error());
}

oci::Resources resources_of(const Limits& limits, Swap swap = Swap::as_much) {
  oci::Resources out;
  add_limits(limits, swap, out);
  return out;
}

TEST(CheckLimits, refuses_what_docker_refuses_in_its_words) {
  Limits l;
  l.memory_bytes = 1 << 20;
  EXPECT_EQ(fault(l), "Minimum memory limit allowed is 6MB");
  l = {};
  l.memory_swap_bytes = 1 << 30;
  EXPECT_EQ(fault(l),
            "You should always set the Memory limit when using Memoryswap limit, see usage");
  l.memory_bytes = uint64_t{2} << 30;
  EXPECT_EQ(fault(l), "Minimum memoryswap limit should be larger than memory limit, see usage");
  l = {};
  l.memory_bytes = uint64_t{8} << 20;
  l.memory_reservation_bytes = uint64_t{9} << 20;
  EXPECT_EQ(fault(l),
            "Minimum memory limit can not be less than memory reservation limit, see usage");
  l = {};
  l.memory_swappiness = 101;
  EXPECT_EQ(fault(l), "Invalid value: 101, valid memory swappiness range is 0-100");
  l = {};
  l.cpu_millis = 500;
  l.cpu_quota = 5000;
  EXPECT_EQ(fault(l), "Conflicting options: Nano CPUs and CPU Quota cannot both be set.");
  l = {};
  l.cpu_period = 10;
  EXPECT_EQ(fault(l),
            "CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)");
  l = {};
  l.cpuset_cpus = "0;1";
  EXPECT_EQ(fault(l), "Invalid value 0;1 for cpuset cpus");
  l = {};
  l.blkio_weight = 9;
  EXPECT_EQ(fault(l), "Range of blkio weight is from 10 to 1000");
  EXPECT_EQ(fault({}), "");
}

TEST(AddLimits, says_nothing_where_nothing_was_asked) {
  oci::Resources none = resources_of({});
  EXPECT_FALSE(none.memory || none.cpu || none.pids || none.block_io);
}

TEST(AddLimits, takes_every_limit_to_its_place) {
  Limits l;
  l.memory_bytes = uint64_t{8} << 20;
  l.memory_swap_bytes = -1;
  l.memory_reservation_bytes = uint64_t{7} << 20;
  l.memory_swappiness = 0;
  l.oom_kill_disable = true;
  l.cpu_shares = 512;
  l.cpu_period = 50'000;
  l.cpu_quota = 25'000;
  l.cpu_rt_period = 1'000'000;
  l.cpu_rt_runtime = 1'000;
  l.cpuset_cpus = "0";
  l.cpuset_mems = "0";
  oci::Resources r = resources_of(l, Swap::as_asked);
  EXPECT_EQ(r.memory->limit, 8 << 20);
  EXPECT_EQ(r.memory->swap, -1);
  EXPECT_EQ(r.memory->reservation, 7 << 20);
  EXPECT_EQ(r.memory->swappiness, 0U);
  EXPECT_EQ(r.memory->disable_oom_killer, true);
  EXPECT_EQ(r.cpu->shares, 512U);
  EXPECT_EQ(r.cpu->period, 50'000U);
  EXPECT_EQ(r.cpu->quota, 25'000);
  EXPECT_EQ(r.cpu->realtime_period, 1'000'000U);
  EXPECT_EQ(r.cpu->realtime_runtime, 1'000);
  EXPECT_EQ(r.cpu->cpus, "0");
  EXPECT_EQ(r.cpu->mems, "0");
}

TEST(ParseDeviceLimit, reads_the_value_after_the_last_colon) {
  EXPECT_EQ(*parse_device_bytes("/dev/disk/by-id/a:b:1mb"),
            (DeviceValue{"/dev/disk/by-id/a:b", 1 << 20}));
  EXPECT_EQ(*parse_device_rate("/dev/sda:100"), (DeviceValue{"/dev/sda", 100}));
  EXPECT_EQ(*parse_device_weight("/dev/sda:500"), (DeviceValue{"/dev/sda", 500}));
  EXPECT_FALSE(parse_device_weight("/dev/sda:5").ok());
  for (const char* wrong : {"", "/dev/sda", "sda:1", "/etc/passwd:1", "/dev/sda:", "/dev/sda:x"}) {
    EXPECT_FALSE(parse_device_bytes(wrong).ok()) << wrong;
    EXPECT_FALSE(parse_device_rate(wrong).ok()) << wrong;
  }
}

TEST(BlockLimits, are_for_block_devices_that_are_there) {
  Limits l;
  EXPECT_FALSE(*block_limits(l));
  l.device_read_bps = {{"/dev/null", 1}};
  EXPECT_EQ(to_line(block_limits(l).error()), "'/dev/null' is not a block device");
  l.device_read_bps = {{"/dev/no-such-disk", 1}};
  EXPECT_EQ(block_limits(l).error().kind, Kind::not_found);
}

}  // namespace
}  // namespace berth::engine
