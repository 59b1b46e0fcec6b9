// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/cgroup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oci/config.hpp"
#include "runtime/cgroup/limits.hpp"

namespace berth::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind_ = CgroupLayout::Kind;
using Version = CgroupHierarchy::Version;

constexpr std::string_view kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CgroupLayout, hybrid_machine) {
  auto layout = parse_cgroup_layout(
      kHybrid, "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/user.slice\n");
  EXPECT_EQ(layout.kind(), Kind_::hybrid);
  ASSERT_NE(layout.find("memory"), nullptr);
  EXPECT_EQ(layout.find("memory")->mount, "/sys/fs/cgroup/memory");
  EXPECT_EQ(layout.find("memory")->own, "/a/b");
  EXPECT_EQ(layout.find("cpuacct"), layout.find("cpu"));
  EXPECT_THAT(layout.find("name=systemd")->controllers, ElementsAre("name=systemd"));
  ASSERT_NE(layout.unified(), nullptr);
  EXPECT_EQ(layout.unified()->own, "/user.slice");
  EXPECT_EQ(layout.find("pids"), nullptr);
}

TEST(CgroupLayout, paths_may_begin_at_the_callers_own) {
  auto layout = parse_cgroup_layout(kHybrid, "4:memory:/jobs/17\n1:cpu,cpuacct:/\n0::/\n");
  CgroupStarts own = own_cgroups(layout);
  EXPECT_THAT(own, ElementsAre(testing::Pair("/sys/fs/cgroup/memory", "/jobs/17")));
  EXPECT_EQ(layout.find("memory")->start, "");
  begin_at(own, layout);
  EXPECT_EQ(layout.find("memory")->start, "/jobs/17");
  EXPECT_EQ(layout.unified()->start, "");
}

TEST(CgroupLayout, unified_legacy_and_none) {
  auto v2 = parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/x\n");
  EXPECT_EQ(v2.kind(), Kind_::unified);
  auto v1 = parse_cgroup_layout("30 23 0:26 / /cg/pids rw - cgroup none rw,pids\n", "3:pids:/\n");
  EXPECT_EQ(v1.kind(), Kind_::legacy);
  EXPECT_EQ(parse_cgroup_layout("30 23 0:26 / / rw - ext4 /dev/vda rw\n", "").kind(), Kind_::none);
}

TEST(CgroupLayout, mount_that_shows_a_part_of_the_hierarchy) {
  auto layout =
      parse_cgroup_layout("30 23 0:26 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
                          "3:pids:/docker/abc/child\n");
  EXPECT_EQ(layout.find("pids")->own, "/child");
  layout = parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                               "0::/../../outside\n");
  EXPECT_EQ(layout.unified()->own, "/");
}

TEST(CgroupLayout, second_mount_and_odd_lines_are_ignored) {
  auto layout = parse_cgroup_layout(
      "30 23 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
      "31 23 0:26 / /elsewhere rw - cgroup cgroup rw,pids\n"
      "32 23 0:27 / /with\\040blank rw - cgroup cgroup rw,memory\n"
      "broken - cgroup\n - cgroup cgroup rw\n"
      "33 23 0:28 / /nothing rw - cgroup cgroup rw\n",
      "nonsense\n3:pids\n");
  ASSERT_EQ(layout.hierarchies.size(), 2u);
  EXPECT_EQ(layout.find("pids")->mount, "/sys/fs/cgroup/pids");
  EXPECT_EQ(layout.find("memory")->mount, "/with blank");
}

std::vector<std::string> lines(const std::vector<CgroupWrite>& writes) {
  std::vector<std::string> texts;
  for (const auto& write : writes) texts.push_back(write.file + "=" + write.value);
  return texts;
}

oci::Resources full() {
  oci::Resources resources;
  resources.memory = oci::Memory{};
  resources.memory->limit = 1 << 20;
  resources.memory->swap = 3 << 20;
  resources.memory->reservation = 4096;
  resources.cpu = oci::Cpu{};
  resources.cpu->shares = 1024;
  resources.cpu->quota = 50000;
  resources.cpu->period = 100000;
  resources.cpu->cpus = "0-1";
  resources.pids = oci::Pids{100};
  resources.block_io = oci::BlockIo{};
  resources.block_io->weight = 500;
  resources.hugepage_limits = {{"2MB", 4194304}};
  return resources;
}

