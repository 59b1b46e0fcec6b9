// SPDX-License-Identifier: Apache-2.0
#include "oci/default_seccomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "oci/capabilities.hpp"

namespace berth::oci {
namespace {

std::vector<std::string> docker_capabilities() {
  auto names = default_capabilities();
  return {names.begin(), names.end()};
}

bool allowed_always(const Seccomp& profile, std::string_view name) {
  const auto& names = profile.syscalls.front().names;
  return std::binary_search(names.begin(), names.end(), name);
}

std::vector<SeccompSyscall> rules_of(const Seccomp& profile, std::string_view name) {
  std::vector<SeccompSyscall> rules;
  for (const auto& rule : profile.syscalls) {
    if (std::find(rule.names.begin(), rule.names.end(), name) != rule.names.end()) {
      rules.push_back(rule);
    }
  }
  return rules;
}

TEST(Capabilities, numbers_and_names_are_inverse) {
  for (unsigned number = 0; number < capability_names().size(); ++number) {
    auto name = capability_name(number);
    ASSERT_TRUE(name);
    EXPECT_EQ(capability_number(*name), number);
  }
  EXPECT_EQ(capability_number("CAP_SYS_ADMIN"), 21u);
  EXPECT_EQ(capability_number("CAP_CHECKPOINT_RESTORE"), 40u);
  EXPECT_FALSE(capability_name(41));
  EXPECT_FALSE(capability_number("sys_admin"));
}

TEST(Capabilities, reads_what_people_type) {
  EXPECT_EQ(*parse_capability("net_admin"), "CAP_NET_ADMIN");
  EXPECT_EQ(*parse_capability("CAP_Net_Admin"), "CAP_NET_ADMIN");
  auto wrong = parse_capability("NET_ADMN");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(to_line(wrong.error()), "unknown capability 'NET_ADMN'; try: NET_ADMIN");
  EXPECT_FALSE(parse_capability("").ok());
}

TEST(Capabilities, default_set_is_dockers) {
  std::vector<std::string> unknown;
  // CapBnd of a process in a default Docker container.
  EXPECT_EQ(capability_bits(docker_capabilities(), unknown), 0xa80425fbU);
  EXPECT_TRUE(unknown.empty());
}

TEST(Capabilities, unknown_names_are_told_apart) {
  std::vector<std::string> unknown;
  EXPECT_EQ(capability_bits({"CAP_KILL", "CAP_FLY"}, unknown), 1u << 5);
  EXPECT_EQ(unknown, std::vector<std::string>{"CAP_FLY"});
}

TEST(DefaultProfile, names_of_the_first_rule_are_sorted_and_unique) {
  for (auto machine : {Machine::x86_64, Machine::aarch64}) {
    auto profile = default_seccomp({"CAP_SYS_ADMIN", "CAP_BPF"}, machine);
    const auto& names = profile.syscalls.front().names;
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  }
}

TEST(DefaultProfile, denies_by_default_with_eperm) {
  auto profile = default_seccomp(docker_capabilities(), Machine::x86_64);
  EXPECT_EQ(profile.default_action, "SCMP_ACT_ERRNO");
  EXPECT_EQ(profile.default_errno_ret, unsigned{EPERM});
  EXPECT_EQ(profile.architectures.size(), 3u);
}

TEST(DefaultProfile, keeps_the_dangerous_ones_out) {
  auto profile = default_seccomp(docker_capabilities(), Machine::x86_64);
  for (auto name : {"mount",       "umount2",         "unshare",        "setns",
                    "bpf",         "perf_event_open", "keyctl",         "add_key",
                    "request_key", "io_uring_setup",  "io_uring_enter", "io_uring_register",
                    "userfaultfd", "kexec_load",      "init_module",    "open_by_handle_at",
                    "reboot",      "swapon",          "iopl",           "pivot_root",
                    "mbind"}) {
    EXPECT_TRUE(rules_of(profile, name).empty()) << name;
  }
}

TEST(DefaultProfile, a_capability_opens_its_calls) {
  struct Case {
    std::string capability;
    std::string name;
  };
  for (const auto& [capability, name] :
       {Case{"CAP_SYS_ADMIN", "mount"}, Case{"CAP_SYS_ADMIN", "unshare"}, Case{"CAP_BPF", "bpf"},
        Case{"CAP_SYS_NICE", "mbind"}, Case{"CAP_SYS_PTRACE", "kcmp"},
        Case{"CAP_SYS_CHROOT", "chroot"}, Case{"CAP_PERFMON", "perf_event_open"},
        Case{"CAP_DAC_READ_SEARCH", "open_by_handle_at"}, Case{"CAP_SYS_RAWIO", "iopl"},
        Case{"CAP_SYSLOG", "syslog"}, Case{"CAP_SYS_TIME", "settimeofday"}}) {
    EXPECT_TRUE(allowed_always(default_seccomp({capability}, Machine::x86_64), name)) << name;
    EXPECT_FALSE(allowed_always(default_seccomp({}, Machine::x86_64), name)) << name;
  }
}

TEST(DefaultProfile, clone_cannot_make_namespaces_without_sys_admin) {
  auto rules = rules_of(default_seccomp({}, Machine::x86_64), "clone");
  ASSERT_EQ(rules.size(), 1u);
  ASSERT_EQ(rules[0].args.size(), 1u);
  EXPECT_EQ(rules[0].args[0].value, 0x7E020000u);
  EXPECT_EQ(rules[0].args[0].op, "SCMP_CMP_MASKED_EQ");

  auto clone3 = rules_of(default_seccomp({}, Machine::x86_64), "clone3");
  ASSERT_EQ(clone3.size(), 1u);
  EXPECT_EQ(clone3[0].errno_ret, unsigned{ENOSYS});

  auto admin = default_seccomp({"CAP_SYS_ADMIN"}, Machine::x86_64);
  EXPECT_TRUE(allowed_always(admin, "clone"));
  EXPECT_EQ(rules_of(admin, "clone3").size(), 1u);
}

TEST(DefaultProfile, machines_have_their_own_calls) {
  auto x86 = default_seccomp({}, Machine::x86_64);
  auto arm = default_seccomp({}, Machine::aarch64);
  EXPECT_TRUE(allowed_always(x86, "arch_prctl"));
  EXPECT_FALSE(allowed_always(x86, "set_tls"));
  EXPECT_TRUE(allowed_always(arm, "set_tls"));
  EXPECT_FALSE(allowed_always(arm, "arch_prctl"));
}

}  // namespace
}  // namespace berth::oci
