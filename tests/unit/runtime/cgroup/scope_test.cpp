// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/scope.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/fields.hpp"
#include "oci/config.hpp"

namespace berth::runtime {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> limits(std::string_view resources) {
  auto read = oci::parse_resources(std::string(resources), "resources");
  EXPECT_TRUE(read.ok());
  auto properties = scope_limits(*read);
  EXPECT_TRUE(properties.ok());
  std::vector<std::string> texts;
  for (const auto& property : *properties) {
    std::string text = property.name + "=";
    if (property.number) text += std::to_string(*property.number);
    if (property.bits) {
      for (uint8_t byte : *property.bits) text += std::to_string(byte) + " ";
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(Scope, leaves_what_is_empty_to_the_kernel) {
  EXPECT_THAT(limits(R"({"unified": {"cpu.max": "", "cpuset.cpus": "", "pids.max": ""}})"),
              IsEmpty());
}

TEST(Scope, has_the_limits_that_systemd_knows_as_properties) {
  EXPECT_THAT(limits(R"({"memory": {"limit": 1000, "swap": 3000, "reservation": 500},
                         "pids": {"limit": 7}, "cpu": {"shares": 1024},
                         "blockIO": {"weight": 1000}, "unified": {"memory.high": "max"}})"),
              ElementsAre("MemoryMax=1000", "MemorySwapMax=2000", "MemoryLow=500", "CPUWeight=100",
                          "TasksMax=7", "IOWeight=10000", "MemoryHigh=18446744073709551615"));
}

TEST(Scope, has_whole_percents_of_processor_time_and_never_none) {
  EXPECT_THAT(limits(R"({"cpu": {"quota": 50000, "period": 100000}})"),
              ElementsAre("CPUQuotaPerSecUSec=500000"));
  EXPECT_THAT(limits(R"({"cpu": {"quota": 1001, "period": 200000}})"),
              ElementsAre("CPUQuotaPerSecUSec=10000", "CPUQuotaPeriodUSec=200000"));
  EXPECT_THAT(limits(R"({"cpu": {"quota": -1}})"),
              ElementsAre("CPUQuotaPerSecUSec=18446744073709551615"));
}

TEST(Scope, has_sets_of_processors_as_bits) {
  EXPECT_THAT(limits(R"({"cpu": {"cpus": "0-2,9", "mems": "0"}})"),
              ElementsAre("AllowedCPUs=7 2 ", "AllowedMemoryNodes=1 "));
}

TEST(Scope, leaves_to_the_kernel_what_systemd_has_no_property_for) {
  EXPECT_THAT(limits(R"({"hugepageLimits": [{"pageSize": "2MB", "limit": 0}],
                         "cpu": {"burst": 10, "cpus": "0-99999999"}})"),
              IsEmpty());
}

std::vector<std::string> devices(const std::vector<oci::DeviceRule>& rules) {
  auto list = scope_devices(rules);
  EXPECT_TRUE(list.ok());
  if (!*list) return {"not a list"};
  std::vector<std::string> texts;
  for (const auto& device : **list) texts.push_back(device.node + " " + device.access);
  return texts;
}

const oci::DeviceRule kNothing{false, "", {}, {}, ""};
const oci::DeviceRule kAll{true, "a", {}, {}, "rwm"};

TEST(Scope, declares_devices_that_are_a_list_with_those_of_every_container) {
  EXPECT_THAT(devices({kAll, kNothing, {true, "c", 10, 229, "rw"}, {true, "b", 8, {}, "r"}}),
              ElementsAre("/dev/char/10:229 rw", "block-8 r", "char-* m", "block-* m",
                          "/dev/char/1:3 rwm", "/dev/char/1:5 rwm", "/dev/char/1:7 rwm",
                          "/dev/char/1:8 rwm", "/dev/char/1:9 rwm", "/dev/char/5:0 rwm",
                          "/dev/char/5:1 rwm", "/dev/char/5:2 rwm", "char-136 rwm"));
  EXPECT_THAT(devices({}), Contains("/dev/char/1:3 rwm"));
}

TEST(Scope, declares_no_devices_where_the_rules_are_no_list) {
  EXPECT_THAT(devices({kAll}), ElementsAre("not a list"));
  EXPECT_THAT(devices({kNothing, {true, "c", 1, {}, "rw"}, {false, "c", 1, 11, "rw"}}),
              ElementsAre("not a list"));
  EXPECT_THAT(devices({kNothing, {true, "c", {}, 3, "rw"}}), ElementsAre("not a list"));
}

TEST(Scope, names_an_allowed_device_as_the_host_does_where_that_is_it) {
  std::vector<scope::Device> list = {{"/dev/char/1:3", "rw"}, {"char-136", "rwm"}};
  add_names(list, {{"/dev/null", "c", 1, 3},
                   {"/dev/zero", "c", 1, 5},         // is not allowed
                   {"/dev/full", "c", 1, 3},         // is another device
                   {"/dev/../dev/null", "b", 1, 3},  // is not a block device
                   {"/dev/fd", "c", 1, 3},           // a link
                   {"/none", "c", 1, 3},
                   {"/dev/none", "c", 1, 3}});
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.back().node + " " + list.back().access, "/dev/null rw");
}

}  // namespace
}  // namespace berth::runtime
