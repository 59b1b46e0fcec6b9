// SPDX-License-Identifier: Apache-2.0
// Processes and leases of a machine that is not there.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu/ledger/processes.hpp"

namespace berth::gpu {

/// The first two GPUs of gpu_machine().
constexpr const char* kZero = "0000:10:00.0";
constexpr const char* kOne = "0000:11:00.0";

constexpr uint64_t kSpace = 7;
constexpr uint32_t kUser = 1000, kFurther = 100'000, kStranger = 1001;

inline KnownLease known_lease(std::string name, int64_t pid, std::string cgroup = {},
                              uid_t user = 0) {
  KnownLease known;
  known.user = user;
  known.lease.container = "0123456789abcdef";
  known.lease.name = std::move(name);
  known.lease.life = {pid, static_cast<uint64_t>(pid) * 10, kSpace, "boot", std::move(cgroup)};
  return known;
}

class Processes {
 public:
  void add(int64_t pid, int64_t parent, uint32_t user, std::vector<std::string> cgroups = {"/"}) {
    all_[pid] = {parent, static_cast<uint64_t>(pid) * 10, "python3", user, std::move(cgroups)};
  }
  void name(int64_t pid, std::string command) { all_[pid].command = std::move(command); }
  ProcessView view(uint64_t space = kSpace) const {
    auto see = [this](int64_t pid) -> std::optional<SeenProcess> {
      auto found = all_.find(pid);
      if (found == all_.end()) return std::nullopt;
      return found->second;
    };
    return {see, space};
  }

 private:
  std::map<int64_t, SeenProcess> all_;
};

}  // namespace berth::gpu
