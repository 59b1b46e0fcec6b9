// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "gpu/ledger/record.hpp"

namespace berth::gpu {

/// The namespaces and boot that identify processes from here.
struct Here {
  std::string boot;
  uint64_t pid_space = 0;
};
/// Errors: io (no /proc).
Result<Here> look_around();

/// Names process `pid` of this machine. Errors: not_found (it has ended).
Result<Life> life_of(pid_t pid, std::string cgroup, const Here& here);

/// Whether a process is left that may have a GPU open: its first process, which in a pid namespace
/// ends last, or another one in its cgroup. In doubt (a process that we may not see, one of another
/// pid namespace) it is alive. pidfd_open(2)
bool is_alive(const Life& life, const Here& here);

}  // namespace berth::gpu