TEST(CgroupLimits, v1_files) {
  EXPECT_THAT(
      lines(v1_writes(full())),
      ElementsAre("memory.limit_in_bytes=1048576", "memory.soft_limit_in_bytes=4096",
                  "memory.memsw.limit_in_bytes=3145728", "cpu.shares=1024",
                  "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=50000", "cpuset.cpus=0-1",
                  "pids.max=100", "blkio.weight=500", "hugetlb.2MB.rsvd.limit_in_bytes=4194304",
                  "hugetlb.2MB.limit_in_bytes=4194304"));
}

TEST(CgroupLimits, v2_files) {
  auto resources = full();
  resources.unified = {{"memory.high", "1000"}};
  EXPECT_THAT(lines(*v2_writes(resources)),
              ElementsAre("memory.max=1048576", "memory.swap.max=2097152", "memory.low=4096",
                          "cpu.weight=100", "cpu.max=50000 100000", "cpuset.cpus=0-1",
                          "pids.max=100", "io.bfq.weight=500", "hugetlb.2MB.rsvd.max=4194304",
                          "hugetlb.2MB.max=4194304", "memory.high=1000"));
}

oci::Resources disks() {
  oci::Resources resources;
  auto& block_io = resources.block_io.emplace();
  block_io.leaf_weight = 20;
  block_io.weight_device = {{8, 0, 300, 30}, {8, 16, {}, 40}};
  block_io.throttle_read_bps = {{8, 0, 1000}};
  block_io.throttle_write_bps = {{8, 0, 0}};
  block_io.throttle_read_iops = {{8, 0, 30}, {8, 16, 31}};
  block_io.throttle_write_iops = {{8, 0, 40}};
  return resources;
}

TEST(CgroupLimits, disks_in_v1_have_a_file_for_each_limit) {
  EXPECT_THAT(
      lines(v1_writes(disks())),
      ElementsAre(
          "blkio.leaf_weight=20", "blkio.weight_device=8:0 300", "blkio.leaf_weight_device=8:0 30",
          "blkio.leaf_weight_device=8:16 40", "blkio.throttle.read_bps_device=8:0 1000",
          "blkio.throttle.write_bps_device=8:0 0", "blkio.throttle.read_iops_device=8:0 30",
          "blkio.throttle.read_iops_device=8:16 31", "blkio.throttle.write_iops_device=8:0 40"));
  EXPECT_EQ(v1_writes(disks())[1].instead.file, "blkio.bfq.weight_device");
}

TEST(CgroupLimits, disks_in_v2_have_lines_in_two_files) {
  auto writes = *v2_writes(disks());
  EXPECT_THAT(lines(writes),
              ElementsAre("io.bfq.weight=8:0 300", "io.max=8:0 rbps=1000", "io.max=8:0 wbps=max",
                          "io.max=8:0 riops=30", "io.max=8:16 riops=31", "io.max=8:0 wiops=40"));
  EXPECT_EQ(writes[0].instead.file, "io.weight");
  EXPECT_EQ(writes[0].instead.value, "8:0 2930");
}

TEST(CgroupLimits, network_is_of_v1_alone_and_rdma_of_both) {
  oci::Resources resources;
  resources.network.emplace();
  resources.network->class_id = 0x100001;
  resources.network->priorities = {{"eth0", 5}, {"lo", 1}};
  resources.rdma = {{"mlx5_0", {3, {}}}, {"mlx5_1", {1, 2}}, {"mlx5_2", {}}};
  EXPECT_THAT(
      lines(v1_writes(resources)),
      ElementsAre("net_cls.classid=1048577", "net_prio.ifpriomap=eth0 5", "net_prio.ifpriomap=lo 1",
                  "rdma.max=mlx5_0 hca_handle=3", "rdma.max=mlx5_1 hca_handle=1 hca_object=2"));
  EXPECT_THAT(
      lines(*v2_writes(resources)),
      ElementsAre("rdma.max=mlx5_0 hca_handle=3", "rdma.max=mlx5_1 hca_handle=1 hca_object=2"));
}

TEST(CgroupLimits, realtime_burst_and_idle) {
  oci::Resources resources;
  resources.cpu.emplace();
  resources.cpu->burst = 1000;
  resources.cpu->realtime_period = 500000;
  resources.cpu->realtime_runtime = 100000;
  resources.cpu->idle = 0;
  EXPECT_THAT(lines(v1_writes(resources)),
              ElementsAre("cpu.cfs_burst_us=1000", "cpu.rt_period_us=500000",
                          "cpu.rt_runtime_us=100000", "cpu.idle=0"));
  EXPECT_THAT(lines(*v2_writes(resources)), ElementsAre("cpu.max.burst=1000", "cpu.idle=0"));
}

