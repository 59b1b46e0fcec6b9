// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/device_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <stdexcept>

namespace berth::runtime {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr uint32_t kBlock = BPF_DEVCG_DEV_BLOCK;
constexpr uint32_t kChar = BPF_DEVCG_DEV_CHAR;
constexpr uint32_t kMknod = BPF_DEVCG_ACC_MKNOD;
constexpr uint32_t kRead = BPF_DEVCG_ACC_READ;
constexpr uint32_t kWrite = BPF_DEVCG_ACC_WRITE;

/// The kernel's answer to one access: the few instructions that our programs have.
bool permits(const std::vector<bpf_insn>& program, const bpf_cgroup_dev_ctx& access) {
  std::array<uint32_t, 11> r{};
  std::vector<bool> seen(program.size());
  for (size_t at = 0; at < program.size(); ++at) {
    const auto& step = program[at];
    auto value = static_cast<uint32_t>(step.imm);
    switch (step.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        std::memcpy(&r[step.dst_reg], reinterpret_cast<const char*>(&access) + step.off, 4);
        break;
      case BPF_ALU | BPF_K | BPF_AND:
        r[step.dst_reg] &= value;
        break;
      case BPF_ALU | BPF_K | BPF_RSH:
        r[step.dst_reg] >>= value;
        break;
      case BPF_ALU | BPF_K | BPF_MOV:
        r[step.dst_reg] = value;
        break;
      case BPF_ALU | BPF_X | BPF_MOV:
        r[step.dst_reg] = r[step.src_reg];
        break;
      case BPF_JMP32 | BPF_K | BPF_JNE:
        if (r[step.dst_reg] != value) at += static_cast<size_t>(step.off);
        break;
      case BPF_JMP32 | BPF_K | BPF_JEQ:
        if (r[step.dst_reg] == value) at += static_cast<size_t>(step.off);
        break;
      case BPF_JMP | BPF_JA:
        at += static_cast<size_t>(step.off);
        break;
      case BPF_JMP | BPF_EXIT:
        return r[0] != 0;
      default:
        throw std::runtime_error("unknown instruction");
    }
  }
  throw std::runtime_error("ran off the end");
}

bool permits(const std::vector<oci::DeviceRule>& rules, uint32_t type, uint32_t access,
             uint32_t major, uint32_t minor) {
  auto program = compile_device_filter(rules);
  if (!program.ok()) throw std::runtime_error(to_line(program.error()));
  return permits(*program, bpf_cgroup_dev_ctx{(access << 16) | type, major, minor});
}

const oci::DeviceRule kDenyAll{false, "a", {}, {}, "rwm"};

TEST(DeviceFilter, denies_what_no_rule_names) {
  EXPECT_FALSE(permits({}, kChar, kRead, 1, 3));
  EXPECT_FALSE(permits({{true, "c", 1, 3, "r"}}, kChar, kRead, 1, 4));
}

TEST(DeviceFilter, a_container_has_the_usual_devices_whatever_its_rules) {
  auto rules = with_default_devices({kDenyAll});
  EXPECT_TRUE(permits(rules, kChar, kRead | kWrite, 1, 3)) << "null";
  EXPECT_TRUE(permits(rules, kChar, kRead | kWrite, 5, 2)) << "ptmx";
  EXPECT_TRUE(permits(rules, kChar, kRead | kWrite, 136, 7)) << "pts/7";
  EXPECT_TRUE(permits(rules, kBlock, kMknod, 8, 0)) << "making a node is harmless";
  EXPECT_FALSE(permits(rules, kBlock, kRead, 8, 0)) << "sda";
  EXPECT_FALSE(permits(rules, kBlock, kRead | kMknod, 8, 0));
  EXPECT_FALSE(permits(rules, kChar, kRead, 1, 11)) << "kmsg";
  EXPECT_FALSE(permits(rules, kChar, kWrite, 1, 1)) << "mem";
  EXPECT_FALSE(permits(rules, kChar, kRead, 195, 0)) << "nvidia0";
}

TEST(DeviceFilter, a_granted_device_can_be_used_and_its_neighbour_not) {
  auto rules = with_default_devices({kDenyAll, {true, "c", 195, 2, "rw"}});
  EXPECT_TRUE(permits(rules, kChar, kRead | kWrite, 195, 2));
  EXPECT_FALSE(permits(rules, kChar, kRead, 195, 1));
  EXPECT_FALSE(permits(rules, kBlock, kRead, 195, 2));
}

TEST(DeviceFilter, the_last_rule_decides) {
  oci::DeviceRule allow{true, "c", 1, 11, "rwm"};
  oci::DeviceRule deny{false, "c", 1, 11, "rwm"};
  EXPECT_TRUE(permits({deny, allow}, kChar, kRead, 1, 11));
  EXPECT_FALSE(permits({allow, deny}, kChar, kRead, 1, 11));
  EXPECT_FALSE(permits({allow, kDenyAll}, kChar, kRead, 1, 11));
}

TEST(DeviceFilter, each_kind_of_access_is_decided_by_itself) {
  std::vector<oci::DeviceRule> rules{{true, "c", 9, 9, "r"}, {true, "c", 9, 9, "w"}};
  EXPECT_TRUE(permits(rules, kChar, kRead | kWrite, 9, 9));
  EXPECT_FALSE(permits(rules, kChar, kRead | kMknod, 9, 9));
  rules.push_back({false, "c", 9, 9, "w"});
  EXPECT_FALSE(permits(rules, kChar, kRead | kWrite, 9, 9));
  EXPECT_TRUE(permits(rules, kChar, kRead, 9, 9));
}

/// Each access bit by the last rule that names it.
bool meaning(const std::vector<oci::DeviceRule>& rules, uint32_t type, uint32_t access,
             uint32_t major, uint32_t minor) {
  for (auto [bit, letter] : {std::pair{kMknod, 'm'}, {kRead, 'r'}, {kWrite, 'w'}}) {
    if ((access & bit) == 0) continue;
    bool allowed = false;
    for (const auto& rule : rules) {
      bool type_fits = rule.type == "a" || rule.type == (type == kBlock ? "b" : "c");
      bool fits = type_fits && (!rule.major || *rule.major == major) &&
                  (!rule.minor || *rule.minor == minor) &&
                  rule.access.find(letter) != std::string::npos;
      if (fits) allowed = rule.allow;
    }
    if (!allowed) return false;
  }
  return true;
}

const std::string kTypes[] = {"a", "b", "c"};

std::vector<oci::DeviceRule> random_rules(std::mt19937& random) {
  const std::string accesses[] = {"r", "w", "m", "rw", "rm", "wm", "rwm"};
  std::vector<oci::DeviceRule> rules;
  for (size_t i = random() % 8; i > 0; --i) {
    oci::DeviceRule rule{random() % 2 == 0, kTypes[random() % 3], {}, {}, accesses[random() % 7]};
    if (random() % 3 != 0) rule.major = random() % 3;
    if (random() % 3 != 0) rule.minor = random() % 3;
    rules.push_back(rule);
  }
  return rules;
}

/// As engines write them: nothing, then making any node, then some devices.
std::vector<oci::DeviceRule> random_grants(std::mt19937& random) {
  std::vector<oci::DeviceRule> rules{{random() % 2 == 0, "c", 1, 1, "rwm"}, kDenyAll};
  for (const char* type : {"b", "c"}) {
    if (random() % 3 != 0) rules.push_back({true, type, {}, {}, "m"});
  }
  for (size_t i = random() % 6; i > 0; --i) {
    oci::DeviceRule rule{true, kTypes[random() % 3], random() % 3, {}, "rw"};
    if (random() % 3 != 0) rule.minor = random() % 3;
    if (random() % 2 == 0) rule.access = "rwm";
    rules.push_back(rule);
  }
  return rules;
}

TEST(DeviceFilter, random_rules_mean_what_they_say) {
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    auto rules = round % 2 == 0 ? random_rules(random) : random_grants(random);
    auto program = compile_device_filter(rules);
    ASSERT_TRUE(program.ok());
    for (uint32_t type : {kBlock, kChar}) {
      for (uint32_t access = 1; access < 8; ++access) {
        uint32_t major = random() % 4;
        uint32_t minor = random() % 4;
        ASSERT_EQ(permits(*program, bpf_cgroup_dev_ctx{(access << 16) | type, major, minor}),
                  meaning(rules, type, access, major, minor))
            << "round " << round;
      }
    }
  }
}

