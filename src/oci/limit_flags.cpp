// SPDX-License-Identifier: Apache-2.0
#include "oci/limit_flags.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace berth::oci {
namespace {

constexpr std::string_view kPlace = "linux.resources.";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.";

/// The flag of `docker run` for a member of linux.resources: "cpu.quota" → "--cpus". Empty if there
/// is none.  docs.docker.com/reference/cli/docker/container/run
std::string_view flag_of_limit(std::string_view member) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kFlags = {{
      {"blockIO.throttleReadBpsDevice", "--device-read-bps"},
      {"blockIO.throttleReadIOPSDevice", "--device-read-iops"},
      {"blockIO.throttleWriteBpsDevice", "--device-write-bps"},
      {"blockIO.throttleWriteIOPSDevice", "--device-write-iops"},
      {"blockIO.weight", "--blkio-weight"},
      {"blockIO.weightDevice", "--blkio-weight-device"},
      {"cpu.cpus", "--cpuset-cpus"},
      {"cpu.mems", "--cpuset-mems"},
      {"cpu.period", "--cpu-period"},
      {"cpu.quota", "--cpus"},
      {"cpu.realtimePeriod", "--cpu-rt-period"},
      {"cpu.realtimeRuntime", "--cpu-rt-runtime"},
      {"cpu.shares", "--cpu-shares"},
      {"devices", "--device"},
      {"memory.disableOOMKiller", "--oom-kill-disable"},
      {"memory.limit", "--memory"},
      {"memory.reservation", "--memory-reservation"},
      {"memory.swap", "--memory-swap"},
      {"memory.swappiness", "--memory-swappiness"},
      {"pids.limit", "--pids-limit"},
  }};
  const auto* found = std::ranges::find(kFlags, member, [](const auto& one) { return one.first; });
  return found == kFlags.end() ? std::string_view() : found->second;
}

}  // namespace

std::string name_flags(std::string text) {
  for (size_t at = text.find(kPlace); at != text.npos; at = text.find(kPlace, at + 1)) {
    size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    std::string member = text.substr(at + kPlace.size(), end - at - kPlace.size());
    std::string_view flag = flag_of_limit(member);
    if (!flag.empty()) text.replace(at, end - at, flag);
  }
  return text;
}

}  // namespace berth::oci
