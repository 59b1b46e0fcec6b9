// SPDX-License-Identifier: Apache-2.0
// Who computes on a GPU without a lease: programs that nobody started through Berth, as far as the
// driver tells. They share what they have. See docs/decisions/0155.
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
  std::string key;  ///< key_of() in gpu/grant/select.hpp
  int64_t pid = 0;
  uint64_t start_time = 0;  ///< as Life has it; 0: it is hidden from us

  bool operator==(const Computing&) const = default;
};

/// So long what NVIDIA's driver told is believed: asking it takes longer than starting a container.
inline constexpr std::chrono::seconds kBelieved{5};

/// Nothing where this is no process: it has ended, or the number is of another pid namespace.
std::optional<Computing> computing_now(std::string key, int64_t pid, const SeeProcess& see);

/// Adds who computes on AMD's GPUs of `inventory` at this moment, as the kernel tells everybody: a
/// few files of its driver root. Of a GPU in partitions those whose partition is known.
void add_amd_computing(const Inventory& inventory, const SeeProcess& see,
                       std::vector<Computing>& all);

/// What the driver was asked: a job may see a part of the machine alone.
struct Asked {
  std::string driver_root;
  uint64_t pid_space = 0;         ///< inode of the pid namespace that the numbers are of
  std::vector<std::string> gpus;  ///< addresses
};
/// NVIDIA's GPUs of `inventory`, asked about from here.
Asked asked_of(const Inventory& inventory, const Here& here);

/// Keeps what the driver has just told, in `state_dir`. Errors: io.
Result<void> write_computing(const std::string& state_dir, const Asked& asked,
                             const std::vector<Computing>& processes);

/// What write_computing() has kept of (at least) these GPUs, while it is believed; else, and where
/// others could have written it, nothing.
std::optional<std::vector<Computing>> read_computing(const std::string& state_dir,
                                                     const Asked& asked);

/// Held by who asks the driver, so that those who want to know at the same moment ask once: they
/// read then what he has kept. Errors: busy (ten seconds have passed), io.
Result<sys::Fd> lock_computing(const std::string& state_dir);

/// Processes that compute, looked at when this was made: choosing, under the ledger's lock, reads
/// nothing.
class Outside {
 public:
  Outside() = default;
  /// Of `processes` those that have not ended.
  Outside(const std::vector<Computing>& processes, const ProcessView& view);

  /// One for each GPU or slice that a process computes on which is in the container of none of the
  /// leases of that GPU.
  std::vector<Holding> holdings(const std::vector<KnownLease>& leases) const;

 private:
  std::vector<Computing> processes_;
  std::map<int64_t, SeenProcess> seen_;  ///< those, and all above them
  uint64_t pid_space_ = 0;
};

}  // namespace berth::gpu
