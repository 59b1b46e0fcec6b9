// SPDX-License-Identifier: Apache-2.0
#include "oci/capabilities.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::oci {
namespace {

// The index is the number (linux/capability.h, Linux 5.9 and later).
// clang-format off
constexpr std::array<std::string_view, 41> kNames{
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
    "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER",
    "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE"};
// clang-format on

// clang-format off
constexpr std::array<std::string_view, 14> kDefaults{
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
    "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SYS_CHROOT",
    "CAP_MKNOD", "CAP_AUDIT_WRITE", "CAP_SETFCAP"};
// clang-format on

}  // namespace

std::optional<unsigned> capability_number(std::string_view name) {
  auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<unsigned>(found - kNames.begin());
}

std::optional<std::string_view> capability_name(unsigned number) {
  if (number >= kNames.size()) return std::nullopt;
  return kNames[number];
}

std::span<const std::string_view> capability_names() {
  return kNames;
}

Result<std::string_view> parse_capability(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  if (!name.starts_with("CAP_")) name.insert(0, "CAP_");
  if (auto number = capability_number(name)) return kNames[*number];

  auto near = nearest(name, {kNames.begin(), kNames.end()});
  return make_error(Kind::usage, "unknown capability " + quote(text),
                    near ? std::string(near->substr(4)) : "see 'man 7 capabilities'");
}

std::span<const std::string_view> default_capabilities() {
  return kDefaults;
}

uint64_t capability_bits(const std::vector<std::string>& names, std::vector<std::string>& unknown) {
  uint64_t bits = 0;
  for (const auto& name : names) {
    if (auto number = capability_number(name)) {
      bits |= uint64_t{1} << *number;
    } else {
      unknown.push_back(name);
    }
  }
  return bits;
}

}  // namespace berth::oci