// The kernel's verifier walks a program that compares what it knows already many times.
TEST(DeviceFilter, a_list_of_grants_compares_each_number_once) {
  auto rules = with_default_devices(with_default_devices({kDenyAll}));
  for (int minor = 0; minor < 8; ++minor) rules.push_back({true, "c", 195, minor, "rw"});
  auto program = compile_device_filter(rules);
  ASSERT_TRUE(program.ok());
  auto compares = [&](int number) {
    return std::count_if(program->begin(), program->end(), [&](const bpf_insn& step) {
      return BPF_CLASS(step.code) == BPF_JMP32 && step.imm == number;
    });
  };
  EXPECT_EQ(compares(195), 1);
  EXPECT_EQ(compares(136), 1);
}

TEST(DeviceFilter, v1_lines_say_the_same) {
  auto lines = device_lines(std::vector<oci::DeviceRule>{kDenyAll,
                                                         {true, "c", 195, {}, "rw"},
                                                         {true, "a", 8, 1, "r"},
                                                         {false, "b", {}, 3, ""},
                                                         {true, "", -1, -1, "rwm"}});
  ASSERT_TRUE(lines.ok());
  EXPECT_THAT(*lines,
              ElementsAre(Pair("devices.deny", "a"), Pair("devices.allow", "c 195:* rw"),
                          Pair("devices.allow", "c 8:1 r"), Pair("devices.allow", "b 8:1 r"),
                          Pair("devices.deny", "b *:3 rwm"), Pair("devices.allow", "a")));
}

TEST(DeviceFilter, errors_name_the_place) {
  auto line = [](oci::DeviceRule rule) {
    return to_line(compile_device_filter(std::vector<oci::DeviceRule>{kDenyAll, rule}).error());
  };
  EXPECT_EQ(line({true, "x", {}, {}, "r"}),
            "linux.resources.devices[1].type: expected a, b or c, got 'x'");
  EXPECT_EQ(line({true, "c", {}, {}, "rx"}),
            "linux.resources.devices[1].access: expected letters of rwm, got 'rx'");
  EXPECT_EQ(line({true, "c", -5, {}, "r"}),
            "linux.resources.devices[1].major: expected a device number, got -5");
}

}  // namespace
}  // namespace berth::runtime
