// SPDX-License-Identifier: Apache-2.0
// The requirements of multi-node training on this node, for `berth slurm preflight`. The facts are
// gathered once; pure code judges them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.hpp"

namespace berth::doctor {

struct PreflightFacts {
  std::vector<std::string> fabric;  ///< node::Profile::fabric
  bool gpus = false;
  std::optional<uint64_t> memlock;    ///< soft RLIMIT_MEMLOCK in bytes, ~0: unlimited
  std::optional<uint64_t> shm_bytes;  ///< free in /dev/shm; none: not mounted
  std::vector<std::string> verbs;     ///< "/dev/infiniband/uverbs0"
  std::vector<std::string> closed;    ///< the nodes of `verbs` that this user may not open
  std::vector<std::string> plugins;   ///< "/opt/amazon/ofi-nccl/lib/libnccl-net.so"
  std::string topology;               ///< NCCL_TOPO_FILE; empty: not set
  bool topology_there = false;
  bool xpmem_module = false, xpmem_node = false;
  bool gdr_module = false, gdr_node = false;
  bool slurm = false;             ///< Slurm's plugins are installed
  std::vector<std::string> pmix;  ///< "/usr/lib64/slurm/mpi_pmix.so"
};

/// Examines this machine. Unreadable things count as missing. A synthetic `driver_root` replaces
/// the machine, except for limits and /dev/shm. `topology` is NCCL_TOPO_FILE.
PreflightFacts gather_preflight(const std::string& driver_root, std::vector<std::string> fabric,
                                bool gpus, const std::string& topology);

/// The soft limit in bytes of "Max locked memory" in the content of /proc/self/limits; ~0:
/// unlimited. Pure. proc_pid_limits(5)
std::optional<uint64_t> parse_memlock(std::string_view limits);

/// The answers; their ids begin with "node.". Pure.
std::vector<Answer> judge_preflight(const PreflightFacts& facts);

}  // namespace berth::doctor
