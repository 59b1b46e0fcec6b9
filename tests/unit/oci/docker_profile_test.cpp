// SPDX-License-Identifier: Apache-2.0
#include "oci/docker_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::oci {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DockerProfile : public testing::Test {
 protected:
  Result<Seccomp> parse(std::string_view text) {
    return parse_docker_profile(text, "p.json", {capabilities_, machine_, kernel_});
  }
  /// The names of the rules that count.
  std::vector<std::string> rules(const std::string& rule) {
    auto profile =
        parse(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"action":"SCMP_ACT_ALLOW",)" +
              rule + "}]}");
    EXPECT_TRUE(profile.ok()) << to_line(profile.error());
    std::vector<std::string> names;
    if (!profile.ok()) return names;
    for (const auto& one : profile->syscalls) {
      names.insert(names.end(), one.names.begin(), one.names.end());
    }
    return names;
  }
  std::string fault(std::string_view text) {
    auto profile = parse(text);
    return profile.ok() ? "" : to_line(profile.error());
  }

  std::vector<std::string> capabilities_;
  Machine machine_ = Machine::x86_64;
  std::string kernel_ = "6.1.0-18-amd64";
};

TEST_F(DockerProfile, takes_actions_arguments_and_the_machines_architectures) {
  auto profile = parse(R"({
    "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
    "archMap": [
      {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
      {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
    "syscalls": [{"names": ["personality"], "action": "SCMP_ACT_ALLOW", "errnoRet": 2,
                  "args": [{"index": 0, "value": 8, "valueTwo": 9, "op": "SCMP_CMP_EQ"}]}]})");
  ASSERT_TRUE(profile.ok()) << to_line(profile.error());
  EXPECT_EQ(profile->default_action, "SCMP_ACT_ERRNO");
  EXPECT_EQ(profile->default_errno_ret, 1U);
  EXPECT_THAT(profile->architectures, ElementsAre("SCMP_ARCH_X86_64", "SCMP_ARCH_X86"));
  ASSERT_EQ(profile->syscalls.size(), 1U);
  EXPECT_EQ(profile->syscalls[0].errno_ret, 2U);
  EXPECT_EQ(profile->syscalls[0].args[0].value, 8U);
  EXPECT_EQ(profile->syscalls[0].args[0].value_two, 9U);
  EXPECT_EQ(profile->syscalls[0].args[0].op, "SCMP_CMP_EQ");
}

TEST_F(DockerProfile, counts_a_rule_by_capabilities_machine_and_kernel) {
  EXPECT_THAT(rules(R"("name":"old")"), ElementsAre("old"));
  const char* kAdmin = R"("names":["mount"],"includes":{"caps":["CAP_SYS_ADMIN"]})";
  EXPECT_THAT(rules(kAdmin), ElementsAre());
  const char* kNobody = R"("names":["clone"],"excludes":{"caps":["CAP_SYS_ADMIN"]})";
  EXPECT_THAT(rules(kNobody), ElementsAre("clone"));
  capabilities_ = {"CAP_SYS_ADMIN"};
  EXPECT_THAT(rules(kAdmin), ElementsAre("mount"));
  EXPECT_THAT(rules(kNobody), ElementsAre());
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"arches":["amd64","x32"]})"), ElementsAre("a"));
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"arches":["arm64"]})"), ElementsAre());
  EXPECT_THAT(rules(R"("names":["a"],"excludes":{"arches":["amd64"]})"), ElementsAre());
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"minKernel":"4.8"})"), ElementsAre("a"));
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"minKernel":"6.1"})"), ElementsAre("a"));
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"minKernel":"6.10"})"), ElementsAre());
  EXPECT_THAT(rules(R"("names":["a"],"excludes":{"minKernel":"4.8"})"), ElementsAre());
  kernel_ = "nonsense";
  EXPECT_THAT(rules(R"("names":["a"],"includes":{"minKernel":"4.8"})"), ElementsAre());
}

TEST_F(DockerProfile, is_refused_where_it_is_damaged) {
  EXPECT_EQ(fault("{}"), "p.json: defaultAction: missing");
  EXPECT_THAT(fault("["), HasSubstr("p.json"));
  EXPECT_THAT(fault(R"({"defaultAction":1})"), HasSubstr("expected a string"));
  EXPECT_EQ(
      fault(R"({"defaultAction":"a","architectures":["b"],"archMap":[{"architecture":"c"}]})"),
      "p.json: 'architectures' and 'archMap' cannot both be there");
  EXPECT_EQ(fault(R"({"defaultAction":"a","syscalls":[{"name":"b","names":["c"],"action":"d"}]})"),
            "p.json: syscalls: 'name' and 'names' cannot both be there");
  EXPECT_EQ(fault(R"({"defaultAction":"a","syscalls":[
                      {"names":["c"],"action":"d","includes":{"minKernel":"new"}}]})"),
            "p.json: minKernel: expected such as 4.8, got 'new'");
}

}  // namespace
}  // namespace berth::oci
