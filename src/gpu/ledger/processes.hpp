// SPDX-License-Identifier: Apache-2.0
// Whose container a process of this machine runs in. See docs/decisions/0154.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ledger/ledger.hpp"

namespace berth::gpu {

/// What is known of a process, of this pid namespace.
struct SeenProcess {
  int64_t parent = 0;
  uint64_t start_time = 0;  ///< as Life has it
  std::string command;
  std::optional<uint32_t> user;
  std::vector<std::string> cgroups;  ///< below the mount points of its hierarchies
};
using SeeProcess = std::function<std::optional<SeenProcess>(int64_t pid)>;

/// Of /proc; nothing where it has ended, or is hidden from us.
std::optional<SeenProcess> see_process(int64_t pid);

/// How processes of `pid_space`, the caller's pid namespace, are looked at.
struct ProcessView {
  SeeProcess see;
  uint64_t pid_space = 0;
};

/// The lease of the container that `pid` runs in: the one whose first process is among its
/// ancestors, or whose cgroup it is in; of an MPS server one that computes through MPS. What a user
/// writes into his lease is believed of his own processes alone: the first one, or the one that
/// started it, has to be his. Null: none of them.
const KnownLease* lease_of(int64_t pid, const std::vector<const KnownLease*>& leases,
                           const ProcessView& view);

/// Of `leases` those that have `key`, or a part of it, or what it is a part of.
std::vector<const KnownLease*> leases_on(std::string_view key,
                                         const std::vector<KnownLease>& leases);

}  // namespace berth::gpu
