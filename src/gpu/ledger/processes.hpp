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
  uint64_t start_time = 0;  ///< as Life has it
  std::string command;
  std::optional<uint32_t> user;
  std::vector<std::string> cgroups;  ///< below the mount points of its hierarchies
};
using SeeProcess = std::function<std::optional<SeenProcess>(int64_t pid)>;

/// From /proc; nothing if it has ended, or is hidden from us.
std::optional<SeenProcess> see_process(int64_t pid);

/// How to examine processes of `pid_space`, the caller's pid namespace.
struct ProcessView {
  SeeProcess see;
  uint64_t pid_space = 0;
};

/// The lease of the container of `pid`: its first process is an ancestor of `pid`, or `pid` is in
/// its cgroup; for an MPS server, a lease that computes through MPS. A user's lease is believed
/// about that user's own processes only: the first one, or its parent, has to be of the same user.
/// Null: none of them.
const KnownLease* lease_of(int64_t pid, const std::vector<const KnownLease*>& leases,
                           const ProcessView& view);

/// Those of `leases` that have `key`, a part of it, or the GPU that it is a part of.
std::vector<const KnownLease*> leases_on(std::string_view key,
                                         const std::vector<KnownLease>& leases);

}  // namespace berth::gpu
