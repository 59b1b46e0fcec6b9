// SPDX-License-Identifier: Apache-2.0
#include "engine/request/security.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kAllCapabilities = (uint64_t{1} << 41) - 1;

std::vector<std::string> capabilities(std::vector<std::string> add, std::vector<std::string> drop,
                                      uint64_t held = kAllCapabilities) {
  Security security;
  security.cap_add = std::move(add);
  security.cap_drop = std::move(drop);
  return confine(security, {held, "6.1", false})->capabilities;
}

Security with(std::string_view option) {
  Security security;
  EXPECT_TRUE(parse_security_option(option, security).ok()) << option;
  return security;
}

std::string fault(std::string_view option) {
  Security security;
  auto parsed = parse_security_option(option, security);
  return parsed.ok() ? "" : to_line(parsed.error());
}

TEST(Confine, gives_the_capabilities_that_docker_gives) {
  EXPECT_EQ(capabilities({}, {}).size(), 14U);
  EXPECT_THAT(capabilities({"net_admin"}, {"CAP_CHOWN"}),
              testing::AllOf(Contains("CAP_NET_ADMIN"), Not(Contains("CAP_CHOWN"))));
  EXPECT_EQ(capabilities({"ALL"}, {}).size(), 41U);
  EXPECT_THAT(capabilities({"all"}, {"SYS_ADMIN"}), Not(Contains("CAP_SYS_ADMIN")));
  EXPECT_THAT(capabilities({}, {"ALL"}), IsEmpty());
  EXPECT_THAT(capabilities({"CHOWN"}, {"ALL"}), ElementsAre("CAP_CHOWN"));
}

TEST(Confine, gives_all_only_of_what_the_caller_has) {
  EXPECT_THAT(capabilities({"ALL"}, {}, 1), ElementsAre("CAP_CHOWN"));
  Security privileged;
  privileged.privileged = true;
  EXPECT_THAT(confine(privileged, {1, "6.1", false})->capabilities, ElementsAre("CAP_CHOWN"));
}

TEST(Confine, refuses_a_capability_that_nobody_knows) {
  Security security;
  security.cap_add = {"NET_ADMINS"};
  EXPECT_THAT(to_line(confine(security, {}).error()),
              testing::StartsWith("invalid CapAdd: unknown capability: 'NET_ADMINS'"));
  security.cap_add.clear();
  security.cap_drop = {"CAP_"};
  EXPECT_THAT(to_line(confine(security, {}).error()), testing::HasSubstr("invalid CapDrop"));
}

TEST(Confine, loads_the_profile_that_was_kept_even_for_the_privileged) {
  Security security = with("seccomp=unconfined");
  EXPECT_FALSE(confine(security, {})->seccomp);
  security.privileged = true;
  security.seccomp = R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  EXPECT_EQ(confine(security, {})->seccomp->default_action, "SCMP_ACT_ALLOW");
  security.seccomp = "{";
  EXPECT_EQ(confine(security, {}).error().kind, Kind::corrupt);
}

TEST(Confine, shows_the_paths_that_were_unmasked_and_no_others) {
  EXPECT_THAT(confine(with("systempaths=unconfined"), {})->masked_paths, IsEmpty());
  EXPECT_THAT(confine(with("unmask=ALL"), {})->readonly_paths, IsEmpty());
  auto some = *confine(with("unmask=/proc/kcore:/proc/sys"), {});
  EXPECT_THAT(some.masked_paths, Not(Contains("/proc/kcore")));
  EXPECT_THAT(some.masked_paths, Contains("/proc/keys"));
  EXPECT_THAT(some.readonly_paths, Not(Contains("/proc/sys")));
  EXPECT_THAT(confine(with("unmask=/proc/*"), {})->masked_paths,
              ElementsAre("/sys/devices/virtual/powercap", "/sys/firmware"));
  EXPECT_THAT(confine(with("mask=/proc/uptime"), {})->masked_paths, Contains("/proc/uptime"));
}

TEST(Confine, composes_a_label_only_where_there_is_selinux) {
  Security security = with("label=type:spc_t");
  ASSERT_TRUE(parse_security_option("label=level:s0:c1,c2", security).ok());
  EXPECT_EQ(confine(security, {0, "6.1", true})->selinux, "system_u:system_r:spc_t:s0:c1,c2");
  EXPECT_EQ(confine(security, {0, "6.1", false})->selinux, "");
  EXPECT_EQ(confine(with("label=disable"), {0, "6.1", true})->selinux, "");
}

TEST(ParseSecurityOption, reads_docker_s_forms) {
  EXPECT_TRUE(with("no-new-privileges").no_new_privileges);
  EXPECT_TRUE(with("no-new-privileges:true").no_new_privileges);
  EXPECT_FALSE(with("no-new-privileges=false").no_new_privileges);
  EXPECT_EQ(with("seccomp=/etc/profile.json").seccomp, "/etc/profile.json");
  EXPECT_EQ(with("apparmor:unconfined").apparmor, "unconfined");
}

TEST(ParseSecurityOption, refuses_the_rest) {
  EXPECT_EQ(fault("no-new-privileges=maybe"),
            "invalid --security-opt: 'no-new-privileges=maybe': expected true or false");
  EXPECT_EQ(fault("sandbox=on"), "invalid --security-opt: 'sandbox=on': there is no such option");
  EXPECT_EQ(fault("systempaths=confined"),
            "invalid --security-opt: 'systempaths=confined': expected systempaths=unconfined");
  EXPECT_EQ(fault("unmask=proc"), "invalid --security-opt: 'unmask=proc': expected absolute paths");
  for (const char* wrong :
       {"", "seccomp", "seccomp=", "apparmor", "label=", "label=type:", "label=nothing"}) {
    EXPECT_NE(fault(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace berth::engine
