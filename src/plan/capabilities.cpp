// SPDX-License-Identifier: Apache-2.0
#include "plan/capabilities.hpp"

#include <array>

namespace berth::plan {
namespace {

// In the order of linux/capability.h.
constexpr std::array<std::string_view, 41> kNames = {
    "CAP_CHOWN",           "CAP_DAC_OVERRIDE",   "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",          "CAP_FSETID",         "CAP_KILL",
    "CAP_SETGID",          "CAP_SETUID",         "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",       "CAP_NET_RAW",        "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",       "CAP_SYS_MODULE",     "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",      "CAP_SYS_PTRACE",     "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",       "CAP_SYS_BOOT",       "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",    "CAP_SYS_TIME",       "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",           "CAP_LEASE",          "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",   "CAP_SETFCAP",        "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",       "CAP_SYSLOG",         "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",   "CAP_AUDIT_READ",     "CAP_PERFMON",
    "CAP_BPF",             "CAP_CHECKPOINT_RESTORE"};

}  // namespace

std::optional<int> capability_number(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::string capability_names(uint64_t set) {
  std::string names;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (!(set >> i & 1)) continue;
    if (!names.empty()) names += ',';
    names += kNames[i];
  }
  return names;
}

}  // namespace berth::plan
