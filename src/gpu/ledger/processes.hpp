// SPDX-License-Identifier: Apache-2.0
// Finds the container of a process of this machine. See docs/decisions/0154.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ledger/ledger.hpp"

namespace berth::gpu {

/// Facts about a process of this pid namespace.
struct SeenProcess {
  int64_t parent = 0;
  uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat
  std::string command;
  std::optional<uint32_t> user;
  std::vector<std::string> cgroups;  ///< paths below the mount points of their hierarchies
};
using SeeProcess = std::function<std::optional<SeenProcess>(int64_t pid)>;

/// Reads /proc; nothing if the process has ended or we may not see it.
std::optional<SeenProcess> see_process(int64_t pid);

/// How to examine processes of `pid_space`, the caller's pid namespace.
struct ProcessView {
  SeeProcess see;
  uint64_t pid_space = 0;
};

/// The lease of the container of `pid`: its first process is an ancestor of `pid`, or `pid` is in
/// the container's cgroup; for an MPS server, a lease that computes through MPS. A lease can claim
/// only processes of its own user: the first process, or its parent, has to belong to the user of
/// the lease. Null: no such lease.
const KnownLease* lease_of(int64_t pid, const std::vector<const KnownLease*>& leases,
                           const ProcessView& view);

/// Those of `leases` that have `key`, a part of that GPU, or the GPU that `key` is a part of.
std::vector<const KnownLease*> leases_on(std::string_view key,
                                         const std::vector<KnownLease>& leases);

}  // namespace berth::gpu
