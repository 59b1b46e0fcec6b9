// SPDX-License-Identifier: Apache-2.0
// Processes that compute on a GPU without a lease: started outside of Berth, found through the
// driver. Their GPUs count as shared. See docs/decisions/0155.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/grant/occupancy.hpp"
#include "gpu/inventory/inventory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/processes.hpp"

namespace berth::gpu {

/// A process that computes on a GPU or a slice.
struct Computing {
  std::string key;  ///< key_of() in gpu/inventory
  int64_t pid = 0;
  uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat; 0: we may not see it

  bool operator==(const Computing&) const = default;
};

/// How long an answer of NVIDIA's driver is reused. Asking it takes longer than starting a
/// container.
inline constexpr std::chrono::seconds kBelieved{5};

/// Nothing if there is no such process: it has ended, or `pid` is of another pid namespace.
std::optional<Computing> computing_now(std::string key, int64_t pid, const SeeProcess& see);

/// Adds the processes that compute on AMD's GPUs of `inventory`, from world-readable kernel files
/// in its driver root. On a partitioned GPU, only processes in a known partition are added.
void add_amd_computing(const Inventory& inventory, const SeeProcess& see,
                       std::vector<Computing>& all);

/// The scope of a query of the driver: a job may see only a part of the machine.
struct Asked {
  std::string driver_root;
  uint64_t pid_space = 0;         ///< inode of the pid namespace of the pids
  std::vector<std::string> gpus;  ///< PCI addresses
};
/// NVIDIA's GPUs of `inventory`, as seen from here.
Asked asked_of(const Inventory& inventory, const Here& here);

/// Saves the driver's latest answer in `state_dir`. Errors: io.
Result<void> write_computing(const std::string& state_dir, const Asked& asked,
                             const std::vector<Computing>& processes);

/// The answer that write_computing() saved for (at least) these GPUs. Nothing if it is not recent,
/// or if other users could have written it.
std::optional<std::vector<Computing>> read_computing(const std::string& state_dir,
                                                     const Asked& asked);

/// Takes the lock under which a process asks the driver, so that simultaneous callers ask once: the
/// others read the saved answer. Errors: busy (not obtained within ten seconds), io.
Result<sys::Fd> lock_computing(const std::string& state_dir);

/// Computing processes. They are examined when this object is made, so that choosing GPUs under the
/// ledger's lock reads no files.
class Outside {
 public:
  Outside() = default;
  /// Keeps those of `processes` that have not ended.
  Outside(const std::vector<Computing>& processes, const ProcessView& view);

  /// One holding for each GPU or slice with a computing process outside of all containers that have
  /// a lease of that GPU.
  std::vector<Holding> holdings(const std::vector<KnownLease>& leases) const;

 private:
  std::vector<Computing> processes_;
  std::map<int64_t, SeenProcess> seen_;  ///< the computing processes and all their ancestors
  uint64_t pid_space_ = 0;
};

}  // namespace berth::gpu