TEST(CgroupLimits, nothing_asked_nothing_written) {
  EXPECT_THAT(v1_writes({}), IsEmpty());
  EXPECT_THAT(*v2_writes({}), IsEmpty());
}

TEST(CgroupLimits, a_burst_of_zero_takes_one_back_that_was_allowed) {
  oci::Resources resources;
  resources.cpu.emplace();
  resources.cpu->burst = 0;
  for (const auto& writes : {v1_writes(resources), *v2_writes(resources)}) {
    ASSERT_EQ(writes.size(), 1U);
    EXPECT_EQ(writes[0].value, "0");
    EXPECT_EQ(writes[0].absent, CgroupWrite::Absent::ignore);
  }
}

TEST(CgroupLimits, zero_is_not_set_as_callers_of_runc_mean_it) {
  oci::Resources resources;
  resources.memory = oci::Memory{0, 0, 0};
  resources.cpu.emplace();
  resources.cpu->shares = resources.cpu->period = 0;
  resources.cpu->quota = resources.cpu->realtime_runtime = 0;
  resources.block_io.emplace();
  resources.block_io->weight = 0;
  resources.block_io->leaf_weight = 0;
  EXPECT_THAT(v1_writes(resources), IsEmpty());
  EXPECT_THAT(*v2_writes(resources), IsEmpty());
}

TEST(CgroupLimits, no_limit_is_max_and_zero_processes_are_a_value) {
  oci::Resources resources;
  resources.memory = oci::Memory{};
  resources.memory->limit = -1;
  resources.memory->swap = -1;
  resources.pids = oci::Pids{0};
  resources.cpu = oci::Cpu{};
  resources.cpu->quota = -1;
  EXPECT_THAT(lines(*v2_writes(resources)),
              ElementsAre("memory.max=max", "memory.swap.max=max", "cpu.max=max", "pids.max=0"));
}

TEST(CgroupLimits, memory_without_a_limit_takes_that_of_swap_along) {
  oci::Resources resources;
  resources.memory = oci::Memory{};
  resources.memory->limit = -1;
  EXPECT_THAT(lines(v1_writes(resources)),
              ElementsAre("memory.limit_in_bytes=-1", "memory.memsw.limit_in_bytes=-1"));
  EXPECT_THAT(lines(*v2_writes(resources)), ElementsAre("memory.max=max", "memory.swap.max=max"));
  resources.memory->swap = 100;
  EXPECT_THAT(lines(*v2_writes(resources)), ElementsAre("memory.max=max", "memory.swap.max=100"));
}

TEST(CgroupLimits, swap_that_contradicts_memory_is_refused) {
  oci::Resources resources;
  resources.memory = oci::Memory{};
  resources.memory->swap = 100;
  EXPECT_EQ(
      to_line(v2_writes(resources).error()),
      "linux.resources.memory.swap: it counts memory and swap together, and needs a memory.limit");
  resources.memory->limit = 200;
  EXPECT_EQ(
      to_line(check_resources(resources).error()),
      "linux.resources.memory.swap: it counts memory and swap together, and is below memory.limit");
  resources.memory->swap = 200;
  EXPECT_TRUE(check_resources(resources).ok());
  EXPECT_THAT(lines(*v2_writes(resources)), ElementsAre("memory.max=200", "memory.swap.max=0"));
}

struct Wrong {
  const char* json;
  const char* line;
};

class WrongResources : public testing::TestWithParam<Wrong> {};

TEST_P(WrongResources, are_refused_by_their_path) {
  auto resources = oci::parse_resources(GetParam().json, "resources");
  ASSERT_TRUE(resources.ok()) << to_line(resources.error());
  auto checked = check_resources(*resources);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(to_line(checked.error()), std::string("linux.resources.") + GetParam().line);
  EXPECT_EQ(checked.error().kind, Kind::corrupt);
}

INSTANTIATE_TEST_SUITE_P(
    CgroupLimits, WrongResources,
    testing::Values(
        Wrong{R"({"memory":{"limit":-2}})", "memory.limit: expected -1 or more, got -2"},
        Wrong{R"({"memory":{"swap":-5}})", "memory.swap: expected -1 or more, got -5"},
        Wrong{R"({"memory":{"reservation":-9}})",
              "memory.reservation: expected -1 or more, got -9"},
        Wrong{R"({"memory":{"swappiness":101}})", "memory.swappiness: expected 0 to 100, got 101"},
        Wrong{R"({"blockIO":{"weight":9}})", "blockIO.weight: expected 10 to 1000, got 9"},
        Wrong{R"({"blockIO":{"leafWeight":1001}})",
              "blockIO.leafWeight: expected 10 to 1000, got 1001"},
        Wrong{R"({"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":5}]}})",
              "blockIO.weightDevice[0].weight: expected 10 to 1000, got 5"},
        Wrong{R"({"blockIO":{"weightDevice":[{"major":8,"minor":0,"leafWeight":5}]}})",
              "blockIO.weightDevice[0].leafWeight: expected 10 to 1000, got 5"},
        Wrong{R"({"blockIO":{"throttleReadBpsDevice":[{"major":-1,"minor":0,"rate":1}]}})",
              "blockIO.throttleReadBpsDevice[0].major: expected a device number, got -1"},
        Wrong{R"({"blockIO":{"throttleWriteIOPSDevice":[{"major":8,"minor":-3,"rate":1}]}})",
              "blockIO.throttleWriteIOPSDevice[0].minor: expected a device number, got -3"},
        Wrong{R"({"network":{"priorities":[{"name":"a b","priority":1}]}})",
              "network.priorities[0].name: expected a name, got 'a b'"},
        Wrong{R"({"rdma":{"":{"hcaHandles":1}}})", "rdma: expected a name, got ''"},
        Wrong{R"({"unified":{"../memory.max":"1"}})",
              "unified: '../memory.max' cannot name a file"},
        Wrong{R"({"unified":{"x/memory.max":"1"}})", "unified: 'x/memory.max' cannot name a file"},
        Wrong{R"({"hugepageLimits":[{"pageSize":"2MB/../..","limit":1}]})",
              "hugepageLimits[0].pageSize: '2MB/../..' cannot name a file"}));

TEST(CgroupLimits, deprecated_members_ask_for_nothing) {
  auto resources = oci::parse_resources(
      R"({"memory":{"kernel":1,"kernelTCP":2,"useHierarchy":true}})", "resources");
  ASSERT_TRUE(resources.ok());
  EXPECT_THAT(v1_writes(*resources), IsEmpty());
  EXPECT_THAT(*v2_writes(*resources), IsEmpty());
}

TEST(CgroupLimits, shares_become_weights_on_the_curve_of_the_others) {
  EXPECT_EQ(weight_of_shares(2), 1u);
  EXPECT_EQ(weight_of_shares(1024), 100u);
  EXPECT_EQ(weight_of_shares(262144), 10000u);
  EXPECT_EQ(weight_of_shares(0), 1u);
  EXPECT_EQ(weight_of_shares(UINT64_MAX), 10000u);
  uint64_t before = 0;
  for (uint64_t shares = 2; shares < 262144; shares *= 2) {
    EXPECT_GE(weight_of_shares(shares), before);
    before = weight_of_shares(shares);
  }
}

TEST(CgroupSet, paths_that_lead_elsewhere_are_refused) {
  for (const std::string path : {"/a/../b", "..", "/", ""}) {
    auto made = CgroupSet::create({}, path, {});
    ASSERT_FALSE(made.ok()) << path;
    EXPECT_EQ(made.error().kind, Kind::usage);
  }
}

TEST(CgroupSet, without_cgroups_all_limits_are_unmet) {
  auto made = CgroupSet::create({}, "/berth/x", full());
  ASSERT_TRUE(made.ok());
  std::vector<std::string> names;
  for (const auto& unmet : made->unmet()) names.push_back(unmet.name);
  EXPECT_THAT(names, ElementsAre("memory.limit", "memory.reservation", "cpu.shares", "cpu.quota",
                                 "cpu.cpus", "pids.limit", "blockIO.weight", "hugepageLimits"));
  EXPECT_EQ(made->unmet()[0].reason, "no cgroup controller 'memory'");
  EXPECT_TRUE(made->empty());
  auto devices = made->restrict_devices({}, "/berth/x", {{false, "a", {}, {}, "rwm"}});
  ASSERT_TRUE(devices.ok());
  ASSERT_TRUE(devices->has_value());
  EXPECT_EQ((*devices)->name, "devices");
}

}  // namespace
}  // namespace berth::runtime
